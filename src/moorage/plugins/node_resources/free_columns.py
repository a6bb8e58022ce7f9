"""What is free of cpu, memory and ephemeral-storage on every node, as float64; updated where rows change.

Scores are quotients of amounts, rounded down. A division of float64 is several times faster than one of
int64, and gives the same integers if no node has more than `EXACT_MAX` of a resource (`is_exact`). A quotient
of integers a / b that is no integer is at least 1 / b below the next one, and rounding a quotient of up to
100 to float64 moves it by at most 2 ** -47: it stays below as long as b is below 2 ** 47. All amounts up to
100 * b are exact as long as that is below 2 ** 53. What is free may be negative, and then need not be exact:
it counts as 0.
"""

from __future__ import annotations

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
_SCORING_LANES: Final = 2
"""cpu and memory: pods without a request of these count with a default for scoring."""


class FreeColumns:
    """Allocatable and free amounts of all nodes of one snapshot: by resource, each of shape (nodes,)."""

    __slots__ = (
        "_even",
        "_min_free",
        "_seen",
        "allocatable",
        "divisor",
        "free",
        "free_pods",
        "free_scoring",
        "is_exact",
    )

    def __init__(self) -> None:
        self._seen = _NEVER
        self._even: dict[tuple[int, ...], bool] = {}
        self.is_exact = False
        """Whether all amounts are within `EXACT_MAX`."""
        self.allocatable: list[NDArray[np.float64]] = []
        self.divisor: list[NDArray[np.float64]] = []
        """The allocatable amount, 1 where that is 0."""
        self.free: list[NDArray[np.float64]] = []
        self.free_scoring: list[NDArray[np.float64]] = []
        """What is free if pods that request no cpu or memory count with a default."""
        self.free_pods: NDArray[np.int64] = np.zeros(0, np.int64)
        """Number of pods that each node takes in addition. Shape (nodes,)."""
        self._min_free: list[float] = []
        """A lower bound of what is free on any node: by resource, and of pods (`PODS_LANE`)."""

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
        if rows is None or len(rows) > _FEW_ROWS or not all(self._write(snapshot, row) for row in rows):
            self._fill(snapshot)
        self._seen = log.position

    def below(self, lane: int, free: NDArray[Any], amount: int, nodes: Nodes) -> NDArray[np.bool_] | None:
        """Which nodes have less than an amount free; None: none of them. free: the column of the lane."""
        if self._min_free[lane] >= amount:
            return None
        is_below = nodes.pick(free) < amount
        if is_below.any():
            return is_below
        if nodes.rows is None:
            self._min_free[lane] = amount
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
        self.divisor = [column if column.all() else np.maximum(column, 1) for column in self.allocatable]
        self.free = [_difference(*each) for each in zip(allocatable, requested, strict=True)]
        self.free_scoring = [_difference(*each) for each in zip(allocatable, scoring, strict=True)]
        self.free_pods = snapshot.allowed_pods.values - snapshot.pod_count.values
        self._min_free = [float(column.min(initial=np.inf)) for column in self.free]
        self._min_free.append(float(self.free_pods.min(initial=_MANY_PODS)))
        self._even.clear()

    def _write(self, snapshot: Snapshot, row: int) -> bool:
        """Write one row; False if what the node has is not the same, so that all must be written."""
        has, used = snapshot.allocatable.by_row[row], snapshot.requested.by_row[row]
        scoring = snapshot.scoring_requested.values
        for lane, name in enumerate(NATIVE_RESOURCES):
            allocatable = has.get(name, 0)
            if self.allocatable[lane][row] != allocatable:
                return False
            requested = used.get(name, 0)
            self.free[lane][row] = free = allocatable - requested
            if free < self._min_free[lane]:
                self._min_free[lane] = free
            if lane < _SCORING_LANES:
                requested = int(scoring[lane, row])
            self.free_scoring[lane][row] = allocatable - requested
        self.free_pods[row] = free = int(snapshot.allowed_pods.values[row] - snapshot.pod_count.values[row])
        if free < self._min_free[PODS_LANE]:
            self._min_free[PODS_LANE] = free
        return True


def _difference(has: NDArray[np.int64], used: NDArray[np.int64]) -> NDArray[np.float64]:
    """The difference of two columns, rounded once."""
    return (has - used).astype(np.float64)
