"""A server on a socket: what only TLS and a real event loop show."""

from __future__ import annotations

import asyncio
import gc
import resource
import socket
import ssl
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import uvloop

from moorage.http.certificates import load_or_make
from moorage.http.server import HttpServer, listen
from moorage.http.server_connection import HttpConnection
from moorage.http.server_connections import Connections
from moorage.http.transport import Request, Response, Transport
from tests.http.wire import AtOnce, Lines, echoed, get, settled

CERTIFICATE = load_or_make(None)
_MAX_SECONDS = 10.0
"""How long a scenario may take that must not wait for ever."""
RUNNERS = {"asyncio": asyncio.run, "uvloop": uvloop.run}


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cadata=CERTIFICATE.ca_pem)


@asynccontextmanager
async def serving(
    connection: Callable[[Transport, Connections], HttpConnection],
    max_connections: int,
    response: Callable[[Request], Response] = echoed,
) -> AsyncIterator[int]:
    listener = listen("127.0.0.1", 0)
    transport = AtOnce()
    transport.response = response
    server = HttpServer(transport, CERTIFICATE.ssl_context(), connection, max_connections)
    running = asyncio.ensure_future(server.serve(listener))
    try:
        yield listener.getsockname()[1]
    finally:
        server.stop()
        await running


async def asked(port: int, sent: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=trusting(), server_hostname="localhost"
    )
    writer.write(sent)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.mark.parametrize("run", RUNNERS.values(), ids=RUNNERS)
def test_connections_that_are_closed_are_not_left_to_the_garbage_collector(run: Callable[..., None]) -> None:
    remains: list[weakref.ref[object]] = []

    def connection(transport: Transport, connections: Connections) -> HttpConnection:
        made = HttpConnection(transport, connections)
        remains.extend((weakref.ref(made), weakref.ref(made._reader)))
        return made

    async def scenario() -> None:
        async with serving(connection, 10) as port:
            for sent in (get("/a", "Connection: close"), b"nonsense\r\n\r\n", get("/b", *["X: 1"] * 200)):
                assert await asked(port, sent)

    gc.disable()
    try:
        run(scenario())
        assert len(remains) == 6
        assert not any(each() for each in remains)
    finally:
        gc.enable()


@pytest.mark.parametrize("run", RUNNERS.values(), ids=RUNNERS)
def test_a_client_that_ends_while_more_of_it_is_unread_does_not_keep_the_server_from_closing(
    run: Callable[..., None],
) -> None:
    streams: list[Lines] = []

    def streamed(request: Request) -> Response:
        streams.append(Lines())
        return Response(200, streams[-1], "text/plain")

    async def scenario() -> None:
        async with serving(HttpConnection, 10, response=streamed) as port:
            client = socket.create_connection(("127.0.0.1", port))
            client.setblocking(False)
            reader, writer = await asyncio.open_connection(
                sock=client.dup(), ssl=trusting(), server_hostname="localhost"
            )
            writer.write(get("/w", "Connection: close") + get("/next") * 2000)
            await writer.drain()
            await reader.readuntil(b"\r\n\r\n")
            client.shutdown(socket.SHUT_WR)  # Without saying so in TLS.
            await settled()
            streams[0].close()
            await settled()
        writer.transport.abort()
        client.close()

    async def bounded() -> None:
        async with asyncio.timeout(_MAX_SECONDS):
            await scenario()

    run(bounded())


@pytest.mark.parametrize("run", RUNNERS.values(), ids=RUNNERS)
def test_silent_connections_do_not_keep_other_clients_out(run: Callable[..., None]) -> None:
    async def scenario() -> None:
        async with serving(HttpConnection, 2) as port:
            mute = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
            assert (await asked(port, get("/a", "Connection: close"))).endswith(b"/a")
            for _, writer in mute:
                writer.close()

    run(scenario())


@pytest.mark.parametrize(
    ("most_files", "other_files", "connections"),
    [(resource.RLIM_INFINITY, 64, 100), (1024, 64, 100), (128, 64, 64), (256, 192, 64), (128, 192, 1)],
)
def test_a_server_leaves_files_to_the_rest_of_its_process(
    monkeypatch: pytest.MonkeyPatch, most_files: int, other_files: int, connections: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (most_files, most_files))
    server = HttpServer(AtOnce(), None, max_connections=100, other_files=other_files)
    assert server._max_connections == connections
