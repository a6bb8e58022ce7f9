"""One HTTP/1.1 connection: requests, and their answers in the same order.

The parser is httptools (the one of Node.js), fed straight from the socket: no stream reader, no task per
connection. An answer is either collected completely or, for a watch, passed on chunk by chunk.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final, cast

import httptools

from moorage.http.batching import BatchWindow
from moorage.http.errors import AnswerLost, ConnectionFailed
from moorage.http.transport import Response, Stream

_MAX_BUFFERED_BYTES: Final = 1024 * 1024
"""Maximum bytes of a stream that are read ahead before reading pauses."""
_BATCH_WINDOW_SECONDS: Final = 0.004
"""Batch window for reading busy streams, in seconds: larger reads cost less per byte."""
_BUFFER_BYTES: Final = 64 * 1024
"""Size of a connection's receive buffer. Few of its pages are used where answers are small."""
_OK: Final = range(200, 300)
_CREATED: Final = 201


class HttpClientConnection(asyncio.BufferedProtocol):
    """One connection to a server.

    It has its own buffer: without one, uvloop allocates 256 KiB for every read over TLS, which can take
    longer than decrypting a small answer.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._headers: dict[bytes, bytes] = {}
        self.on_header: Callable[[bytes, bytes], None] = self._headers.__setitem__
        """Called by the parser for every header of an answer: no Python function, there are many."""
        self._parser = httptools.HttpResponseParser(self)
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._answers: deque[asyncio.Future[Response]] = deque()
        """The pending requests, in order."""
        self._all_answered: Callable[[], None] | None = None
        self._wants_stream = False
        self._stream: BodyStream | None = None
        self._pieces: list[bytes] = []
        self._body_bytes = 0
        self.max_answer_bytes: int | None = None
        """Maximum size of the body of an answer that is no stream; None: there is none."""
        self._received_at = 0.0
        self._first_answer_at = 0.0
        self._idle_seconds = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._lost: asyncio.Future[None] = self._loop.create_future()
        self.is_reusable = True
        """Whether another request may follow."""
        self.idle_since = self._loop.time()
        """The time of the last answer, or of the connection, by the loop's clock."""

    async def ask(self, request: bytes, wants_stream: bool, idle_seconds: float) -> Response:
        """Send a request; the answer, or ConnectionFailed when nothing is received for `idle_seconds`."""
        answer: asyncio.Future[Response] = self._loop.create_future()
        self._wants_stream = wants_stream
        self.send(request, (answer,), idle_seconds)
        try:
            return await answer
        except BaseException:
            self.abort()
            raise

    def send(
        self,
        requests: bytes,
        answers: Iterable[asyncio.Future[Response]],
        idle_seconds: float,
        all_answered: Callable[[], None] | None = None,
    ) -> None:
        """Send requests; each of `answers` gets its answer or an error, and then `all_answered` is called.

        The error is AnswerLost; after an answer with `Connection: close` it is ConnectionFailed, since
        a server carries out none of those requests (RFC 9112, 9.6). ConnectionFailed is raised if the
        connection is closed.
        """
        if self._lost.done():
            raise ConnectionFailed("the connection was closed")
        self._answers.extend(answers)
        self._all_answered = all_answered
        self._idle_seconds = idle_seconds
        self._received_at = self._loop.time()
        self._first_answer_at = 0.0
        if self._timer is None:
            # Shared by successive requests, since creating a timer costs as much as parsing an answer.
            self._timer = self._loop.call_later(idle_seconds, self._check_idle)
        self._transport.write(requests)

    @property
    def answers_took_seconds(self) -> float:
        """Seconds between the first and the latest answer to the requests that were sent last."""
        return self.idle_since - self._first_answer_at

    def abort(self) -> None:
        """Close at once; pending requests fail."""
        self.is_reusable = False
        self._transport.abort()

    @property
    def is_closed(self) -> bool:
        """Whether the connection is closed."""
        return self._lost.done()

    async def closed(self) -> None:
        """Returns once the connection is closed."""
        await asyncio.shield(self._lost)

    def _check_idle(self) -> None:
        self._timer = None
        if not self._answers:
            return
        idle = self._loop.time() - self._received_at
        if idle < self._idle_seconds:
            self._timer = self._loop.call_later(self._idle_seconds - idle, self._check_idle)
        else:
            self._fail(AnswerLost(f"the server has said nothing for {self._idle_seconds:g} s"))

    def _fail(self, error: ConnectionFailed) -> None:
        """Mark the connection as unusable and fail all pending requests with the reason."""
        self.abort()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._stream is not None:
            self._stream.end(error)
        while self._answers:
            self._resolve(type(error)(str(error)))

    def _resolve(self, result: Response | ConnectionFailed) -> None:
        """Remove the first pending request, which is answered or has failed."""
        answer = self._answers.popleft()
        if not answer.done():
            if isinstance(result, Response):
                answer.set_result(result)
            else:
                answer.set_exception(result)
        if not self._answers and self._all_answered is not None:
            self._all_answered()

    # -- callbacks of the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is established."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are not subclasses.

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where data is to be received."""
        return self._buffer

    def buffer_updated(self, size: int) -> None:
        """Data was received."""
        if not self._answers and self._stream is None:
            self.abort()  # An answer without a request.
            return
        self._received_at = self._loop.time()
        try:
            self._parser.feed_data(self._buffer[:size])
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(AnswerLost(f"the server does not speak HTTP: {error}"))
        if self._stream is not None:
            self._stream.received()

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is closed; an incomplete answer fails."""
        self.is_reusable = False
        reason = f": {error}" if error else ""
        self._fail(AnswerLost(f"the connection broke{reason}"))
        if not self._lost.done():
            self._lost.set_result(None)

    # -- callbacks of the parser

    def on_headers_complete(self) -> None:
        """The head is complete: a stream is passed on now."""
        if self._wants_stream and self._parser.get_status_code() in _OK:
            self._stream = BodyStream(self, self._transport)
            self._deliver(self._stream)

    def on_body(self, piece: bytes) -> None:
        """A piece of the body was received."""
        if self._stream is not None:
            self._stream.add(piece)
            return
        self._pieces.append(piece)
        if self.max_answer_bytes is not None:
            self._body_bytes += len(piece)
            if self._body_bytes > self.max_answer_bytes:
                self._pieces.clear()
                self._fail(AnswerLost(f"the answer is larger than {self.max_answer_bytes} bytes"))

    def on_message_complete(self) -> None:
        """The answer is complete."""
        self.idle_since = self._received_at
        self._first_answer_at = self._first_answer_at or self._received_at
        self.is_reusable = self._parser.should_keep_alive()
        if self._stream is not None:
            self._stream.end(None)
            self._stream = None
            self.abort()
        else:
            pieces, self._pieces = self._pieces, []
            self._body_bytes = 0
            self._deliver(pieces[0] if len(pieces) == 1 else b"".join(pieces))
            if self._answers and not self.is_reusable:
                self._fail(ConnectionFailed("the server closed the connection before this request"))

    def _deliver(self, body: bytes | BodyStream) -> None:
        if not self._answers:
            self.abort()  # An answer without a request: the rest cannot be trusted either.
            return
        status = self._parser.get_status_code()
        # Of answers to writes, which are many, only those of failures are read: `Retry-After`.
        headers = {} if status == _CREATED else _decoded(self._headers)
        self._headers.clear()
        self._resolve(Response(status, body, headers.get("content-type", ""), headers))


