"""Sleeping on a clock, and time limits by it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from moorage.clock import Clock

T = TypeVar("T")


async def sleep(clock: Clock, seconds: float) -> None:
    """Sleep on a clock, which is virtual in tests."""
    woken = asyncio.Event()
    timer = clock.call_later(seconds, woken.set)
    try:
        await woken.wait()
    finally:
        timer.cancel()


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
