"""Victims on a single node, in plain Python: the one-node form of `plugin` and `victims`."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.api.pod import Pod
from moorage.cluster.pod_table import NOT_STARTED, PodInfo
from moorage.cluster.snapshot import Snapshot
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Refusal
from moorage.framework.interface.nodes import NodeView
from moorage.framework.runtime.single_node_filters import SingleNodeFilters
from moorage.plugins.default_preemption.budgets import Budgets


@dataclass(frozen=True, slots=True)
class Victim:
    """A potential victim, and its start time in microseconds."""

    info: PodInfo
    started: int


@dataclass(frozen=True, slots=True)
class NodeVictimSelection:
    """The result of a dry run on one node.

    victims: the most important first; none if preemption does not help, or if no pod has to be removed.
    pdb_violations: how many of them violate a PodDisruptionBudget.
    refusal: why the node is rejected even without all pods of lower priority.
    """

    victims: tuple[Victim, ...] = ()
    pdb_violations: int = 0
    refusal: Refusal | None = None


def lower_pods(snapshot: Snapshot, row: int, priority: int) -> list[Victim]:
    """The pods of lower priority on a node, the most important first: see `victims.importance`."""
    lower = [
        (place, info)
        for place, info in enumerate(snapshot.pods_of(row).infos)
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


class SingleNodeDryRun:
    """Selects victims on single nodes, for one pod in one cycle."""

    def __init__(self, cycle: CycleState, pod: Pod, filters: SingleNodeFilters, budgets: Budgets) -> None:
        self._cycle = cycle
        self._pod = pod
        self._filters = filters
        self._budgets = budgets

    def select_victims(
        self, snapshot: Snapshot, row: int, no_victims: Refusal, *, is_known_node: bool
    ) -> NodeVictimSelection:
        """The victims on a node.

        no_victims: the refusal if no pod has a lower priority. is_known_node: whether the node is known to
        pass with some of its pods removed.
        """
        lower = lower_pods(snapshot, row, self._pod.priority)
        if not lower:
            return NodeVictimSelection(refusal=no_victims)
        views = [
            node.without([victim.info for victim in lower]) for node in self._suppositions(snapshot, row)
        ]
        for view in views:
            refusal = self._filters.refusal(self._cycle, self._pod, view, is_known_node=is_known_node)
            if refusal is not None:
                return NodeVictimSelection(refusal=refusal)
        breaking = self._budgets.pdb_violations_on_node([victim.info for victim in lower])
        # PDB violators are reprieved first; sorting is stable.
        reprieve_order = sorted(range(len(lower)), key=lambda index: not breaking[index])
        removed = []
        for index in reprieve_order:
            spared = [view.putting_back(lower[index].info) for view in views]
            if all(self._passes(view) for view in spared):
                views = spared
            else:
                removed.append(index)
        return NodeVictimSelection(
            tuple(lower[index] for index in sorted(removed)), sum(breaking[index] for index in removed)
        )

    def _suppositions(self, snapshot: Snapshot, row: int) -> list[NodeView]:
        """A node with the pods nominated to it that take precedence, if there are any, and without them."""
        added = tuple(
            info
            for info in snapshot.nominated.on(snapshot.names[row])
            if info.pod.priority >= self._pod.priority and info.pod.uid != self._pod.uid
        )
        alone = NodeView(snapshot, row)
        return [NodeView(snapshot, row, added), alone] if added else [alone]

    def _passes(self, node: NodeView) -> bool:
        return self._filters.refusal(self._cycle, self._pod, node, is_known_node=True) is None
