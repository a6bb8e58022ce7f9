"""A token bucket rate limiter for requests.

Every request takes one token, including watches and retries. With an empty bucket requests wait in order.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moorage.client.request_observer import RequestObserver
from moorage.client.waiting import sleep
from moorage.clock import Clock
from moorage.http.transport import Request, Response, Transport


class RateLimitedTransport:
    """A transport limited to bursts of `burst` and `qps` requests a second; `qps` of 0 or less: no limit."""

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

    def handle(self, request: Request) -> Awaitable[Response]:
        """The response; the request is sent when the rate limit allows, mostly at once."""
        if self._qps > 0:
            wait_seconds = self._take()
            if wait_seconds:
                return self._handle_later(request, wait_seconds)
            self._observer.waited(request.method, 0.0)
        return self._transport.handle(request)

    def _take(self) -> float:
        """Take a token; returns the seconds until it is available."""
        now = self._clock.now()
        if self._filled_at is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._qps)
        self._filled_at = now
        self._tokens -= 1
        # A negative number of tokens is a position in the queue: the next request waits longer.
        return 0.0 if self._tokens >= 0 else -self._tokens / self._qps

    async def _handle_later(self, request: Request, wait_seconds: float) -> Response:
        began_at = self._clock.now()
        try:
            await sleep(self._clock, wait_seconds)
        except BaseException:
            self._tokens += 1
            raise
        self._observer.waited(request.method, self._clock.now() - began_at)
        return await self._transport.handle(request)
