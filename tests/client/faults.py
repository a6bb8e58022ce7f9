"""A transport on which everything goes wrong that can go wrong on a network, at random but repeatably."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec

from moorage.client.waiting import sleep
from moorage.clock import Clock
from moorage.http.errors import AnswerLost, ConnectionFailed
from moorage.http.transport import Request, Response, Stream, Transport


@dataclass(frozen=True, slots=True)
class Faults:
    """How likely each fault is: of a request, or of an event of a watch."""

    unreachable: float = 0.0
    """The connection is refused: the request is not sent."""
    lost: float = 0.0
    """The request is carried out, and its answer lost."""
    slow: float = 0.0
    """The answer, or the event, comes late."""
    answers: tuple[tuple[int, float], ...] = ()
    """Answers instead of what was asked for, by their codes."""
    cut: float = 0.0
    """The watch breaks between two events."""
    truncated: float = 0.0
    """The watch breaks in the middle of an event, sometimes without seeming to."""
    ended: float = 0.0
    """The server ends the watch as if its time were up."""
    half_open: float = 0.0
    """The server is gone without closing the connection."""
    repeated: float = 0.0
    """An event of this watch comes again, the last one or an older one."""
    split: float = 0.0
    """An event comes in two pieces."""
    expired: float = 0.0
    """The watch ends with 410."""


STATUS_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}
MAX_DELAY_SECONDS = 3.0


def refusal(code: int, retry_after: int | None = None) -> Response:
    """An answer that says no."""
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    return Response(code, msgspec.json.encode(_status(code)), headers=headers)


def _status(code: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "code": code,
        "reason": STATUS_REASONS[code],
        "message": f"injected {code}",
    }


class FaultyTransport:
    """Between a client and a server; `faults` may be changed at any time."""

    def __init__(self, transport: Transport, clock: Clock, faults: Faults, seed: int) -> None:
        self._transport = transport
        self._clock = clock
        self._random = Random(seed)
        self.faults = faults
        self.injected: dict[str, int] = {}
        """What has gone wrong, and how often."""

    async def handle(self, request: Request) -> Response:
        faults = self.faults
        if self.happens("unreachable", faults.unreachable):
            raise ConnectionFailed("injected: connection refused")
        if self.happens("slow", faults.slow):
            await self.delay()
        for code, chance in faults.answers:
            if self.happens(str(code), chance):
                return refusal(code, 1 if code == 429 else None)
        response = await self._transport.handle(request)
        if self.happens("lost", faults.lost):
            if not isinstance(response.body, bytes):
                response.body.close()
            raise AnswerLost("injected: connection reset")
        if not isinstance(response.body, bytes):
            response.body = FaultyStream(self, response.body)
        return response

    def happens(self, what: str, chance: float) -> bool:
        if self._random.random() >= chance:
            return False
        self.injected[what] = self.injected.get(what, 0) + 1
        return True

    async def delay(self) -> None:
        await sleep(self._clock, self._random.uniform(0.0, MAX_DELAY_SECONDS))

    def pick(self, count: int) -> int:
        return self._random.randrange(count)


class FaultyStream(Stream):
    """A watch that is not what the server sent."""

    def __init__(self, transport: FaultyTransport, stream: Stream) -> None:
        self._transport = transport
        self._stream = stream
        self._closed = asyncio.Event()

    def close(self) -> None:
        self._closed.set()
        self._stream.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        happens = self._transport.happens
        sent: list[bytes] = []
        async for piece in self._stream:
            for line in piece.splitlines(keepends=True):
                faults = self._transport.faults
                if happens("slow event", faults.slow):
                    await self._transport.delay()
                if self._closed.is_set():
                    return
                if happens("half-open", faults.half_open):
                    await self._closed.wait()
                    return
                if happens("cut", faults.cut):
                    raise AnswerLost("injected: connection reset")
                if happens("truncated", faults.truncated):
                    yield line[: 1 + self._transport.pick(len(line) - 1)]
                    if self._transport.pick(2):
                        raise AnswerLost("injected: connection reset")
                    return
                if happens("ended", faults.ended):
                    return
                if happens("expired", faults.expired):
                    yield msgspec.json.encode({"type": "ERROR", "object": _status(410)}) + b"\n"
                    return
                sent.append(line)
                if happens("split", faults.split):
                    middle = self._transport.pick(len(line))
                    yield line[:middle]
                    yield line[middle:]
                else:
                    yield line
                if happens("repeated", faults.repeated):
                    yield sent[self._transport.pick(len(sent))]
