"""Whether an event loop still turns, as seen from outside it.

The loop counts its turns; a thread looks at the count ten times in the time that the loop may take for one
turn, and adds up the time for which it has not changed. Each look adds at most twice the interval between two
looks: while the whole process is suspended, or native code holds the interpreter, the thread does not look
either, and the loop is not blamed for that.
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

_LOOKS_PER_LIMIT: Final = 10
_MAX_INTERVALS_PER_LOOK: Final = 2
_FRAMES_SHOWN: Final = 3


class LoopWatchdog:
    """Watches one event loop.

    limit_seconds: the longest time that one turn may take.
    on_stall: called in the watchdog's thread with what is wrong and where the loop is; once for each stall.
    progress: a count that the loop's own work increases; the loop is alive while it changes.
    """

    def __init__(
        self,
        limit_seconds: float,
        on_stall: Callable[[str, str], None],
        progress: Callable[[], int] = lambda: 0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.interval_seconds = limit_seconds / _LOOKS_PER_LIMIT
        """Time between two looks at the loop."""
        self._limit_seconds = limit_seconds
        self._on_stall = on_stall
        self._progress = progress
        self._now = now
        self._beats = 0
        self._seen = 0
        self._looked_at = now()
        self._silent_seconds = 0.0
        self._was_told = False
        self._thread_id = threading.get_ident()
        self._stopped = threading.Event()

    @property
    def problem(self) -> str | None:
        """What is wrong with the loop, for health checks; None if it turns."""
        if self._silent_seconds < self._limit_seconds:
            return None
        return f"the scheduling loop has not turned for {self._silent_seconds:.1f} s"

    def beat(self) -> None:
        """The loop has turned."""
        self._beats += 1

    def look(self) -> None:
        """See whether the loop has turned since the last look."""
        now, turns = self._now(), self._beats + self._progress()
        if turns != self._seen:
            self._seen, self._silent_seconds = turns, 0.0
        else:
            longest = _MAX_INTERVALS_PER_LOOK * self.interval_seconds
            self._silent_seconds += min(now - self._looked_at, longest)
        self._looked_at = now
        problem = self.problem
        if problem is not None and not self._was_told:
            self._on_stall(problem, self._stack())
        self._was_told = problem is not None

    def _stack(self) -> str:
        """Where the loop's thread is at the moment: the innermost calls."""
        frame = sys._current_frames().get(self._thread_id)
        calls: list[str] = []
        while frame is not None and len(calls) < _FRAMES_SHOWN:
            code = frame.f_code
            calls.append(f"{Path(code.co_filename).name}:{frame.f_lineno} {code.co_name}")
            frame = frame.f_back
        return " < ".join(calls)

    @asynccontextmanager
    async def watching(self, clock: Clock) -> AsyncIterator[None]:
        """Watch the running loop while the context lasts."""
        self._thread_id = threading.get_ident()
        beating = asyncio.ensure_future(self._beat(clock))
        threading.Thread(target=self._watch, name="loop-watchdog", daemon=True).start()
        try:
            yield
        finally:
            self._stopped.set()
            beating.cancel()

    async def _beat(self, clock: Clock) -> None:
        """Let a loop that has nothing to do turn."""
        while True:
            self.beat()
            await sleep(clock, self.interval_seconds)

    def _watch(self) -> None:
        while not self._stopped.wait(self.interval_seconds):
            self.look()
