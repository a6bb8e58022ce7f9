"""Victims on a single node, in plain Python: the one-node form of `plugin` and `victims`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from moorage.api.pod import Pod
from moorage.cluster.pod_table import NOT_STARTED, PodInfo, start_microseconds
from moorage.cluster.snapshot import Snapshot
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Refusal
from moorage.framework.interface.nodes import NodeView
from moorage.framework.runtime.single_node_filters import SingleNodeFilters
from moorage.plugins.default_preemption.budgets import Budgets


class NodeVictimSelection(NamedTuple):
    """The result of a dry run on one node.

    victims: the most important first; none if preemption does not help, or if no pod has to be removed.
    pdb_violations: how many of them violate a PodDisruptionBudget.
    refusal: why the node is rejected even without all pods of lower priority.
    """

    victims: Sequence[PodInfo] = ()
    pdb_violations: int = 0
    refusal: Refusal | None = None


def lower_pods(snapshot: Snapshot, row: int, priority: int) -> list[PodInfo]:
    """The pods of lower priority on a node, in its order."""
    return [info for info in snapshot.pods_of(row).infos if info.priority < priority]


def by_importance(pods: Iterable[PodInfo]) -> list[PodInfo]:
    """Pods of a node, which are given in its order, the most important first: see `victims.importance`."""
    keys = []
    for place, info in enumerate(pods):
        started = start_microseconds(info)
        keys.append((-info.priority, started, -place if started == NOT_STARTED else place, info))
    keys.sort()  # No two pods have all three keys in common: infos are not compared.
    return [info for _, _, _, info in keys]


class SingleNodeDryRun:
    """Selects victims on single nodes, for one pod in one cycle."""

    def __init__(self, cycle: CycleState, pod: Pod, filters: SingleNodeFilters, budgets: Budgets) -> None:
        self._cycle = cycle
        self._pod = pod
        self._priority = pod.priority
        self._filters = filters
        self._budgets = budgets

    def select_victims(
        self, snapshot: Snapshot, row: int, no_victims: Refusal, *, is_known_node: bool
    ) -> NodeVictimSelection:
        """The victims on a node.

        no_victims: the refusal if no pod has a lower priority. is_known_node: whether the node is known to
        pass with some of its pods removed.
        """
        lower = lower_pods(snapshot, row, self._priority)
        if not lower:
            return NodeVictimSelection(refusal=no_victims)
        views = []
        for node in self._suppositions(snapshot, row):
            view = node.without(lower)
            refusal = self._filters.refusal(self._cycle, self._pod, view, is_known_node=is_known_node)
            if refusal is not None:
                return NodeVictimSelection(refusal=refusal)
            views.append(view)
        lower = by_importance(lower)
        breaking = self._budgets.pdb_violations_on_node(lower)
        removed = self._not_reprieved(views, lower, _reprieve_order(breaking), None)
        return NodeVictimSelection(
            [lower[index] for index in removed], sum(breaking[index] for index in removed)
        )

    def victims(self, snapshot: Snapshot, row: int, count: int) -> list[PodInfo]:
        """The victims on a node that is known to have `count` of them, the most important first."""
        lower = by_importance(lower_pods(snapshot, row, self._priority))
        if count == len(lower):
            return lower
        views = [node.without(lower) for node in self._suppositions(snapshot, row)]
        order = _reprieve_order(self._budgets.pdb_violations_on_node(lower))
        return [lower[index] for index in self._not_reprieved(views, lower, order, count)]

    def _not_reprieved(
        self, views: list[NodeView], lower: Sequence[PodInfo], order: Sequence[int], count: int | None
    ) -> list[int]:
        """The pods of `lower`, in order, that cannot be put back one by one without a filter's refusal.

        views: the node without any of them. order: the reprieve order.
        count: the number of victims, if it is known; then pods about which nothing is open are not tried.
        """
        removed: list[int] = []
        for tried, index in enumerate(order):
            if count is not None and tried - len(removed) == len(order) - count:
                removed += order[tried:]  # As many are spared as can be.
                break
            if len(removed) == count:
                break
            spared = [view.putting_back(lower[index]) for view in views]
            if all(map(self._passes, spared)):
                views = spared
            else:
                removed.append(index)
        return sorted(removed)

    def _suppositions(self, snapshot: Snapshot, row: int) -> list[NodeView]:
        """A node with the pods nominated to it that take precedence, if there are any, and without them."""
        node = NodeView(snapshot, row)
        nominated = snapshot.nominated.on(snapshot.names[row])
        if not nominated:
            return [node]
        priority, uid = self._priority, self._pod.uid
        added = [info for info in nominated if info.priority >= priority and info.pod.uid != uid]
        return [NodeView(snapshot, row, tuple(added)), node] if added else [node]

    def _passes(self, node: NodeView) -> bool:
        return self._filters.refusal(self._cycle, self._pod, node, is_known_node=True) is None


def _reprieve_order(breaking: Sequence[bool]) -> Sequence[int]:
    """The order in which pods are reprieved, by index: PDB violators first; sorting is stable."""
    order = range(len(breaking))
    return sorted(order, key=lambda index: not breaking[index]) if any(breaking) else order
