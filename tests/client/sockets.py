"""Servers on sockets that do just what a test wants."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

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


async def read_request(reader: Reader, connection: int = 0) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.strip().split("\r\n")
    headers = [(name.lower(), value.strip()) for name, _, value in (one.partition(":") for one in rest)]
    length = int(next((value for name, value in headers if name == "content-length"), "0"))
    return Asked(line, headers, await reader.readexactly(length), connection)
