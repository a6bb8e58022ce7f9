"""Requests to the API server, counted and timed (`rest_client_*`)."""

from __future__ import annotations

from moorage.client.errors import ConnectionFailed
from moorage.clock import Clock
from moorage.services.metrics import Metrics
from moorage.transport import Request, Response, Transport


class Measured:
    """A transport that measures another; `host` is what metrics call the server."""

    def __init__(self, transport: Transport, metrics: Metrics, clock: Clock, host: str) -> None:
        self._transport = transport
        self._metrics = metrics
        self._clock = clock
        self._host = host

    async def handle(self, request: Request) -> Response:
        """The other transport's answer."""
        metrics, method, host = self._metrics, request.method, self._host
        began = self._clock.now()
        metrics.request_size.labels(method, host).observe(len(request.body))
        try:
            response = await self._transport.handle(request)
        except ConnectionFailed:
            metrics.requests.labels("<error>", method, host).inc()
            raise
        finally:
            metrics.request_duration.labels(method, host).observe(self._clock.now() - began)
        metrics.requests.labels(str(response.status), method, host).inc()
        if isinstance(response.body, bytes):
            metrics.response_size.labels(method, host).observe(len(response.body))
        return response
