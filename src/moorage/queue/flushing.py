"""Periodic flushes of the queue: backoff every second, unschedulable pods every 30 seconds.

Where no pod is in backoff there is nothing to flush, and no timer.
"""

from __future__ import annotations

from collections.abc import Callable

from moorage.clock import Clock, Timer
from moorage.queue.backoff_queue import WINDOW_SECONDS, window
from moorage.queue.scheduling_queue import SchedulingQueue, nothing_began

UNSCHEDULABLE_FLUSH_SECONDS = 30.0


class Flusher:
    """Flushes a queue between `start` and `stop`."""

    def __init__(self, queue: SchedulingQueue, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._timers: dict[Callable[[], None], Timer] = {}

    def start(self) -> None:
        """Start the timers; backoff is flushed at the start of every one-second window."""
        self._queue.backoff_began = self._expect_backoff
        self._expect_backoff()
        self._again(self._flush_unschedulable, UNSCHEDULABLE_FLUSH_SECONDS)

    def stop(self) -> None:
        """Cancel the timers."""
        self._queue.backoff_began = nothing_began
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _expect_backoff(self) -> None:
        """Flush backoff at the start of the next window, if there is any."""
        if self._queue.has_backoff and self._flush_backoff not in self._timers:
            self._again(self._flush_backoff, self._to_next_window())

    def _flush_backoff(self) -> None:
        del self._timers[self._flush_backoff]
        self._queue.flush_backoff()
        self._expect_backoff()

    def _flush_unschedulable(self) -> None:
        self._again(self._flush_unschedulable, UNSCHEDULABLE_FLUSH_SECONDS)
        self._queue.flush_unschedulable()

    def _again(self, flush: Callable[[], None], seconds: float) -> None:
        self._timers[flush] = self._clock.call_later(seconds, flush)

    def _to_next_window(self) -> float:
        now = self._clock.now()
        return window(now) + WINDOW_SECONDS - now
