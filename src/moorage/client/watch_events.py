"""Decoding of lists and watch events; the bytes of each object are left undecoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from moorage.clock import Clock
from moorage.http.errors import AnswerLost, RequestError
from moorage.http.transport import Stream

T = TypeVar("T")

_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


class Metadata(Protocol):
    """The metadata that is decoded of every object."""

    @property
    def name(self) -> str:
        """The object's name."""

    @property
    def namespace(self) -> str:
        """Its namespace; empty for cluster-wide kinds."""

    @property
    def uid(self) -> str:
        """Its uid."""

    @property
    def resource_version(self) -> str:
        """Its version."""

    @property
    def annotations(self) -> dict[str, str] | None:
        """Its annotations, if there are any."""


class Head(Protocol):
    """The part of an object that is decoded first."""

    @property
    def metadata(self) -> Metadata:
        """The object's metadata."""


class _PlainMetadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _PlainHead(msgspec.Struct, gc=False):
    metadata: _PlainMetadata


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Status(msgspec.Struct):
    code: int = 0
    reason: str = ""
    message: str = ""


class PageMetadata(msgspec.Struct, rename="camel"):
    """The version of a list, and where its next page begins; empty: there is none."""

    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class Page(msgspec.Struct):
    """A list, or a page of one."""

    items: list[msgspec.Raw] | None = None
    metadata: PageMetadata = msgspec.field(default_factory=PageMetadata)


_read_line = msgspec.json.Decoder(_Line).decode
_read_head = msgspec.json.Decoder(_PlainHead).decode
_read_page = msgspec.json.Decoder(Page).decode
_read_status = msgspec.json.Decoder(_Status).decode


_OPENINGS: Final = {
    b'{"type":"%b"' % type.encode(): type for type in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")
}
"""The beginnings of watch event lines, as servers write them."""


class WatchEvent(msgspec.Struct):
    """One event of a watch, or one object of a list."""

    type: str
    head: Head | None
    """None: the bytes are not an object."""
    raw: bytes
    """The object as sent."""


class ObjectDecoder(Generic[T]):
    """Decodes objects of a kind: first the head, then the rest if that version is not known yet."""

    def head(self, raw: bytes | msgspec.Raw) -> Head:
        """The head; MsgspecError if these bytes are not an object."""
        return _read_head(raw)

    def decode(self, head: Head, raw: bytes) -> T:
        """The object with this head."""
        raise NotImplementedError


class PlainDecoder(ObjectDecoder[T]):
    """Decodes objects with a function."""

    def __init__(self, decode: Callable[[bytes], T]) -> None:
        self._decode = decode

    def decode(self, head: Head, raw: bytes) -> T:
        """The object with this head."""
        return self._decode(raw)


def read_event(decoder: ObjectDecoder[T], type: str, raw: bytes) -> WatchEvent:
    """An event with an object as sent."""
    try:
        return WatchEvent(type, decoder.head(raw), raw)
    except msgspec.MsgspecError:
        return WatchEvent(type, None, raw)


def read_page(body: bytes) -> Page:
    """A list as the server sends it; AnswerLost if it is incomplete."""
    try:
        return _read_page(body)
    except msgspec.MsgspecError as error:
        raise AnswerLost(f"cannot decode the list: {error}") from None


def ends_initial_events(metadata: Metadata) -> bool:
    """Whether a bookmark marks the end of the initial events."""
    return bool(metadata.annotations) and (metadata.annotations or {}).get(_INITIAL_EVENTS_END) == "true"


def number(version: str) -> int | None:
    """A resourceVersion as a number; None if it is none."""
    return int(version) if version.isdecimal() else None


def is_newer(version: str, than: str) -> bool:
    """Whether a resourceVersion is newer than another; if they are not numbers, whether they differ."""
    if version.isdecimal() and than.isdecimal():
        return int(version) > int(than)
    return version != than


class EventLines(Generic[T]):
    """Assembles watch events, one a line, from the chunks of a stream."""

    def __init__(self, decoder: ObjectDecoder[T]) -> None:
        self._decoder = decoder
        self._rest: list[bytes] = []

    def read(self, piece: bytes) -> Iterator[WatchEvent]:
        """The events that a chunk completes.

        RequestError for an ERROR event; AnswerLost for anything that is not an event.
        """
        first, *lines = piece.split(b"\n")
        self._rest.append(first)
        if not lines:
            return
        lines[:0] = [b"".join(self._rest)]
        self._rest = [lines.pop()]
        for line in lines:
            if line:
                yield _event(self._decoder, line)

    def check_end(self) -> None:
        """AnswerLost if the watch ended in the middle of an event."""
        if any(self._rest):
            raise AnswerLost("the watch ended in the middle of an event")


def _event(decoder: ObjectDecoder[T], line: bytes) -> WatchEvent:
    # Fast path: the object is the rest of the line.
    opening, _, rest = line.partition(b',"object":')
    type = _OPENINGS.get(opening)
    if type is not None and line.endswith(b"}"):
        event = read_event(decoder, type, rest[:-1])
        if event.head is not None:
            return event
    return _any_event(decoder, line)


def _any_event(decoder: ObjectDecoder[T], line: bytes) -> WatchEvent:
    try:
        event = _read_line(line)
        if event.type != "ERROR":
            return read_event(decoder, event.type, bytes(event.object))
        status = _read_status(event.object)
    except msgspec.MsgspecError as error:
        raise AnswerLost(f"cannot decode a watch event: {error}") from None
    raise RequestError(status.code, status.reason, status.message)


class IdleTimeout:
    """Ends a stream without data for some time: the server may be gone without closing the connection."""

    def __init__(self, stream: Stream, clock: Clock, seconds: float) -> None:
        self._stream = stream
        self._clock = clock
        self._seconds = seconds
        self._reset_at = clock.now()
        self._timer = clock.call_later(seconds, self._check)
        self.has_expired = False

    def reset(self) -> None:
        """Data arrived."""
        self._reset_at = self._clock.now()

    def close(self) -> None:
        """End the stream."""
        self._timer.cancel()
        self._stream.close()

    def _check(self) -> None:
        left = self._reset_at + self._seconds - self._clock.now()
        if left > 0:
            self._timer = self._clock.call_later(left, self._check)
        else:
            self.has_expired = True
            self._stream.close()
