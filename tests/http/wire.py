"""The other end of a connection, without a socket, and transports that answer over it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, NamedTuple

from moorage.http.server_connection import HttpConnection
from moorage.http.server_connections import Connections
from moorage.http.transport import Request, Response, Stream, Transport


class Wire(asyncio.Transport):
    """The other end of a connection."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.unsent_bytes = 0
        self.is_open = True
        self.is_read_from = True
        self.was_aborted = False

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def close(self) -> None:
        self.is_open = False

    def is_closing(self) -> bool:
        return not self.is_open

    def abort(self) -> None:
        self.is_open, self.was_aborted = False, True

    def pause_reading(self) -> None:
        self.is_read_from = False

    def resume_reading(self) -> None:
        self.is_read_from = True


class AtOnce:
    """Answers without waiting: with the body that came, or with the path where there is none."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.response: Callable[[Request], Response] = echoed

    def answer(self, request: Request) -> Response:
        self.asked.append(request)
        return self.response(request)

    async def handle(self, request: Request) -> Response:
        return self.answer(request)


class Later:
    """Answers when a test says so."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.answers: list[asyncio.Future[Response]] = []

    async def handle(self, request: Request) -> Response:
        self.asked.append(request)
        self.answers.append(asyncio.get_running_loop().create_future())
        return await self.answers[-1]


def echoed(request: Request) -> Response:
    return Response(200, request.body or request.path.encode(), "text/plain")


class Stage(NamedTuple):
    wire: Wire
    connection: HttpConnection
    connections: Connections


def connected(transport: Transport) -> Stage:
    wire, connections = Wire(), Connections(10)
    connection = HttpConnection(transport, connections)
    connection.connection_made(wire)
    return Stage(wire, connection, connections)


def get(path: str, *headers: str, version: str = "1.1", method: str = "GET") -> bytes:
    lines = [f"{method} {path} HTTP/{version}", "Host: localhost", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def post(body: bytes, *headers: str) -> bytes:
    return get("/p", f"Content-Length: {len(body)}", *headers, method="POST") + body


def answers_in(wire: Wire) -> list[tuple[int, bytes]]:
    """Codes and bodies of the answers so far; what has no length is left out."""
    found = []
    data = b"".join(wire.writes)
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        count = int(length[1]) if length else 0
        found.append((int(head[9:12]), data[:count]))
        data = data[count:]
    return found


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def play(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


class Lines(Stream):
    """A stream that says what a test wants."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.is_closed = False

    def say(self, line: bytes) -> None:
        self._queue.put_nowait(line)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (line := await self._queue.get()) is not None:
            yield line

    def close(self) -> None:
        self.is_closed = True
        self._queue.put_nowait(None)


def streaming() -> tuple[Lines, Stage]:
    lines, transport = Lines(), AtOnce()
    transport.response = lambda request: Response(200, lines) if request.path == "/w" else echoed(request)
    return lines, connected(transport)
