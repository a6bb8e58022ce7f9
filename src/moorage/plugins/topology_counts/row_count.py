"""Pods by node row: in a dict while they are on few nodes, in arrays from then on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.cluster.journal import Journal
from moorage.plugins.topology_counts.slots import Slots

_MIN_KEPT_STEPS: Final = 32
"""Minimum number of kept steps of a count; applying more is hardly cheaper than adding up by row."""
MAX_FEW_ROWS: Final = 32
"""Maximum number of rows of a count without arrays."""
FEW_ROWS_CELLS: Final = 512
"""The size of a count without arrays, as a number of array elements of 8 bytes."""

_NO_ROWS: Final = np.zeros(0, np.int64)
_NOTHING: Final = (0, 0)


class RowCount:
    """Pods, and the sum of their weights, by node row.

    Most queries count a few pods: these are in a dict. Beyond a number of rows there are arrays.
    """

    __slots__ = ("_few", "_is_weighted", "_pods", "_weight", "steps")

    def __init__(self, *, is_weighted: bool) -> None:
        """Count no pods yet. is_weighted: whether pods can weigh anything but 1."""
        self._is_weighted = is_weighted
        self._few: dict[int, tuple[int, int]] | None = {}
        """Pods and weight by row; None: they are in the arrays."""
        self._pods, self._weight = _NO_ROWS, _NO_ROWS
        self.steps: Journal[tuple[int, int, int]] = Journal(_MIN_KEPT_STEPS)
        """What was counted since, in order: node row, pods, weight."""

    def count_all(self, rows: NDArray[np.int32], weights: NDArray[np.int64]) -> None:
        """Count pods, given by their nodes' rows and their weights, where there were none."""
        self._few = None
        self._pods = np.bincount(rows)
        self._weight = np.bincount(rows, weights).astype(np.int64) if self._is_weighted else self._pods

    def count_few(self, pods: Iterable[tuple[int, int, int]]) -> None:
        """Count pods on few nodes, where there were none: row, pods, weight."""
        few: dict[int, tuple[int, int]] = {}
        for row, number, weight in pods:
            old_number, old_weight = few.get(row, _NOTHING)
            few[row] = (old_number + number, old_weight + weight)
        self._few = few

    def add(self, row: int, pods: int, weight: int) -> int:
        """Count pods on a node, or, negative, count them no longer. Returns by how much `size` grew."""
        self.steps.note((row, pods, weight))
        few = self._few
        if few is None:
            grown = self._reach(row) if row >= len(self._pods) else 0
            self._pods[row] += pods
            if self._is_weighted:
                self._weight[row] += weight
            return grown
        old_pods, old_weight = few.get(row, _NOTHING)
        if old_pods + pods:
            few[row] = (old_pods + pods, old_weight + weight)
        else:
            del few[row]
        return self._make_arrays(few) if len(few) > MAX_FEW_ROWS else 0

    def _make_arrays(self, few: Mapping[int, tuple[int, int]]) -> int:
        size = self.size
        self._few = None
        rows = np.fromiter(few, np.intp, len(few))
        self._pods = np.bincount(rows, [pods for pods, _ in few.values()]).astype(np.int64)
        self._weight = self._pods
        if self._is_weighted:
            self._weight = np.bincount(rows, [weight for _, weight in few.values()]).astype(np.int64)
        return self.size - size

    def _reach(self, row: int) -> int:
        """Make the arrays longer; returns by how much `size` grew."""
        size = self.size
        more = (0, 2 * (row + 1) - len(self._pods))
        self._pods = np.pad(self._pods, more)
        self._weight = np.pad(self._weight, more) if self._is_weighted else self._pods
        return self.size - size

    def free(self) -> None:
        """Free the memory of a count that is not used any more."""
        self._few = {}
        self._pods, self._weight = _NO_ROWS, _NO_ROWS
        self.steps = Journal(_MIN_KEPT_STEPS)

    @property
    def size(self) -> int:
        """The size of this count, as a number of array elements."""
        if self._few is not None:
            return FEW_ROWS_CELLS
        return max(len(self._pods) * (2 if self._is_weighted else 1), FEW_ROWS_CELLS)

    def at(self, row: int) -> int:
        """The number of pods that count on a node."""
        if self._few is not None:
            return self._few.get(row, _NOTHING)[0]
        return int(self._pods[row]) if row < len(self._pods) else 0

    def where(self) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """The rows with pods that count, and the number of these pods."""
        if self._few is None:
            rows = np.flatnonzero(self._pods)
            return rows, self._pods[rows]
        pods = [pods for pods, _ in self._few.values()]
        return np.fromiter(self._few, np.intp, len(pods)), np.array(pods, np.int64)

    def pods(self, rows: int) -> NDArray[np.int64]:
        """The number of pods that count on each of `rows` nodes; valid until the next change."""
        if self._few is None:
            return _resized(self._pods, rows)
        pods = np.zeros(rows, np.int64)
        for row, (number, _) in self._few.items():
            pods[row] = number
        return pods

    def by_slot(self, slots: Slots) -> tuple[NDArray[np.int64], int]:
        """The weight in each slot, and the pods in all but the last slot, which gets no weight."""
        if self._few is None:
            return self._arrays_by_slot(slots.array, slots.nowhere + 1)
        total, by_slot = 0, np.zeros(slots.nowhere + 1, np.int64)
        for row, (pods, weight) in self._few.items():
            slot = slots[row]
            if slot != slots.nowhere:
                by_slot[slot] += weight
                total += pods
        return by_slot, total

    def _arrays_by_slot(self, slots: NDArray[np.intp], size: int) -> tuple[NDArray[np.int64], int]:
        pods = np.bincount(slots, _resized(self._pods, len(slots)), size)
        pods[-1] = 0
        weight = pods
        if self._is_weighted:
            weight = np.bincount(slots, _resized(self._weight, len(slots)), size)
            weight[-1] = 0
        return weight.astype(np.int64), int(pods.sum())


def _resized(values: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """The first rows; zeros where there are none yet."""
    return values[:rows] if len(values) >= rows else np.pad(values, (0, rows - len(values)))
