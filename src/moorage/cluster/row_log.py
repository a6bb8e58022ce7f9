"""Which rows of a snapshot were written, in order: whoever remembers something of rows asks what is new.

The log is short. A reader that is too far behind, or from before rows moved, is told so, and starts anew.
"""

from __future__ import annotations

from typing import Final

_MAX_ENTRIES: Final = 4096
"""So many writes are kept, at least; catching up with more is hardly cheaper than starting anew."""


class RowLog:
    """Rows as they are written. A position is how many writes there were; it only ever grows."""

    __slots__ = ("_rows", "position")

    def __init__(self) -> None:
        self.position = 0
        """Where a reader that knows all of this stands."""
        self._rows: list[int] = []

    def since(self, position: int) -> list[int] | None:
        """The rows written since a position, each once; None if that cannot be told: all may have changed."""
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
        """Rows have come, gone or moved: nothing that was known by row holds any more."""
        self.position += 1
        self._rows.clear()
