"""The last entries of an unbounded log: readers ask for the entries since a position.

The log is bounded. A reader that is too far behind has to start over.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Journal(Generic[T]):
    """Entries in order. A position is the number of entries before it; it only grows."""

    __slots__ = ("_entries", "_kept", "position")

    def __init__(self, kept: int) -> None:
        self.position = 0
        """The position of a reader that has read all entries."""
        self._entries: list[T] = []
        self._kept = kept

    def note(self, entry: T) -> None:
        """Append an entry; at least as many entries are kept as the constructor says."""
        self._entries.append(entry)
        self.position += 1
        if len(self._entries) > 2 * self._kept:
            del self._entries[: self._kept]

    def since(self, position: int) -> list[T] | None:
        """The entries since a position; None if some of them were dropped."""
        missed = self.position - position
        kept = len(self._entries)
        return None if missed > kept else self._entries[kept - missed :]

    def start_over(self) -> None:
        """What was derived from earlier entries is not valid any more: no earlier position can be read on."""
        self.position += 1
        del self._entries[:]


class JournalReader(Generic[T]):
    """A reader's position in a journal, which is usually the same journal every time."""

    __slots__ = ("_journal", "_position")

    def __init__(self) -> None:
        self._journal: Journal[T] | None = None
        self._position = 0

    def new_entries(self, journal: Journal[T]) -> list[T] | None:
        """The entries since the last call; None if some of them are not known any more."""
        if journal is not self._journal:
            entries = None
        elif journal.position == self._position:
            return []
        else:
            entries = journal.since(self._position)
        self._journal, self._position = journal, journal.position
        return entries