def _decoded(headers: dict[bytes, bytes]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers.items()}


class BodyStream(Stream):
    """A streamed body; ends when the server ends it, or with ConnectionFailed."""

    def __init__(self, connection: HttpClientConnection, transport: asyncio.Transport) -> None:
        self._connection = connection
        self._transport = transport
        self._pieces: list[bytes] = []
        self._buffered_bytes = 0
        self._is_paused = False
        self._is_reading = True
        self._has_ended = False
        self._error: ConnectionFailed | None = None
        self._news: asyncio.Future[None] | None = None
        self._batch_window = BatchWindow(_BATCH_WINDOW_SECONDS)
        self._loop = asyncio.get_running_loop()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        """All data received since the last call; waits until there is some."""
        while not self._pieces:
            if self._error is not None:
                raise self._error
            if self._has_ended:
                raise StopAsyncIteration
            self._news = self._loop.create_future()
            await self._news
        pieces, self._pieces = self._pieces, []
        self._buffered_bytes = 0
        self._read_or_wait()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Stop the iteration: the stream has no reader any more."""
        self.end(None)
        self._pieces = []
        self._connection.abort()

    def add(self, piece: bytes) -> None:
        """A piece was received."""
        if self._has_ended:
            return
        self._pieces.append(piece)
        self._buffered_bytes += len(piece)

    def received(self) -> None:
        """The socket was drained: on a busy stream, reading pauses until the batch window ends."""
        if self._has_ended:
            return
        if not self._is_paused:
            seconds = self._batch_window.wait_seconds(self._loop.time())
            if seconds:
                self._is_paused = True
                self._loop.call_later(seconds, self._resume_reading)
        self._read_or_wait()
        if self._pieces:
            self._wake()

    def _resume_reading(self) -> None:
        self._is_paused = False
        self._read_or_wait()

    def _read_or_wait(self) -> None:
        wanted = not self._is_paused and self._buffered_bytes <= _MAX_BUFFERED_BYTES
        if wanted != self._is_reading and not self._has_ended:
            self._is_reading = wanted
            (self._transport.resume_reading if wanted else self._transport.pause_reading)()

    def end(self, error: ConnectionFailed | None) -> None:
        """Mark the end of the stream; buffered data can still be read."""
        if not self._has_ended:
            self._has_ended = True
            self._error = error
            self._wake()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
