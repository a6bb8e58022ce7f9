"""Servers on sockets that do just what a test wants."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from urllib.parse import unquote

from moorage.http.transport import Request, Transport

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
Behaviour = Callable[["SocketServer", "Asked", Writer], Awaitable[None]]


@dataclass
class Asked:
    """A request as it came."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes
    connection: int

    def header(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]


@dataclass
class SocketServer:
    """Where it listens and what it was asked."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    most_at_once: int = 0
    released: asyncio.Event = field(default_factory=asyncio.Event)


def answer(body: bytes = b"{}", status: str = "200 OK", **headers: str) -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    head += "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return head.encode() + b"\r\n" + body


CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


@asynccontextmanager
async def serving(behaviour: Behaviour, tls: ssl.SSLContext | None = None) -> AsyncIterator[SocketServer]:
    """A server that does something for each request."""
    state = SocketServer()
    open_now: set[asyncio.Task[None]] = set()

    async def connection(reader: Reader, writer: Writer) -> None:
        state.connections += 1
        number = state.connections
        task = asyncio.current_task()
        assert task is not None
        open_now.add(task)
        state.most_at_once = max(state.most_at_once, len(open_now))
        try:
            while not reader.at_eof():
                asked = await read_request(reader, number)
                state.asked.append(asked)
                await behaviour(state, asked, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            pass
        finally:
            open_now.discard(task)
            writer.close()
            with suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    server = await asyncio.start_server(connection, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    state.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    try:
        yield state
    finally:
        state.released.set()
        server.close()
        for task in list(open_now):
            task.cancel()
        await asyncio.gather(*open_now, return_exceptions=True)


@dataclass
class InFlight:
    """What a server that reads requests before it answers has seen."""

    url: str = ""
    now: Counter[int] = field(default_factory=Counter)
    """Requests with a body that are not answered, by connection."""
    most: int = 0
    """The most that were not answered on one connection at the same time."""


@asynccontextmanager
async def counting_in_flight(transport: Transport) -> AsyncIterator[InFlight]:
    """A transport on a socket, which reads all that came over a connection before it answers any of it."""
    state = InFlight()
    numbers = count()

    async def connection(reader: Reader, writer: Writer) -> None:
        number = next(numbers)
        asked: asyncio.Queue[Asked] = asyncio.Queue()
        answering = asyncio.ensure_future(_answer_in_order(transport, asked, writer, state.now))
        try:
            while not reader.at_eof():
                one = await read_request(reader, number)
                state.now[number] += bool(one.body)
                state.most = max(state.most, state.now[number])
                asked.put_nowait(one)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            answering.cancel()
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    state.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield state
    finally:
        server.close()


async def _answer_in_order(
    transport: Transport, asked: asyncio.Queue[Asked], writer: Writer, now: Counter[int]
) -> None:
    while True:
        one = await asked.get()
        for _ in range(10):
            await asyncio.sleep(0)
        method, target, _ = one.line.split(" ")
        path, _, query = target.partition("?")
        response = await transport.handle(Request(method, unquote(path), query, dict(one.headers), one.body))
        now[one.connection] -= bool(one.body)
        if isinstance(response.body, bytes):
            writer.write(answer(response.body, f"{response.status} Status"))
            continue
        writer.write(CHUNKED)
        async for piece in response.body:
            writer.write(chunk(piece))


@asynccontextmanager
async def proxying() -> AsyncIterator[tuple[str, list[Asked]]]:
    """A proxy: its host and port, and what it was asked before it only passed on what came."""
    asked: list[Asked] = []

    async def proxied(reader: Reader, writer: Writer) -> None:
        asked.append(await read_request(reader))
        host, port = asked[-1].line.split(" ")[1].split(":")
        inward, outward = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_copy(reader, outward), _copy(inward, writer))

    proxy = await asyncio.start_server(proxied, "127.0.0.1", 0)
    async with proxy:
        yield f"127.0.0.1:{proxy.sockets[0].getsockname()[1]}", asked


async def _copy(reader: Reader, writer: Writer) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def read_request(reader: Reader, connection: int = 0) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.strip().split("\r\n")
    headers = [(name.lower(), value.strip()) for name, _, value in (one.partition(":") for one in rest)]
    length = int(next((value for name, value in headers if name == "content-length"), "0"))
    return Asked(line, headers, await reader.readexactly(length), connection)
