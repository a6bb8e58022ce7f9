"""HTTP: from an ASGI server to `Transport.handle`, and back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from moorage.apiserver import errors
from moorage.apiserver.guard import MAX_BODY_BYTES
from moorage.apiserver.rest.watches import Watch
from moorage.apiserver.store import encode
from moorage.transport import Request, Response, Stream, Transport

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_STALLED_CHECK_SECONDS = 5.0
_MOST_DISCARDED_BYTES = 8 * MAX_BODY_BYTES


class Asgi:
    """An ASGI application around a transport."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._streams: set[Stream] = set()

    def close(self) -> None:
        """End all streams, so that the server can stop."""
        for stream in list(self._streams):
            stream.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        body = await _read_body(receive)
        if body is None:
            too_large = errors.too_large(MAX_BODY_BYTES)
            answer = Response(too_large.code, encode(too_large.status), headers={"Connection": "close"})
            await self._send(answer, receive, send)
            return
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        path = scope["raw_path"].decode("latin-1").partition("?")[0]
        query = scope["query_string"].decode("latin-1")
        request = Request(scope["method"], path, query, dict(headers), body, headers)
        response = await self._transport.handle(request)
        if request.method == "HEAD" and isinstance(response.body, bytes):
            response.body = b""
        await self._send(response, receive, send)

    async def _send(self, response: Response, receive: Receive, send: Send) -> None:
        headers = (
            [(b"content-type", response.content_type.encode("latin-1"))] if response.content_type else []
        )
        headers += [
            (name.lower().encode("latin-1"), value.encode()) for name, value in response.headers.items()
        ]
        body = response.body
        if isinstance(body, bytes):
            if response.status != HTTPStatus.NOT_MODIFIED:  # Which says nothing of the body it stands for.
                headers.append((b"content-length", b"%d" % len(body)))
            await send({"type": "http.response.start", "status": response.status, "headers": headers})
            await send({"type": "http.response.body", "body": body})
            return
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await self._send_stream(body, receive, send)

    async def _send_stream(self, stream: Stream, receive: Receive, send: Send) -> None:
        """Send pieces as they come, until the stream ends, the client goes, or it lags too far behind."""
        self._streams.add(stream)
        gone = asyncio.ensure_future(_closes_when_gone(stream, receive))
        pump = asyncio.ensure_future(_pump(stream, send))
        try:
            while not pump.done():
                await asyncio.wait((pump,), timeout=_STALLED_CHECK_SECONDS)
                if isinstance(stream, Watch) and stream.is_behind and not pump.done():
                    pump.cancel()  # Blocked in sending: the connection is dropped, not drained.
                    break
        finally:
            self._streams.discard(stream)
            gone.cancel()
            stream.close()
            results = await asyncio.gather(pump, gone, return_exceptions=True)
        if results[0] is None:
            await send({"type": "http.response.body", "body": b""})


async def _pump(stream: Stream, send: Send) -> None:
    await send({"type": "http.response.body", "body": b"", "more_body": True})
    async for piece in stream:
        await send({"type": "http.response.body", "body": piece, "more_body": True})


async def _closes_when_gone(stream: Stream, receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    stream.close()


async def _read_body(receive: Receive) -> bytes | None:
    """A request's body, or None if it is too long.

    The rest of such a body is read and thrown away, within reason: a client that is still sending when the
    connection is closed does not get to read why.
    """
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        return body if len(body) <= MAX_BODY_BYTES else None
    pieces, length = [body], len(body)
    while message.get("more_body"):
        message = await receive()
        piece = message.get("body", b"")
        length += len(piece)
        if length > _MOST_DISCARDED_BYTES:
            break
        if length > MAX_BODY_BYTES:
            pieces.clear()
        else:
            pieces.append(piece)
    return b"".join(pieces) if length <= MAX_BODY_BYTES else None
