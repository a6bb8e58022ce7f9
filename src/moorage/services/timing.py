"""Time limits and real time for what runs beside the scheduler's own loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from moorage.clock import Clock, Timer

T = TypeVar("T")


class MonotonicClock:
    """Real time that can be read from any thread; what is to happen later happens in the loop that asks."""

    def now(self) -> float:
        """Seconds since some moment, the same for all threads."""
        return time.monotonic()

    def call_later(self, delay_seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back once, later."""
        return asyncio.get_running_loop().call_later(delay_seconds, callback)


async def within(clock: Clock, seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """What comes of some work; TimeoutError, and the work is given up, if it takes longer than that."""
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
        # Who is cancelled just when the time is over is still cancelled.
        if is_late and caller.cancelling() == cancellations:
            raise TimeoutError(f"it took longer than {seconds:g} s") from None
        raise
    finally:
        timer.cancel()
