"""The last entries of an endless list: whoever follows it asks what is new since a position.

The list is short. A reader that is too far behind is told so, and counts anew.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Journal(Generic[T]):
    """Entries in the order they were noted. A position is how many there were; it only ever grows."""

    __slots__ = ("_entries", "_first", "_kept")

    def __init__(self, kept: int) -> None:
        self._first = 0
        self._entries: list[T] = []
        self._kept = kept

    @property
    def position(self) -> int:
        """Where a reader that knows all entries stands."""
        return self._first + len(self._entries)

    def note(self, entry: T) -> None:
        """One more entry; of the old ones at least so many are kept as the journal was made for."""
        self._entries.append(entry)
        if len(self._entries) > 2 * self._kept:
            del self._entries[: self._kept]
            self._first += self._kept

    def since(self, position: int) -> list[T] | None:
        """The entries noted since a position; None if they are not all here any more."""
        return None if position < self._first else self._entries[position - self._first :]
