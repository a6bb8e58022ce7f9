"""One client's connection: its requests are answered in the order in which they were received.

A request that the transport can answer at once needs no task, and the answers to requests that were received
together are sent together: HTTP is more than half of the cost of a small request. The memory for a client is
bounded, and so is the time it is held. Input is parsed a slice at a time, and answers are written to the
socket before they become large. Reading stops while the client does not read its answers or a long one is not
finished; a connection on which the server waits for too long is closed (`http_connections`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final, cast

from moorage.http.guard import MAX_BODY_BYTES
from moorage.http.in_flight import RETRY_AFTER_SECONDS
from moorage.http.request_reader import Asked, RequestReader
from moorage.http.response_encoding import CONTINUE, LAST_CHUNK, chunk, stream_head, whole
from moorage.http.server_connections import Connections, WaitReason
from moorage.http.transport import Immediate, Response, Stream, Transport

_SLICE_BYTES: Final = 64 * 1024
"""Bytes of input that are parsed at a time."""
_COALESCED_BYTES: Final = 64 * 1024
"""Bytes of answers that are collected before they are written to the socket."""
_PIECE_BYTES: Final = 256 * 1024
"""Bytes of a longer answer that are written at a time: encryption takes time, and buffers hold a copy."""
_MAX_REQUESTS_PER_TURN: Final = 128
"""Requests of one connection that are answered before other connections are."""
_FAILED: Final = Response(500, b"Internal Server Error", "text/plain; charset=utf-8")

log = logging.getLogger(__name__)


class HttpConnection(asyncio.Protocol):
    """One of a server's connections."""

    def __init__(
        self, transport: Transport, connections: Connections, max_body_bytes: int = MAX_BODY_BYTES
    ) -> None:
        self._connections = connections
        self.answer_with(transport, max_body_bytes)
        self._unread = b""
        self._task: asyncio.Task[None] | None = None
        self._stream: Stream | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._is_reading = True
        self._is_ending = False
        self._is_refused = False
        """Whether a request exceeded the limits just now: the next one is read when it may be sent again."""
        self._is_lost = False

    def answer_with(self, transport: Transport, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        """Set the transport that answers all requests; only before the first one is received."""
        self._server = transport
        self._answer_now = transport.answer if isinstance(transport, Immediate) else None
        self._reader = RequestReader(max_body_bytes)
        self._asked = self._reader.asked

    def waiting(self) -> tuple[WaitReason, int]:
        """What the client has to do next, and a number that changes when it makes progress."""
        if not self._may_write.is_set() or (self._is_ending and self._task is None):
            return WaitReason.FOR_SPACE, self._socket.get_write_buffer_size()
        if self._task is not None or self._unread:
            return WaitReason.FOR_NOTHING, 0
        reader = self._reader
        if not reader.is_in_head:
            return WaitReason.FOR_BODY, reader.messages
        is_idle = reader.is_between and reader.messages
        return WaitReason.FOR_REQUEST if is_idle else WaitReason.FOR_HEAD, reader.messages

    @property
    def is_slow_reader(self) -> bool:
        """Whether it sends a stream that can no longer be completed."""
        return self._stream is not None and self._stream.is_behind

    def finish(self) -> None:
        """Close once requests in flight are answered; a stream ends now."""
        self._is_ending = True
        self._asked.clear()
        self._unread = b""
        if self._stream is not None:
            self._stream.close()
        if self._task is None:
            self._close()

    def _close(self) -> None:
        """Close once what is written is sent.

        asyncio's TLS transports cannot be aborted once they were closed twice, and do not close at all
        while the client's end of the stream is unread.
        """
        if not self._socket.is_closing():
            if not self._is_reading:
                self._is_reading = True
                self._socket.resume_reading()
            self._socket.close()

    def abort(self) -> None:
        """Close at once."""
        self._socket.abort()

    # -- callbacks of the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is established."""
        self._socket = cast(asyncio.Transport, transport)  # uvloop's are not subclasses.
        self._connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        """The client has disconnected."""
        self._is_lost = True
        self._may_write.set()
        self.finish()
        self._reader.close()
        if self._task is None:
            self._connections.remove(self)

    def pause_writing(self) -> None:
        """The send buffer is full: the client does not read."""
        self._may_write.clear()

    def resume_writing(self) -> None:
        """The send buffer has space again."""
        self._may_write.set()
        self._continue_reading()

    def data_received(self, data: bytes) -> None:
        """Data was received."""
        if not self._is_ending:
            self._unread = self._unread + data if self._unread else data
            self._continue_reading()

    # -- answering

    def _continue_reading(self) -> None:
        """Answer received requests, as far as that needs no waiting."""
        if self._may_answer():
            if not self._asked:
                self._read_on()
            self._answer_some()
        if self._is_ending and self._task is None:
            self._close()
            return
        is_behind = bool(self._asked or self._unread)
        if self._is_reading == is_behind:
            self._is_reading = not is_behind
            (self._socket.pause_reading if is_behind else self._socket.resume_reading)()
        if is_behind:
            if self._may_answer():
                asyncio.get_running_loop().call_soon(self._continue_reading)
        elif self._reader.is_awaited and self._may_answer():
            self._reader.is_awaited = False
            self._socket.write(CONTINUE)

    def _answer_some(self) -> None:
        answers: list[bytes] = []
        answers_bytes = 0
        has_accepted = False
        for _ in range(_MAX_REQUESTS_PER_TURN):
            if not self._asked:
                break
            asked = self._asked.popleft()
            refusal = asked.refusal or (None if has_accepted else self._refusal(asked))
            has_accepted = has_accepted or refusal is None
            answer = self._answered(asked, refusal)
            if answer is None:
                break
            answers.append(answer)
            answers_bytes += len(answer)
            if asked.is_last:
                self._is_ending = True
                break
            if answers_bytes > _COALESCED_BYTES:
                self._socket.write(b"".join(answers))
                answers.clear()
                answers_bytes = 0
                if not self._may_write.is_set():
                    break
            if self._is_refused:
                break
        if answers:
            self._socket.write(answers[0] if len(answers) == 1 else b"".join(answers))

    def _may_answer(self) -> bool:
        is_held_up = self._is_ending or self._is_refused
        return self._task is None and not is_held_up and self._may_write.is_set()

    def _read_on(self) -> None:
        """Parse received input until there is a request, or no input is left."""
        while self._unread and not self._asked:
            if len(self._unread) <= _SLICE_BYTES:
                piece, self._unread = self._unread, b""
            else:
                piece, self._unread = self._unread[:_SLICE_BYTES], self._unread[_SLICE_BYTES:]
            self._reader.read(piece)

    def _answered(self, asked: Asked, response: Response | None) -> bytes | None:
        """The refusal, or the answer that is available at once; None: a task has been started."""
        if response is None and self._answer_now is not None:
            assert asked.request is not None
            response = self._answer_now(asked.request)
        if response is not None:
            if isinstance(response.body, bytes):
                if len(response.body) <= _PIECE_BYTES:
                    return self._encoded(asked, response)
            elif _wants_head_only(asked):
                response.body.close()
                return stream_head(response, is_last=asked.is_last)
        self._begin(self._answer(asked, response))
        return None

    def _refusal(self, asked: Asked) -> Response | None:
        """The answer to a request that exceeds the limits of the server."""
        limits = self._connections.limits
        if limits is None or asked.request is None:
            return None
        refusal = limits.refusal(asked.request)
        if refusal is not None:
            self._is_refused = True
            asyncio.get_running_loop().call_later(RETRY_AFTER_SECONDS, self._end_refusal)
        return refusal

    def _end_refusal(self) -> None:
        self._is_refused = False
        if not self._is_lost:
            self._continue_reading()

    def _begin(self, answering: Coroutine[Any, Any, None]) -> None:
        self._task = asyncio.get_running_loop().create_task(answering)

    def _encoded(self, asked: Asked, response: Response) -> bytes:
        is_head = _wants_head_only(asked)
        try:
            return whole(response, is_last=asked.is_last, is_head=is_head)
        except ValueError:
            log.exception("an answer cannot be sent")
            return whole(_FAILED, is_last=asked.is_last, is_head=is_head)

    async def _answer(self, asked: Asked, response: Response | None) -> None:
        """Answer a request that takes time to process, or to send."""
        assert asked.request is not None
        try:
            if response is None:
                response = await self._server.handle(asked.request)
            if isinstance(response.body, bytes):
                await self._send_whole(self._encoded(asked, response))
            else:
                self._write(stream_head(response, is_last=asked.is_last))
                if _wants_head_only(asked):
                    response.body.close()
                else:
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
                self._continue_reading()

    def _write(self, data: bytes | memoryview) -> None:
        if not self._is_lost:
            self._socket.write(data)

    async def _send_whole(self, data: bytes) -> None:
        """Send an answer, a piece at a time if it is long."""
        if len(data) <= _PIECE_BYTES:
            self._write(data)
            return
        view = memoryview(data)
        for at in range(0, len(view), _PIECE_BYTES):
            self._write(view[at : at + _PIECE_BYTES])
            await asyncio.sleep(0)
            await self._may_write.wait()

    async def _send(self, stream: Stream) -> None:
        """Send pieces as they become available, until the stream ends or the client disconnects."""
        self._stream = stream
        try:
            if self._is_ending:
                stream.close()
            async for piece in stream:
                self._write(chunk(piece))
                await self._may_write.wait()
        finally:
            self._stream = None
            stream.close()
        self._write(LAST_CHUNK)


def _wants_head_only(asked: Asked) -> bool:
    return asked.request is not None and asked.request.method == "HEAD"
