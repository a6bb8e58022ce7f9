"""What goes on beside the cycles, each piece in a task of its own: bindings, statuses, evictions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from moorage.klog import Logger

log = Logger(__name__)


class BackgroundTasks:
    """Pieces of work; one that fails in a way that nobody has thought of does not end the others."""

    def __init__(self) -> None:
        self._tasks: asyncio.TaskGroup | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._awaited: set[asyncio.Task[None]] = set()

    def begin(self, tasks: asyncio.TaskGroup) -> None:
        """From now on, work can be started."""
        self._tasks = tasks

    def start(self, work: Coroutine[Any, Any, None], *, is_awaited: bool = True) -> None:
        """Start a piece of work.

        is_awaited: whether the process waits for it at its end; not if another scheduler repeats it anyway.
        """
        assert self._tasks is not None
        task = self._tasks.create_task(_logging_failure(work))
        for tasks in (self._running, self._awaited) if is_awaited else (self._running,):
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    def __len__(self) -> int:
        """How much is under way."""
        return len(self._running)

    @property
    def awaited(self) -> int:
        """How many pieces that are waited for at the end are under way."""
        return len(self._awaited)

    async def all_done(self, but: Callable[[], int]) -> None:
        """Returns once all that is waited for is done, except for as many pieces as `but` says."""
        while len(self._awaited) > but():
            await asyncio.wait(self._awaited, return_when=asyncio.FIRST_COMPLETED)

    async def all_ended(self) -> None:
        """Returns once all that is under way now has ended."""
        if self._running:
            await asyncio.wait(list(self._running))


async def _logging_failure(work: Coroutine[Any, Any, None]) -> None:
    """Some work; if it fails in a way that nobody has thought of, all other work goes on."""
    try:
        await work
    except Exception as error:
        log.exception(error, "Background task failed")
