"""Who has to go from one node to let a pod in: as `victims`, but for a node alone, and in plain Python."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.api.pod import Pod
from moorage.cluster.pods import NOT_STARTED, PodInfo
from moorage.cluster.snapshot import Snapshot
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Refusal
from moorage.framework.interface.nodes import NodeView
from moorage.framework.runtime.single_node_filters import SingleNodeFilters
from moorage.plugins.common.budgets import Budgets


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that could go, and when it started, in microseconds."""

    info: PodInfo
    started: int


@dataclass(frozen=True, slots=True)
class Eviction:
    """What would happen on a node.

    victims: the most important first; none if evicting does not help, or if nobody has to go.
    broken: how many of them break a disruption budget.
    refusal: why the node is refused even if all pods of lower priority were gone.
    """

    victims: tuple[Victim, ...] = ()
    broken: int = 0
    refusal: Refusal | None = None


def lower_pods(snapshot: Snapshot, row: int, priority: int) -> list[Victim]:
    """The pods of lower priority on a node, the most important first: see `victims.importance`."""
    lower = [
        (place, info)
        for place, info in enumerate(snapshot.pods_of(row).values())
        if info.pod.priority < priority
    ]
    if not lower:
        return []
    rows = snapshot.pods.rows_of([info.pod.uid for _, info in lower])
    started = snapshot.pods.started.values[rows].tolist()
    ordered = sorted(
        (-info.pod.priority, start, -place if start == NOT_STARTED else 0, place, info)
        for start, (place, info) in zip(started, lower, strict=True)
    )
    return [Victim(info, start) for _, start, _, _, info in ordered]


class NodeTrial:
    """Tries pods out on single nodes, for one pod in one cycle."""

    def __init__(self, cycle: CycleState, pod: Pod, filters: SingleNodeFilters, budgets: Budgets) -> None:
        self._cycle = cycle
        self._pod = pod
        self._filters = filters
        self._budgets = budgets

    def evict(self, snapshot: Snapshot, row: int, nobody: Refusal, *, is_known_node: bool) -> Eviction:
        """Who has to go from a node.

        nobody: what to say where there is nobody of lower priority. is_known_node: whether the node lets the
        pod in with some of its pods gone, unless it has changed itself.
        """
        lower = lower_pods(snapshot, row, self._pod.priority)
        if not lower:
            return Eviction(refusal=nobody)
        views = [
            node.without([victim.info for victim in lower]) for node in self._suppositions(snapshot, row)
        ]
        for view in views:
            refusal = self._filters.refusal(self._cycle, self._pod, view, is_known_node=is_known_node)
            if refusal is not None:
                return Eviction(refusal=refusal)
        breaking = self._budgets.broken_on_node([victim.info for victim in lower])
        # Those whose eviction breaks a budget are spared first; sorting leaves all else as it is.
        mercy = sorted(range(len(lower)), key=lambda index: not breaking[index])
        gone = []
        for index in mercy:
            spared = [view.putting_back(lower[index].info) for view in views]
            if all(self._passes(view) for view in spared):
                views = spared
            else:
                gone.append(index)
        return Eviction(tuple(lower[index] for index in sorted(gone)), sum(breaking[index] for index in gone))

    def _suppositions(self, snapshot: Snapshot, row: int) -> list[NodeView]:
        """A node with the pods nominated to it that count before this one, if there are any, and without."""
        added = tuple(
            info
            for info in snapshot.nominated.on(snapshot.names[row])
            if info.pod.priority >= self._pod.priority and info.pod.uid != self._pod.uid
        )
        alone = NodeView(snapshot, row)
        return [NodeView(snapshot, row, added), alone] if added else [alone]

    def _passes(self, node: NodeView) -> bool:
        return self._filters.refusal(self._cycle, self._pod, node, is_known_node=True) is None
