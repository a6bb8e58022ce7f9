"""The object store: collections of encoded objects, one revision counter, and a bounded log of changes.

Invariants:
- every write moves the revision by one, and an object's resourceVersion is the revision of its last write;
- a stored object is never changed, only replaced, and its encoded form is what clients get;
- a collection's log holds every change after `Log.oldest`, in order, so watching is reading on in the log and
  a slow watcher costs no memory; a watcher that has fallen behind the log starts again;
- logs are bounded in changes, and all together in bytes of objects that nothing but a log holds;
- a write is in the journal before it is visible.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final, Literal, Protocol

import msgspec

from moorage.api.manifests import Manifest
from moorage.api.text_cache import shared_text
from moorage.apimachinery.schema.wire import WireFormat, wire_format
from moorage_cluster.apiserver.object_size import ALWAYS_STORABLE_BYTES, check_size
from moorage_cluster.apiserver.selector_parsing import FieldValues

Key = tuple[str, str]
"""Namespace (empty for cluster-wide objects) and name."""

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode


class Stored(msgspec.Struct, eq=False, gc=False):
    """One object at one revision.

    There are many, and none is part of a reference cycle: the garbage collector need not track them.
    """

    key: Key
    uid: str
    version: int
    api_version: str
    raw: bytes
    labels: Mapping[str, str]
    fields: FieldValues
    has_owners: bool
    is_being_deleted: bool
    _obj: Manifest | None = None

    def decoded(self) -> Manifest:
        """A new copy of the object."""
        obj: Manifest = decode(self.raw)
        return obj

    @property
    def obj(self) -> Manifest:
        """The object, shared: not to be changed."""
        if self._obj is None:
            self._obj = self.decoded()
        return self._obj

    def forget_decoded(self) -> None:
        """Keep the encoded form only: an object that was replaced is only sent to watchers."""
        self._obj = None


ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]


class Change(msgspec.Struct, frozen=True, eq=False, gc=False):
    """What a write did. A deletion's `stored` is the object's last state under the deletion's revision."""

    version: int
    type: ChangeType
    stored: Stored
    previous: Stored | None

    @property
    def held_bytes(self) -> int:
        """Bytes that only the log holds: the replaced object, and the last state of a deleted one."""
        replaced = 0 if self.previous is None else len(self.previous.raw)
        return replaced + len(self.stored.raw) if self.type == "DELETED" else replaced


class Journal(Protocol):
    """Persistent storage of writes."""

    def put(self, collection: str, stored: Stored) -> None:
        """Store an object; on return it is committed."""

    def delete(self, collection: str, key: Key, version: int) -> None:
        """Delete an object; on return that is committed."""


class Log:
    """The latest changes of a collection."""

    def __init__(self, capacity: int, oldest: int) -> None:
        self._capacity = capacity
        self._changes: list[Change] = []
        self._start = 0
        """The position of the first change kept."""
        self.oldest = oldest
        """Changes up to this revision may be missing; all later ones are here."""
        self.held_bytes = 0
        """Bytes of encoded objects that only this log holds."""

    @property
    def end(self) -> int:
        """The position after the last change."""
        return self._start + len(self._changes)

    def append(self, change: Change) -> int:
        """Add a change; returns the bytes held because of it. A full log drops its older half."""
        self._changes.append(change)
        held = change.held_bytes
        self.held_bytes += held
        if len(self._changes) >= 2 * self._capacity:
            self._drop(len(self._changes) - self._capacity)
        return held

    def halve(self) -> None:
        """Drop the oldest changes until half of the bytes are left."""
        most, held, count = self.held_bytes // 2, self.held_bytes, 0
        while held > most:
            held -= self._changes[count].held_bytes
            count += 1
        self._drop(count)

    def _drop(self, count: int) -> None:
        """Drop the oldest changes."""
        self.held_bytes -= sum(change.held_bytes for change in self._changes[:count])
        self.oldest = self._changes[count - 1].version
        del self._changes[:count]
        self._start += count

    def position_after(self, version: int) -> int | None:
        """The position after a revision, or None if changes since then were dropped."""
        if version < self.oldest:
            return None
        return self._start + bisect_right(self._changes, version, key=lambda change: change.version)

    def read(self, position: int, most: int) -> list[Change] | None:
        """Changes from a position on, or None if they were dropped."""
        at = position - self._start
        return None if at < 0 else self._changes[at : at + most]

    def reversed_until(self, version: int) -> Iterator[Change]:
        """Changes after a revision, the latest first."""
        for change in reversed(self._changes):
            if change.version <= version:
                return
            yield change


