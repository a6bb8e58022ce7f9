"""Time limits, and a clock for threads besides the scheduler's loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

from moorage.clock import Clock, Timer

T = TypeVar("T")


class MonotonicClock:
    """A clock that can be read in any thread; callbacks run in the calling loop."""

    def now(self) -> float:
        """Monotonic time in seconds, the same for all threads."""
        return time.monotonic()

    def utc_now(self) -> datetime:
        """Wall time, in UTC."""
        return datetime.now(UTC)

    def call_later(self, delay_seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back once after a delay."""
        return asyncio.get_running_loop().call_later(delay_seconds, callback)


async def within(clock: Clock, seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine; cancels it and raises TimeoutError after `seconds`."""
    task = asyncio.ensure_future(work)
    caller = asyncio.current_task()
    assert caller is not None
    cancellations = caller.cancelling()
    is_late = False

    def give_up() -> None:
        nonlocal is_late
        is_late = True
        task.cancel()

    timer = clock.call_later(max(seconds, 0.0), give_up)
    try:
        return await task
    except asyncio.CancelledError:
        # A cancellation of the caller at the same time still takes effect.
        if is_late and caller.cancelling() == cancellations:
            raise TimeoutError(f"it took longer than {seconds:g} s") from None
        raise
    finally:
        timer.cancel()
