"""Sleeping on a clock."""

from __future__ import annotations

import asyncio

from moorage.clock import Clock


async def sleep(clock: Clock, seconds: float) -> None:
    """Sleep on a clock, which is virtual in tests."""
    woken = asyncio.Event()
    timer = clock.call_later(seconds, woken.set)
    try:
        await woken.wait()
    finally:
        timer.cancel()