class Collection:
    """All objects of one resource."""

    def __init__(self, name: str, history: int, revision: int) -> None:
        self.name = name
        self.items: dict[Key, Stored] = {}
        self.log = Log(history, revision)
        self._sorted: list[Key] | None = None
        self._by_namespace: dict[str, dict[Key, Stored]] = {}
        self.waiting: dict[asyncio.Event, None] = {}
        """Events of waiting watchers, in order: set at the next change, and then removed."""

    def get(self, key: Key) -> Stored | None:
        """One object."""
        return self.items.get(key)

    def within(self, namespace: str) -> dict[Key, Stored]:
        """The objects of one namespace."""
        return self._by_namespace.get(namespace, {})

    def keys(self) -> list[Key]:
        """All keys in order."""
        if self._sorted is None:
            self._sorted = sorted(self.items)
        return self._sorted

    def record(self, change: Change) -> int:
        """Make a change visible, and wake watchers; returns the bytes held because of it."""
        stored = change.stored
        key = stored.key
        if change.type == "DELETED":
            del self.items[key]
            self._leave_namespace(key)
        else:
            self.items[key] = stored
            self._by_namespace.setdefault(key[0], {})[key] = stored
        if change.type != "MODIFIED":
            self._sorted = None
        held = self.log.append(change)
        if self.waiting:
            for event in self.waiting:
                event.set()
            self.waiting.clear()
        return held

    def _leave_namespace(self, key: Key) -> None:
        objects = self._by_namespace[key[0]]
        del objects[key]
        if not objects:
            del self._by_namespace[key[0]]

    def load(self, stored: Stored) -> None:
        """Load an object from the journal."""
        self.items[stored.key] = stored
        self._by_namespace.setdefault(stored.key[0], {})[stored.key] = stored
        self._sorted = None

    def reindex(self, fields_of: Callable[[Stored], dict[str, str]]) -> None:
        """Replace the selectable fields of all objects."""
        for stored in self.items.values():
            stored.fields = FieldValues.of(fields_of(stored))

    def at(self, version: int) -> dict[Key, Stored] | None:
        """All objects as they were at a revision, or None if that is too long ago."""
        if version < self.log.oldest:
            return None
        past: dict[Key, Stored | None] = {}
        for change in self.log.reversed_until(version):
            past[change.stored.key] = change.previous
        if not past:
            return self.items
        then = {**self.items, **past}
        return {key: stored for key, stored in then.items() if stored is not None}


Listener = Callable[[Collection, Change], None]

_NO_LABELS: Final[Mapping[str, str]] = {}
_DEFAULT_HISTORY: Final = 20_000
MAX_HISTORY_BYTES: Final = 128 * 1024 * 1024
_shared: Final[Callable[[Stored], Manifest]] = attrgetter("obj")


class _Collections(dict[str, Collection]):
    """Collections by name, created on first use."""

    def __init__(self, history: int, revision: int) -> None:
        super().__init__()
        self._history = history
        self._started_at = revision

    def __missing__(self, name: str) -> Collection:
        collection = self[name] = Collection(name, self._history, self._started_at)
        return collection


