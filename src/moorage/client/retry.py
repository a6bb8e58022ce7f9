"""Retries of requests, where they are safe.

A server that responds with `Retry-After` has not carried out the request: any request is retried then.
Without that header, and after connection failures, only idempotent requests are retried. A lost response to a
creation, bindings included, is raised: only the caller can check whether it was carried out.
"""

from __future__ import annotations

from random import Random
from typing import Final

from moorage.backoff import Backoff
from moorage.client.request_observer import RequestObserver
from moorage.client.waiting import sleep
from moorage.clock import Clock
from moorage.http.errors import AnswerLost, ConnectionFailed, NoAccess
from moorage.http.transport import Request, Response, Transport

_MAX_RETRIES_WITH_RETRY_AFTER: Final = 10
_MAX_RETRIES: Final = 4
_INITIAL_BACKOFF_SECONDS: Final = 0.1
_MAX_BACKOFF_SECONDS: Final = 5.0
_TOO_MANY_REQUESTS: Final = 429
_SERVER_ERRORS: Final = range(500, 600)
_IDEMPOTENT_METHODS: Final = frozenset({"GET", "PUT", "DELETE"})
_IDEMPOTENT_PATCHES: Final = frozenset(
    {"application/merge-patch+json", "application/strategic-merge-patch+json"}
)


class RetryingTransport:
    """A transport that retries; what still fails is raised."""

    def __init__(
        self, transport: Transport, clock: Clock, random: Random, observer: RequestObserver | None = None
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._random = random
        self._observer = observer or RequestObserver()

    async def handle(self, request: Request) -> Response:
        """The first response that does not ask for a retry, or the last one."""
        began = self._clock.now()
        response: Response | None = None
        backoff: Backoff | None = None
        retries = 0
        try:
            while True:
                retry_after: float | None = None
                try:
                    response = await self._transport.handle(request)
                except ConnectionFailed as error:
                    response = None
                    self._observer.answered(request.method, None, retries > 0)
                    is_unknown = isinstance(error, AnswerLost) and not _is_idempotent(request)
                    if is_unknown or isinstance(error, NoAccess) or retries >= _MAX_RETRIES:
                        raise
                else:
                    status = response.status
                    self._observer.answered(request.method, status, retries > 0)
                    if status < _TOO_MANY_REQUESTS or not _asks_for_retry(status):
                        return response
                    retry_after = _retry_after(response)
                    if retries >= _max_retries(request, retry_after):
                        return response
                retries += 1
                backoff = backoff or Backoff(_INITIAL_BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS, self._random)
                await sleep(self._clock, backoff.next_seconds() if retry_after is None else retry_after)
        finally:
            self._observer.finished(request, response, self._clock.now() - began)


def _asks_for_retry(status: int) -> bool:
    return status == _TOO_MANY_REQUESTS or status in _SERVER_ERRORS


def _max_retries(request: Request, retry_after: float | None) -> int:
    if retry_after is not None:
        return _MAX_RETRIES_WITH_RETRY_AFTER
    return _MAX_RETRIES if _is_idempotent(request) else 0


def _retry_after(response: Response) -> float | None:
    value = response.headers.get("retry-after") or response.headers.get("Retry-After") or ""
    return float(value) if value.isdecimal() else None


def _is_idempotent(request: Request) -> bool:
    """Whether carrying out a request twice has the same effect as once."""
    if request.method == "PATCH":
        return request.headers.get("content-type", "") in _IDEMPOTENT_PATCHES
    return request.method in _IDEMPOTENT_METHODS
