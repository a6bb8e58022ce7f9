"""Requests over HTTP(S): a transport like any other, with a bounded pool of connections behind it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from copy import copy
from types import TracebackType
from typing import Final, Self
from urllib.parse import quote, urlsplit

from moorage.http.pipeline import Pipeline
from moorage.http.pool import ConnectionPool
from moorage.http.pool import Endpoint as Endpoint  # Re-exported for callers that create a transport.
from moorage.http.transport import Request, Response

MAX_CONNECTIONS: Final = 32
"""Maximum connections for requests that are not pipelined; watches have their own in addition."""
_PATH_CHARACTERS: Final = "/%:@!$&'()*+,;=~"
_is_plain: Final = re.compile(r"[\w/.:-]*", re.ASCII).fullmatch
_OWN_HEADERS: Final = frozenset({"host", "content-length", "connection", "transfer-encoding"})

Headers = tuple[tuple[str, str], ...]


class HttpTransport:
    """Carries requests to one server over connections that are kept open.

    pipelining: send several requests that may share a connection before the first of them is answered.
    gather_seconds: batch window for those requests while they are frequent; only with pipelining.
    before_writing: called immediately before requests with a body leave.
    max_answer_bytes: the maximum size of an answer's body, but for streams; None: there is none.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        most_connections: int = MAX_CONNECTIONS,
        connect_seconds: float = 10.0,
        idle_seconds: float = 60.0,
        pipelining: bool = False,
        gather_seconds: float = 0.0,
        max_answer_bytes: int | None = None,
        before_writing: Callable[[], None] | None = None,
    ) -> None:
        url = urlsplit(endpoint.url)
        self._prefix = url.path.rstrip("/")
        self._first_header = f" HTTP/1.1\r\nhost: {url.netloc.rpartition('@')[2]}\r\n"
        self._introduction: Headers = ()
        self._header_cache: dict[str, tuple[object, str]] = {}
        """By method, the headers of the latest request and their encoded form, which are mostly reused."""
        self._idle_seconds = idle_seconds
        self._free = asyncio.Semaphore(most_connections)
        self._pool = ConnectionPool(endpoint, connect_seconds, max_answer_bytes)
        self._pipeline = (
            Pipeline(self._pool, idle_seconds, gather_seconds, before_sending=before_writing)
            if pipelining
            else Pipeline(self._pool, idle_seconds, limit=1, before_sending=before_writing)
        )

    def introduce(self, headers: Iterable[tuple[str, str]]) -> None:
        """Set the credentials of all later requests; they replace a request's own headers."""
        self._introduction = tuple(headers)
        self._header_cache.clear()

    def handle(self, request: Request) -> Awaitable[Response]:
        """The server's answer; ConnectionFailed if there is none."""
        data = self._encoded(request)
        return self._pipeline.ask(data) if request.may_share else self._exclusive(request, data)

    async def _exclusive(self, request: Request, data: bytes) -> Response:
        """The answer to a request that has a connection to itself."""
        if _wants_stream(request):
            connection = await self._pool.connect()
            return await connection.ask(data, True, self._idle_seconds)
        async with self._free:
            connection = self._pool.take_idle() or await self._pool.connect()
            response = await connection.ask(data, False, self._idle_seconds)
            self._pool.give_back(connection)
            return response

    def close_idle(self) -> None:
        """Close idle connections, so that later requests use new credentials."""
        self._pool.close_idle()

    async def close(self) -> None:
        """Close all connections; requests under way fail."""
        self._pipeline.close()
        await self._pool.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _encoded(self, request: Request) -> bytes:
        path = request.path
        target = self._prefix + (path if _is_plain(path) else quote(path, safe=_PATH_CHARACTERS))
        if request.query:
            if "\n" in request.query or "\r" in request.query:
                raise ValueError("a line break in the query")
            target = f"{target}?{request.query}"
        headers = self._header_lines(request)
        length = f"content-length: {len(request.body)}\r\n\r\n" if request.body else "\r\n"
        head = f"{request.method} {target}{self._first_header}{headers}{length}"
        return head.encode("latin-1") + request.body

    def _header_lines(self, request: Request) -> str:
        headers = request.repeated or request.headers
        cached = self._header_cache.get(request.method)
        if cached is None or cached[0] != headers:
            pairs = tuple(request.repeated or request.headers.items())
            cached = self._header_cache[request.method] = (
                copy(headers),
                _header_lines(pairs, self._introduction),
            )
        return cached[1]


def _header_lines(headers: Headers, introduction: Headers) -> str:
    """Headers as they are sent."""
    others = _OWN_HEADERS.union(name for name, _ in introduction)
    pairs = (*(each for each in headers if each[0] not in others), *introduction)
    lines = [f"{name}: {value}\r\n" for name, value in pairs]
    text = "".join(lines)
    if text.count("\n") != len(lines) or text.count("\r") != len(lines):
        raise ValueError("a line break in a header")
    return text


def _wants_stream(request: Request) -> bool:
    query = request.query
    return "watch=" in query or "follow=" in query
