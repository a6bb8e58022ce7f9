"""What goes on beside the cycles, each piece in a task of its own: bindings, statuses, evictions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from moorage.klog import Logger

log = Logger(__name__)


class Beside:
    """Pieces of work; one that fails in a way that nobody has thought of does not end the others."""

    def __init__(self) -> None:
        self._tasks: asyncio.TaskGroup | None = None
        self._under_way: set[asyncio.Task[None]] = set()

    def begin(self, tasks: asyncio.TaskGroup) -> None:
        """From now on, work can be started."""
        self._tasks = tasks

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a piece of work."""
        assert self._tasks is not None
        task = self._tasks.create_task(_survived(work))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    def __len__(self) -> int:
        """How much is under way."""
        return len(self._under_way)

    async def all_done(self, but: Callable[[], int]) -> None:
        """Returns once all is done, except for as many pieces as `but` says."""
        while len(self._under_way) > but():
            await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)

    async def all_ended(self) -> None:
        """Returns once all that is under way now has ended."""
        if self._under_way:
            await asyncio.wait(list(self._under_way))


async def _survived(work: Coroutine[Any, Any, None]) -> None:
    """Some work; if it fails in a way that nobody has thought of, all other work goes on."""
    try:
        await work
    except Exception as error:
        log.exception(error, "Background task failed")
