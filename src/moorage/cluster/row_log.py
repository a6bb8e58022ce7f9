"""The rows of a snapshot that were written, in order: readers with derived state ask for the new ones."""

from __future__ import annotations

from array import array
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from moorage.cluster.journal import Journal

_KEPT_WRITES: Final = 4096
"""Minimum number of kept writes; catching up with more is hardly cheaper than starting over."""


class RowLog(Journal[int]):
    """Rows in the order of their writes. It starts over where rows are added, removed or moved."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(_KEPT_WRITES)
        self._entries: Any = array("q")

    def since(self, position: int) -> list[int] | None:
        """The rows written since a position, each once; None if unknown: any row may have changed."""
        # Called several times for each pod: a call of the base class would double its cost.
        missed = self.position - position
        if not missed:
            return []
        first = len(self._entries) - missed
        if first < 0:
            return None
        rows: list[int] = self._entries[first:].tolist()
        return rows if missed == 1 else list(dict.fromkeys(rows))

    def array_since(self, position: int, size: int) -> NDArray[np.intp] | None:
        """The same as an array, for many rows. size: the number of all rows."""
        first = len(self._entries) - (self.position - position)
        if first < 0:
            return None
        is_written = np.zeros(size, np.bool_)
        is_written[np.frombuffer(self._entries[first:], np.int64)] = True
        return np.flatnonzero(is_written)
