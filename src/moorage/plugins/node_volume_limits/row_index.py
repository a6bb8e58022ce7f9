"""Rows by what was found on them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class RowIndex(Generic[K]):
    """The rows of each key. Most keys have one row, which is kept without a set around it."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: dict[K, int | set[int]] = {}

    def __len__(self) -> int:
        """Number of keys."""
        return len(self._rows)

    def rows(self, key: K) -> Collection[int]:
        """The rows of a key."""
        found = self._rows.get(key)
        if found is None:
            return ()
        return (found,) if isinstance(found, int) else found

    def add(self, keys: Iterable[K], row: int) -> None:
        """A row has some keys."""
        for key in keys:
            found = self._rows.setdefault(key, row)
            if isinstance(found, set):
                found.add(row)
            elif found != row:
                self._rows[key] = {found, row}

    def remove(self, keys: Iterable[K], row: int) -> None:
        """A row does not have some of its keys any more."""
        for key in keys:
            found = self._rows[key]
            if isinstance(found, set) and len(found) > 1:
                found.remove(row)
            else:
                del self._rows[key]

    def clear(self) -> None:
        """No row has any key."""
        self._rows.clear()
