"""The last entries of an endless list: whoever follows it asks what is new since a position.

The list is short. A reader that is too far behind is told so, and counts anew.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Journal(Generic[T]):
    """Entries in the order they were noted. A position is how many there were; it only ever grows."""

    __slots__ = ("_entries", "_kept", "position")

    def __init__(self, kept: int) -> None:
        self.position = 0
        """Where a reader that knows all entries stands."""
        self._entries: list[T] = []
        self._kept = kept

    def note(self, entry: T) -> None:
        """One more entry; of the old ones at least so many are kept as the journal was made for."""
        self._entries.append(entry)
        self.position += 1
        if len(self._entries) > 2 * self._kept:
            del self._entries[: self._kept]

    def since(self, position: int) -> list[T] | None:
        """The entries noted since a position; None if they are not all here any more."""
        missed = self.position - position
        kept = len(self._entries)
        return None if missed > kept else self._entries[kept - missed :]
