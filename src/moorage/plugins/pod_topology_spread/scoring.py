"""ScheduleAnyway constraints: matching pods by domain, counted for one pod or incremental."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from moorage.api.labels import HOSTNAME
from moorage.api.pod import Pod
from moorage.cluster.columns import ABSENT
from moorage.framework.interface.extension_points import MAX_SCORE, Scores
from moorage.framework.interface.nodes import Nodes
from moorage.framework.runtime.go_arithmetic import round_half_away
from moorage.plugins.pod_topology_spread.constraints import (
    SpreadConstraint,
    countable,
    having_keys,
    topology_keys,
)
from moorage.plugins.pod_topology_spread.topology import (
    Cells,
    CountedDomains,
    FeasibleCells,
    distinct_domains,
    shared_topology,
)
from moorage.plugins.topology_counts.domains import Counts, DomainCounter, count_by_domain
from moorage.plugins.topology_counts.incremental import IncrementalCounts
from moorage.plugins.topology_counts.pod_counters import PodCounter
from moorage.plugins.topology_counts.pod_matcher import ANY_KEY

_NO_CHANGE: Final[Mapping[int, int]] = MappingProxyType({})


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


def _inverted(scores: Scores, feasible_scores: Scores, ignored: NDArray[np.bool_]) -> Scores:
    largest = int(feasible_scores.max(initial=0))
    if largest == 0:
        return np.where(ignored, 0, MAX_SCORE)
    smallest = int(feasible_scores.min())
    return np.where(ignored, 0, MAX_SCORE * (largest + smallest - scores) // largest)


def count_spread_scores(
    pod: Pod, nodes: Nodes, soft: Sequence[SpreadConstraint], *, needs_all_keys: bool
) -> CountedSpreadScores:
    """Count, for every soft constraint, the matching pods near each node."""
    everywhere = nodes.all
    labelled = np.ones(len(everywhere), bool)
    if needs_all_keys:
        labelled = having_keys(everywhere, topology_keys(soft))
    counted: list[Counts] = []
    for constraint in soft:
        classes = constraint.counted(pod).candidates(nodes.snapshot.pods.class_codes)
        rows = nodes.snapshot.pods.nodes_of(classes)
        if constraint.topology_key == HOSTNAME:
            counted.append(np.bincount(rows, minlength=len(everywhere)))
            continue
        column = nodes.snapshot.label(constraint.topology_key)
        rows = rows[countable(pod, everywhere, constraint, labelled)[rows]]
        counts = count_by_domain(column, rows)
        empty = column.vocabulary.code("")
        if empty != ABSENT:
            # Nodes without the label, where they count at all, are in the domain of an empty label.
            counts[empty] += np.count_nonzero(column.codes[rows] == ABSENT)
        counted.append(counts)
    return _weigh(nodes, soft, counted, needs_all_keys=needs_all_keys)


def _weigh(
    nodes: Nodes, soft: Sequence[SpreadConstraint], counted: Sequence[Counts], *, needs_all_keys: bool
) -> CountedSpreadScores:
    """`counted`: for each constraint the pods by domain; of hosts, the pods by row."""
    ignored = np.zeros(len(nodes), bool)
    if needs_all_keys:
        ignored = ~having_keys(nodes, topology_keys(soft))
    raw = np.zeros(len(nodes))
    for constraint, counts in zip(soft, counted, strict=True):
        label = nodes.label(constraint.topology_key)
        if constraint.topology_key == HOSTNAME:
            size = len(nodes) - int(np.count_nonzero(ignored))
            near = nodes.pick(counts)
        else:
            present = np.bincount(label.codes[~ignored] + 1, minlength=1) > 0
            size = distinct_domains(present[1:], bool(present[0]), label.vocabulary.code(""))
            near = counts[label.codes]
        raw += np.where(label.codes == ABSENT, 0.0, _credit(constraint, near, size))
    raw[ignored] = 0.0
    return CountedSpreadScores(raw, ignored)


def _credit(constraint: SpreadConstraint, near: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """The weighted count of matching pods in a topology of `size` domains."""
    credit: NDArray[np.float64] = near * np.log(float(size + 2)) + float(constraint.max_skew - 1)
    return credit


class _Axis:
    """One constraint, and the places of its axis (`Cells`)."""

    __slots__ = ("_by_domain", "_position", "column", "constraint", "count", "counter")

    def __init__(
        self, constraint: SpreadConstraint, counter: PodCounter, domains: CountedDomains | None
    ) -> None:
        """domains: where pods count; None: on each host."""
        self.constraint = constraint
        self.counter = counter
        self.count = counter.count(ANY_KEY)
        self._position = self.count.steps.position
        self._by_domain = None if domains is None else DomainCounter(self.count, domains.slots)

    @property
    def most_pods(self) -> int:
        """The largest number of pods on a host; 0 where hosts do not matter."""
        return int(self.count.where()[1].max(initial=0)) if self._by_domain is None else 0

    def near(self, size: int) -> Counts:
        """How many pods are near a node, for each of `size` places."""
        return np.arange(size) if self._by_domain is None else self._by_domain.by_domain

    def by_row_or_domain(self, rows: int) -> Counts:
        """The pods of each domain; of hosts, of each row."""
        return self.count.pods(rows) if self._by_domain is None else self._by_domain.by_domain

    def catch_up(self) -> Mapping[int, int] | None:
        """Apply changes: how many more pods there are by row, if hosts matter; None: not known."""
        if self._by_domain is not None:
            self._by_domain.catch_up()
            return _NO_CHANGE
        steps = self.count.steps.since(self._position)
        if steps is None:
            return None
        self._position = self.count.steps.position
        changes: dict[int, int] = {}
        for row, pods, _ in steps:
            changes[row] = changes.get(row, 0) + pods
        return changes


class IncrementalSpreadScores:
    """All ScheduleAnyway constraints of one equivalence class, updated as pods are added and removed.

    Scores are computed for each cell (`Cells`), and looked up for each node. A pod that comes to a node puts
    it into another cell, if hosts matter, and changes the counts of its other domains.
    """

    def __init__(
        self,
        incremental: IncrementalCounts,
        pod: Pod,
        soft: tuple[SpreadConstraint, ...],
        *,
        needs_all_keys: bool,
    ) -> None:
        self._incremental = incremental
        self._version = incremental.version
        self._soft = soft
        self._topology = topology = shared_topology(incremental, soft, needs_all_keys=needs_all_keys)
        nodes = Nodes(incremental.snapshot)
        self._axes: list[_Axis] = []
        self.size = 0
        """The size of what is kept for this class alone, as a number of rows."""
        for number, constraint in enumerate(soft):
            counter = incremental.classes.counter_for(constraint.counted(pod))
            domains = None
            if not topology.is_host[number]:
                included = constraint.included(pod, nodes)
                domains = topology.counted(number, included)
                self.size += domains.column.size + (0 if included is None else len(nodes))
            self._axes.append(_Axis(constraint, counter, domains))
        self._cells: Cells | None = topology.cells([axis.most_pods for axis in self._axes])
        """None if there would be too many cells."""
        self._of_rows: NDArray[np.intp] | None = None
        """The cell of every row; None: as in `_cells`, because hosts do not matter."""
        if self._cells is not None and any(topology.is_host):
            self._of_rows = self._moved_by_pods(self._cells)
            self.size += 2 * len(nodes)
        self._seen: FeasibleCells | None = None
        """The nodes of the last call, if hosts matter: often the same again."""

    def _moved_by_pods(self, cells: Cells) -> NDArray[np.intp]:
        """The cell of every row with the pods on hosts."""
        of_rows = cells.of_rows.copy()
        for number, axis in enumerate(self._axes):
            if self._topology.is_host[number]:
                rows, pods = axis.count.where()
                column = self._topology.columns[number]
                is_labelled = column.slots.array[rows] != column.size
                of_rows[rows] += pods * is_labelled * cells.strides[number]
        return of_rows

    def is_valid_for(self, incremental: IncrementalCounts, soft: tuple[SpreadConstraint, ...]) -> bool:
        """Whether the constraints and the nodes are those this was made for."""
        return (
            self._incremental is incremental
            and self._version == incremental.version
            and self._topology.is_kept
            and self._soft is soft
            and all(axis.counter.is_kept for axis in self._axes)
        )

    def catch_up(self) -> bool:
        """Apply changes; False if this must be made again.

        `IncrementalCounts.catch_up` must come first.
        """
        for number, axis in enumerate(self._axes):
            self._incremental.classes.touch(axis.counter)
            moved = axis.catch_up()
            if self._cells is not None:
                if moved is None:
                    return False
                for row, pods in moved.items():
                    if axis.count.at(row) >= self._cells.shape[number] - 1:
                        return False
                    if self._topology.columns[number].includes(row):
                        self._move(self._cells, row, pods * self._cells.strides[number])
        return True

    def _move(self, cells: Cells, row: int, by: int) -> None:
        assert self._of_rows is not None
        old = self._of_rows[row]
        self._of_rows[row] = new = old + by
        if self._seen is not None and self._seen.rows is not None:
            self._seen = None
        elif self._seen is not None and not cells.is_ignored.flat[old]:
            count = self._seen.count.reshape(-1)
            count[old] -= 1
            count[new] += 1

    def of(self, nodes: Nodes) -> SpreadScores:
        """The scores of some nodes now."""
        cells = self._cells
        if cells is None:
            counted = [axis.by_row_or_domain(len(nodes.snapshot)) for axis in self._axes]
            return _weigh(nodes, self._soft, counted, needs_all_keys=self._topology.needs_all_keys)
        feasible = self._feasible(nodes, cells)
        raw: NDArray[np.float64] | None = None
        for number, axis in enumerate(self._axes):
            credit = _credit(axis.constraint, axis.near(cells.shape[number]), feasible.sizes[number])
            credit[-1] = 0.0
            if len(self._axes) > 1:
                credit = credit.reshape([-1 if place == number else 1 for place in range(len(cells.shape))])
            raw = credit if raw is None else raw + credit
        assert raw is not None
        if self._topology.needs_all_keys:
            raw[cells.is_ignored] = 0.0
        # Raw scores are never negative.
        whole = np.floor(raw)
        by_cell = (whole + (raw - whole >= 0.5)).astype(np.int64)
        return CellSpreadScores(feasible, by_cell, cells.is_ignored)

    def _feasible(self, nodes: Nodes, cells: Cells) -> FeasibleCells:
        """The cells of some nodes."""
        if self._of_rows is None:
            return cells.feasible(nodes)
        if self._seen is None or self._seen.rows is not nodes.rows:
            self._seen = cells.feasible_among(nodes, self._of_rows)
        return self._seen


class CellSpreadScores:
    """Computed for each cell: nodes that are the same to all constraints."""

    __slots__ = ("_by_cell", "_cells", "_is_feasible", "_is_ignored", "_scores")

    def __init__(self, feasible: FeasibleCells, by_cell: Scores, is_ignored: NDArray[np.bool_]) -> None:
        """by_cell, is_ignored: by cell, in the shape of all cells."""
        self._cells = feasible.cells
        self._by_cell = by_cell
        self._is_feasible = feasible.count > 0
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
        feasible_scores = self._by_cell[self._is_feasible]
        return _inverted(self._by_cell, feasible_scores, self._is_ignored).take(self._cells)
