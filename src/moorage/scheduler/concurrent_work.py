"""Several coroutines at the same time, without tasks as long as none of them suspends."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterable
from typing import Any

Work = Coroutine[Any, Any, None]


async def run_concurrently(works: Iterable[Work]) -> None:
    """Returns when all have ended; one that fails does not end the others, and the first error is raised.

    They begin one after another in this task; once one has suspended, the others are started as tasks. A task
    costs more than a request that is answered at once.
    """
    waiting, tasks = deque(works), list[asyncio.Task[None]]()

    def start_others() -> None:
        tasks.extend(asyncio.create_task(work) for work in waiting)
        waiting.clear()

    errors: list[BaseException] = []
    next_turn = asyncio.get_running_loop().call_soon(start_others)
    try:
        while waiting:
            try:
                await waiting.popleft()
            except Exception as error:
                errors.append(error)
        results = await asyncio.gather(*tasks, return_exceptions=True) if tasks else ()
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        raise
    finally:
        next_turn.cancel()
        for work in waiting:
            work.close()
    for failure in (*errors, *(each for each in results if isinstance(each, BaseException))):
        raise failure
