"""Time, passed in: real in production, virtual in tests and simulations."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from itertools import count
from typing import Protocol


class Timer(Protocol):
    """Something that will happen, unless cancelled."""

    def cancel(self) -> None:
        """Make it not happen."""


class Clock(Protocol):
    """What time it is, and waking up later."""

    def now(self) -> float:
        """Seconds since some moment."""

    def call_later(self, delay_seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back once, later."""


class LoopClock:
    """The running event loop's own clock."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def now(self) -> float:
        """Seconds since some moment."""
        # Python may ask the system which process this is before it says which loop runs: that takes longer
        # than all else here, for what is asked some twenty times a pod.
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.get_running_loop()
        return self._loop.time()

    def call_later(self, delay_seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back once, later."""
        return asyncio.get_running_loop().call_later(delay_seconds, callback)


class _VirtualTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class VirtualClock:
    """Time that passes only when told to: `advance` runs what falls due, in order."""

    def __init__(self, start_seconds: float = 0.0) -> None:
        self._now = start_seconds
        self._timers: list[tuple[float, int, _VirtualTimer]] = []
        self._order = count()

    def now(self) -> float:
        """Seconds since the start."""
        return self._now

    def call_later(self, delay_seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back once, when the clock has advanced that far."""
        timer = _VirtualTimer(callback)
        heapq.heappush(self._timers, (self._now + max(delay_seconds, 0.0), next(self._order), timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        end = self._now + seconds
        while self._timers and self._timers[0][0] <= end:
            self._now, _, timer = heapq.heappop(self._timers)
            if timer.callback is not None:
                timer.callback()
        self._now = end
