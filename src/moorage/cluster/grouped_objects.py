"""Objects of a table by a key, such as their storage class or node, which follow the table's changes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, Generic, TypeVar

from moorage.api.base import Object
from moorage.cluster.journal import Journal, JournalReader
from moorage.cluster.object_tables import ObjectTable

T = TypeVar("T", bound=Object)

_Name = tuple[str, str]
"""Namespace and name."""

_KEPT_CHANGES: Final = 1024
"""Minimum number of kept changes; a reader that is further behind has to read all groups."""


class GroupedObjects(Generic[T]):
    """The objects of each key; an update costs as much as there are changes."""

    def __init__(self, key_of: Callable[[T], str]) -> None:
        self.changes: Journal[str] = Journal(_KEPT_CHANGES)
        """The keys whose objects have changed, as of the last update."""
        self._key_of = key_of
        self._reader: JournalReader[_Name] = JournalReader()
        self._groups: dict[str, dict[_Name, T]] = {}
        self._keys: dict[_Name, str] = {}

    def members(self, table: ObjectTable[T], key: str) -> Collection[T]:
        """The objects of a key, in no particular order."""
        self.follow(table)
        group = self._groups.get(key)
        return () if group is None else group.values()

    def follow(self, table: ObjectTable[T]) -> None:
        """Apply the changes since the last update."""
        changed = self._reader.new_entries(table.changes)
        if changed is None:
            self.changes.start_over()
            self._groups, self._keys = {}, {}
            for item in table:
                self._put((item.namespace, item.name), item)
            return
        for name in changed:
            before, current = self._remove(name), table.get(*name)
            now = None if current is None else self._put(name, current)
            if before is not None:
                self.changes.note(before)
            if now is not None and now != before:
                self.changes.note(now)

    def keys(self) -> Collection[str]:
        """All keys, as of the last update."""
        return self._groups.keys()

    def _put(self, name: _Name, item: T) -> str:
        key = self._keys[name] = self._key_of(item)
        self._groups.setdefault(key, {})[name] = item
        return key

    def _remove(self, name: _Name) -> str | None:
        key = self._keys.pop(name, None)
        if key is not None:
            group = self._groups[key]
            del group[name]
            if not group:
                del self._groups[key]
        return key
