"""Connections to one server, kept open between requests."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from moorage.http.client_connection import HttpClientConnection
from moorage.http.errors import ConnectionFailed, NoAccess
from moorage.http.proxy import open_tunnel

_IDLE_SECONDS: Final = 60.0
"""Maximum idle time of a connection, in seconds; later the server may have closed it."""
_KEEP_ALIVE_SECONDS: Final = 15
_KEEP_ALIVE_PROBES: Final = 3


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server's address, and how its identity is verified."""

    url: str
    tls: ssl.SSLContext | None = None
    """None: plain HTTP."""
    server_name: str = ""
    """The name that its certificate must have, where that is not the host's."""
    proxy_url: str = ""
    """An HTTP proxy through which the server is reached."""


class ConnectionPool:
    """Opens connections, and keeps those that are not in use."""

    def __init__(
        self, endpoint: Endpoint, connect_seconds: float, max_answer_bytes: int | None = None
    ) -> None:
        """max_answer_bytes: the maximum size of the body of an answer that is no stream."""
        url = urlsplit(endpoint.url)
        assert url.hostname, endpoint.url
        self._loop = asyncio.get_running_loop()
        self._endpoint = endpoint
        self._host = url.hostname
        self._port = url.port or (443 if endpoint.tls else 80)
        self._connect_seconds = connect_seconds
        self._max_answer_bytes = max_answer_bytes
        self._idle: list[HttpClientConnection] = []
        self._open: set[HttpClientConnection] = set()

    def take_idle(self) -> HttpClientConnection | None:
        """An open connection that is idle."""
        oldest = self._loop.time() - _IDLE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if connection.is_reusable and connection.idle_since >= oldest:
                return connection
            connection.abort()
        return None

    def give_back(self, connection: HttpClientConnection) -> None:
        """Return a connection to the pool; it is kept if it can be reused."""
        if connection.is_reusable:
            self._idle.append(connection)
        else:
            connection.abort()

    def close_idle(self) -> None:
        """Close idle connections, so that later requests use new credentials."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.abort()

    async def close(self) -> None:
        """Close all connections; requests under way fail."""
        self._idle.clear()
        for connection in list(self._open):
            connection.abort()
            await connection.closed()

    async def connect(self) -> HttpClientConnection:
        """A new connection; ConnectionFailed if it cannot be opened."""
        try:
            async with asyncio.timeout(self._connect_seconds):
                connection = await self._opened()
        except TimeoutError:
            raise ConnectionFailed(f"{self._endpoint.url} cannot be reached: time-out") from None
        except ssl.SSLCertVerificationError as error:
            reason = f"its certificate is not trusted: {error.verify_message}"
            raise NoAccess(f"{self._endpoint.url}: {reason}") from None
        except OSError as error:
            raise ConnectionFailed(f"{self._endpoint.url} cannot be reached: {_reason(error)}") from None
        connection.max_answer_bytes = self._max_answer_bytes
        self._open = {one for one in self._open if not one.is_closed}
        self._open.add(connection)
        return connection

    async def _opened(self) -> HttpClientConnection:
        tls = self._endpoint.tls
        name = (self._endpoint.server_name or self._host) if tls else None
        if self._endpoint.proxy_url:
            return await open_tunnel(self._endpoint.proxy_url, self._host, self._port, tls, name)
        transport, connection = await self._loop.create_connection(
            HttpClientConnection, self._host, self._port, ssl=tls, server_hostname=name
        )
        _detect_dead_peers(transport.get_extra_info("socket"))
        return connection


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error}".lower()
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()  # The exception's own text depends on the event loop.
    return (error.strerror or str(error) or type(error).__name__).lower()


def _detect_dead_peers(connected: socket.socket) -> None:
    """Detect a peer that vanished within a minute, also on a watch without events."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # Not available on every operating system.
    for option, value in (
        ("TCP_KEEPIDLE", _KEEP_ALIVE_SECONDS),
        ("TCP_KEEPINTVL", _KEEP_ALIVE_SECONDS),
        ("TCP_KEEPCNT", _KEEP_ALIVE_PROBES),
    ):
        if hasattr(socket, option):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
