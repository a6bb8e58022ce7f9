"""Bounded concurrency."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

MAX_CONCURRENCY: Final = 30
"""Maximum number of objects created or deleted at the same time, as in scheduler_perf."""

Work = Callable[[], Coroutine[Any, Any, object]]


async def at_once(work: Iterable[Coroutine[Any, Any, object]], tasks_count: int = MAX_CONCURRENCY) -> None:
    """Run all coroutines, in a number of tasks; the first failure cancels the others, and is raised."""
    left = iter(work)

    async def some() -> None:
        for each in left:
            await each

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(tasks_count):
                tasks.create_task(some())
    except BaseExceptionGroup as group:
        raise _first(group) from None


@asynccontextmanager
async def overlapping(most: int) -> AsyncIterator[Callable[[Work], Awaitable[None]]]:
    """A function that starts work in the background, and waits while `most` of it is running.

    The context ends when all work has ended; the first failure cancels the rest, and is raised.
    """
    free = asyncio.Semaphore(most)
    try:
        async with asyncio.TaskGroup() as tasks:

            async def begin(work: Work) -> None:
                await free.acquire()
                tasks.create_task(work()).add_done_callback(lambda _: free.release())

            yield begin
    except BaseExceptionGroup as group:
        raise _first(group) from None


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first: BaseException = group
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first
