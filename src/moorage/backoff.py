"""Exponential backoff."""

from __future__ import annotations

import math
from random import Random

_MAX_EXPONENT = 60
"""Beyond it a delay exceeds any maximum; larger powers would overflow."""


def backoff_seconds(
    failures: int, initial_seconds: float, max_seconds: float = math.inf, factor: float = 2.0
) -> float:
    """The delay after a number of failures, at least one: the initial one, then larger by a factor each."""
    delay: float = initial_seconds * factor ** min(failures - 1, _MAX_EXPONENT)
    return min(delay, max_seconds)


class Backoff:
    """Delays of successive retries, each extended at random by up to its share `jitter`.

    Clients that failed together do not retry together.
    """

    def __init__(
        self,
        initial_seconds: float,
        max_seconds: float,
        random: Random,
        *,
        factor: float = 2.0,
        jitter: float = 1.0,
    ) -> None:
        self._initial_seconds = initial_seconds
        self._max_seconds = max_seconds
        self._random = random
        self._factor = factor
        self._jitter = jitter
        self._failures = 0

    def reset(self) -> None:
        """Start again with the initial delay."""
        self._failures = 0

    def next_seconds(self) -> float:
        """The next delay, in seconds."""
        self._failures += 1
        delay = backoff_seconds(self._failures, self._initial_seconds, self._max_seconds, self._factor)
        return delay * (1 + self._jitter * self._random.random())
