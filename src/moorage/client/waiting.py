"""Sleeping on a clock, and exponential backoff."""

from __future__ import annotations

import asyncio
from random import Random

from moorage.clock import Clock


async def sleep(clock: Clock, seconds: float) -> None:
    """Sleep on a clock, which is virtual in tests."""
    woken = asyncio.Event()
    timer = clock.call_later(seconds, woken.set)
    try:
        await woken.wait()
    finally:
        timer.cancel()


class Backoff:
    """Exponential backoff with jitter: each delay is extended by up to its own length.

    Clients that failed together do not retry together.
    """

    def __init__(self, first_seconds: float, longest_seconds: float, random: Random) -> None:
        self._first = first_seconds
        self._longest = longest_seconds
        self._random = random
        self._next = first_seconds

    def reset(self) -> None:
        """Start again with the initial delay."""
        self._next = self._first

    def pause(self) -> float:
        """The next delay, in seconds."""
        pause = self._next
        self._next = min(2 * pause, self._longest)
        return pause * (1 + self._random.random())
