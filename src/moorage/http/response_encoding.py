"""Answers as HTTP/1.1 puts them on the wire."""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus
from typing import Final

from moorage.http.transport import Response

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
"""The interim response to `Expect: 100-continue`."""
LAST_CHUNK: Final = b"0\r\n\r\n"
"""The chunk that ends a stream."""
_NOT_MODIFIED: Final = int(HTTPStatus.NOT_MODIFIED)


def whole(response: Response, *, is_last: bool, is_head: bool) -> bytes:
    """A complete answer; without its body if the request is a HEAD."""
    body = response.body
    assert isinstance(body, bytes)
    start = _start(response, is_last)
    if response.status == _NOT_MODIFIED:  # It has no body, and no length of one.
        return b"%b\r\n" % start
    return b"%bcontent-length: %d\r\n\r\n%b" % (start, len(body), b"" if is_head else body)


def stream_head(response: Response, *, is_last: bool) -> bytes:
    """The head of an answer with a chunked body."""
    return _start(response, is_last) + b"transfer-encoding: chunked\r\n\r\n"


def chunk(piece: bytes) -> bytes:
    """One chunk of a stream."""
    return b"%x\r\n%b\r\n" % (len(piece), piece)


def _start(response: Response, is_last: bool) -> bytes:
    """The head of an answer, without the header for the length of its body."""
    first = _first_lines(response.status, response.content_type)
    if not response.headers and not is_last:
        return first
    lines = [f"{name.lower()}: {value}\r\n" for name, value in response.headers.items()]
    if is_last:
        lines.append("connection: close\r\n")
    more = "".join(lines).encode()
    if more.count(b"\n") != len(lines) or b"\0" in more:
        raise ValueError(f"a header that is more than one: {more!r}")
    return first + more


@lru_cache(maxsize=256)
def _first_lines(status: int, content_type: str) -> bytes:
    lines = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
    if content_type:
        lines += f"content-type: {content_type}\r\n"
    return lines.encode("latin-1")
