"""DefaultPreemption: make room for an important pod by evicting less important ones.

For every node that preemption could help, all pods of lower priority are taken away; if the pod then fits,
they are put back one by one, the most important first, as long as the pod still fits. Those that cannot be
put back are the node's victims. All nodes are worked on at once: a round puts one pod back on every node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.config.args import DefaultPreemptionArgs
from moorage.framework.cycle import CycleState
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.effects import Effect, EvictPods, NominateNode
from moorage.framework.events import Action, Interest, Resource, on
from moorage.framework.handle import Handle
from moorage.framework.nodes import Nodes
from moorage.framework.points import PostFilterResult
from moorage.framework.status import Code, Status, unresolvable, unschedulable
from moorage.framework.verdict import refuse_where
from moorage.plugins.common.victims import Candidate, Victims, best_places, candidate, find_victims

NEVER = "not eligible due to preemptionPolicy=Never."
STILL_TERMINATING = "not eligible due to a terminating pod on the nominated node."
NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
UNDER_WAY = "waiting for the preemption for this pod to be finished"


class DefaultPreemption:
    """Finds the node where making room hurts least."""

    name = "DefaultPreemption"

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self._under_way: set[str] = set()

    def events(self) -> tuple[Interest, ...]:
        """Victims go, which may lift the gate; whether that makes room, those say who refused the pod."""
        return (on(Resource.POD, Action.DELETE, lambda pod, old, new: False, per_template=True),)

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """A pod whose victims are being deleted right now is not tried before that is done."""
        return unresolvable(UNDER_WAY) if pod.uid in self._under_way else None

    def post_filter(
        self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis
    ) -> PostFilterResult | Status:
        """Nominate the best candidate and evict its victims, or say why there is no candidate."""
        if reason := _not_eligible(pod, nodes, diagnosis):
            return unschedulable(f"preemption: {reason}")
        found = Diagnosis(len(nodes), left_out=unresolvable(NOT_HELPFUL))
        helped = _helped(nodes, diagnosis)
        victims, gone = self.dry_run(cycle, pod, helped, found)
        best = best_places(victims, gone, self._enough(len(helped)), self._handle.random)
        if not len(best):
            return PostFilterResult(unschedulable(f"preemption: {found.message()}"), nominated_node="")
        tied = partial(_candidates, victims, gone, best)
        return self._arrange(pod, candidate(victims, gone, int(best[0])), tied, nodes)

    def _enough(self, nodes: int) -> int:
        share = nodes * self._args.min_candidate_nodes_percentage // 100
        return min(max(share, self._args.min_candidate_nodes_absolute), nodes)

    def dry_run(
        self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis
    ) -> tuple[Victims, NDArray[np.bool_]]:
        """The pods of lower priority on nodes, and which of them must go to let the pod in.

        Nodes where it does not help have nobody go; why it does not is taken down in `diagnosis`.
        """
        victims = find_victims(pod, nodes)
        having = victims.nodes_having()
        if not having.all():
            diagnosis.refuse(self.name, nodes, refuse_where(~having, NO_VICTIMS, resolvable=False))
        gone = np.ones(len(victims.pods), bool)
        helped = self._passing(cycle, pod, victims, np.flatnonzero(having), gone, diagnosis)
        gone &= helped[victims.place]
        for turn in victims.turns():
            turn = turn[helped[victims.place[turn]]]
            gone[turn] = False
            places = victims.place[turn]
            fits = self._passing(cycle, pod, victims, places, gone, Diagnosis(len(nodes.snapshot)))
            gone[turn] = ~fits[places]
        return victims, gone

    def _passing(
        self,
        cycle: CycleState,
        pod: Pod,
        victims: Victims,
        places: NDArray[np.intp],
        gone: NDArray[np.bool_],
        diagnosis: Diagnosis,
    ) -> NDArray[np.bool_]:
        """Which nodes let the pod in without the pods that are gone; only `places` are asked."""
        passing = np.zeros(len(victims.nodes), bool)
        if len(places):
            assert self._handle.run_filters is not None
            passed = self._handle.run_filters(cycle, pod, victims.without(places, gone), diagnosis)
            passing[np.isin(victims.nodes.row_numbers(), passed.row_numbers())] = True
        return passing

    def _arrange(
        self, pod: Pod, chosen: Candidate, tied: Callable[[], Mapping[str, tuple[Pod, ...]]], nodes: Nodes
    ) -> PostFilterResult:
        # Pods of lower priority that wait for the same node would find it taken: they look elsewhere.
        waiting = nodes.snapshot.nominated.get(chosen.node, ())
        effects: list[Effect] = [
            NominateNode(info.pod, "") for info in waiting if info.pod.priority < pod.priority
        ]
        leaving = tuple(victim for victim in chosen.victims if not victim.terminating)
        if not leaving:
            return PostFilterResult(nominated_node=chosen.node, effects=tuple(effects), tied=tied)
        effects.append(EvictPods(leaving, pod, chosen.node, self.name))
        self._under_way.add(pod.uid)
        return PostFilterResult(
            nominated_node=chosen.node,
            effects=tuple(effects),
            done=lambda: self._under_way.discard(pod.uid),
            tied=tied,
        )


def _candidates(
    victims: Victims, gone: NDArray[np.bool_], places: NDArray[np.intp]
) -> dict[str, tuple[Pod, ...]]:
    chosen = (candidate(victims, gone, place) for place in places.tolist())
    return {each.node: each.victims for each in chosen}


def _not_eligible(pod: Pod, nodes: Nodes, diagnosis: Diagnosis) -> str:
    """Why a pod may not preempt others now; empty if it may."""
    if pod.spec.preemption_policy == "Never":
        return NEVER
    row = nodes.snapshot.row_of.get(pod.status.nominated_node_name)
    if row is None or diagnosis.code_of(row) is Code.UNRESOLVABLE:
        return ""
    leaving = (info.pod for info in nodes.snapshot.pods_of(row).values() if info.pod.priority < pod.priority)
    return STILL_TERMINATING if any(_preempted(other) for other in leaving) else ""


def _preempted(pod: Pod) -> bool:
    """Whether a pod is on its way out because a scheduler evicted it."""
    condition = next((c for c in pod.status.conditions if c.type == "DisruptionTarget"), None)
    if not pod.terminating or condition is None:
        return False
    return condition.status == "True" and condition.reason == "PreemptionByScheduler"


def _helped(nodes: Nodes, diagnosis: Diagnosis) -> Nodes:
    """The nodes that were refused for a reason that evicting pods could remove."""
    codes = [refusal.reason.code is Code.UNSCHEDULABLE for refusal in diagnosis.refusals]
    everywhere = diagnosis.pre_filter is not None and diagnosis.pre_filter.code is Code.UNSCHEDULABLE
    return nodes.where(np.array([*codes, everywhere])[diagnosis.codes])
