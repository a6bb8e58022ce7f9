"""The interface between a server and its clients: one method.

HTTP is one implementation; calling `handle` directly is another, and clients see no difference.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec


class Request(msgspec.Struct):
    """A client's request."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = {}
    """Names in lower case; the last value of a repeated header."""
    body: bytes = b""
    repeated: Sequence[tuple[str, str]] = ()
    """All headers as received, where that may matter (`Impersonate-Group`)."""
    may_share: bool = False
    """Whether it may be pipelined: sent over a connection before earlier requests are answered.

    If the connection breaks, the caller must be able to find out whether it was carried out, as for any
    request without an answer.
    """


class Stream(Protocol):
    """Base class of bodies that are sent in pieces."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The pieces."""

    def close(self) -> None:
        """Stop the iteration: the stream has no reader any more."""

    @property
    def is_behind(self) -> bool:
        """Whether the next part is no longer available, so that the body cannot be completed."""
        return False


class Response(msgspec.Struct):
    """A server's answer."""

    status: int
    body: bytes | Stream
    content_type: str = "application/json"
    headers: dict[str, str] = {}


class Transport(Protocol):
    """Something that answers requests."""

    def handle(self, request: Request) -> Awaitable[Response]:
        """The answer; failures are answers too."""


@runtime_checkable
class Immediate(Transport, Protocol):
    """A transport that answers without waiting; only the body of a stream may wait."""

    def answer(self, request: Request) -> Response:
        """The answer; failures are answers too."""
