"""Clocks, passed in: real in production, virtual in tests and simulations."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Final, Protocol

_UNIX_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Timer(Protocol):
    """A scheduled callback."""

    def cancel(self) -> None:
        """Cancel the callback."""


class Clock(Protocol):
    """Monotonic and wall time, and callbacks after a delay."""

    is_virtual: bool
    """Whether time passes without anything happening in the world: in simulations and tests."""

    def now(self) -> float:
        """Monotonic time, in seconds."""

    def utc_now(self) -> datetime:
        """Wall time, in UTC."""

    def call_later(self, delay_seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back once after a delay."""


class LoopClock:
    """The running event loop's clock."""

    is_virtual = False

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def now(self) -> float:
        """Monotonic time, in seconds."""
        # Cached: `get_running_loop` may call getpid, which takes longer than all else here, and the time is
        # read about twenty times for each pod.
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.get_running_loop()
        return self._loop.time()

    def utc_now(self) -> datetime:
        """Wall time, in UTC."""
        return datetime.now(UTC)

    def call_later(self, delay_seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back once after a delay."""
        return asyncio.get_running_loop().call_later(delay_seconds, callback)


class _VirtualTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class VirtualClock:
    """A clock that moves only by `advance`, which runs due callbacks in order.

    epoch: the wall time at 0 seconds.
    """

    is_virtual = True

    def __init__(self, start_seconds: float = 0.0, epoch: datetime = _UNIX_EPOCH) -> None:
        self._now = start_seconds
        self._epoch = epoch
        self._timers: list[tuple[float, int, _VirtualTimer]] = []
        self._order = count()

    def now(self) -> float:
        """Seconds since the start."""
        return self._now

    def utc_now(self) -> datetime:
        """Wall time, in UTC: it moves with the seconds."""
        return self._epoch + timedelta(seconds=self._now)

    def call_later(self, delay_seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back once the clock has advanced by the delay."""
        timer = _VirtualTimer(callback)
        heapq.heappush(self._timers, (self._now + max(delay_seconds, 0.0), next(self._order), timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Advance the clock."""
        end = self._now + seconds
        while self._timers and self._timers[0][0] <= end:
            self._now, _, timer = heapq.heappop(self._timers)
            if timer.callback is not None:
                timer.callback()
        self._now = end
