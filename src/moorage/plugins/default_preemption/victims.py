"""Potential victims on many nodes at once, in reprieve order, and their statistics by node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.cluster.pod_table import NOT_STARTED, PodInfo, PodTable
from moorage.framework.interface.hypothetical_pods import HypotheticalPods
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.default_preemption.budgets import Budgets

_PRIORITY_OFFSET: Final = 1 << 31
"""Makes every priority positive, so that more victims never sum up to less."""


@dataclass(frozen=True, slots=True, eq=False)
class Victims:
    """Potential victims, node by node. All arrays have one entry per pod."""

    nodes: Nodes
    place: NDArray[np.intp]
    """The pod's node, by its index in `nodes`."""
    pods: NDArray[np.intp]
    """The pod, by its row in the snapshot's pod table."""
    violates: NDArray[np.bool_]
    """Whether evicting the pod, after all more important ones, violates a PodDisruptionBudget."""

    @property
    def priority(self) -> NDArray[np.int64]:
        """The pods' priorities."""
        return self.nodes.snapshot.pods.priority.values[self.pods]

    @property
    def started(self) -> NDArray[np.int64]:
        """When the pods started; pods that have not started yet come last."""
        return self.nodes.snapshot.pods.started.values[self.pods]

    def nodes_having(self) -> NDArray[np.bool_]:
        """Which nodes have any. Shape (nodes,)."""
        return np.bincount(self.place, minlength=len(self.nodes)) > 0

    def reprieve_rounds(self) -> Iterator[NDArray[np.intp]]:
        """The pods in rounds: the first of every node, the second of every node, and so on."""
        first = np.searchsorted(self.place, self.place)
        rank = np.arange(len(self.place)) - first
        order = np.argsort(rank, kind="stable")
        return iter(np.split(order, np.cumsum(np.bincount(rank))[:-1])) if len(order) else iter(())

    def without(self, places: NDArray[np.intp], removed: NDArray[np.bool_]) -> Nodes:
        """Some nodes without the pods that are `removed` (one entry per pod)."""
        renumbered = np.full(len(self.nodes), -1, np.intp)
        renumbered[places] = np.arange(len(places))
        leaving = removed & (renumbered[self.place] >= 0)
        chosen = self.nodes.at(places)
        changes = HypotheticalPods(
            self.nodes.snapshot, len(places), renumbered[self.place[leaving]], self.pods[leaving]
        )
        return Nodes(chosen.snapshot, chosen.row_numbers(), changes)

    def removed_from(self, row: int, removed: NDArray[np.bool_]) -> tuple[Pod, ...] | None:
        """The pods removed from the node in a row, the most important first; None: not one of these nodes."""
        found = np.flatnonzero(self.nodes.row_numbers() == row)
        if not len(found):
            return None
        here = self.pods[removed & (self.place == found[0])]
        infos = self.nodes.snapshot.pods.infos
        order = np.lexsort(importance(self.nodes, here))
        return tuple(infos[pod].pod for pod in here[order].tolist())


class PotentialVictims:
    """The pods that may be evicted: those of lower priority, or others that a plugin has chosen.

    chosen: one entry per row of the snapshot's pod table; None: all pods of lower priority.
    """

    __slots__ = ("_chosen", "_pods", "_priority")

    def __init__(self, priority: int, pods: PodTable, chosen: NDArray[np.bool_] | None = None) -> None:
        self._priority = priority
        self._pods = pods
        self._chosen = chosen

    @property
    def are_chosen(self) -> bool:
        """Whether a plugin has chosen them."""
        return self._chosen is not None

    def mask(self) -> NDArray[np.bool_]:
        """Which pods these are, by row of the pod table."""
        return self._pods.priority.values < self._priority if self._chosen is None else self._chosen

    def include(self, info: PodInfo) -> bool:
        """Whether a pod is one of them."""
        if self._chosen is None:
            return info.pod.priority < self._priority
        return any(self._chosen[row] for row in self._pods.rows_of([info.pod.uid]))

    def include_unit(self, priority: int, infos: Iterable[PodInfo]) -> bool:
        """Whether pods that can only be evicted together are all among them.

        priority: that of the pods as a whole.
        """
        return priority < self._priority if self._chosen is None else all(map(self.include, infos))


