"""Running a server on a socket: HTTP, TLS, and graceful shutdown."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import ssl
from collections.abc import Callable
from typing import Final

from moorage.http.in_flight import InFlightLimits
from moorage.http.limits import MAX_CONNECTIONS
from moorage.http.server_connection import HttpConnection
from moorage.http.server_connections import Connections
from moorage.http.transport import Transport

_OTHER_FILES: Final = 64
"""Number of open files that a process needs in addition to its connections, if it is no client."""
_GRACE_SECONDS: Final = 2.0
_CHECK_SECONDS: Final = 4.0
"""Interval of the checks for connections that wait too long, in seconds."""
_HANDSHAKE_SECONDS: Final = 32.0
"""Time limit of a TLS handshake, in seconds: that of a request's head."""
_ACCEPT_PAUSE_SECONDS: Final = 1.0
_BACKLOG: Final = 2048
_EVERYWHERE: Final = ("", "0.0.0.0", "::")

log = logging.getLogger(__name__)


class ServingError(Exception):
    """The server cannot listen; the message is one line."""


def listen(address: str, port: int, *, shares_port: bool = False) -> socket.socket:
    """A listening socket; port 0: any free one. The wildcard addresses stand for IPv4 and IPv6.

    shares_port: whether others may listen on the same port.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    is_everywhere = address in _EVERYWHERE
    if is_everywhere and socket.has_dualstack_ipv6():
        family, address = socket.AF_INET6, "::"
    # The protocol must be TCP: otherwise asyncio does not set TCP_NODELAY, which costs 40 ms an answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if is_everywhere and family is socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # A restarted server can listen at once, as Go programs always can.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shares_port:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((address, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        reason = error.strerror or str(error)
        raise ServingError(f"cannot listen on {address}:{port}: {reason.lower()}") from None
    listener.setblocking(False)
    return listener


class HttpServer:
    """Serves a transport on a socket until `stop`; without `tls`, in plain HTTP."""

    def __init__(
        self,
        transport: Transport,
        tls: ssl.SSLContext | None,
        connection: Callable[[Transport, Connections], HttpConnection] = HttpConnection,
        max_connections: int = MAX_CONNECTIONS,
        grace_seconds: float = _GRACE_SECONDS,
        other_files: int = _OTHER_FILES,
        limits: InFlightLimits | None = None,
    ) -> None:
        """Make one; other_files: number of open files that the process needs in addition."""
        self._grace_seconds = grace_seconds
        self._transport = transport
        self._connection = connection
        self._tls = tls
        self._limits = limits
        self._max_connections = _within_file_limit(max_connections, other_files)
        self._listens = asyncio.Event()
        self._stopped = asyncio.Event()

    async def serve(self, listener: socket.socket) -> None:
        """Answer requests until `stop`."""
        connections = Connections(self._max_connections, self._limits)
        accepting = asyncio.get_running_loop().create_task(self._accept(listener, connections))
        try:
            self._listens.set()
            while not self._stopped.is_set():
                try:
                    async with asyncio.timeout(_CHECK_SECONDS):
                        await self._stopped.wait()
                except TimeoutError:
                    connections.pass_time(_CHECK_SECONDS)
                    if accepting.done():
                        accepting.result()
        finally:
            accepting.cancel()
            await asyncio.wait((accepting,))
            listener.close()
            await connections.close(self._grace_seconds)

    async def _accept(self, listener: socket.socket, connections: Connections) -> None:
        """Accept clients up to the maximum; the others wait in the backlog, or give up."""
        loop = asyncio.get_running_loop()
        while True:
            await connections.room()
            try:
                client, _ = await loop.sock_accept(listener)
            except OSError as error:  # Mostly too many open files.
                log.warning("cannot accept a connection: %s", error.strerror)
                await asyncio.sleep(_ACCEPT_PAUSE_SECONDS)
            else:
                connections.open(self._open(client, connections))

    async def _open(self, client: socket.socket, connections: Connections) -> None:
        is_secure = self._tls is not None
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self._connection(self._transport, connections),
                client,
                ssl=self._tls,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS if is_secure else None,
                ssl_shutdown_timeout=self._grace_seconds if is_secure else None,
            )
        except OSError as error:  # Includes TLS errors.
            log.debug("a connection was not made: %s", error)

    async def listens(self) -> None:
        """Returns once requests are answered."""
        await self._listens.wait()

    def stop(self) -> None:
        """End all streams, let running requests finish, close."""
        self._stopped.set()


def _within_file_limit(max_connections: int, other_files: int) -> int:
    """This number of connections, limited by the files that the process may open."""
    most_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most_files == resource.RLIM_INFINITY:
        return max_connections
    return max(min(max_connections, most_files - other_files), 1)
