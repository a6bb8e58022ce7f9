"""Connections to a server through an HTTP proxy, with CONNECT."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from typing import Final
from urllib.parse import unquote, urlsplit

from moorage.http.client_connection import HttpClientConnection

_MAX_HEAD_BYTES: Final = 64 * 1024


async def open_tunnel(
    proxy_url: str, host: str, port: int, tls: ssl.SSLContext | None, server_name: str | None
) -> HttpClientConnection:
    """A connection to a server through a proxy; OSError if the proxy refuses."""
    proxy = urlsplit(proxy_url)
    if proxy.hostname is None:
        raise OSError(f"{proxy_url!r} is not a proxy's address")
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    head = f"CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n"
    if proxy.username is not None:
        user = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        head += f"proxy-authorization: Basic {b64encode(user.encode()).decode()}\r\n"
    loop = asyncio.get_running_loop()
    outer, connect_response = await loop.create_connection(_ConnectResponse, proxy.hostname, proxy.port or 80)
    try:
        outer.write(f"{head}\r\n".encode("latin-1"))
        await connect_response.accepted
        connection = HttpClientConnection()
        if tls is None:
            outer.set_protocol(connection)
            connection.connection_made(outer)
            return connection
        inner = await loop.start_tls(outer, connection, tls, server_hostname=server_name)
        assert inner is not None
        connection.connection_made(inner)
        return connection
    except BaseException:
        outer.abort()
        raise


class _ConnectResponse(asyncio.Protocol):
    """Waits until the proxy confirms the tunnel."""

    def __init__(self) -> None:
        self.accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._head = b""

    def data_received(self, data: bytes) -> None:
        """Receive a part of the proxy's answer."""
        self._head += data
        if self.accepted.done() or (b"\r\n\r\n" not in self._head and len(self._head) < _MAX_HEAD_BYTES):
            return
        status_line = self._head.partition(b"\r\n")[0].decode("latin-1")
        if status_line.split(" ")[1:2] == ["200"]:
            self.accepted.set_result(None)
        else:
            self.accepted.set_exception(OSError(f"the proxy says {status_line!r}"))

    def connection_lost(self, error: Exception | None) -> None:
        """The proxy closed the connection."""
        if not self.accepted.done():
            self.accepted.set_exception(error or ConnectionResetError("the proxy hung up"))
