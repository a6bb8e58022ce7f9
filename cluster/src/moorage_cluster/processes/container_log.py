"""The log of a container: the newest lines, each with its timestamp."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from datetime import datetime
from itertools import islice
from typing import Final, NamedTuple

from moorage.api.manifests import Now, micro_timestamp
from moorage.http.transport import Stream
from moorage_cluster.nodes.log_options import LogOptions

MAX_BYTES: Final = 10 << 20
"""The kubelet's containerLogMaxSize."""


class LogLine(NamedTuple):
    """A line with its line break, if it is complete."""

    at: datetime
    text: bytes


class ContainerLog:
    """The output of one start of a container; the oldest lines beyond a limit are dropped."""

    def __init__(self, now: Now, max_bytes: int = MAX_BYTES) -> None:
        self._now = now
        self._max_bytes = max_bytes
        self._lines: deque[LogLine] = deque()
        self._bytes = 0
        self._dropped = 0
        self._begun = b""
        self._changed = asyncio.Event()
        self.is_closed = False

    def write(self, data: bytes) -> None:
        """Append output."""
        *lines, self._begun = (self._begun + data).split(b"\n")
        at = self._now()
        for line in lines:
            self._append(LogLine(at, line + b"\n"))
        self._notify()

    def close(self) -> None:
        """Mark the end of the output."""
        if self._begun:
            self._append(LogLine(self._now(), self._begun))
            self._begun = b""
        self.is_closed = True
        self._notify()

    def _append(self, line: LogLine) -> None:
        self._lines.append(line)
        self._bytes += len(line.text)
        while self._bytes > self._max_bytes:
            self._bytes -= len(self._lines.popleft().text)
            self._dropped += 1

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def tail(self, max_lines: int, max_bytes: int) -> str:
        """The last lines, as a message."""
        skipped = max(len(self._lines) - max_lines, 0)
        text = b"".join(line.text for line in islice(self._lines, skipped, None))
        return text[-max_bytes:].decode(errors="replace")

    # -- reading

    @property
    def end(self) -> int:
        """The position after the last line."""
        return self._dropped + len(self._lines)

    @property
    def changed(self) -> asyncio.Event:
        """Set at the next output or at the end."""
        return self._changed

    def read(self, options: LogOptions) -> bytes:
        """The current lines that the options select."""
        lines = options.latest([line for line in self._lines if options.includes(line.at)])
        return options.limited(b"".join(_shown(line, options) for line in lines))

    def read_from(self, position: int, options: LogOptions) -> bytes:
        """All lines from a position on."""
        lines = islice(self._lines, max(position - self._dropped, 0), None)
        return b"".join(_shown(line, options) for line in lines)


class LogStream(Stream):
    """A followed log: the current lines and then new ones, until the container ends."""

    def __init__(self, log: ContainerLog, options: LogOptions) -> None:
        self._log = log
        self._options = options
        self._closed = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._options.limit_bytes
        async for piece in self._pieces():
            if left is not None:
                piece = piece[:left]
                left -= len(piece)
            if piece:
                yield piece
            if left == 0:
                return

    async def _pieces(self) -> AsyncIterator[bytes]:
        position = self._log.end
        yield self._log.read(self._options)
        while not self._closed.is_set():
            changed = self._log.changed
            if self._log.end > position:
                piece = self._log.read_from(position, self._options)
                position = self._log.end
                yield piece
            elif self._log.is_closed:
                return
            else:
                await _either(changed, self._closed)

    def close(self) -> None:
        """End the iteration, because the reader has disconnected."""
        self._closed.set()


async def _either(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()


def _shown(line: LogLine, options: LogOptions) -> bytes:
    return micro_timestamp(line.at).encode() + b" " + line.text if options.has_timestamps else line.text
