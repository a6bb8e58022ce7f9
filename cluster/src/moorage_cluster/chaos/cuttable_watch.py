"""A watch that breaks when its server is killed."""

from __future__ import annotations

from collections.abc import AsyncIterator

from moorage.http.errors import AnswerLost
from moorage.http.transport import Stream


class CuttableWatch(Stream):
    """A watch whose connection can be broken."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._is_cut = False

    @property
    def is_behind(self) -> bool:
        """As the watch itself."""
        return self._stream.is_behind

    def close(self) -> None:
        """The reader is gone."""
        self._stream.close()

    def cut(self) -> None:
        """Break the connection."""
        self._is_cut = True
        self._stream.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            yield piece
        if self._is_cut:
            raise AnswerLost("connection reset")
