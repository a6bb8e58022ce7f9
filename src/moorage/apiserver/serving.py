"""Running a server on a socket: HTTP, TLS, and an end without leftovers."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Final

from moorage.apiserver.http_connection import Connections, HttpConnection
from moorage.transport import Transport

_GRACE_SECONDS: Final = 2.0
_KEEP_ALIVE_SECONDS: Final = 120.0
"""A connection over which nothing came for so long is closed, sooner or later within as long again."""
_BACKLOG: Final = 2048
_EVERYWHERE: Final = ("", "0.0.0.0", "::")


class ServingError(Exception):
    """The server cannot listen; the message is one line."""


def listen(address: str, port: int, *, shares_port: bool = False) -> socket.socket:
    """A listening socket; port 0: any free one. Who listens everywhere does so on IPv4 and IPv6.

    shares_port: whether others may listen on the same port.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    is_everywhere = address in _EVERYWHERE
    if is_everywhere and socket.has_dualstack_ipv6():
        family, address = socket.AF_INET6, "::"
    # Said to be TCP, or asyncio does not turn off waiting for more to send, which costs 40 ms an answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if is_everywhere and family is socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # Who is started again listens at once, as Go programs do whatever they are told.
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
    """Serves a transport on a socket until told to stop; without `tls`, in plain HTTP."""

    def __init__(
        self,
        transport: Transport,
        tls: ssl.SSLContext | None,
        connection: Callable[[Transport, Connections], HttpConnection] = HttpConnection,
    ) -> None:
        self._transport = transport
        self._connection = connection
        self._tls = tls
        self._listens = asyncio.Event()
        self._stopped = asyncio.Event()

    async def serve(self, listener: socket.socket) -> None:
        """Answer requests until `stop`."""
        connections = Connections()
        server = await asyncio.get_running_loop().create_server(
            lambda: self._connection(self._transport, connections),
            sock=listener,
            ssl=self._tls,
            backlog=_BACKLOG,
            ssl_shutdown_timeout=None if self._tls is None else _GRACE_SECONDS,
        )
        try:
            self._listens.set()
            while not self._stopped.is_set():
                try:
                    async with asyncio.timeout(_KEEP_ALIVE_SECONDS):
                        await self._stopped.wait()
                except TimeoutError:
                    connections.close_silent()
        finally:
            server.close()
            await connections.close(_GRACE_SECONDS)

    async def listens(self) -> None:
        """Returns once requests are answered."""
        await self._listens.wait()

    def stop(self) -> None:
        """End all streams, let running requests finish, close."""
        self._stopped.set()
