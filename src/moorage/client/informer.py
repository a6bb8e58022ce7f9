"""Informers: the current objects of a kind, kept up to date by list and watch.

The state comes from a watch that begins with all objects (a watch-list, `sendInitialEvents`). If that fails
for any reason, it comes from a list in pages and a watch from there. A watch-list is tried again at the first
full list that is needed five minutes later or after that: by then the server may have been upgraded or
repaired. A failure that a list would have as well (no connection, 401, 403, 429) is retried with backoff.

A watch that ends is resumed at the last resourceVersion; if that is too old (410), everything is listed
again, and listeners are called for the differences only. Repeated events are ignored. Failures are retried
with exponential, jittered backoff. So a listener receives every object's changes in order, and none twice.

A kind that a plugin has declared may be one that the server does not have, or not yet: then there are no
objects of it, and nothing waits for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any, Final, Generic, Literal, Protocol, TypeVar, overload

import msgspec

from moorage.api.manifests import Manifest
from moorage.backoff import Backoff
from moorage.client.client import Client
from moorage.client.declared_kinds import is_declared
from moorage.client.kinds import Kind
from moorage.client.waiting import sleep as sleep  # Re-exported: users of an informer wait on its clock.
from moorage.client.watch_events import (
    EventLines,
    Head,
    IdleTimeout,
    Metadata,
    ObjectDecoder,
    Page,
    PlainDecoder,
    WatchEvent,
    ends_initial_events,
    is_newer,
    number,
    read_event,
    read_page,
)
from moorage.clock import Clock
from moorage.http.errors import AnswerLost, ConnectionFailed, RequestError
from moorage.klog import Logger, ObjectRef

T = TypeVar("T")
Key = tuple[str, str]
EventType = Literal["ADDED", "MODIFIED", "DELETED"]
Listener = Callable[[EventType, T, T | None], None]
"""Called for a change: its type, the object (its last state if deleted), and the state before."""
Decode = Callable[[bytes], T] | ObjectDecoder[T]
"""How objects are decoded from what the server sends."""

_INITIAL_BACKOFF_SECONDS: Final = 0.8
_MAX_BACKOFF_SECONDS: Final = 30.0
_WATCH_SECONDS: Final = 300
_IDLE_SECONDS: Final = 90.0
"""Time without any event after which a watch is ended, in seconds; servers send a bookmark every minute."""
_MIN_WATCH_SECONDS: Final = 1.0
"""A watch without events that ends sooner counts as failed, so that it is retried with backoff."""
_PAGE: Final = 500
_WATCH_LIST_PAUSE_SECONDS: Final = 300.0
"""Time after a failed watch-list during which full lists are made with list requests."""
_LIST_FAILS_TOO: Final = (401, 403, 429)
"""Status codes that are not specific to watch-lists: a list would be rejected as well."""

log = Logger(__name__)

_read_manifest = msgspec.json.Decoder(dict[str, Any]).decode


class _Known(msgspec.Struct, frozen=True, gc=False):
    """The known version of an object."""

    version: str
    uid: str


_Listing = dict[Key, tuple[_Known, T] | None]
"""A complete list; objects with None keep their known state."""


class Informer(Generic[T]):
    """The objects of one kind, decoded by `decode`, by namespace and name."""

    @overload
    def __init__(
        self: Informer[Manifest], client: Client, kind: Kind, clock: Clock, *,
        query: Mapping[str, str] | None = None, random: Random | None = None,
    ) -> None: ...  # fmt: skip

    @overload
    def __init__(
        self, client: Client, kind: Kind, clock: Clock, *, decode: Decode[T],
        query: Mapping[str, str] | None = None, random: Random | None = None,
    ) -> None: ...  # fmt: skip

    def __init__(
        self,
        client: Client,
        kind: Kind,
        clock: Clock,
        *,
        decode: Decode[Any] = _read_manifest,
        query: Mapping[str, str] | None = None,
        random: Random | None = None,
    ) -> None:
        self.kind = kind
        self.objects: dict[Key, T] = {}
        self.listeners: list[Listener[T]] = []
        """Called in order for every change; objects are shared and must not be changed."""
        self._client = client
        self._clock = clock
        self._decoder = _decoder(decode)
        self._query = dict(query or {})
        self._random = random or Random()
        self._backoff = Backoff(_INITIAL_BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS, self._random)
        self._known: dict[Key, _Known] = {}
        self._version = ""
        self._watched_from = ""
        self._watch_list_from = 0.0
        """The time on the clock before which no watch-list is tried."""
        self._has_received = False
        self._synced = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []

    def get(self, namespace: str, name: str) -> T | None:
        """One object, if it is there."""
        return self.objects.get((namespace, name))

    @property
    def version(self) -> int:
        """The resourceVersion up to which everything has been seen; 0 before the first list."""
        return number(self._version) or 0

    async def until(self, condition: Callable[[], bool]) -> None:
        """Returns when a condition on the objects holds; it is evaluated after every change."""
        while not condition():
            change = asyncio.get_running_loop().create_future()
            self._waiting.append(change)
            await change

    async def synced(self) -> None:
        """Returns when the first list is complete."""
        await self._synced.wait()

    def relist(self) -> None:
        """List everything again; `run` has to be restarted, and is synced again afterwards."""
        self._version = ""
        self._synced.clear()

    def relist_with(self, decode: Decode[T]) -> None:
        """As `relist`, and decode in another way."""
        self._decoder = _decoder(decode)
        self._known = {key: _Known("", known.uid) for key, known in self._known.items()}
        self.relist()

    async def run(self) -> None:
        """Watch the kind until cancelled."""
        while True:
            began_at = self._clock.now()
            self._has_received = False
            try:
                await self._list_and_watch()
                is_well = self._has_received or self._clock.now() - began_at >= _MIN_WATCH_SECONDS
            except (RequestError, ConnectionFailed) as error:
                log.warning("Failed to watch", type=self.kind.go_type, err=error)
                is_well = False
                if isinstance(error, RequestError) and error.is_expired:
                    self._version = ""
                self._note_missing_kind(error)
            if self._has_received:
                self._backoff.reset()
            if not is_well:
                await sleep(self._clock, self._backoff.next_seconds())

    def _note_missing_kind(self, error: RequestError | ConnectionFailed) -> None:
        """A declared kind that the server does not have has no objects, until it has it."""
        is_missing = isinstance(error, RequestError) and error.is_not_found and is_declared(self.kind)
        if is_missing and not self._synced.is_set():
            self._replace({}, "")

    async def _list_and_watch(self) -> None:
        """Watch until the watch ends; list first, if there is no state or it is too old."""
        if self._version:
            try:
                await self._watch()
                return
            except RequestError as error:
                if not error.is_expired:
                    raise
                log.info(0, "Watch expired, listing again", type=self.kind.go_type, err=error)
                self._version = ""
        if self._clock.now() < self._watch_list_from or not await self._watch_list():
            await self._list()
            await self._watch()

    # -- the list

    async def _list(self) -> None:
        """List everything in pages."""
        listing: _Listing[T] = {}
        query: dict[str, str | int] = {**self._query, "limit": _PAGE}
        while True:
            try:
                page = await self._page(query)
            except RequestError as error:
                if not error.is_expired or "continue" not in query:
                    raise
                # The continue token has expired: list everything in one request.
                listing.clear()
                query = dict(self._query)
                continue
            for raw in page.items or ():
                self._note(listing, read_event(self._decoder, "ADDED", bytes(raw)))
            if not page.metadata.continue_:
                break
            query["continue"] = page.metadata.continue_
        self._replace(listing, page.metadata.resource_version)

    async def _page(self, query: Mapping[str, str | int]) -> Page:
        stream = await self._client.stream(self.kind.path(), query)
        return read_page(b"".join([piece async for piece in stream]))

    def _note(self, listing: _Listing[T], event: WatchEvent) -> Metadata | None:
        """Add an object to a list; returns its metadata, if readable."""
        if event.head is None:
            log.error(None, "Unable to decode an object of a list", type=self.kind.go_type)
            return None
        meta = event.head.metadata
        key = (meta.namespace, meta.name)
        known = _Known(meta.resource_version, meta.uid)
        if event.type == "BOOKMARK":
            return meta
        if event.type == "DELETED":
            listing.pop(key, None)
        elif self._known.get(key) == known:
            listing[key] = None
        else:
            obj = self._decoded(key, event.head, event.raw)
            listing[key] = None if obj is None else (known, obj)
        return meta

    def _replace(self, listing: _Listing[T], version: str) -> None:
        """Replace the state by a list; listeners are called for the differences."""
        for key in [key for key in self.objects if key not in listing]:
            self._remove(key, None)
        for key, entry in listing.items():
            if entry is not None:
                self._put(key, *entry)
        self._version = version
        self._synced.set()
        self._wake()

    # -- the watch

    async def _watch_list(self) -> bool:
        """Watch, beginning with all objects; False if that failed before they were complete."""
        try:
            await self._watch()
        except (RequestError, ConnectionFailed) as error:
            if self._version or not _needs_relist(error):
                raise
            message = f"Watch-list not supported for {self.kind.plural}, falling back to list and watch"
            log.info(0, message, err=error)
            self._watch_list_from = self._clock.now() + _WATCH_LIST_PAUSE_SECONDS
            return False
        return True

    async def _watch(self) -> None:
        """Watch from the known version; without one, beginning with all objects."""
        query: dict[str, str | int] = {
            **self._query,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": int(_WATCH_SECONDS * (1 + self._random.random())),
        }
        listing: _Listing[T] | None = None
        self._watched_from = self._version
        if self._version:
            query["resourceVersion"] = self._version
        else:
            listing = {}
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        stream = await self._client.stream(self.kind.path(), query)
        guard = IdleTimeout(stream, self._clock, _IDLE_SECONDS)
        lines = EventLines(self._decoder)
        try:
            async for piece in stream:
                guard.reset()
                for event in lines.read(piece):
                    if listing is None:
                        self._apply(event)
                    elif self._is_complete(listing, event):
                        listing = None
                    self._has_received = listing is None
            if not guard.has_expired:
                lines.check_end()
        finally:
            guard.close()
        if listing is not None:
            raise AnswerLost("the watch ended before the end of the initial events")

    def _is_complete(self, listing: _Listing[T], event: WatchEvent) -> bool:
        """Add one of the initial events of a watch-list; returns whether it was the last of them."""
        meta = self._note(listing, event)
        if meta is None or event.type != "BOOKMARK":
            return False
        if not ends_initial_events(meta):
            # An old server that supports bookmarks but not watch-lists.
            raise AnswerLost("a bookmark does not mark the end of the initial events")
        self._replace(listing, meta.resource_version)
        return True

    def _apply(self, event: WatchEvent) -> None:
        head = event.head
        if head is None:
            log.error(None, "Unable to decode an event of a watch", type=self.kind.go_type)
            return
        meta = head.metadata
        key, version = (meta.namespace, meta.name), meta.resource_version
        if event.type == "BOOKMARK" and (number(version) or 0) < (number(self._watched_from) or 0):
            # Restored from a backup, for example: its further changes would look old.
            raise RequestError(410, "Expired", "the server was reset to an earlier state")
        if not is_newer(version, self._version):
            return  # Seen before.
        if event.type == "DELETED":
            self._remove(key, self._decoded(key, head, event.raw) if key in self.objects else None)
        elif event.type != "BOOKMARK":
            obj = self._decoded(key, head, event.raw)
            if obj is not None:
                self._put(key, _Known(version, meta.uid), obj)
        self._version = version
        self._wake()

    # -- the state

    def _decoded(self, key: Key, head: Head, raw: bytes) -> T | None:
        """An object; None, and a log line, if it cannot be decoded: the others still can."""
        try:
            obj: T = self._decoder.decode(head, raw)
        # The decoder is the caller's and may raise anything.
        except Exception as error:
            message = "Unable to decode an object, keeping its last known state"
            log.error(error, message, type=self.kind.go_type, object=ObjectRef(key[1], key[0]))
            return None
        return obj

    def _put(self, key: Key, known: _Known, obj: T) -> None:
        before = self.objects.get(key)
        if before is not None and self._known[key].uid != known.uid:
            # Another object of the same name; the deletion of the old one was missed.
            self._remove(key, None)
            before = None
        self.objects[key] = obj
        self._known[key] = known
        self._notify("MODIFIED" if before is not None else "ADDED", obj, before)

    def _remove(self, key: Key, last: T | None) -> None:
        before = self.objects.pop(key, None)
        self._known.pop(key, None)
        if before is not None:
            self._notify("DELETED", before if last is None else last, before)

    def _notify(self, type: EventType, obj: T, before: T | None) -> None:
        for listener in self.listeners:
            listener(type, obj, before)

    def _wake(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for change in waiting:
                if not change.done():
                    change.set_result(None)


def _needs_relist(error: RequestError | ConnectionFailed) -> bool:
    """Whether a list may succeed where a watch-list failed."""
    if isinstance(error, RequestError):
        return error.code not in _LIST_FAILS_TOO
    return isinstance(error, AnswerLost)


def _decoder(decode: Decode[T]) -> ObjectDecoder[T]:
    return decode if isinstance(decode, ObjectDecoder) else PlainDecoder(decode)


class Observable(Protocol[T]):
    """Objects, and listeners that are called for their changes: an informer, or what is derived from one."""

    objects: dict[Key, T]
    listeners: list[Listener[T]]


class Index(Generic[T]):
    """An informer's objects by other keys than their name: owner, node, class.

    `keys_of` returns the keys of an object. Indexes have to be created before the informer runs.
    """

    def __init__(self, informer: Observable[T], keys_of: Callable[[T], Iterable[str]]) -> None:
        self._keys_of = keys_of
        self._found: dict[str, dict[int, T]] = {}
        informer.listeners.append(self._on_event)
        for obj in informer.objects.values():
            self._on_event("ADDED", obj, None)

    def get(self, key: str) -> list[T]:
        """All objects with a key."""
        return list(self._found.get(key, {}).values())

    def _on_event(self, type: EventType, obj: T, before: T | None) -> None:
        if before is not None:
            for key in self._keys_of(before):
                found = self._found.get(key, {})
                found.pop(id(before), None)
                if not found:
                    self._found.pop(key, None)
        if type != "DELETED":
            for key in self._keys_of(obj):
                self._found.setdefault(key, {})[id(obj)] = obj
