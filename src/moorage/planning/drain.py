"""Nodes drained on paper: where their pods would go, and what would keep the drain from its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from moorage.api.base import Object
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.planning.budgets import DisruptionBudgets
from moorage.planning.evictions import NOTHING_LOST, Permissions, drain_obstacle, goes_with_its_node
from moorage.planning.results import (
    FORMAT,
    Interrupted,
    Move,
    Progress,
    StayingPod,
    Struct,
    Usage,
    WaitingPod,
    no_progress,
)
from moorage.planning.trial import Placement, Trial, existing
from moorage.simulation.settings import Settings


class Drain(Struct, kw_only=True):
    """A drain of nodes, one after another, each pod evicted when its budget allows it."""

    api_version: str = FORMAT
    kind: str = "DrainPlan"
    complete: bool
    """False if it was interrupted: the moves are those up to then."""
    nodes: list[str]
    moves: list[Move]
    """The pods that were evicted and got another node, in this order."""
    pending: list[WaitingPod]
    """The pods that were evicted and are without a node in the end."""
    blocked: list[StayingPod]
    """The pods that `kubectl drain` would wait for without end, or refuse to evict."""
    ignored: int
    """Pods of DaemonSets and static pods, which stay."""
    pending_before: int
    usage: list[Usage]
    """What is requested of the nodes that are left, in the end."""

    @property
    def succeeds(self) -> bool:
        """Whether all pods leave, and get other nodes."""
        return not self.blocked and not self.pending


def plan_drain(
    objects: Iterable[Object],
    nodes: Sequence[str],
    settings: Settings,
    permitted: Permissions = NOTHING_LOST,
    progress: Progress = no_progress,
) -> Drain:
    """Drain nodes by name, on paper: all are cordoned first; InputError if one is not there."""
    objects = list(objects)
    trial, budgets = Trial(objects, settings), DisruptionBudgets(objects)
    drained = existing(nodes, trial)
    pending_before = trial.settle()
    for node in drained:
        trial.cordon(node)
    draining = Draining(trial, budgets)
    plan = Drain(
        complete=False,
        nodes=list(nodes),
        moves=draining.moves,
        pending=[],
        blocked=[],
        ignored=0,
        pending_before=pending_before,
        usage=[],
    )
    pods = {node.name: trial.pods_on(node) for node in drained}
    with suppress(Interrupted):
        for number, node in enumerate(drained):
            _drain(draining, pods[node.name], permitted, plan)
            progress(number + 1, len(drained))
        plan.complete = True
    plan.pending = draining.pending()
    plan.usage = _usage_without(trial, drained)
    return plan


def _drain(draining: Draining, pods: Sequence[Pod], permitted: Permissions, plan: Drain) -> None:
    """Evict the pods of one node."""
    waiting = []
    for pod in pods:
        if goes_with_its_node(pod):
            plan.ignored += 1
        elif why := drain_obstacle(pod, permitted):
            plan.blocked.append(_staying(pod, why))
        elif not pod.terminating:
            waiting.append(pod)
    plan.blocked += [_staying(pod, *why) for pod, why in draining.evict_all(waiting)]


def _staying(pod: Pod, reason: str, budget: str = "") -> StayingPod:
    return StayingPod(
        namespace=pod.namespace, name=pod.name, node=pod.spec.node_name, reason=reason, budget=budget
    )


def _usage_without(trial: Trial, nodes: Sequence[Node]) -> list[Usage]:
    """What is requested of all nodes but some."""
    mark = trial.mark()
    for node in nodes:
        trial.remove_node(node)
    usage = trial.usage()
    trial.undo_to(mark)
    return usage


class Draining:
    """Evictions one by one, as disruption budgets allow them; the successor of each pod is placed at once."""

    def __init__(self, trial: Trial, budgets: DisruptionBudgets) -> None:
        self._trial = trial
        self._budgets = budgets
        self.moves: list[Move] = []
        self._pending: list[tuple[Placement, str]] = []
        """The pods that got no node, each with the node that it was on."""

    def evict_all(self, pods: Sequence[Pod]) -> list[tuple[Pod, tuple[str, str]]]:
        """Evict pods, again and again while that helps; returns those that stay, with reason and budget."""
        waiting = list(pods)
        while True:
            refused = []
            for pod in waiting:
                why = self._budgets.refusal(pod)
                if why[0]:
                    refused.append((pod, why))
                else:
                    self._evict(pod)
            has_placed = self._place_pending()
            if len(refused) == len(waiting) and not has_placed:
                return refused
            waiting = [pod for pod, _ in refused]

    def pending(self) -> list[WaitingPod]:
        """The pods that were evicted and have no node."""
        return [placement.waiting(source) for placement, source in self._pending]

    def _evict(self, pod: Pod) -> None:
        again = self._trial.evict(pod)
        self._budgets.evicted(pod)
        self._place(again, pod.spec.node_name)

    def _place_pending(self) -> bool:
        """Try the pending pods again; returns whether one got a node."""
        pending, self._pending = self._pending, []
        placed = [self._place(placement.pod, source) for placement, source in pending]
        return any(placed)

    def _place(self, pod: Pod, source: str) -> bool:
        placement = self._trial.place(pod)
        if not placement.node:
            self._pending.append((placement, source))
            return False
        self._budgets.recreated(pod)
        self.moves.append(placement.move(source))
        return True
