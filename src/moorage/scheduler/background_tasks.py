"""Tasks in the background of the scheduling cycles: bindings, status updates, evictions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from moorage.klog import Logger

log = Logger(__name__)


class BackgroundTasks:
    """Background tasks; an unexpected exception in one is logged and does not end the others."""

    def __init__(self) -> None:
        self._tasks: asyncio.TaskGroup | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._awaited: set[asyncio.Task[None]] = set()

    def begin(self, tasks: asyncio.TaskGroup) -> None:
        """Set the task group that tasks are started in."""
        self._tasks = tasks

    def start(self, work: Coroutine[Any, Any, None], *, is_awaited: bool = True) -> None:
        """Start a task.

        is_awaited: whether shutdown waits for it; not if another scheduler repeats it anyway.
        """
        assert self._tasks is not None
        task = self._tasks.create_task(_logging_failure(work))
        for tasks in (self._running, self._awaited) if is_awaited else (self._running,):
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    def __len__(self) -> int:
        """Number of running tasks."""
        return len(self._running)

    @property
    def awaited(self) -> int:
        """Number of running tasks that shutdown waits for."""
        return len(self._awaited)

    async def all_done(self, but: Callable[[], int]) -> None:
        """Returns when all awaited tasks have ended, except for as many as `but` returns."""
        while len(self._awaited) > but():
            await asyncio.wait(self._awaited, return_when=asyncio.FIRST_COMPLETED)

    async def all_ended(self) -> None:
        """Returns when all tasks that are running now have ended."""
        if self._running:
            await asyncio.wait(list(self._running))


async def _logging_failure(work: Coroutine[Any, Any, None]) -> None:
    """Await a coroutine; an exception is logged and not raised."""
    try:
        await work
    except Exception as error:
        log.exception(error, "Background task failed")
