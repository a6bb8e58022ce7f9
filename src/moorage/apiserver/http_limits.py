"""Limits on what one HTTP request may send before anybody looks at it.

The parser gathers headers and trailers in memory, however many come, and from clients without a token too.
"""

from __future__ import annotations

from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from moorage.apiserver.guard import MAX_BODY_BYTES

MAX_HEAD_BYTES: Final = 1024 * 1024
"""The longest request line with its headers."""
_MAX_MESSAGE_BYTES: Final = MAX_HEAD_BYTES + 8 * MAX_BODY_BYTES
"""The most for a whole request: a body in chunks of one byte is six times as long as it says."""
_REFUSAL: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: text/plain; charset=utf-8\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)


class LimitedHttp(HttpToolsProtocol):
    """HTTP as uvicorn speaks it, for requests of a bounded length."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._is_in_head = True
        self._received_bytes = 0

    def data_received(self, data: bytes) -> None:
        """Pass on what came, unless it is too much."""
        self._received_bytes += len(data)
        if self._received_bytes > (MAX_HEAD_BYTES if self._is_in_head else _MAX_MESSAGE_BYTES):
            self.transport.write(_REFUSAL)
            self.transport.close()
            return
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """The head is over."""
        self._is_in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """A request is over; another may follow."""
        self._is_in_head = True
        self._received_bytes = 0
        super().on_message_complete()