def find_victims(potential: PotentialVictims, nodes: Nodes, budgets: Budgets) -> Victims:
    """All pods that may be evicted: PDB violators first, then by importance: the reprieve order."""
    table = nodes.snapshot.pods
    place_of = np.full(len(nodes.snapshot), -1, np.intp)
    place_of[nodes.row_numbers()] = np.arange(len(nodes))
    places = place_of[table.node_rows]
    pods = np.flatnonzero((places >= 0) & potential.mask())
    pods = pods[np.lexsort((*importance(nodes, pods), places[pods]))]
    violates = budgets.pdb_violations(nodes.snapshot, places[pods], pods)
    reprieve_order = np.lexsort((~violates, places[pods]))
    return Victims(nodes, places[pods][reprieve_order], pods[reprieve_order], violates[reprieve_order])


def importance(nodes: Nodes, pods: NDArray[np.intp]) -> tuple[NDArray[np.int64], ...]:
    """Sort keys that put the most important pods first: by priority, then by start time.

    Of two that started at the same time, the one that is earlier in its node's list comes first. A pod that
    has not started counts as started now; of two such pods kube-scheduler treats the one that is later in the
    list as older, because it reads the clock twice.
    """
    table = nodes.snapshot.pods
    started, priority = table.started.values[pods], table.priority.values[pods]
    tie = np.zeros(len(pods), np.int64)
    equals = _having_equals(table.node_rows[pods], priority, started)
    tie[equals] = nodes.snapshot.node_index_of_pods(pods[equals])
    return np.where(started == NOT_STARTED, -tie, tie), started, -priority


def _having_equals(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Which entries are equal to some other one in all columns."""
    order = np.lexsort(columns)
    is_as_before = np.ones(max(len(order) - 1, 0), bool)
    for column in columns:
        ordered = column[order]
        is_as_before &= ordered[1:] == ordered[:-1]
    has_equals = np.zeros(len(order), bool)
    has_equals[order[1:][is_as_before]] = True
    has_equals[order[:-1][is_as_before]] = True
    return has_equals


class VictimStats:
    """Statistics of the victims on each row of a snapshot. A row without victims is no candidate.

    pdb_violations: the number of PDB violations among them.
    highest_priority: the highest priority among them.
    priority_sum: the sum of their priorities, each made positive.
    count: the number of victims.
    negated_start: when the first of those of the highest priority started, in microseconds before 1970.
    ranks: all of these in the order in which candidates are compared; of each, the lowest is the best.
    has_pdb_violations: whether any row has, or had, PDB violations.
    """

    __slots__ = (
        "count",
        "has_pdb_violations",
        "highest_priority",
        "negated_start",
        "pdb_violations",
        "priority_sum",
        "ranks",
    )

    def __init__(self, rows: int) -> None:
        self.ranks = ranks = np.zeros((5, rows), np.int64)
        self.pdb_violations, self.highest_priority, self.priority_sum, self.count, self.negated_start = ranks
        self.has_pdb_violations = False

    def put_all(self, rows: NDArray[np.intp], victims: Victims, removed: NDArray[np.bool_]) -> None:
        """Store which pods are removed from the nodes of `victims`, which are in these rows."""
        size = len(rows)
        place, priority, started = victims.place[removed], victims.priority[removed], victims.started[removed]
        highest_priority = np.full(size, np.iinfo(np.int64).min)
        np.maximum.at(highest_priority, place, priority)
        priority_sum = np.zeros(size, np.int64)
        np.add.at(priority_sum, place, priority + _PRIORITY_OFFSET)
        most_important = priority == highest_priority[place]
        earliest_start = np.full(size, np.iinfo(np.int64).max)
        np.minimum.at(earliest_start, place[most_important], started[most_important])
        self.count[rows] = np.bincount(place, minlength=size)
        violating = place[victims.violates[removed]]
        self.pdb_violations[rows] = np.bincount(violating, minlength=size)
        self.has_pdb_violations |= len(violating) > 0
        self.highest_priority[rows] = highest_priority
        self.priority_sum[rows] = priority_sum
        self.negated_start[rows] = -earliest_start

    def copy_from(self, other: VictimStats, rows: NDArray[np.intp]) -> None:
        """Take over the statistics of some rows."""
        self.has_pdb_violations |= other.has_pdb_violations
        self.ranks[:, rows] = other.ranks[:, rows]

    def put(self, row: int, priorities: Sequence[int], started: Sequence[int], pdb_violations: int) -> None:
        """Store the pods that are removed from one node, the most important first."""
        self.count[row] = len(priorities)
        if priorities:
            self.pdb_violations[row] = pdb_violations
            self.has_pdb_violations |= pdb_violations > 0
            self.highest_priority[row] = priorities[0]
            self.priority_sum[row] = sum(priorities) + len(priorities) * _PRIORITY_OFFSET
            self.negated_start[row] = -min(started[: priorities.count(priorities[0])])
