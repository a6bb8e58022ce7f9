"""An event loop in virtual time.

Time stands still while there is anything to do, and passes to the next timer as soon as there is nothing.
What runs in the loop is production code: tasks, timers and clocks are those of any event loop.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from moorage.clock import LoopClock

T = TypeVar("T")

DEFAULT_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The wall time at which simulations begin: always the same, so that equal simulations have equal results."""
_TURNS_PER_POLL: Final = 64
"""Number of turns of the loop after which files are polled although there is work: signals come by a file."""


class _PassingTime(selectors.DefaultSelector):
    """A selector that does not wait for files, but lets time pass."""

    def __init__(self, let_pass: Callable[[float], None], has_rested: Callable[[], bool]) -> None:
        super().__init__()
        self._let_pass = let_pass
        self._has_rested = has_rested
        self._turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """The files that are ready; if there is none, the time to the next timer has passed."""
        self._turns += 1
        if timeout is not None and timeout <= 0 and self._turns % _TURNS_PER_POLL:
            return []
        if (timeout is None or timeout > 0) and self._has_rested():
            return []
        ready = super().select(0 if timeout is not None else None)
        if not ready and timeout is not None and timeout > 0:
            self._let_pass(timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time begins at 0 and passes when there is nothing to do."""

    def __init__(self) -> None:
        self._virtual_seconds = 0.0
        self._resting: list[asyncio.Future[None]] = []
        super().__init__(_PassingTime(self._let_pass, self._has_rested))

    def time(self) -> float:
        """Virtual time, in seconds."""
        return self._virtual_seconds

    async def rest(self) -> None:
        """Returns when all is done that can be done now: before time passes."""
        rested = self.create_future()
        self._resting.append(rested)
        await rested

    def _has_rested(self) -> bool:
        """Nothing is left to do now; whether anyone waited for that, and goes on."""
        waiting, self._resting = self._resting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)
        return bool(waiting)

    def _let_pass(self, seconds: float) -> None:
        self._virtual_seconds += seconds


class VirtualLoopClock(LoopClock):
    """The clock of a virtual loop: wall time moves with it."""

    is_virtual = True

    def __init__(self, epoch: datetime = DEFAULT_EPOCH) -> None:
        super().__init__()
        self._epoch = epoch

    def utc_now(self) -> datetime:
        """Virtual wall time, in UTC."""
        return self._epoch + timedelta(seconds=self.now())


def run_in_virtual_time(main: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that is run in a virtual loop of its own."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
