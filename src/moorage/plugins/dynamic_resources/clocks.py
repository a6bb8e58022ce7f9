"""The two clocks of DynamicResources: seconds for limits on searches, the time of day for timestamps."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from moorage.clock import Clock, LoopClock

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def seconds(clock: Clock) -> float:
    """Seconds, also where no event loop is running: the loop's clock is the machine's."""
    return time.monotonic() if isinstance(clock, LoopClock) else clock.now()


def date(clock: Clock) -> datetime:
    """The time of day; for a virtual clock its zero is the beginning of 1970."""
    return datetime.now(UTC) if isinstance(clock, LoopClock) else _EPOCH + timedelta(seconds=clock.now())


def deadline(clock: Clock, limit_seconds: float) -> Callable[[], bool]:
    """A function that returns whether the time limit, counted from now, is exceeded; no limit means never."""
    if limit_seconds <= 0:
        return lambda: False
    end = seconds(clock) + limit_seconds
    return lambda: seconds(clock) > end
