"""Trying again, where that can do no harm.

A server that says when to come back (`Retry-After`) has not done what was asked: any request is repeated
then. Without that word, and when connections break, only requests that may be carried out twice are. A lost
answer to a creation, a binding among them, is reported: only the caller can look whether it happened.
"""

from __future__ import annotations

from random import Random
from typing import Final

from moorage.client.observing import RequestObserver
from moorage.client.waiting import Backoff, sleep
from moorage.clock import Clock
from moorage.http.errors import AnswerLost, ConnectionFailed, NoAccess
from moorage.http.transport import Request, Response, Transport

_MOST_WHEN_TOLD: Final = 10
_MOST_UNASKED: Final = 4
_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 5.0
_TOO_MANY_REQUESTS: Final = 429
_SERVER_ERRORS: Final = range(500, 600)
_REPEATABLE_METHODS: Final = frozenset({"GET", "PUT", "DELETE"})
_REPEATABLE_PATCHES: Final = frozenset(
    {"application/merge-patch+json", "application/strategic-merge-patch+json"}
)


class Retrying:
    """A transport that tries again; what still fails then is the caller's."""

    def __init__(
        self, transport: Transport, clock: Clock, random: Random, observer: RequestObserver | None = None
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._random = random
        self._observer = observer or RequestObserver()

    async def handle(self, request: Request) -> Response:
        """The first answer that is not a plea to come back later."""
        began = self._clock.now()
        response: Response | None = None
        try:
            response = await self._answer(request)
            return response
        finally:
            self._observer.finished(request, response, self._clock.now() - began)

    async def _answer(self, request: Request) -> Response:
        backoff: Backoff | None = None
        retries = 0
        while True:
            told: float | None = None
            try:
                response = await self._transport.handle(request)
            except ConnectionFailed as error:
                self._observer.answered(request.method, None, retries > 0)
                is_unknown = isinstance(error, AnswerLost) and not _may_repeat(request)
                if is_unknown or isinstance(error, NoAccess) or retries >= _MOST_UNASKED:
                    raise
            else:
                self._observer.answered(request.method, response.status, retries > 0)
                if response.status != _TOO_MANY_REQUESTS and response.status not in _SERVER_ERRORS:
                    return response
                told = _retry_after(response)
                if retries >= _most_retries(request, told):
                    return response
            retries += 1
            backoff = backoff or Backoff(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS, self._random)
            await sleep(self._clock, backoff.pause() if told is None else told)


def _most_retries(request: Request, told: float | None) -> int:
    if told is not None:
        return _MOST_WHEN_TOLD
    return _MOST_UNASKED if _may_repeat(request) else 0


def _retry_after(response: Response) -> float | None:
    value = response.headers.get("retry-after") or response.headers.get("Retry-After") or ""
    return float(value) if value.isdecimal() else None


def _may_repeat(request: Request) -> bool:
    """Whether it is all the same if a request is carried out once or twice."""
    if request.method == "PATCH":
        return request.headers.get("content-type", "") in _REPEATABLE_PATCHES
    return request.method in _REPEATABLE_METHODS
