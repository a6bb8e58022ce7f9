"""What is free of cpu, memory and ephemeral-storage on every node, as float64; updated where rows change.

Scores are quotients of amounts, rounded down. A division of float64 is several times faster than one of
int64, and gives the same integers if no node has more than `EXACT_MAX` of a resource (`is_exact`). A quotient
of integers a / b that is no integer is at least 1 / b below the next one, and rounding a quotient of up to
100 to float64 moves it by at most 2 ** -47: it stays below as long as b is below 2 ** 47. All amounts up to
100 * b are exact as long as that is below 2 ** 53. What is free may be negative, and then need not be exact:
it counts as 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from moorage.cluster.resources import NATIVE_RESOURCES
from moorage.cluster.snapshot import Snapshot
from moorage.framework.interface.nodes import Nodes

EXACT_MAX: Final = 1 << 46
"""The largest allocatable amount (64 TiB of memory) for which floats are exact."""
NATIVE_LANES: Final = {name: lane for lane, name in enumerate(NATIVE_RESOURCES)}
"""The index of each resource here."""
PODS_LANE: Final = len(NATIVE_RESOURCES)
_FEW_ROWS: Final = 32
"""Number of changed rows up to which they are written one at a time."""
_MANY_PODS: Final = 1 << 62
_NEVER: Final = -1
SCORING_SCALE: Final = 100
"""Amounts for scoring are kept as hundredths: their quotients are percents."""
_SCORING_LANES: Final = 2
"""cpu and memory: pods without a request of these count with a default for scoring."""


class FreeColumns:
    """Allocatable and free amounts of all nodes of one snapshot: by resource, each of shape (nodes,)."""

    __slots__ = (
        "_even",
        "_nodes_seen",
        "_seen",
        "allocatable",
        "allocated",
        "divisor",
        "free",
        "free_pods",
        "free_scoring",
        "is_exact",
        "min_allocatable",
        "min_free",
        "min_free_scoring",
    )

    def __init__(self) -> None:
        self._seen = self._nodes_seen = _NEVER
        self._even: dict[tuple[int, ...], bool] = {}
        self.is_exact = False
        """Whether all amounts are within `EXACT_MAX`."""
        self.allocatable: list[NDArray[np.float64]] = []
        self.min_allocatable: list[float] = []
        """The least that any node has, by resource."""
        self.divisor: list[NDArray[np.float64]] = []
        """The allocatable amount, 1 where that is 0."""
        self.allocated: list[NDArray[np.float64]] = []
        self.free: list[NDArray[np.float64]] = []
        self.free_scoring: list[NDArray[np.float64]] = []
        """What is free if pods that request no cpu or memory count with a default; times `SCORING_SCALE`."""
        self.free_pods: NDArray[np.int64] = np.zeros(0, np.int64)
        """Number of pods that each node takes in addition. Shape (nodes,)."""
        self.min_free: list[float] = []
        """A lower bound of what is free on any node: by resource, and of pods (`PODS_LANE`)."""
        self.min_free_scoring: list[float] = []
        """The same of `free_scoring`."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> FreeColumns:
        """The columns of a snapshot, up to date; valid until its next refresh."""
        columns = snapshot.derived(cls)
        if columns._seen != snapshot.load_changes.position:
            columns._catch_up(snapshot)
        return columns

    def _catch_up(self, snapshot: Snapshot) -> None:
        log = snapshot.load_changes
        rows = None if self._seen == _NEVER else log.since(self._seen)
        if rows is None or len(rows) > _FEW_ROWS or not self._have_same(snapshot, rows):
            self._fill(snapshot)
        else:
            for row in rows:
                self._write(snapshot, row)
        self._seen, self._nodes_seen = log.position, snapshot.node_changes.position

    def below(self, lane: int, free: NDArray[Any], amount: int, nodes: Nodes) -> NDArray[np.bool_] | None:
        """Which nodes have less than an amount free; None: none of them. free: the column of the lane."""
        if self.min_free[lane] >= amount:
            return None
        is_below = nodes.pick(free) < amount
        if is_below.any():
            return is_below
        if nodes.rows is None:
            self.min_free[lane] = amount
        return None

    def is_even(self, lanes: tuple[int, ...]) -> bool:
        """Whether every node has either all of some resources or none of them."""
        known = self._even.get(lanes)
        if known is None:
            present = [self.allocatable[lane] != 0 for lane in lanes]
            known = self._even[lanes] = all(np.array_equal(each, present[0]) for each in present)
        return known

    def _fill(self, snapshot: Snapshot) -> None:
        """Write all rows."""
        allocatable = [snapshot.allocatable.of(name) for name in NATIVE_RESOURCES]
        requested = [snapshot.requested.of(name) for name in NATIVE_RESOURCES]
        scoring = [*snapshot.scoring_requested.values, *requested[_SCORING_LANES:]]
        self.is_exact = all(column.max(initial=0) <= EXACT_MAX for column in allocatable)
        self.allocatable = [column.astype(np.float64) for column in allocatable]
        self.min_allocatable = [float(column.min(initial=np.inf)) for column in self.allocatable]
        self.divisor = [column if column.all() else np.maximum(column, 1) for column in self.allocatable]
        self.allocated = [column.astype(np.float64) for column in requested]
        self.free = [_difference(*each) for each in zip(allocatable, requested, strict=True)]
        free_scoring = [_difference(*each) for each in zip(allocatable, scoring, strict=True)]
        self.free_scoring = [np.multiply(each, SCORING_SCALE, out=each) for each in free_scoring]
        self.free_pods = snapshot.allowed_pods.values - snapshot.pod_count.values
        self.min_free = [float(column.min(initial=np.inf)) for column in self.free]
        self.min_free.append(float(self.free_pods.min(initial=_MANY_PODS)))
        self.min_free_scoring = [float(column.min(initial=np.inf)) for column in self.free_scoring]
        self._even.clear()

    def _have_same(self, snapshot: Snapshot, rows: Iterable[int]) -> bool:
        """Whether the nodes of changed rows have what they had."""
        if self._nodes_seen == snapshot.node_changes.position:
            return True
        has = snapshot.allocatable.by_row
        return all(
            self.allocatable[lane][row] == has[row].get(name, 0)
            for row in rows
            for name, lane in NATIVE_LANES.items()
        )

    def _write(self, snapshot: Snapshot, row: int) -> None:
        """Write what is free in one row."""
        has, used = snapshot.allocatable.by_row[row], snapshot.requested.by_row[row]
        for lane, name in enumerate(NATIVE_RESOURCES):
            allocatable, allocated = has.get(name, 0), used.get(name, 0)
            free = free_scoring = allocatable - allocated
            if lane < _SCORING_LANES:
                free_scoring = allocatable - int(snapshot.scoring_requested.values[lane, row])
            free_scoring *= SCORING_SCALE
            self.allocated[lane][row] = allocated
            self.free[lane][row] = free
            self.free_scoring[lane][row] = free_scoring
            if free < self.min_free[lane]:
                self.min_free[lane] = free
            if free_scoring < self.min_free_scoring[lane]:
                self.min_free_scoring[lane] = free_scoring
        self.free_pods[row] = free = int(snapshot.allowed_pods.values[row] - snapshot.pod_count.values[row])
        if free < self.min_free[PODS_LANE]:
            self.min_free[PODS_LANE] = free


def _difference(has: NDArray[np.int64], used: NDArray[np.int64]) -> NDArray[np.float64]:
    """The difference of two columns, rounded once."""
    return (has - used).astype(np.float64)
