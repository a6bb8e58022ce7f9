"""Time limits of searches for devices."""

from __future__ import annotations

import time
from collections.abc import Callable

from moorage.clock import Clock, LoopClock


def seconds(clock: Clock) -> float:
    """Seconds, also where no event loop is running: the loop's clock is the machine's."""
    return time.monotonic() if isinstance(clock, LoopClock) else clock.now()


def deadline(clock: Clock, limit_seconds: float) -> Callable[[], bool]:
    """A function that returns whether the time limit, counted from now, is exceeded; no limit means never."""
    if limit_seconds <= 0:
        return lambda: False
    end = seconds(clock) + limit_seconds
    return lambda: seconds(clock) > end
