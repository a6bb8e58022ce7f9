"""Candidates for preemption: which nodes are evaluated, and which is picked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.cluster.snapshot import Snapshot
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.nodes import Nodes
from moorage.plugins.default_preemption.victims import Victims

_PRIORITY_OFFSET: Final = 1 << 31
"""Makes every priority positive, so that more victims never sum up to less."""
_MIN_BATCH_ROWS: Final = 128
"""Minimum number of nodes that are evaluated at once."""


class VictimStats:
    """Statistics of the victims on each row of a snapshot. A row without victims is no candidate."""

    __slots__ = ("count", "earliest_start", "highest_priority", "pdb_violations", "priority_sum")

    def __init__(self, rows: int) -> None:
        self.count = np.zeros(rows, np.int32)
        """The number of victims."""
        self.pdb_violations = np.zeros(rows, np.int32)
        """The number of PDB violations among them."""
        self.highest_priority = np.zeros(rows, np.int64)
        """The highest priority among them."""
        self.priority_sum = np.zeros(rows, np.int64)
        """The sum of their priorities, each made positive."""
        self.earliest_start = np.zeros(rows, np.int64)
        """Start time of the first of those of the highest priority, in microseconds."""

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
        self.pdb_violations[rows] = np.bincount(place[victims.violates[removed]], minlength=size)
        self.highest_priority[rows] = highest_priority
        self.priority_sum[rows] = priority_sum
        self.earliest_start[rows] = earliest_start

    def put(self, row: int, priorities: Sequence[int], started: Sequence[int], pdb_violations: int) -> None:
        """Store the pods that are removed from one node, the most important first."""
        self.count[row] = len(priorities)
        if priorities:
            self.pdb_violations[row] = pdb_violations
            self.highest_priority[row] = priorities[0]
            self.priority_sum[row] = sum(priorities) + len(priorities) * _PRIORITY_OFFSET
            self.earliest_start[row] = min(started[: priorities.count(priorities[0])])


SelectVictims = Callable[[Nodes, Diagnosis], tuple[Victims, NDArray[np.bool_]]]
"""The pods of lower priority on nodes, and which of them are victims; refusals go into the diagnosis."""


class DryRun(Protocol):
    """Selects victims on nodes without evicting them."""

    stats: VictimStats

    def evaluate(self, rows: NDArray[np.intp]) -> None:
        """Compute the victim statistics of some rows, as far as they are unknown."""

    def victims_on(self, row: int) -> tuple[Pod, ...]:
        """The victims on a node that was evaluated, the most important first."""

    def explain(self, nodes: Nodes, found: Diagnosis) -> None:
        """Record why preemption does not help on nodes, all of which were evaluated."""


class UncachedDryRun:
    """Evaluates every row, in columns."""

    def __init__(self, snapshot: Snapshot, select_victims_on_nodes: SelectVictims) -> None:
        self.stats = VictimStats(len(snapshot))
        self._snapshot = snapshot
        self._select_victims = select_victims_on_nodes
        self._found = Diagnosis(len(snapshot))
        self._parts: list[tuple[Victims, NDArray[np.bool_]]] = []

    def evaluate(self, rows: NDArray[np.intp]) -> None:
        """Compute the victim statistics of some rows, which are new."""
        victims, removed = self._select_victims(Nodes(self._snapshot, rows), self._found)
        self.stats.put_all(rows, victims, removed)
        self._parts.append((victims, removed))

    def victims_on(self, row: int) -> tuple[Pod, ...]:
        """The victims on a node that was evaluated, the most important first."""
        parts = (victims.removed_from(row, removed) for victims, removed in self._parts)
        return next(pods for pods in parts if pods is not None)

    def explain(self, nodes: Nodes, found: Diagnosis) -> None:
        """Record why preemption does not help on nodes, all of which were evaluated."""
        codes = (nodes.pick(self._found.codes) + 1).astype(np.int16)
        found.refuse_recalled(nodes, codes, self._found.refusals)


def pick_one_node(stats: VictimStats, candidates: NDArray[np.intp]) -> NDArray[np.intp]:
    """Of some rows, the best candidates, in order.

    Compared in turn: fewest PDB violations, lowest highest priority, lowest sum of priorities, fewest
    victims, and latest start time of the most important victims.
    """
    best = candidates
    for column in (stats.pdb_violations, stats.highest_priority, stats.priority_sum, stats.count):
        if len(best) > 1:
            values = column[best]
            best = best[values == values.min()]
    if len(best) > 1:
        started = stats.earliest_start[best]
        best = best[started == started.max()]
    return best


def find_candidates(dry_run: DryRun, rows: NDArray[np.intp], enough: int, start: int) -> NDArray[np.intp]:
    """The candidates, from the row at offset `start` on.

    Rows are evaluated until there are enough candidates and one of them has no PDB violations.
    """
    rotated = np.concatenate((rows[start:], rows[:start]))
    stats = dry_run.stats
    found = rotated[:0]
    begin, size = 0, max(enough, _MIN_BATCH_ROWS)
    while begin < len(rotated):
        part = rotated[begin : begin + size]
        dry_run.evaluate(part)
        found = np.concatenate((found, part[stats.count[part] > 0]))
        if len(found) >= enough:
            without_violations = np.flatnonzero(stats.pdb_violations[found] == 0)
            if len(without_violations):
                return found[: max(enough, int(without_violations[0]) + 1)]
        begin, size = begin + size, 2 * size
    return found
