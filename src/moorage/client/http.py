"""Requests over HTTP(S): a transport like any other, with a bounded pool of connections behind it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from functools import lru_cache
from types import TracebackType
from typing import Final, Self
from urllib.parse import quote, urlsplit

from moorage.client.http_pipeline import Pipeline
from moorage.client.http_pool import ConnectionPool
from moorage.client.http_pool import Endpoint as Endpoint  # Who makes a transport finds here what it needs.
from moorage.transport import Request, Response

MOST_CONNECTIONS: Final = 32
"""For requests that have a connection for themselves; every watch has one besides."""
_PATH_CHARACTERS: Final = "/%:@!$&'()*+,;=~"
_is_plain: Final = re.compile(r"[\w/.:-]*", re.ASCII).fullmatch
_OWN_HEADERS: Final = frozenset({"host", "content-length", "connection", "transfer-encoding"})


class HttpTransport:
    """Carries requests to one server over connections that are kept open.

    gather_seconds: so long those that may share a connection wait for others, where they are many.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        most_connections: int = MOST_CONNECTIONS,
        connect_seconds: float = 10.0,
        silence_seconds: float = 60.0,
        gather_seconds: float = 0.0,
    ) -> None:
        url = urlsplit(endpoint.url)
        self._prefix = url.path.rstrip("/")
        self._first_header = f" HTTP/1.1\r\nhost: {url.netloc.rpartition('@')[2]}\r\n"
        self._silence_seconds = silence_seconds
        self._free = asyncio.Semaphore(most_connections)
        self._pool = ConnectionPool(endpoint, connect_seconds)
        self._pipeline = Pipeline(self._pool, silence_seconds, gather_seconds)

    async def handle(self, request: Request) -> Response:
        """The server's answer; ConnectionFailed if there is none."""
        data = self._encoded(request)
        if request.may_share:
            return await self._pipeline.ask(data)
        if _wants_stream(request):
            connection = await self._pool.connect()
            return await connection.ask(data, True, self._silence_seconds)
        async with self._free:
            connection = self._pool.take_idle() or await self._pool.connect()
            response = await connection.ask(data, False, self._silence_seconds)
            self._pool.give_back(connection)
            return response

    def close_idle(self) -> None:
        """Close connections that nobody uses, so that what follows comes with new credentials."""
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
            target = f"{target}?{request.query}"
        if "\n" in target or "\r" in target:
            raise ValueError("a line break in the path or in the query")
        headers = _header_lines(tuple(request.repeated or request.headers.items()))
        length = f"content-length: {len(request.body)}\r\n\r\n" if request.body else "\r\n"
        head = f"{request.method} {target}{self._first_header}{headers}{length}"
        return head.encode("latin-1") + request.body


@lru_cache(maxsize=64)
def _header_lines(headers: Iterable[tuple[str, str]]) -> str:
    """Headers as they are sent: the same ones again and again, until credentials are renewed."""
    lines = [f"{name}: {value}\r\n" for name, value in headers if name not in _OWN_HEADERS]
    text = "".join(lines)
    if text.count("\n") != len(lines) or text.count("\r") != len(lines):
        raise ValueError("a line break in a header")
    return text


def _wants_stream(request: Request) -> bool:
    query = request.query
    return "watch=" in query or "follow=" in query
