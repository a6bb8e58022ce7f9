"""One HTTP/1.1 connection: a request, its answer, the next request.

The parser is httptools (the one of Node.js), fed straight from the socket: no reader between them, no task a
connection. An answer is either gathered whole or, for a watch, handed over piece by piece as it comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final, cast

import httptools

from moorage.client.errors import AnswerLost, ConnectionFailed
from moorage.transport import Response

_MOST_BUFFERED_BYTES: Final = 1024 * 1024
"""So much of a stream is read ahead; then the server has to wait."""
_OK: Final = range(200, 300)


class Connection(asyncio.Protocol):
    """One connection to a server, which asks one thing at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[Response] | None = None
        self._wants_stream = False
        self._stream: BodyStream | None = None
        self._headers: dict[str, str] = {}
        self._pieces: list[bytes] = []
        self._heard_at = 0.0
        self._silence_seconds = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._lost: asyncio.Future[None] = self._loop.create_future()
        self.is_reusable = True
        """Whether another request may follow."""
        self.idle_since = 0.0
        """When the last answer came, by the loop's clock."""

    async def ask(self, request: bytes, wants_stream: bool, silence_seconds: float) -> Response:
        """Send a request; the answer, or ConnectionFailed when nothing comes for `silence_seconds`."""
        if self._lost.done():
            raise ConnectionFailed("the connection was closed")
        self._answer = self._loop.create_future()
        self._wants_stream = wants_stream
        self._silence_seconds = silence_seconds
        self._heard_at = self._loop.time()
        self._timer = self._loop.call_later(silence_seconds, self._check_silence)
        self._transport.write(request)
        try:
            return await self._answer
        except BaseException:
            self.abort()
            raise
        finally:
            self._timer.cancel()
            self._answer = None

    def abort(self) -> None:
        """Close at once; whoever waits for something is told."""
        self.is_reusable = False
        self._transport.abort()

    @property
    def is_closed(self) -> bool:
        """Whether the connection is no more."""
        return self._lost.done()

    async def closed(self) -> None:
        """Returns once the connection is no more."""
        await asyncio.shield(self._lost)

    def _check_silence(self) -> None:
        silence = self._loop.time() - self._heard_at
        if silence < self._silence_seconds:
            self._timer = self._loop.call_later(self._silence_seconds - silence, self._check_silence)
        else:
            self._fail(AnswerLost(f"the server has said nothing for {self._silence_seconds:g} s"))

    def _fail(self, error: ConnectionFailed) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
        if self._stream is not None:
            self._stream.end(error)
        self.abort()

    # -- what the event loop says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        self._transport = cast(asyncio.Transport, transport)  # As uvloop's are, without being subclasses.

    def data_received(self, data: bytes) -> None:
        """Something came."""
        if self._answer is None and self._stream is None:
            self.abort()  # Nobody asked; what else it says cannot be trusted either.
            return
        self._heard_at = self._loop.time()
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(AnswerLost(f"the server does not speak HTTP: {error}"))

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is gone; an answer that was not complete stays so."""
        self.is_reusable = False
        reason = f": {error}" if error else ""
        self._fail(AnswerLost(f"the connection broke{reason}"))
        if not self._lost.done():
            self._lost.set_result(None)

    # -- what the parser says

    def on_message_begin(self) -> None:
        """An answer begins."""
        self._headers = {}
        self._pieces = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header came."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The head is over: a stream is handed over now."""
        if self._wants_stream and self._parser.get_status_code() in _OK:
            self._stream = BodyStream(self, self._transport)
            self._tell(self._stream)

    def on_body(self, piece: bytes) -> None:
        """A piece of the body came."""
        if self._stream is not None:
            self._stream.add(piece)
        else:
            self._pieces.append(piece)

    def on_message_complete(self) -> None:
        """The answer is complete."""
        self.idle_since = self._heard_at
        self.is_reusable = self._parser.should_keep_alive()
        if self._stream is not None:
            self._stream.end(None)
            self._stream = None
            self.abort()
        else:
            pieces = self._pieces
            self._tell(pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def _tell(self, body: bytes | BodyStream) -> None:
        if self._answer is None or self._answer.done():
            return
        kind = self._headers.get("content-type", "")
        self._answer.set_result(Response(self._parser.get_status_code(), body, kind, self._headers))


class BodyStream:
    """A body as it comes; ends as the server ends it, or with ConnectionFailed."""

    def __init__(self, connection: Connection, transport: asyncio.Transport) -> None:
        self._connection = connection
        self._transport = transport
        self._pieces: list[bytes] = []
        self._buffered_bytes = 0
        self._is_paused = False
        self._has_ended = False
        self._error: ConnectionFailed | None = None
        self._news: asyncio.Future[None] | None = None

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        """All that has come since the last call, once there is something."""
        while not self._pieces:
            if self._error is not None:
                raise self._error
            if self._has_ended:
                raise StopAsyncIteration
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        pieces, self._pieces = self._pieces, []
        self._buffered_bytes = 0
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Nobody listens any more: the iteration ends."""
        self.end(None)
        self._pieces = []
        self._connection.abort()

    def add(self, piece: bytes) -> None:
        """A piece came."""
        if self._has_ended:
            return
        self._pieces.append(piece)
        self._buffered_bytes += len(piece)
        if self._buffered_bytes > _MOST_BUFFERED_BYTES and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def end(self, error: ConnectionFailed | None) -> None:
        """No more comes; what came before is still read."""
        if not self._has_ended:
            self._has_ended = True
            self._error = error
            self._wake()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
