"""Much work, a little of it at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, Final

MOST_AT_ONCE: Final = 30
"""So many objects are created, or deleted, at the same time; as scheduler_perf does."""


async def at_once(work: Iterable[Coroutine[Any, Any, object]]) -> None:
    """Do all of something; the first failure ends it, and is raised."""
    left = iter(work)

    async def some() -> None:
        for each in left:
            await each

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(MOST_AT_ONCE):
                tasks.create_task(some())
    except BaseExceptionGroup as group:
        first: BaseException = group
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None
