"""Informers: the objects of a kind as they are now, kept up to date by list and watch.

The state comes by a watch that begins with everything (a watch-list, `sendInitialEvents`). Where that fails,
whatever the reason, it comes by a list in pages and a watch from there. A watch-list is tried again at the
first full list that is needed five minutes later or after that: by then the server may have been upgraded or
repaired. A failure that a list would meet as well (no connection, 401, 403, 429) is retried after a pause.

A watch that ends, however it ends, is taken up where it ended; when the server no longer knows that place
(410) there is a new full list, and listeners hear only of what differs. What comes twice is ignored. Failures
are retried with growing, jittered pauses. So a listener sees every object's changes in order, and none twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any, Final, Generic, Literal, TypeVar, overload

import msgspec

from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.client.kinds import Kind
from moorage.client.waiting import Backoff
from moorage.client.waiting import sleep as sleep  # Who has an informer finds here how to wait on its clock.
from moorage.client.watching import (
    Event,
    EventLines,
    Metadata,
    Page,
    SilenceGuard,
    ends_initial_events,
    is_newer,
    number,
    read_metadata,
    read_page,
)
from moorage.clock import Clock
from moorage.http.errors import AnswerLost, ConnectionFailed, RequestError
from moorage.klog import Logger, ObjectRef

T = TypeVar("T")
Key = tuple[str, str]
EventType = Literal["ADDED", "MODIFIED", "DELETED"]
Listener = Callable[[EventType, T, T | None], None]
"""Hears of a change: its type, the object (its last state if deleted), and what was there before."""

_FIRST_PAUSE_SECONDS: Final = 0.8
_LONGEST_PAUSE_SECONDS: Final = 30.0
_WATCH_SECONDS: Final = 300
_SILENCE_SECONDS: Final = 90.0
"""Servers send a bookmark about every minute, so that there is always something to hear."""
_SHORTEST_WATCH_SECONDS: Final = 1.0
"""A watch that says nothing and ends sooner is a failure, or it would be begun anew without end."""
_PAGE: Final = 500
_WATCH_LIST_PAUSE_SECONDS: Final = 300.0
"""Time after a failed watch-list during which full lists are made with list requests."""
_LIST_FAILS_TOO: Final = (401, 403, 429)
"""Statuses that say nothing about watch-lists: a list would be refused as well."""

log = Logger(__name__)

_read_manifest = msgspec.json.Decoder(dict[str, Any]).decode


class _Known(msgspec.Struct, frozen=True, gc=False):
    """Which state of an object is known."""

    version: str
    uid: str


_Listing = dict[Key, tuple[_Known, T] | None]
"""All objects there are; those with None are to stay as they are known."""


class Informer(Generic[T]):
    """The objects of one kind, decoded by `decode`, by namespace and name."""

    @overload
    def __init__(
        self: Informer[Manifest], client: Client, kind: Kind, clock: Clock, *,
        query: Mapping[str, str] | None = None, random: Random | None = None,
    ) -> None: ...  # fmt: skip

    @overload
    def __init__(
        self, client: Client, kind: Kind, clock: Clock, *, decode: Callable[[bytes], T],
        query: Mapping[str, str] | None = None, random: Random | None = None,
    ) -> None: ...  # fmt: skip

    def __init__(
        self,
        client: Client,
        kind: Kind,
        clock: Clock,
        *,
        decode: Callable[[bytes], Any] = _read_manifest,
        query: Mapping[str, str] | None = None,
        random: Random | None = None,
    ) -> None:
        self.kind = kind
        self.objects: dict[Key, T] = {}
        self.listeners: list[Listener[T]] = []
        """Called in order for every change; objects are shared and must not be changed."""
        self._client = client
        self._clock = clock
        self._decode = decode
        self._query = dict(query or {})
        self._random = random or Random()
        self._backoff = Backoff(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS, self._random)
        self._known: dict[Key, _Known] = {}
        self._version = ""
        self._watched_from = ""
        self._watch_list_from = 0.0
        """The time on the clock before which no watch-list is tried."""
        self._has_heard = False
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
        """Returns once something is true of the objects; asked again after every change."""
        while not condition():
            change = asyncio.get_running_loop().create_future()
            self._waiting.append(change)
            await change

    async def synced(self) -> None:
        """Returns once everything has been listed."""
        await self._synced.wait()

    def read_anew(self, decode: Callable[[bytes], T]) -> None:
        """Decode everything in another way; for that, `run` must be begun anew. Then it is synced again."""
        self._decode = decode
        self._known = {key: _Known("", known.uid) for key, known in self._known.items()}
        self._version = ""
        self._synced.clear()

    async def run(self) -> None:
        """Follow the kind until cancelled."""
        while True:
            began_at = self._clock.now()
            self._has_heard = False
            try:
                await self._follow()
                is_well = self._has_heard or self._clock.now() - began_at >= _SHORTEST_WATCH_SECONDS
            except (RequestError, ConnectionFailed) as error:
                log.warning("Failed to watch", type=self.kind.go_type, err=error)
                is_well = False
                if isinstance(error, RequestError) and error.is_expired:
                    self._version = ""
            if self._has_heard:
                self._backoff.reset()
            if not is_well:
                await sleep(self._clock, self._backoff.pause())

    async def _follow(self) -> None:
        """Follow changes until the watch ends; get the state first, where there is none or it is too old."""
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

    # -- the state

    async def _list(self) -> None:
        """Get everything in pages."""
        listing: _Listing[T] = {}
        query: dict[str, str | int] = {**self._query, "limit": _PAGE}
        while True:
            try:
                page = await self._page(query)
            except RequestError as error:
                if not error.is_expired or "continue" not in query:
                    raise
                # It took too long, and the other pages are gone: all at once, then.
                listing.clear()
                query = dict(self._query)
                continue
            for raw in page.items or ():
                self._note(listing, Event("ADDED", read_metadata(raw), bytes(raw)))
            if not page.metadata.continue_:
                break
            query["continue"] = page.metadata.continue_
        self._replace(listing, page.metadata.resource_version)

    async def _page(self, query: Mapping[str, str | int]) -> Page:
        stream = await self._client.stream(self.kind.path(), query)
        return read_page(b"".join([piece async for piece in stream]))

    def _note(self, listing: _Listing[T], event: Event) -> Metadata | None:
        """Add an object of a list; its metadata, if readable."""
        meta = event.metadata
        if meta is None:
            log.error(None, "Unable to decode an object of a list", type=self.kind.go_type)
            return None
        key = (meta.namespace, meta.name)
        known = _Known(meta.resource_version, meta.uid)
        if event.type == "BOOKMARK":
            return meta
        if event.type == "DELETED":
            listing.pop(key, None)
        elif self._known.get(key) == known:
            listing[key] = None
        else:
            obj = self._decoded(key, event.raw)
            listing[key] = None if obj is None else (known, obj)
        return meta

    def _replace(self, listing: _Listing[T], version: str) -> None:
        """The state is as listed: what differs from what is known is told."""
        for key in [key for key in self.objects if key not in listing]:
            self._remove(key, None)
        for key, entry in listing.items():
            if entry is not None:
                self._put(key, *entry)
        self._version = version
        self._synced.set()
        self._wake()

    # -- its changes

    async def _watch_list(self) -> bool:
        """Watch, beginning with everything there is; False if that failed before everything had come."""
        try:
            await self._watch()
        except (RequestError, ConnectionFailed) as error:
            if self._version or not _calls_for_list(error):
                raise
            message = f"Watch-list not supported for {self.kind.plural}, falling back to list and watch"
            log.info(0, message, err=error)
            self._watch_list_from = self._clock.now() + _WATCH_LIST_PAUSE_SECONDS
            return False
        return True

    async def _watch(self) -> None:
        """Watch from where we are; where that is nowhere, beginning with everything."""
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
        guard = SilenceGuard(stream, self._clock, _SILENCE_SECONDS)
        lines = EventLines()
        try:
            async for piece in stream:
                guard.heard()
                for event in lines.read(piece):
                    if listing is None:
                        self._apply(event)
                    elif self._is_complete(listing, event):
                        listing = None
                    self._has_heard = listing is None
            if not guard.has_ended_it:
                lines.check_end()
        finally:
            guard.close()
        if listing is not None:
            raise AnswerLost("the watch ended before all initial events had come")

    def _is_complete(self, listing: _Listing[T], event: Event) -> bool:
        """Add one of the first events of a watch-list; whether it was the last of them."""
        meta = self._note(listing, event)
        if meta is None or event.type != "BOOKMARK":
            return False
        if not ends_initial_events(meta):
            # An old server, which knows bookmarks but not this.
            raise AnswerLost("a bookmark does not say that all initial events have come")
        self._replace(listing, meta.resource_version)
        return True

    def _apply(self, event: Event) -> None:
        meta = event.metadata
        if meta is None:
            log.error(None, "Unable to decode an event of a watch", type=self.kind.go_type)
            return
        key, version = (meta.namespace, meta.name), meta.resource_version
        if event.type == "BOOKMARK" and (number(version) or 0) < (number(self._watched_from) or 0):
            # Restored from a backup, say: nothing that it does now would look new.
            raise RequestError(410, "Expired", "the server has gone back to an earlier state")
        if not is_newer(version, self._version):
            return  # Told before.
        if event.type == "DELETED":
            self._remove(key, event.raw)
        elif event.type != "BOOKMARK":
            obj = self._decoded(key, event.raw)
            if obj is not None:
                self._put(key, _Known(version, meta.uid), obj)
        self._version = version
        self._wake()

    # -- what is known

    def _decoded(self, key: Key, raw: bytes) -> T | None:
        """An object; None, and a word in the log, if it makes no sense: the others still do."""
        try:
            obj: T = self._decode(raw)
        # How decoding fails is the decoder's affair, which is the caller's.
        except Exception as error:
            message = "Unable to decode an object, keeping its last known state"
            log.error(error, message, type=self.kind.go_type, object=ObjectRef(key[1], key[0]))
            return None
        return obj

    def _put(self, key: Key, known: _Known, obj: T) -> None:
        before = self.objects.get(key)
        if before is not None and self._known[key].uid != known.uid:
            self._remove(key, None)  # Another object of the same name; that the old one went was missed.
            before = None
        self.objects[key] = obj
        self._known[key] = known
        self._tell("MODIFIED" if before is not None else "ADDED", obj, before)

    def _remove(self, key: Key, raw: bytes | None) -> None:
        before = self.objects.pop(key, None)
        self._known.pop(key, None)
        if before is not None:
            last = self._decoded(key, raw) if raw is not None else None
            self._tell("DELETED", before if last is None else last, before)

    def _tell(self, type: EventType, obj: T, before: T | None) -> None:
        for listener in self.listeners:
            listener(type, obj, before)

    def _wake(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for change in waiting:
                if not change.done():
                    change.set_result(None)


def _calls_for_list(error: RequestError | ConnectionFailed) -> bool:
    """Whether a list may succeed where a watch-list failed."""
    if isinstance(error, RequestError):
        return error.code not in _LIST_FAILS_TOO
    return isinstance(error, AnswerLost)


class Index(Generic[T]):
    """An informer's objects by something else than their name: by owner, by node, by class.

    `keys_of` gives the keys under which an object is found. Make indexes before the informer runs.
    """

    def __init__(self, informer: Informer[T], keys_of: Callable[[T], Iterable[str]]) -> None:
        self._keys_of = keys_of
        self._found: dict[str, dict[int, T]] = {}
        informer.listeners.append(self._follow)
        for obj in informer.objects.values():
            self._follow("ADDED", obj, None)

    def get(self, key: str) -> list[T]:
        """All objects with a key."""
        return list(self._found.get(key, {}).values())

    def _follow(self, type: EventType, obj: T, before: T | None) -> None:
        if before is not None:
            for key in self._keys_of(before):
                found = self._found.get(key, {})
                found.pop(id(before), None)
                if not found:
                    self._found.pop(key, None)
        if type != "DELETED":
            for key in self._keys_of(obj):
                self._found.setdefault(key, {})[id(obj)] = obj
