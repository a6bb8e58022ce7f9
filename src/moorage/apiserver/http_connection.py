"""One client's connection: its requests answered in the order in which they came.

What a transport can answer at once is answered without a task, and all answers to what came together leave
together: on two cores that is what HTTP costs, more than half of a small request. A client that does not read
its answers, or asks more while a long one is under way, is not read from until it is its turn again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final, cast

from moorage.apiserver.guard import MAX_BODY_BYTES
from moorage.apiserver.http_answers import CONTINUE, LAST_CHUNK, chunk, stream_head, whole
from moorage.apiserver.http_requests import Asked, RequestReader
from moorage.apiserver.rest.watches import Watch
from moorage.transport import Immediate, Response, Stream, Transport

_STALLED_CHECK_SECONDS: Final = 5.0
_FAILED: Final = Response(500, b"Internal Server Error", "text/plain; charset=utf-8")

log = logging.getLogger(__name__)


class Connections:
    """All connections of a server."""

    def __init__(self) -> None:
        self._open: set[HttpConnection] = set()
        self._all_closed = asyncio.Event()
        self._all_closed.set()

    def add(self, connection: HttpConnection) -> None:
        """There is one more."""
        self._open.add(connection)
        self._all_closed.clear()

    def remove(self, connection: HttpConnection) -> None:
        """One is no more, and nothing is done for it."""
        self._open.discard(connection)
        if not self._open:
            self._all_closed.set()

    def close_silent(self) -> None:
        """Close those over which nothing has come or gone since the last call."""
        for connection in list(self._open):
            connection.close_if_silent()

    async def close(self, grace_seconds: float) -> None:
        """End streams and close all connections, once they have their answers or after that long."""
        for connection in list(self._open):
            connection.finish()
        try:
            async with asyncio.timeout(grace_seconds):
                await self._all_closed.wait()
        except TimeoutError:
            for connection in list(self._open):
                connection.abort()
            await self._all_closed.wait()


class HttpConnection(asyncio.Protocol):
    """One of a server's connections."""

    def __init__(
        self, transport: Transport, connections: Connections, max_body_bytes: int = MAX_BODY_BYTES
    ) -> None:
        self._server = transport
        self._answer_now = transport.answer if isinstance(transport, Immediate) else None
        self._connections = connections
        self._reader = RequestReader(max_body_bytes)
        self._asked = self._reader.asked
        self._task: asyncio.Task[None] | None = None
        self._stream: Stream | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._is_reading = True
        self._is_ending = False
        self._is_lost = False
        self._is_silent = False

    def close_if_silent(self) -> None:
        """Close if nothing has come since the last call, and no answer is under way."""
        if self._is_silent and self._task is None:
            self._socket.close()
        self._is_silent = True

    def finish(self) -> None:
        """Close once what is under way is answered; a stream ends now."""
        self._is_ending = True
        self._asked.clear()
        if self._stream is not None:
            self._stream.close()
        if self._task is None:
            self._socket.close()

    def abort(self) -> None:
        """Close at once."""
        self._socket.abort()

    # -- what the event loop says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        self._socket = cast(asyncio.Transport, transport)  # As uvloop's are, without being subclasses.
        self._connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        """The client is gone."""
        self._is_lost = True
        self._may_write.set()
        self.finish()
        if self._task is None:
            self._connections.remove(self)

    def pause_writing(self) -> None:
        """The client does not read what it is sent."""
        self._may_write.clear()

    def resume_writing(self) -> None:
        """The client has read on."""
        self._may_write.set()
        self._go_on()

    def data_received(self, data: bytes) -> None:
        """Something came."""
        if self._is_ending:
            return
        self._is_silent = False
        self._reader.read(data)
        if self._asked:
            self._go_on()
        elif self._reader.is_awaited and self._task is None:
            self._reader.is_awaited = False
            self._socket.write(CONTINUE)

    # -- answering

    def _go_on(self) -> None:
        """Answer what has been asked, as far as that needs no waiting."""
        answers: list[bytes] = []
        while self._asked and not self._is_ending and self._task is None and self._may_write.is_set():
            asked = self._asked.popleft()
            response = asked.refusal
            if response is None and self._answer_now is not None:
                assert asked.request is not None
                response = self._answer_now(asked.request)
            if response is None or not isinstance(response.body, bytes):
                self._begin(self._answer(asked, response))
                break
            answers.append(self._encoded(asked, response))
            self._is_ending = self._is_ending or asked.is_last
        if answers:
            self._socket.write(answers[0] if len(answers) == 1 else b"".join(answers))
        if self._is_ending and self._task is None:
            self._socket.close()
        elif self._is_reading != (not self._asked):
            self._is_reading = not self._is_reading
            (self._socket.resume_reading if self._is_reading else self._socket.pause_reading)()

    def _begin(self, answering: Coroutine[Any, Any, None]) -> None:
        self._task = asyncio.get_running_loop().create_task(answering)

    def _encoded(self, asked: Asked, response: Response) -> bytes:
        is_head = asked.request is not None and asked.request.method == "HEAD"
        try:
            return whole(response, is_last=asked.is_last, is_head=is_head)
        except ValueError:
            log.exception("an answer cannot be sent")
            return whole(_FAILED, is_last=asked.is_last, is_head=is_head)

    async def _answer(self, asked: Asked, response: Response | None) -> None:
        """Answer what takes its time: to be known, or to be sent."""
        assert asked.request is not None
        try:
            if response is None:
                response = await self._server.handle(asked.request)
            if isinstance(response.body, bytes):
                self._write(self._encoded(asked, response))
            else:
                self._write(stream_head(response, is_last=asked.is_last))
                await self._send(response.body)
        except Exception:
            log.exception("%s %s failed", asked.request.method, asked.request.path)
            self._is_ending = True
            if response is None:
                self._write(self._encoded(Asked(asked.request, is_last=True), _FAILED))
        finally:
            self._task = None
            self._is_ending = self._is_ending or asked.is_last
            if self._is_lost:
                self._connections.remove(self)
            else:
                self._go_on()

    def _write(self, data: bytes) -> None:
        if not self._is_lost:
            self._socket.write(data)

    async def _send(self, stream: Stream) -> None:
        """Send pieces as they come, until the stream ends, the client goes, or it lags too far behind."""
        self._stream = stream
        try:
            if self._is_ending:
                stream.close()
            async for piece in stream:
                self._write(chunk(piece))
                while not self._may_write.is_set():
                    await self._wait_for_client(stream)
        finally:
            self._stream = None
            stream.close()
        self._write(LAST_CHUNK)

    async def _wait_for_client(self, stream: Stream) -> None:
        """Wait until the client reads on; one that never will in time is dropped, not drained."""
        try:
            async with asyncio.timeout(_STALLED_CHECK_SECONDS):
                await self._may_write.wait()
        except TimeoutError:
            if isinstance(stream, Watch) and stream.is_behind:
                self.abort()
                await self._may_write.wait()
