"""Why a pod is where it is, or nowhere: the decision for it today, taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from moorage.api.pod import Pod
from moorage.client.scheduler_api import QueueEntry
from moorage.engine.decision import Decision
from moorage.explain.bound import BoundPod, bound_pod
from moorage.explain.evaluation import (
    AllRefusals,
    PluginScores,
    RefusedNodes,
    all_refusals,
    first_refusals,
    score_parts,
)
from moorage.explain.groups import GroupState, group_state
from moorage.explain.help.problem import Problem
from moorage.explain.help.search import Suggestion, suggestions
from moorage.explain.help.trials import Trials
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.effects import EvictPods
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import PluginError
from moorage.framework.runtime.plan import CallDecision
from moorage.sim.cluster import SimulatedCluster

_RAN = (CallDecision.RUNS, CallDecision.CACHED, CallDecision.NOT_ENABLED)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Plugins that did not run at an extension point, for the same reason."""

    point: str
    why: str
    plugins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lead:
    """By how much the chosen node leads the second: plugin by plugin, weighted."""

    second: str
    total: int
    by_plugin: dict[str, int]


@dataclass(slots=True, eq=False)
class Explanation:
    """The evaluation of one pod.

    pod: as it is in the cluster; `decision` is about the same pod as if it were pending.
    not_tried: why a scheduler does not try the pod at all; then there is no decision.
    """

    pod: Pod
    not_tried: str = ""
    decision: Decision | None = None
    refused: Sequence[RefusedNodes] = ()
    """The nodes by the first plugin that rejects them."""
    all_refused: AllRefusals = field(default_factory=lambda: AllRefusals((), ()))
    scores: Sequence[PluginScores] = ()
    left_out: Sequence[LeftOut] = ()
    bound: BoundPod | None = None
    """For a pod on a node: what has changed since it got it."""
    group: GroupState | None = None
    """For a pod in a group: the state of that."""
    help: Sequence[Suggestion] = ()
    """What would make an unschedulable pod schedulable."""
    queue: QueueEntry | None = None
    """The pod's entry in the queue of a running scheduler, if that was asked and has one."""
    notes: list[str] = field(default_factory=list)
    """What the evaluation could not take into account."""

    @property
    def node_count(self) -> int:
        """Number of nodes in the cluster."""
        return 0 if self.decision is None else len(self.decision.feasible.snapshot)

    @property
    def victims(self) -> list[Pod]:
        """The pods that preemption would evict."""
        made = None if self.decision is None else self.decision.post_filter
        effects = () if made is None else made.effects
        return [victim for each in effects if isinstance(each, EvictPods) for victim in each.victims]

    @property
    def nominated(self) -> str:
        """The node on which preemption would make room; empty: none."""
        made = None if self.decision is None else self.decision.post_filter
        return "" if made is None else made.nominated_node or ""

    @property
    def verdict(self) -> str:
        """One sentence that says it all."""
        pod, decision = self.pod, self.decision
        if self.group is not None and not self.group.is_scheduled and not pod.spec.node_name:
            return f"{pod.key} waits for its group: {self.group.name} cannot be scheduled"
        if self.not_tried:
            return f"{pod.key} is not scheduled: {self.not_tried}"
        assert decision is not None
        if decision.error is not None:
            return f"{pod.key} cannot be scheduled: {decision.error}"
        if pod.spec.node_name:
            return f"{pod.key} is on {pod.spec.node_name}{self._today(decision)}"
        if decision.node is None:
            evicting = f"; evicting {_count(len(self.victims), 'pod')} would make room on {self.nominated}"
            fits = f"{pod.key} fits none of {_count(self.node_count, 'node')}"
            return fits + (evicting if self.nominated else "")
        fitting = f"{len(decision.feasible)} of {_count(self.node_count, 'node')}"
        return f"{pod.key} fits {fitting} and would be placed on {decision.node}{_tie(decision)}"

    def _today(self, decision: Decision) -> str:
        """Where a bound pod would be placed today."""
        if self.pod.spec.node_name in decision.best():
            return f" and would be placed there again today{_tie(decision)}"
        if decision.node is None:
            return " and would fit nowhere today"
        return f"; today it would be placed on {decision.node}{_tie(decision)}"

    def lead(self) -> Lead | None:
        """The difference between the chosen node and the second; None if only one node was scored."""
        decision = self.decision
        if decision is None or decision.scores is None or decision.node is None:
            return None
        totals = decision.scores.totals.astype(np.int64)
        first = decision.feasible.names.index(decision.node)
        others = totals.copy()
        others[first] = np.iinfo(np.int64).min
        second = int(others.argmax())
        return Lead(
            decision.feasible.name(second),
            int(totals[first] - totals[second]),
            {each.plugin: int(each.weighted[first]) - int(each.weighted[second]) for each in self.scores},
        )


def explain(cluster: SimulatedCluster, pod: Pod) -> Explanation:
    """The explanation of a pod, pending or on a node, in a cluster; the cluster stays as it is."""
    group = None if pod.spec.node_name else group_state(cluster, pod)
    if standing := cluster.not_tried(pod):
        return Explanation(pod, standing, group=group)
    if pod.spec.node_name:
        cluster.cache.remove_pod(pod)
    pending, cycle = replace(pod, spec=replace(pod.spec, node_name="")), CycleState()
    try:
        explanation = Explanation(pod, decision=cluster.decide(pending, cycle), group=group)
        _take_apart(explanation, cluster, pending, cycle)
    finally:
        if pod.spec.node_name:
            cluster.cache.put(pod)
    return explanation


def _take_apart(explanation: Explanation, cluster: SimulatedCluster, pod: Pod, cycle: CycleState) -> None:
    """Add what the decision for a pending pod rests on."""
    decision = explanation.decision
    assert decision is not None
    explanation.refused = first_refusals(decision)
    if decision.post_filter is not None:
        decision.post_filter.done()  # Nothing is evicted: the pod does not wait for it.
    if decision.error is not None:
        return
    framework = cluster.framework_of(pod)
    explanation.scores = score_parts(framework, cycle, decision)
    explanation.left_out = left_out(cluster, cycle, pod)
    try:
        snapshot = decision.feasible.snapshot
        explanation.all_refused = all_refusals(framework, pod, Nodes(snapshot))
        if explanation.pod.spec.node_name:
            explanation.bound = bound_pod(
                explanation.pod, decision, explanation.all_refused, explanation.scores, cluster.cache
            )
        if not len(decision.feasible) and len(snapshot):
            trials = Trials(framework, cluster.cache, pod)
            explanation.help = suggestions(Problem(framework, pod, snapshot, explanation.all_refused, trials))
    except PluginError as error:
        explanation.notes.append(f"a filter that the scheduling cycle did not reach fails: {error}")


def left_out(cluster: SimulatedCluster, cycle: CycleState, pod: Pod) -> list[LeftOut]:
    """Which plugins of a pod's profile did not run in a cycle, and why."""
    plugins: dict[tuple[str, str], list[str]] = {}
    for point, plugin, choice in cluster.framework_of(pod).plan(cycle).rows():
        if choice not in _RAN:
            plugins.setdefault((point, choice.removeprefix("left out: ")), []).append(plugin)
    return [LeftOut(point, why, tuple(names)) for (point, why), names in plugins.items()]


def _tie(decision: Decision) -> str:
    tied = len(decision.best())
    return f" (one of {tied} equally good nodes)" if tied > 1 else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
