"""ScheduleAnyway constraints: matching pods by domain, counted for one pod or incremental."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from moorage.api.labels import HOSTNAME
from moorage.api.pod import Pod
from moorage.cluster.columns import ABSENT
from moorage.framework.interface.extension_points import MAX_SCORE, Scores
from moorage.framework.interface.nodes import Nodes
from moorage.framework.runtime.go_arithmetic import round_half_away
from moorage.plugins.pod_topology_spread.constraints import Constraint, having_keys
from moorage.plugins.topology_counts.domains import Counts, DomainCounter, count_by_domain
from moorage.plugins.topology_counts.incremental import DomainColumn, IncrementalCounts
from moorage.plugins.topology_counts.pod_counters import PodCounter
from moorage.plugins.topology_counts.pod_matcher import ANY_KEY

_CELLS_PER_ROW: Final = 2
_MAX_SMALL_CELLS: Final = 4096
"""Cells are used if there are at most this many for each row, or at most this many in all."""


_MAX_AXES: Final = 16
"""Cells have a dimension for each constraint, of which arrays can have no more than 32 or 64."""


class SpreadScores(Protocol):
    """Raw and normalized scores of some nodes for one pod."""

    def scores(self) -> Scores:
        """Matching pods near each node, weighted: the fewer the better."""

    def normalized(self, scores: Scores) -> Scores:
        """Inverted: the node with the fewest matching pods gets 100, nodes outside the topology 0."""


@dataclass(frozen=True, slots=True, eq=False)
class CountedSpreadScores:
    """Computed for each node."""

    raw: NDArray[np.float64]
    """Matching pods near each node, weighted. Shape (nodes,)."""
    ignored: NDArray[np.bool_]
    """Nodes that lack a label: they score 0."""

    def scores(self) -> Scores:
        """Matching pods near each node, weighted: the fewer the better."""
        return round_half_away(self.raw)

    def normalized(self, scores: Scores) -> Scores:
        """Inverted: the node with the fewest matching pods gets 100, nodes outside the topology 0."""
        return _inverted(scores, scores[~self.ignored], self.ignored)


def _inverted(scores: Scores, judged: Scores, ignored: NDArray[np.bool_]) -> Scores:
    largest = int(judged.max(initial=0))
    if largest == 0:
        return np.where(ignored, 0, MAX_SCORE)
    smallest = int(judged.min())
    return np.where(ignored, 0, MAX_SCORE * (largest + smallest - scores) // largest)


def count_spread_scores(
    pod: Pod, nodes: Nodes, soft: Sequence[Constraint], *, needs_all_keys: bool
) -> CountedSpreadScores:
    """Count, for every soft constraint, the matching pods near each node."""
    everywhere = nodes.all
    countable = having_keys(everywhere, soft) if needs_all_keys else np.ones(len(everywhere), bool)
    counted: list[Counts] = []
    for constraint in soft:
        classes = constraint.counted(pod).candidates(nodes.snapshot.pods.class_codes)
        rows = nodes.snapshot.pods.nodes_of(classes)
        if constraint.topology_key == HOSTNAME:
            counted.append(np.bincount(rows, minlength=len(everywhere)))
            continue
        column = nodes.snapshot.label(constraint.topology_key)
        rows = rows[(countable & constraint.eligible(pod, everywhere))[rows]]
        counts = count_by_domain(column, rows)
        empty = column.vocabulary.code("")
        if empty != ABSENT:
            # Nodes without the label, where they count at all, are in the domain of an empty label.
            counts[empty] += np.count_nonzero(column.codes[rows] == ABSENT)
        counted.append(counts)
    return _weigh(nodes, soft, counted, needs_all_keys=needs_all_keys)


def _weigh(
    nodes: Nodes, soft: Sequence[Constraint], counted: Sequence[Counts], *, needs_all_keys: bool
) -> CountedSpreadScores:
    """`counted`: for each constraint the pods by domain; of hosts, the pods by row."""
    ignored = ~having_keys(nodes, soft) if needs_all_keys else np.zeros(len(nodes), bool)
    raw = np.zeros(len(nodes))
    for constraint, counts in zip(soft, counted, strict=True):
        label = nodes.label(constraint.topology_key)
        if constraint.topology_key == HOSTNAME:
            size = len(nodes) - int(np.count_nonzero(ignored))
            near = nodes.pick(counts)
        else:
            present = np.bincount(label.codes[~ignored] + 1, minlength=1) > 0
            size = _distinct(present[1:], bool(present[0]), label.vocabulary.code(""))
            near = counts[label.codes]
        raw += np.where(label.codes == ABSENT, 0.0, _credit(constraint, near, size))
    raw[ignored] = 0.0
    return CountedSpreadScores(raw, ignored)


def _credit(constraint: Constraint, near: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """The weighted count of matching pods in a topology of `size` domains."""
    credit: NDArray[np.float64] = near * np.log(float(size + 2)) + float(constraint.max_skew - 1)
    return credit


def _distinct(domains: NDArray[np.bool_], nowhere: bool, empty: int) -> int:
    """How many domains there are; nodes without the label count as one, together with an empty label.

    domains: whether there are nodes in each domain. nowhere: whether there are some without the label.
    """
    is_one_more = nowhere and not (ABSENT != empty < len(domains) and domains[empty])
    return int(np.count_nonzero(domains)) + int(is_one_more)


class _Axis:
    """One constraint, and its possible values for a node: the places of its table.

    The last place is for nodes without the label; the others are the domains, or, of hosts, how many pods
    there are on the node.
    """

    def __init__(self, constraint: Constraint, column: DomainColumn, counter: PodCounter, rows: int) -> None:
        self.constraint = constraint
        self.column = column
        self.counter = counter
        self.count = counter.count(ANY_KEY)
        self.is_host = constraint.topology_key == HOSTNAME
        self.stride = 1
        self._position = self.count.steps.position
        if self.is_host:
            pods = self.count.pods(rows)
            self.size = 2 * int(pods.max(initial=0)) + 4
            self.places = np.where(column.codes == ABSENT, self.size - 1, pods)
        else:
            self.size = column.size + 1
            self.places = column.slots

    def count_by_domain(self, slots: NDArray[np.intp]) -> None:
        """Count the pods of each domain from now on; `slots` is the domain of each row."""
        self.by_domain = DomainCounter(self.count, slots, self.column.size)

    def near(self) -> Counts:
        """How many pods are near a node, by place."""
        return np.arange(self.size) if self.is_host else self.by_domain.by_domain

    def catch_up(self, rows: int) -> list[tuple[int, int]] | None:
        """Apply changes: rows and how far their cells move; None: not known."""
        if not self.is_host:
            self.by_domain.catch_up()
            return []
        steps = self.count.steps.since(self._position)
        self._position = self.count.steps.position
        if steps is None:
            return None
        moved = [(row, pods * self.stride) for row, pods, _ in steps if self.column.codes[row] != ABSENT]
        pods = self.count.pods(rows)
        return moved if all(pods[row] < self.size - 1 for row, _ in moved) else None


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """The nodes of the last call, given by rows (None: all), and the cells they are in."""

    rows: NDArray[np.intp] | None
    cells: NDArray[np.intp]
    feasible: NDArray[np.int64]
    """How many nodes are in each cell; none in cells that are ignored."""


class IncrementalSpreadScores:
    """All ScheduleAnyway constraints of one equivalence class, updated as pods are added and removed.

    Nodes that are the same to all constraints share a cell: scores are computed for each cell,
    and looked up for each node. A pod that comes to a node puts it into another cell, if hosts matter, and
    changes the counts of its other domains.
    """

    def __init__(
        self, incremental: IncrementalCounts, pod: Pod, soft: tuple[Constraint, ...], *, needs_all_keys: bool
    ) -> None:
        self._incremental = incremental
        self._version = incremental.version
        self._soft = soft
        self._needs_all_keys = needs_all_keys
        nodes = Nodes(incremental.snapshot)
        countable = having_keys(nodes, soft) if needs_all_keys else np.ones(len(nodes), bool)
        self._axes: list[_Axis] = []
        for constraint in soft:
            column = incremental.domains(constraint.topology_key)
            counter = incremental.classes.counter_for(constraint.counted(pod), len(nodes))
            axis = _Axis(constraint, column, counter, len(nodes))
            if not axis.is_host:
                axis.count_by_domain(_counted_slots(column, countable & constraint.eligible(pod, nodes)))
            self._axes.append(axis)
        self._shape = tuple(axis.size for axis in self._axes)
        self._cells = self._arrange(len(nodes))
        self._seen: _Seen | None = None
        """The nodes of the last call: often the same again."""

    def _arrange(self, rows: int) -> NDArray[np.intp] | None:
        """The cell of every row; None if there would be too many cells."""
        if len(self._shape) > _MAX_AXES or prod(self._shape) > max(_CELLS_PER_ROW * rows, _MAX_SMALL_CELLS):
            return None
        cells = np.zeros(rows, np.intp)
        stride = 1
        for axis in reversed(self._axes):
            axis.stride = stride
            cells += axis.places * stride
            stride *= axis.size
        self._is_ignored = np.zeros(self._shape, bool)
        if self._needs_all_keys:
            for number in range(len(self._axes)):
                np.moveaxis(self._is_ignored, number, 0)[-1] = True
        return cells

    def is_valid_for(self, incremental: IncrementalCounts, soft: tuple[Constraint, ...]) -> bool:
        """Whether the constraints and the nodes are those this was made for."""
        return (
            self._incremental is incremental
            and self._version == incremental.version
            and self._soft is soft
            and all(axis.counter.is_kept for axis in self._axes)
        )

    def catch_up(self) -> bool:
        """Apply changes; False if this must be made again.

        `IncrementalCounts.catch_up` must come first.
        """
        for axis in self._axes:
            self._incremental.classes.touch(axis.counter)
            moved = axis.catch_up(len(self._incremental.snapshot))
            if self._cells is not None:
                if moved is None:
                    return False
                for row, by in moved:
                    self._move(self._cells, row, by)
        return True

    def _move(self, cells: NDArray[np.intp], row: int, by: int) -> None:
        old = cells[row]
        cells[row] = new = old + by
        if self._seen is not None and self._seen.rows is not None:
            self._seen = None
        elif self._seen is not None and not self._is_ignored.flat[old]:
            feasible = self._seen.feasible.reshape(-1)
            feasible[old] -= 1
            feasible[new] += 1

    def of(self, nodes: Nodes) -> SpreadScores:
        """The scores of some nodes now."""
        if self._cells is None:
            rows = len(nodes.snapshot)
            counted = [axis.count.pods(rows) if axis.is_host else axis.near() for axis in self._axes]
            return _weigh(nodes, self._soft, counted, needs_all_keys=self._needs_all_keys)
        cells, feasible = self._feasible(nodes, self._cells)
        raw = np.zeros(self._shape)
        for number, axis in enumerate(self._axes):
            credit = _credit(axis.constraint, axis.near(), self._size(axis, number, feasible))
            credit[-1] = 0.0
            raw += credit.reshape([-1 if place == number else 1 for place in range(len(self._shape))])
        raw[self._is_ignored] = 0.0
        # Raw scores are never negative.
        whole = np.floor(raw)
        by_cell = (whole + (raw - whole >= 0.5)).astype(np.int64)
        return CellSpreadScores(cells, by_cell, feasible > 0, self._is_ignored)

    def _feasible(self, nodes: Nodes, cells: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """The cells of some nodes, and how many of those that count are in each cell."""
        if self._seen is None or self._seen.rows is not nodes.rows:
            here = nodes.pick(cells)
            feasible = np.bincount(here, minlength=self._is_ignored.size).reshape(self._shape)
            feasible[self._is_ignored] = 0
            self._seen = _Seen(nodes.rows, here, feasible)
        return self._seen.cells, self._seen.feasible

    def _size(self, axis: _Axis, number: int, feasible: NDArray[np.int64]) -> int:
        """How many domains the feasible nodes are in."""
        if axis.is_host:
            return int(feasible.sum())
        others = tuple(place for place in range(len(self._shape)) if place != number)
        present = feasible.sum(axis=others) > 0
        return _distinct(present[:-1], bool(present[-1]), axis.column.empty_code)


def _counted_slots(column: DomainColumn, counted: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The domains in which pods count; without a label it is that of an empty one, if there is any."""
    slots = column.slots_where(counted)
    if column.empty_code == ABSENT:
        return slots
    return np.where((column.codes == ABSENT) & counted, column.empty_code, slots)


class CellSpreadScores:
    """Computed for each cell: nodes that are the same to all constraints."""

    __slots__ = ("_by_cell", "_cells", "_feasible", "_is_ignored", "_scores")

    def __init__(
        self,
        cells: NDArray[np.intp],
        by_cell: Scores,
        feasible: NDArray[np.bool_],
        is_ignored: NDArray[np.bool_],
    ) -> None:
        """cells: of each node. The others are by cell, in the shape of all cells."""
        self._cells = cells
        self._by_cell = by_cell
        self._feasible = feasible
        self._is_ignored = is_ignored
        self._scores: Scores | None = None

    def scores(self) -> Scores:
        """Matching pods near each node, weighted: the fewer the better."""
        self._scores = self._by_cell.take(self._cells)
        return self._scores

    def normalized(self, scores: Scores) -> Scores:
        """Inverted: the node with the fewest matching pods gets 100, nodes outside the topology 0."""
        if scores is not self._scores:
            ignored = self._is_ignored.take(self._cells)
            return _inverted(scores, scores[~ignored], ignored)
        judged = self._by_cell[self._feasible]
        return _inverted(self._by_cell, judged, self._is_ignored).take(self._cells)
