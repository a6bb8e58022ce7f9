"""What plugins do again and again beside the scheduling cycles: `Handle.every`.

The calls belong to the plugins of one configuration: they begin when its scheduler runs, and end when another
configuration comes into force or the scheduler ends. Simulations without a scheduler never begin them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from moorage.client.waiting import sleep
from moorage.clock import Clock
from moorage.klog import Logger

log = Logger(__name__)


class _Call(NamedTuple):
    interval_seconds: float
    method: Callable[[], Awaitable[None]]

    async def repeat(self, clock: Clock) -> None:
        """Call until cancelled; an exception is logged and ends nothing."""
        while True:
            try:
                await self.method()
            except Exception as error:
                log.exception(error, "Periodic call of a plugin failed", method=self.method.__qualname__)
            await sleep(clock, self.interval_seconds)


class PeriodicCalls:
    """The periodic calls of the plugins of one configuration."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.has_ended = False
        """Whether another configuration is in force."""

    def add(self, interval_seconds: float, method: Callable[[], Awaitable[None]]) -> None:
        """Call something once the scheduler runs, and again when an interval has passed since it ended."""
        self._calls.append(_Call(interval_seconds, method))

    def begin(self, clock: Clock, tasks: asyncio.TaskGroup) -> None:
        """Begin all calls; they end with the tasks, or when `end` is called."""
        self._tasks = [tasks.create_task(call.repeat(clock)) for call in self._calls]

    def end(self) -> None:
        """Cancel all calls."""
        self.has_ended = True
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()
