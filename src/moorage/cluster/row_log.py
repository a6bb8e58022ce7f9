"""The rows of a snapshot that were written, in order: readers with derived state ask for the new ones.

The log is bounded. A reader that is too far behind, or from before rows moved, has to start over.
"""

from __future__ import annotations

from typing import Final

_MAX_ENTRIES: Final = 4096
"""Minimum number of kept writes; catching up with more is hardly cheaper than starting over."""


class RowLog:
    """Rows in the order of their writes. A position is the number of writes before it; it only grows."""

    __slots__ = ("_rows", "position")

    def __init__(self) -> None:
        self.position = 0
        """The position of a reader that has read everything."""
        self._rows: list[int] = []

    def since(self, position: int) -> list[int] | None:
        """The rows written since a position, each once; None if unknown: any row may have changed."""
        missed = self.position - position
        if missed > len(self._rows):
            return None
        new = self._rows[len(self._rows) - missed :]
        return new if len(new) < 2 else list(dict.fromkeys(new))

    def note(self, row: int) -> None:
        """A row was written."""
        self._rows.append(row)
        self.position += 1
        if len(self._rows) > 2 * _MAX_ENTRIES:
            del self._rows[:_MAX_ENTRIES]

    def start_anew(self) -> None:
        """Rows were added, removed or moved: no derived state by row is valid any more."""
        self.position += 1
        self._rows.clear()
