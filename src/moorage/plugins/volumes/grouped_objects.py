"""Objects of a table by a key, such as their storage class or node, which follow the table's changes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Generic, TypeVar

from moorage.api.base import Object
from moorage.cluster.object_tables import ObjectTable

T = TypeVar("T", bound=Object)

_Name = tuple[str, str]
"""Namespace and name."""


class GroupedObjects(Generic[T]):
    """The objects of each key; an update costs as much as there are changes."""

    def __init__(self, key_of: Callable[[T], str]) -> None:
        self._key_of = key_of
        self._table: ObjectTable[T] | None = None
        self._position = 0
        self._groups: dict[str, dict[_Name, T]] = {}
        self._keys: dict[_Name, str] = {}

    def members(self, table: ObjectTable[T], key: str) -> Collection[T]:
        """The objects of a key, in no particular order."""
        self.follow(table)
        group = self._groups.get(key)
        return () if group is None else group.values()

    def follow(self, table: ObjectTable[T]) -> Collection[str] | None:
        """Apply the changes since the last call: the keys they concern; None: any of them."""
        changes, is_same = table.changes, table is self._table
        if is_same and changes.position == self._position:
            return ()
        changed = changes.since(self._position) if is_same else None
        self._table, self._position = table, changes.position
        if changed is None:
            self._groups, self._keys = {}, {}
            for item in table:
                self._put((item.namespace, item.name), item)
            return None
        concerned: dict[str, None] = {}
        for name in changed:
            if (key := self._remove(name)) is not None:
                concerned[key] = None
            current = table.get(*name)
            if current is not None:
                concerned[self._put(name, current)] = None
        return concerned

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
