"""Requests to a server in the same process, which need no retries, told to an observer."""

from __future__ import annotations

from moorage.client.request_observer import RequestObserver
from moorage.clock import Clock
from moorage.http.transport import Request, Response, Transport


class ObservedTransport:
    """Another transport, observed. There is no rate limit, hence no wait for it."""

    def __init__(self, transport: Transport, clock: Clock, observer: RequestObserver) -> None:
        self._transport = transport
        self._clock = clock
        self._observer = observer

    async def handle(self, request: Request) -> Response:
        """The response of the other transport."""
        began = self._clock.now()
        response: Response | None = None
        try:
            response = await self._transport.handle(request)
            return response
        finally:
            status = None if response is None else response.status
            self._observer.answered(request.method, status, is_retry=False)
            self._observer.finished(request, response, self._clock.now() - began)
