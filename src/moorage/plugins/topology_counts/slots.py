"""The place of each node in a table by domain: of few nodes, where no others are in one."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

_ROWS_PER_FEW_ROWS: Final = 64
"""Few rows are in a domain: at most one in this many."""


class Slots:
    """The slot of each row; the last slot is for rows in no domain.

    An array, or, where few rows are in a domain, a dict of those: many equivalence classes can have a
    topology key of their own, and each keeps its slots.
    """

    __slots__ = ("_array", "_few", "_rows", "_sorted", "nowhere")

    def __init__(self, slots: NDArray[np.intp], nowhere: int) -> None:
        """slots: shape (rows,). nowhere: the slot for no domain, the greatest."""
        self.nowhere = nowhere
        self._rows = len(slots)
        self._sorted: tuple[NDArray[np.intp], list[int]] | None = None
        rows = np.flatnonzero(slots != nowhere)
        is_few = len(rows) * _ROWS_PER_FEW_ROWS <= len(slots)
        self._few: dict[int, int] | None = None
        if is_few:
            self._few = dict(zip(rows.tolist(), slots[rows].tolist(), strict=True))
        self._array = None if is_few else slots

    def __getitem__(self, row: int) -> int:
        if self._few is not None:
            return self._few.get(row, self.nowhere)
        assert self._array is not None
        return int(self._array[row])

    @property
    def array(self) -> NDArray[np.intp]:
        """The slot of each row. Shape (rows,)."""
        if self._array is not None:
            return self._array
        assert self._few is not None
        slots = np.full(self._rows, self.nowhere, np.intp)
        slots[list(self._few)] = list(self._few.values())
        return slots

    def where(self, mask: NDArray[np.bool_]) -> Slots:
        """The same with all rows in no domain for which `mask` is False."""
        if self._few is not None:
            few = {row: slot for row, slot in self._few.items() if mask[row]}
            return self if len(few) == len(self._few) else self._with(few)
        return self if mask.all() else Slots(np.where(mask, self.array, self.nowhere), self.nowhere)

    def _with(self, few: dict[int, int]) -> Slots:
        twin = Slots(_NO_ROWS, self.nowhere)
        twin._rows, twin._few = self._rows, few
        return twin

    def rows_at(self, slot: int) -> NDArray[np.intp]:
        """The rows of one domain."""
        if self._few is not None:
            return np.array([row for row, each in self._few.items() if each == slot], np.intp)
        if self._sorted is None:
            slots = self.array
            ends = np.cumsum(np.bincount(slots, minlength=self.nowhere + 1))
            self._sorted = np.argsort(slots, kind="stable"), [0, *ends.tolist()]
        order, ends_of = self._sorted
        return order[ends_of[slot] : ends_of[slot + 1]]


_NO_ROWS: Final = np.zeros(0, np.intp)
