"""Work in the background of the scheduling cycles: bindings, status updates, evictions.

Every pod has some, and a task for each would cost more than most of it. So it is done by workers: tasks that
take one piece of work after another, and wait for more when there is none. A piece of work that suspends
keeps its worker until it has ended, and another worker takes the next piece: none waits for another.

Waking a worker costs as much as a piece of work that does not suspend. As long as none does, one worker is
woken for all pieces of a turn of the event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final

from moorage.klog import Logger

log = Logger(__name__)

Work = Coroutine[Any, Any, None]

_MAX_IDLE_WORKERS: Final = 128
"""Maximum number of workers that are kept without work."""


class BackgroundTasks:
    """Background work; an unexpected exception in a piece of it is logged and ends nothing else."""

    def __init__(self) -> None:
        self._tasks: asyncio.TaskGroup | None = None
        self._not_begun: deque[Work] = deque()
        self._running: dict[Work, bool] = {}
        """All work that has not ended, and whether shutdown waits for it."""
        self.awaited = 0
        """Number of pieces of work that shutdown waits for."""
        self._is_suspending = True
        """Whether work that was begun in the last turn has suspended."""
        self._idle_workers: list[asyncio.Future[None]] = []
        self._next_end: asyncio.Future[None] | None = None
        """Set when a piece of work has ended; None: nothing waits for that."""

    def begin(self, tasks: asyncio.TaskGroup) -> None:
        """Set the task group that workers are started in."""
        self._tasks = tasks
        self._loop = asyncio.get_running_loop()

    def start(self, work: Work, *, is_awaited: bool = True) -> None:
        """Have a piece of work done; it begins in the next turn of the event loop.

        is_awaited: whether shutdown waits for it; not if another scheduler repeats it anyway.
        """
        is_first = not self._not_begun
        self._not_begun.append(work)
        self._running[work] = is_awaited
        self.awaited += is_awaited
        if is_first or self._is_suspending:
            self._wake_worker()
        if is_first:
            self._loop.call_soon(self._after_first)

    def _wake_worker(self) -> None:
        while self._idle_workers:
            idle = self._idle_workers.pop()
            if not idle.done():  # Otherwise the worker was cancelled.
                idle.set_result(None)
                return
        assert self._tasks is not None
        self._tasks.create_task(self._work())

    def _after_first(self) -> None:
        """The first worker that was woken has suspended, or done all there was to do."""
        if not self._is_suspending:
            for _ in range(len(self._not_begun)):
                self._wake_worker()
        self._is_suspending = bool(self._running)

    async def _work(self) -> None:
        """Be a worker, until there is nothing to do and others are idle."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                while self._not_begun:
                    await self._complete(self._not_begun.popleft())
                if len(self._idle_workers) >= _MAX_IDLE_WORKERS:
                    return
                woken = loop.create_future()
                self._idle_workers.append(woken)
                await woken
        except asyncio.CancelledError:
            while self._not_begun:  # The scheduler shuts down.
                self._not_begun.popleft().close()
            raise

    async def _complete(self, work: Work) -> None:
        """Await a piece of work; an exception is logged and not raised."""
        try:
            await work
        except Exception as error:
            log.exception(error, "Background task failed")
        except asyncio.CancelledError:
            worker = asyncio.current_task()
            if worker is None or worker.cancelling():
                raise
        finally:
            self.awaited -= self._running.pop(work)
            if self._next_end is not None:
                self._next_end.set_result(None)
                self._next_end = None

    def __len__(self) -> int:
        """Number of pieces of work that have not ended."""
        return len(self._running)

    async def all_done(self, but: Callable[[], int]) -> None:
        """Returns when all awaited work has ended, except for as many pieces as `but` returns."""
        while self.awaited > but():
            await self._end_of_any()

    async def all_ended(self) -> None:
        """Returns when all work that has been started until now has ended."""
        started = frozenset(self._running)
        while not started.isdisjoint(self._running):
            await self._end_of_any()

    async def _end_of_any(self) -> None:
        if self._next_end is None:
            self._next_end = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._next_end)
