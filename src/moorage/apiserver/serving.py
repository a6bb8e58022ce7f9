"""Running a server on a socket: uvicorn, TLS, and an end without leftovers."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from moorage.apiserver.asgi import Asgi
from moorage.apiserver.http_limits import LimitedHttp
from moorage.transport import Transport

_GRACE_SECONDS = 2
_KEEP_ALIVE_SECONDS = 120
_BACKLOG = 2048


class ServingError(Exception):
    """The server cannot listen; the message is one line."""


def listen(address: str, port: int) -> socket.socket:
    """A listening socket; port 0: any free one."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # Said to be TCP, or asyncio does not turn off waiting for more to send, which costs 40 ms an answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        reason = error.strerror or str(error)
        raise ServingError(f"cannot listen on {address}:{port}: {reason.lower()}") from None
    listener.setblocking(False)
    return listener


class _Uvicorn(uvicorn.Server):
    """Uvicorn without its own signal handlers, which says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listens = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listens.set()


class HttpServer:
    """Serves a transport on a socket until told to stop."""

    def __init__(self, transport: Transport, tls: ssl.SSLContext) -> None:
        self._asgi = Asgi(transport)
        config = uvicorn.Config(
            self._asgi,
            http=LimitedHttp,
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        config.load()
        config.ssl = tls
        # All that uvicorn would say here is about clients that went away.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self._server = _Uvicorn(config)

    async def serve(self, listener: socket.socket) -> None:
        """Answer requests until `stop`."""
        await self._server.serve(sockets=[listener])

    async def listens(self) -> None:
        """Returns once requests are answered."""
        await self._server.listens.wait()

    def stop(self) -> None:
        """End all streams, let running requests finish, close."""
        self._server.should_exit = True
        self._asgi.close()