class Store:
    """All collections under one revision counter."""

    def __init__(
        self,
        journal: Journal | None = None,
        revision: int = 1,
        history: int = _DEFAULT_HISTORY,
        history_bytes: int = MAX_HISTORY_BYTES,
        types: WireFormat | None = None,
    ) -> None:
        self._journal = journal
        self._types = types or wire_format()
        self._most_history_bytes = history_bytes
        self._history_bytes = 0
        """Upper bound of the bytes that all logs hold."""
        self._collections = _Collections(history, revision)
        self.revision = revision
        self.is_durable = journal is not None
        """Whether objects may be those of an earlier server."""
        self.listeners: list[Listener] = []
        """Observers, called after each change, before the write is answered; they must not raise."""

    def collection(self, name: str) -> Collection:
        """A collection by name, created on first use."""
        return self._collections[name]

    def collections(self) -> Iterable[Collection]:
        """All collections that hold or held something."""
        return list(self._collections.values())

    def load(self, collection: str, obj: Manifest, version: int, fields: dict[str, str]) -> None:
        """Load an object from the journal."""
        self.collection(collection).load(_stored(obj, version, FieldValues.of(fields)))

    def put(self, collection: Collection, obj: Manifest, fields: dict[str, str]) -> Stored:
        """Write an object, new or in place of another; it gets its resourceVersion here.

        ApiError (500) if it is larger than etcd would take.
        """
        version = self.revision + 1
        stored = _stored(obj, version, FieldValues.of(fields))
        if len(stored.raw) > ALWAYS_STORABLE_BYTES:
            check_size(obj, stored.raw, self._types)
        if self._journal is not None:
            self._journal.put(collection.name, stored)
        self.revision = version
        previous = collection.items.get(stored.key)
        self._record(collection, Change(version, "MODIFIED" if previous else "ADDED", stored, previous))
        return stored

    def delete(self, collection: Collection, key: Key, shown: Manifest | None = None) -> Stored:
        """Delete an object; returns its last state, or `shown` where readers see another form."""
        version = self.revision + 1
        previous = collection.items[key]
        last = _stored(shown or previous.decoded(), version, previous.fields)
        if self._journal is not None:
            self._journal.delete(collection.name, key, version)
        self.revision = version
        self._record(collection, Change(version, "DELETED", last, previous))
        return last

    def _record(self, collection: Collection, change: Change) -> None:
        self._history_bytes += collection.record(change)
        for listener in self.listeners:
            listener(collection, change)
        if change.previous is not None:
            change.previous.forget_decoded()
        if self._history_bytes > self._most_history_bytes:
            self._bound_history()

    def _bound_history(self) -> None:
        """Drop the older half of the largest log until all logs are within the limit."""
        logs = [collection.log for collection in self._collections.values()]
        while (held := sum(log.held_bytes for log in logs)) > self._most_history_bytes:
            max(logs, key=attrgetter("held_bytes")).halve()
        self._history_bytes = held

    def find(self, storage: str, namespace: str, name: str) -> Manifest | None:
        """One object of a collection, not to be changed."""
        stored = self._collections[storage].items.get((namespace, name))
        return None if stored is None else stored.obj

    def all(self, storage: str, namespace: str | None = None) -> Iterator[Manifest]:
        """All objects of a collection, in one namespace or in all; not to be changed."""
        collection = self._collections[storage]
        found = collection.items if namespace is None else collection.within(namespace)
        return map(_shared, found.values())


def _stored(obj: Manifest, version: int, fields: FieldValues) -> Stored:
    meta: dict[str, Any] = obj["metadata"]
    meta["resourceVersion"] = str(version)
    key = (shared_text(meta.get("namespace", "")), meta["name"])
    return Stored(
        key,
        meta.get("uid", ""),
        version,
        shared_text(obj["apiVersion"]),
        encode(obj),
        meta.get("labels") or _NO_LABELS,
        fields,
        "ownerReferences" in meta,
        "deletionTimestamp" in meta,
    )
