"""A limit on requests: a bucket of tokens that fills at a steady rate.

Every request costs one token, a watch and a repeated request too. Who finds the bucket empty waits in line.
"""

from __future__ import annotations

from moorage.client.observing import RequestObserver
from moorage.client.waiting import sleep
from moorage.clock import Clock
from moorage.transport import Request, Response, Transport


class RateLimited:
    """A transport that sends at most `burst` requests at once and `qps` a second; `qps` of 0 or less: all."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        qps: float,
        burst: int,
        observer: RequestObserver | None = None,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._qps = qps
        self._burst = max(burst, 1)
        self._tokens = float(self._burst)
        self._filled_at: float | None = None
        self._observer = observer or RequestObserver()

    async def handle(self, request: Request) -> Response:
        """The answer, asked for when it is this request's turn."""
        if self._qps > 0:
            self._observer.waited(request.method, await self._take())
        return await self._transport.handle(request)

    async def _take(self) -> float:
        """Take a token, when it is this request's turn; how long that took."""
        now = self._clock.now()
        if self._filled_at is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._qps)
        self._filled_at = now
        self._tokens -= 1
        if self._tokens >= 0:
            return 0.0
        # A debt is a place in line: who comes next owes more, and waits longer.
        try:
            await sleep(self._clock, -self._tokens / self._qps)
        except BaseException:
            self._tokens += 1
            raise
        return self._clock.now() - now
