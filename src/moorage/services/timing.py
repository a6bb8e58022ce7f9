"""A clock for threads besides the scheduler's loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime

from moorage.clock import Timer


class MonotonicClock:
    """A clock that can be read in any thread; callbacks run in the calling loop."""

    is_virtual = False

    def now(self) -> float:
        """Monotonic time in seconds, the same for all threads."""
        return time.monotonic()

    def utc_now(self) -> datetime:
        """Wall time, in UTC."""
        return datetime.now(UTC)

    def call_later(self, delay_seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back once after a delay."""
        return asyncio.get_running_loop().call_later(delay_seconds, callback)
