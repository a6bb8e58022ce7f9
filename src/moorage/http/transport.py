"""The seam between a server and whoever talks to it: one method.

HTTP is one way to carry requests; calling `handle` directly is another, and clients cannot tell.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable


@dataclass(slots=True)
class Request:
    """What a client asks."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case; of a header given twice, the last."""
    body: bytes = b""
    repeated: Sequence[tuple[str, str]] = ()
    """All headers as they came, where that may matter (`Impersonate-Group`)."""
    may_share: bool = False
    """Whether it may be sent right behind others over one connection, before these are answered.

    If the connection breaks, who asks must be able to find out what became of it, as of any request whose
    answer is lost.
    """


class Stream(Protocol):
    """A body that comes bit by bit; derive from it."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The pieces."""

    def close(self) -> None:
        """Nobody listens any more: the iteration ends."""

    @property
    def is_behind(self) -> bool:
        """Whether what comes next is no longer kept, so that the body cannot be completed."""
        return False


@dataclass(slots=True)
class Response:
    """What a server answers."""

    status: int
    body: bytes | Stream
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


class Transport(Protocol):
    """Something that answers requests."""

    async def handle(self, request: Request) -> Response:
        """The answer; failures are answers too."""


@runtime_checkable
class Immediate(Transport, Protocol):
    """A transport that need not wait for anything to answer, only to go on with a body that is a stream."""

    def answer(self, request: Request) -> Response:
        """The answer; failures are answers too."""
