"""HTTP/1.1 requests, parsed: bytes in, complete requests out, in order and within limits.

The parser is httptools. It holds any number of headers and trailers in memory, also of clients without
a token; so the bytes of one request are limited before it is processed.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import httptools
import msgspec

from moorage.http.api_error import too_large
from moorage.http.guard import MAX_BODY_BYTES
from moorage.http.transport import Request, Response

MAX_HEAD_BYTES: Final = 64 * 1024
"""Maximum bytes of a request's head."""
MAX_HEADERS: Final = 100
MAX_TARGET_BYTES: Final = 32 * 1024
"""Maximum bytes of a path with its query: selectors and continue tokens make long ones."""
_BYTES_A_BODY_BYTE: Final = 8
"""Maximum bytes read per request, as a multiple of the maximum body length.

A body in chunks of one byte takes six times its length. And a body that is too long is read and discarded up
to this limit: a client that is still sending when the connection is closed cannot read the error.
"""


class Asked(msgspec.Struct, frozen=True):
    """A request, or the error for invalid input."""

    request: Request | None
    refusal: Response | None = None
    """The answer if the input is no valid request."""
    is_last: bool = False
    """Whether it is the last request of the connection."""


class RequestReader:
    """Parses the input of one connection; `asked` holds the complete requests."""

    def __init__(self, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._max_body_bytes = max_body_bytes
        self._max_message_bytes = MAX_HEAD_BYTES + _BYTES_A_BODY_BYTE * max_body_bytes
        self.asked: deque[Asked] = deque()
        self.is_awaited = False
        """Whether a client waits for `100 Continue` before it sends a body."""
        self._parser = httptools.HttpRequestParser(self)
        self._received_bytes = 0
        self._without_body_bytes = 0
        """Bytes received since the last piece of a body."""
        self.messages = 0
        """Number of requests that have begun."""
        self.is_in_head = True
        """Whether no body is expected: before a request, and until its headers are complete."""
        self.is_between = True
        """Whether nothing of the next request was received."""
        self._is_over = False
        self._url = b""
        self._came: list[tuple[bytes, bytes]] = []
        self._known: list[tuple[bytes, bytes]] = []
        """The headers of the last request; its client is likely to send the same ones again."""
        self._headers: tuple[tuple[str, str], ...] = ()
        self._by_name: dict[str, str] = {}
        self._pieces: list[bytes] = []
        self._body_bytes = 0

    def read(self, data: bytes) -> None:
        """Parse received bytes."""
        if self._is_over:
            return
        body_bytes = self._body_bytes
        self._received_bytes += len(data)
        self._without_body_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # Upgrades are ignored: the request is answered as any other, and is the last.
        except httptools.HttpParserError:
            self._refuse(_NOT_HTTP)
        if self._body_bytes != body_bytes:
            self._without_body_bytes = 0
        if self.is_in_head:
            if self._received_bytes > MAX_HEAD_BYTES:
                self._refuse(_HEAD_TOO_LONG)
        elif self._without_body_bytes > MAX_HEAD_BYTES:  # Trailers, or extensions of chunks.
            self._refuse(_HEAD_TOO_LONG)
        elif self._received_bytes > self._max_message_bytes:
            self._refuse(_body_too_long(self._max_body_bytes))

    def close(self) -> None:
        """The connection is closed: drop the parser, to break its reference cycle with this reader."""
        self._is_over = True
        self._parser = _NO_PARSER
        self._known = []
        self._pieces = []

    def _refuse(self, why: Response) -> None:
        if not self._is_over:
            self._is_over = True
            self.asked.append(Asked(None, why, is_last=True))

    # -- callbacks of the parser

    def on_message_begin(self) -> None:
        """A request begins."""
        self.messages += 1
        self.is_between = False
        self._url = b""
        self._came = []
        self._pieces = []
        self._body_bytes = 0

    def on_url(self, url: bytes) -> None:
        """A piece of the request target was parsed."""
        self._url += url
        if len(self._url) > MAX_TARGET_BYTES:
            self._refuse(_TARGET_TOO_LONG)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header was parsed, or a trailer, which is ignored."""
        if self.is_in_head:
            came = self._came
            came.append((name, value))
            if len(came) > MAX_HEADERS:
                came.clear()
                self._refuse(_HEAD_TOO_LONG)

    def on_headers_complete(self) -> None:
        """The head is complete."""
        self.is_in_head = False
        self._without_body_bytes = 0
        if self._is_over:
            return
        if self._came != self._known:
            if sum(len(name) + len(value) for name, value in self._came) > MAX_HEAD_BYTES:
                self._refuse(_HEAD_TOO_LONG)
                return
            self._headers = tuple(
                (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in self._came
            )
            self._by_name = dict(self._headers)
            self._known = self._came
        self.is_awaited = self._by_name.get("expect", "").lower() == "100-continue"

    def on_body(self, piece: bytes) -> None:
        """A piece of the body was received."""
        self._body_bytes += len(piece)
        if self._body_bytes <= self._max_body_bytes:
            self._pieces.append(piece)
        else:
            self._pieces.clear()

    def on_message_complete(self) -> None:
        """A request is complete; another may follow."""
        self.is_in_head = self.is_between = True
        self.is_awaited = False
        self._received_bytes = self._without_body_bytes = 0
        if self._body_bytes > self._max_body_bytes:
            self._refuse(_body_too_long(self._max_body_bytes))
        if self._is_over:
            return
        parser, pieces = self._parser, self._pieces
        path, query = _split(self._url)
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        method = parser.get_method().decode("ascii")
        request = Request(method, path, query, self._by_name, body, self._headers)
        self._is_over = not parser.should_keep_alive() or parser.should_upgrade()
        self.asked.append(Asked(request, None, self._is_over))


def _split(url: bytes) -> tuple[str, str]:
    """The path and the query of a request target, which may be an absolute URL."""
    text = url.decode("ascii")
    if text.startswith("/") and "#" not in text:
        path, _, query = text.partition("?")
        return path, query
    parsed = httptools.parse_url(url)
    return (parsed.path or b"/").decode("ascii"), (parsed.query or b"").decode("ascii")


def _text(status: int, text: bytes) -> Response:
    return Response(status, text, "text/plain; charset=utf-8")


def _body_too_long(max_body_bytes: int) -> Response:
    refusal = too_large(max_body_bytes)
    return Response(refusal.code, msgspec.json.encode(refusal.status))


_HEAD_TOO_LONG: Final = _text(431, b"431 Request Header Fields Too Large")
_TARGET_TOO_LONG: Final = _text(414, b"414 URI Too Long")
_NOT_HTTP: Final = _text(400, b"Invalid HTTP request received.")

_NO_PARSER: Final = httptools.HttpRequestParser(object())
"""Replaces the parser of a closed connection."""
