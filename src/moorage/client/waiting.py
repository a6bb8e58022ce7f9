"""Waiting on a clock, and how long to wait before trying again."""

from __future__ import annotations

import asyncio
from random import Random

from moorage.clock import Clock


async def sleep(clock: Clock, seconds: float) -> None:
    """Wait on a clock, which in tests is virtual."""
    woken = asyncio.Event()
    timer = clock.call_later(seconds, woken.set)
    try:
        await woken.wait()
    finally:
        timer.cancel()


class Backoff:
    """Pauses that double up to a longest one, each made up to twice as long at random.

    Clients that failed together do not come back together.
    """

    def __init__(self, first_seconds: float, longest_seconds: float, random: Random) -> None:
        self._first = first_seconds
        self._longest = longest_seconds
        self._random = random
        self._next = first_seconds

    def reset(self) -> None:
        """All is well again: the next pause is the first one."""
        self._next = self._first

    def pause(self) -> float:
        """Seconds to wait now."""
        pause = self._next
        self._next = min(2 * pause, self._longest)
        return pause * (1 + self._random.random())
