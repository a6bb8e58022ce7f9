"""The other objects that scheduling reads (services, namespaces, volumes, claims, ...), by kind.

Each table has a version that is incremented by every change, and records the changes, so that a snapshot's
replica, and what is derived from a table, are updated at their cost. An object can be assumed: changed here
before the API server shows the change. The next update from the server ends the assumption.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from moorage.api.base import Object
from moorage.cluster.journal import Journal

T = TypeVar("T", bound=Object)
S = TypeVar("S")

_KEPT_CHANGES: Final = 1024
"""Minimum number of kept changes; a reader that is further behind has to read the whole table."""
_NONE: Mapping[str, Any] = MappingProxyType({})


class ObjectTable(Generic[T]):
    """Objects of one kind, by namespace and name; the namespace of cluster-wide kinds is empty."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self.version = 0
        self.changes: Journal[tuple[str, str]] = Journal(_KEPT_CHANGES)
        """The namespaces and names of objects that were put or removed, in order."""
        self._by_namespace: dict[str, dict[str, T]] = {}
        self._stored: dict[tuple[str, str], T] = {}
        self._changed: dict[tuple[str, str], None] = {}
        self._on_change = changed

    def put(self, item: T) -> None:
        """Add or replace an object, as sent by the API server."""
        if self._stored:
            self._stored.pop((item.namespace, item.name), None)
        self._set(item)

    def remove(self, namespace: str, name: str) -> None:
        """Remove an object; unknown objects are ignored."""
        self._stored.pop((namespace, name), None)
        members = self._by_namespace.get(namespace)
        if members is None or members.pop(name, None) is None:
            return
        if not members:
            del self._by_namespace[namespace]
        self._note((namespace, name))
        self._on_change()

    def assume(self, item: T) -> None:
        """Replace an object by its assumed state; it must exist."""
        key = (item.namespace, item.name)
        current = self.get(*key)
        assert current is not None, key
        self._stored.setdefault(key, current)
        self._set(item)

    def forget(self, namespace: str, name: str) -> None:
        """Remove an assumption: the object is again as last sent by the API server."""
        stored = self._stored.pop((namespace, name), None)
        if stored is not None:
            self._set(stored)

    def stored(self, namespace: str, name: str) -> T | None:
        """An object as last sent by the API server, without assumptions."""
        return self._stored.get((namespace, name)) or self.get(namespace, name)

    def _set(self, item: T) -> None:
        meta = item.metadata
        self._write((meta.namespace, meta.name), item)
        self._on_change()

    def _write(self, key: tuple[str, str], item: T) -> None:
        members = self._by_namespace.get(key[0])
        if members is None:
            members = self._by_namespace[key[0]] = {}
        members[key[1]] = item
        self._note(key)

    def _note(self, key: tuple[str, str]) -> None:
        self.version += 1
        self._changed[key] = None
        self.changes.note(key)

    def get(self, namespace: str, name: str) -> T | None:
        """An object, or None."""
        members = self._by_namespace.get(namespace)
        return None if members is None else members.get(name)

    def within(self, namespace: str) -> Mapping[str, T]:
        """The objects of one namespace, by name."""
        return self._by_namespace.get(namespace, _NONE)

    def __iter__(self) -> Iterator[T]:
        for members in self._by_namespace.values():
            yield from members.values()

    def __len__(self) -> int:
        return sum(map(len, self._by_namespace.values()))

    def sync_from(self, source: ObjectTable[T]) -> None:
        """Become equal to `source`, of which this is the only replica, by applying its changes."""
        for key in source._changed:
            item = source.get(*key)
            if item is None:
                self.remove(*key)
            else:
                self._write(key, item)
        source._changed.clear()
        self._changed.clear()
        self.version = source.version
        self._on_change()


class Objects:
    """A table for every kind that is used."""

    def __init__(self) -> None:
        self._tables: dict[type[Object], ObjectTable[Any]] = {}
        self._subscribers: dict[Callable[[], None], None] = {}
        self._shared: dict[Callable[[Objects], Any], Any] = {}

    def of(self, kind: type[T]) -> ObjectTable[T]:
        """The table of a kind."""
        table = self._tables.get(kind)
        if table is None:
            table = self._tables[kind] = ObjectTable(self._notify)
        return table

    def __iter__(self) -> Iterator[Object]:
        """All objects of all kinds."""
        for table in self._tables.values():
            yield from table

    def put(self, item: Object) -> None:
        """Add or replace an object in its kind's table."""
        self.of(type(item)).put(item)

    def remove(self, item: Object) -> None:
        """Remove an object from its kind's table."""
        self.of(type(item)).remove(item.namespace, item.name)

    def sync_from(self, source: Objects) -> None:
        """Become equal to `source`, of which this is the only replica."""
        for kind, table in source._tables.items():
            if table._changed:
                self.of(kind).sync_from(table)

    def shared(self, make: Callable[[Objects], S]) -> S:
        """What all users of these objects share, made at the first call with this function.

        It must not hold a strong reference to the objects, which own it.
        """
        made: S | None = self._shared.get(make)
        if made is None:
            made = self._shared[make] = make(self)
        return made

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back at every change; returns a function that ends the subscription."""
        self._subscribers[callback] = None
        return lambda: self._subscribers.pop(callback, None)

    def _notify(self) -> None:
        for callback in list(self._subscribers):
            callback()
