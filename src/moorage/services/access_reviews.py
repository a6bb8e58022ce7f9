"""Token and access reviews by the API server, for requests to the scheduler's own server."""

from __future__ import annotations

import math
from collections.abc import Hashable
from random import Random
from typing import Final, Generic, TypeVar

from moorage.api.manifests import Manifest
from moorage.backoff import Backoff
from moorage.client.client import Client
from moorage.client.kinds import Kind
from moorage.client.waiting import sleep, within
from moorage.clock import Clock
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.services.metric_values import Distribution, Metric, Number

TOKEN_REVIEW: Final = Kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", False)
SUBJECT_ACCESS_REVIEW: Final = Kind(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", False
)

_MAX_TRIES: Final = 5
_INITIAL_BACKOFF_SECONDS: Final = 0.5
_BACKOFF_FACTOR: Final = 1.5
_JITTER: Final = 0.2
_MAX_SECONDS: Final = 10.0
_RETRIABLE_CODES: Final = (429, 500, 503, 504)
_MAX_CACHED_ANSWERS: Final = 4096


class ReviewFailed(Exception):  # noqa: N818 -- it says what happened
    """The API server gave no result."""


class Reviewer:
    """Sends one kind of review; retries transient failures, for ten seconds at most."""

    def __init__(
        self,
        client: Client,
        kind: Kind,
        clock: Clock,
        random: Random,
        count: Metric[Number],
        duration: Metric[Distribution],
    ) -> None:
        self._client = client
        self._kind = kind
        self._clock = clock
        self._random = random
        self._count = count
        self._duration = duration

    async def ask(self, spec: Manifest) -> Manifest:
        """The review's status; ReviewFailed if there is none."""
        try:
            return await within(self._clock, _MAX_SECONDS, self._ask(spec))
        except (RequestError, ConnectionFailed, TimeoutError) as error:
            raise ReviewFailed(str(error)) from error

    async def _ask(self, spec: Manifest) -> Manifest:
        body: Manifest = {
            "apiVersion": self._kind.api_version,
            "kind": self._kind.name,
            "metadata": {},
            "spec": spec,
        }
        backoff = Backoff(
            _INITIAL_BACKOFF_SECONDS, math.inf, self._random, factor=_BACKOFF_FACTOR, jitter=_JITTER
        )
        for _ in range(_MAX_TRIES - 1):
            try:
                return await self._ask_once(body)
            except ConnectionFailed:
                pass
            except RequestError as error:
                if error.code not in _RETRIABLE_CODES:
                    raise
            await sleep(self._clock, backoff.next_seconds())
        return await self._ask_once(body)

    async def _ask_once(self, body: Manifest) -> Manifest:
        began = self._clock.now()
        code = "<error>"
        try:
            answer = await self._client.create(self._kind, "", body)
            code = "201"
        except RequestError as error:
            code = str(error.code)
            raise
        finally:
            self._count.labels(code).inc()
            self._duration.labels(code).observe(self._clock.now() - began)
        status: Manifest = answer.get("status") or {}
        return status


KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


class ReviewCache(Generic[KeyT, ValueT]):
    """Review results that are valid for a short time."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._answers: dict[KeyT, tuple[float, ValueT]] = {}

    def get(self, key: KeyT) -> ValueT | None:
        """A result that is still valid."""
        found = self._answers.get(key)
        if found is None or found[0] <= self._clock.now():
            return None
        return found[1]

    def put(self, key: KeyT, answer: ValueT) -> None:
        """Store a result."""
        self._answers.pop(key, None)
        self._answers[key] = (self._clock.now() + self._seconds, answer)
        if len(self._answers) > _MAX_CACHED_ANSWERS:
            del self._answers[next(iter(self._answers))]
