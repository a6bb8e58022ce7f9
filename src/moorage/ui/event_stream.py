"""Changes as server-sent events.

A stream holds a revision. A piece is made when the one before it was written to the socket: a browser that
reads slowly gets fewer and larger pieces, and holds no memory here. After much has changed the next piece is
later, because every piece makes a page draw: what changes again meanwhile is sent once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from moorage.http.transport import Stream
from moorage.ui.timeline import Timeline

CONTENT_TYPE: Final = "text/event-stream"
_LEAST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 1.0
_PAUSE_SECONDS_PER_OBJECT: Final = 0.005
"""Time from a piece to the next for each object in it, within these limits, in seconds. Where more than 200
objects change in a second, it grows to the longest pause; where there are fewer, it is the least one."""
_KEEP_ALIVE_SECONDS: Final = 15.0
_KEEP_ALIVE: Final = b": still there\n\n"
_RESET: Final = b"event: reset\ndata: {}\n\n"
"""Asks the page to read the whole state again."""


def pause_seconds(objects: int) -> float:
    """The time after a piece with a number of objects."""
    return min(max(objects * _PAUSE_SECONDS_PER_OBJECT, _LEAST_PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS)


class ChangeStream(Stream):
    """The changes after a revision, as long as the reader stays."""

    def __init__(self, timeline: Timeline, revision: int) -> None:
        self._timeline = timeline
        self._revision = revision
        self._is_closed = asyncio.Event()

    def close(self) -> None:
        """The reader is gone."""
        self._is_closed.set()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while not self._is_closed.is_set():
            changes = self._timeline.since(self._revision)
            if changes is None:
                yield _RESET
                return
            if changes.revision > self._revision:
                self._revision = changes.revision
                body = msgspec.json.encode(changes)
                yield b"id: %d\nevent: changes\ndata: %b\n\n" % (changes.revision, body)
                await self._pause(pause_seconds(len(changes.nodes) + len(changes.pods)))
            elif not await self._has_more():
                yield _KEEP_ALIVE

    async def _has_more(self) -> bool:
        """Whether something has changed before it is time for a sign of life."""
        changed = asyncio.ensure_future(self._timeline.changed(self._revision))
        closed = asyncio.ensure_future(self._is_closed.wait())
        try:
            done, _ = await asyncio.wait(
                (changed, closed), timeout=_KEEP_ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            changed.cancel()
            closed.cancel()
        return bool(done)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._is_closed.wait()
        except TimeoutError:
            return
