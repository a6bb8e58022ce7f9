"""Detects an event loop that is stuck, from another thread.

The loop counts its iterations; a thread reads the count ten times within the time limit of one iteration, and
adds up the time for which it has not changed. Each reading adds at most twice the interval between two
readings: while the whole process is suspended, or native code holds the interpreter, the thread does not run
either, and that time is not counted.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from moorage.client.waiting import sleep
from moorage.clock import Clock

_CHECKS_PER_LIMIT: Final = 10
_MAX_INTERVALS_PER_CHECK: Final = 2
_FRAMES_SHOWN: Final = 3


class LoopWatchdog:
    """Watches one event loop.

    limit_seconds: the maximum time of one iteration.
    on_stall: called in the watchdog's thread with the problem and the loop's stack; once for each stall.
    progress: a count that the loop's own work increases; the loop is alive while it changes.
    """

    def __init__(
        self,
        limit_seconds: float,
        on_stall: Callable[[str, str], None],
        progress: Callable[[], int] = lambda: 0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.interval_seconds = limit_seconds / _CHECKS_PER_LIMIT
        """Time between two readings, in seconds."""
        self._limit_seconds = limit_seconds
        self._on_stall = on_stall
        self._progress = progress
        self._now = now
        self._beats = 0
        self._seen = 0
        self._checked_at = now()
        self._silent_seconds = 0.0
        self._is_reported = False
        self._thread_id = threading.get_ident()
        self._stopped = threading.Event()

    @property
    def problem(self) -> str | None:
        """The problem, for health checks; None if the loop is running."""
        if self._silent_seconds < self._limit_seconds:
            return None
        return f"the scheduling loop has not turned for {self._silent_seconds:.1f} s"

    def beat(self) -> None:
        """The loop completed an iteration."""
        self._beats += 1

    def check(self) -> None:
        """Read whether the loop made progress since the last reading."""
        now, turns = self._now(), self._beats + self._progress()
        if turns != self._seen:
            self._seen, self._silent_seconds = turns, 0.0
        else:
            longest = _MAX_INTERVALS_PER_CHECK * self.interval_seconds
            self._silent_seconds += min(now - self._checked_at, longest)
        self._checked_at = now
        problem = self.problem
        if problem is not None and not self._is_reported:
            self._on_stall(problem, self._stack())
        self._is_reported = problem is not None

    def _stack(self) -> str:
        """The current stack of the loop's thread: the innermost calls."""
        frame = sys._current_frames().get(self._thread_id)
        calls: list[str] = []
        while frame is not None and len(calls) < _FRAMES_SHOWN:
            code = frame.f_code
            calls.append(f"{Path(code.co_filename).name}:{frame.f_lineno} {code.co_name}")
            frame = frame.f_back
        return " < ".join(calls)

    @asynccontextmanager
    async def watching(self, clock: Clock) -> AsyncIterator[None]:
        """Watch the running loop for the duration of the context."""
        self._thread_id = threading.get_ident()
        beating = asyncio.ensure_future(self._beat(clock))
        threading.Thread(target=self._watch, name="loop-watchdog", daemon=True).start()
        try:
            yield
        finally:
            self._stopped.set()
            beating.cancel()

    async def _beat(self, clock: Clock) -> None:
        """Keep an idle loop iterating."""
        while True:
            self.beat()
            await sleep(clock, self.interval_seconds)

    def _watch(self) -> None:
        while not self._stopped.wait(self.interval_seconds):
            self.check()
