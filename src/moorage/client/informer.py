"""Informers: the objects of a kind as they are now, kept up to date by list and watch.

A watch that ends is taken up where it ended; when the server no longer knows that place (410) everything is
listed anew, and listeners hear only of what differs. Failures are retried with growing, jittered pauses. So a
listener sees every object's changes in order, and none twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any, Final, Generic, Literal, TypeVar, overload

import msgspec

from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.client.errors import ConnectionFailed, RequestError
from moorage.client.kinds import Kind
from moorage.clock import Clock
from moorage.transport import Stream

T = TypeVar("T")
Key = tuple[str, str]
EventType = Literal["ADDED", "MODIFIED", "DELETED"]
Listener = Callable[[EventType, T, T | None], None]
"""Hears of a change: its type, the object (its last state if deleted), and what was there before."""

_FIRST_PAUSE_SECONDS: Final = 0.8
_LONGEST_PAUSE_SECONDS: Final = 30.0
_WATCH_SECONDS: Final = 300

log = logging.getLogger(__name__)


class _Meta(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    resource_version: str = msgspec.field(name="resourceVersion", default="")


class _Head(msgspec.Struct):
    """What an informer itself reads of an object."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _List(msgspec.Struct):
    items: list[msgspec.Raw]
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _Status(msgspec.Struct):
    code: int = 0
    reason: str = ""
    message: str = ""


_read_event = msgspec.json.Decoder(_Event).decode
_read_head = msgspec.json.Decoder(_Head).decode
_read_list = msgspec.json.Decoder(_List).decode
_read_status = msgspec.json.Decoder(_Status).decode
_read_manifest = msgspec.json.Decoder(dict[str, Any]).decode


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
        self._versions: dict[Key, str] = {}
        self._version = ""
        self._synced = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []

    def get(self, namespace: str, name: str) -> T | None:
        """One object, if it is there."""
        return self.objects.get((namespace, name))

    @property
    def version(self) -> int:
        """The resourceVersion up to which everything has been seen; 0 before the first list."""
        return int(self._version or 0)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Returns once something is true of the objects; asked again after every change."""
        while not condition():
            change = asyncio.get_running_loop().create_future()
            self._waiting.append(change)
            await change

    async def synced(self) -> None:
        """Returns once everything has been listed."""
        await self._synced.wait()

    async def run(self) -> None:
        """Follow the kind until cancelled."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
                pause = _FIRST_PAUSE_SECONDS
                continue
            except RequestError as error:
                if error.is_expired:
                    self._version = ""
                    continue
                log.warning("watching %s: %s", self.kind.plural, error)
            except ConnectionFailed as error:
                log.warning("watching %s: %s", self.kind.plural, error)
            await sleep(self._clock, pause * (1 + self._random.random()))
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    # -- list

    async def _list(self) -> None:
        stream = await self._client.stream(self.kind.path(), self._query)
        listed = _read_list(b"".join([piece async for piece in stream]))
        gone = set(self.objects)
        for raw in listed.items:
            head = _read_head(raw).metadata
            key = (head.namespace, head.name)
            gone.discard(key)
            if self._versions.get(key) != head.resource_version:
                self._put(key, head.resource_version, bytes(raw))
        for key in gone:
            self._remove(key, None)
        self._version = listed.metadata.resource_version
        self._synced.set()

    # -- watch

    async def _watch(self) -> None:
        seconds = int(_WATCH_SECONDS * (1 + self._random.random()))
        query = {
            **self._query,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(seconds),
        }
        stream: Stream = await self._client.stream(self.kind.path(), query)
        try:
            rest = b""
            async for piece in stream:
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if line:
                        self._follow(line)
        finally:
            stream.close()

    def _follow(self, line: bytes) -> None:
        try:
            event = _read_event(line)
            if event.type == "ERROR":
                status = _read_status(event.object)
                raise RequestError(status.code, status.reason, status.message)
            head = _read_head(event.object).metadata
        except msgspec.MsgspecError as error:
            raise ConnectionFailed(f"the watch says something unreadable: {error}") from None
        if event.type != "BOOKMARK":
            key = (head.namespace, head.name)
            if event.type == "DELETED":
                self._remove(key, bytes(event.object))
            elif self._versions.get(key) != head.resource_version:
                self._put(key, head.resource_version, bytes(event.object))
        self._version = head.resource_version

    # -- what is known

    def _put(self, key: Key, version: str, raw: bytes) -> None:
        obj = self._decode(raw)
        before = self.objects.get(key)
        self.objects[key] = obj
        self._versions[key] = version
        self._tell("MODIFIED" if before is not None else "ADDED", obj, before)

    def _remove(self, key: Key, raw: bytes | None) -> None:
        before = self.objects.pop(key, None)
        self._versions.pop(key, None)
        if before is not None:
            self._tell("DELETED", self._decode(raw) if raw is not None else before, before)

    def _tell(self, type: EventType, obj: T, before: T | None) -> None:
        for listener in self.listeners:
            listener(type, obj, before)
        waiting, self._waiting = self._waiting, []
        for change in waiting:
            if not change.done():
                change.set_result(None)


async def sleep(clock: Clock, seconds: float) -> None:
    """Wait on a clock, which in tests is virtual."""
    woken = asyncio.Event()
    timer = clock.call_later(seconds, woken.set)
    try:
        await woken.wait()
    finally:
        timer.cancel()


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
