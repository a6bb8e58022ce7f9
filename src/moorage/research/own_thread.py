"""Threads for what needs an event loop: notebooks have one running in the thread that users' code is in."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Any, Final, Self, TypeVar

T = TypeVar("T")
_NAME: Final = "moorage-research"
_MAX_WAIT_SECONDS: Final = 0.5
"""Maximum time without a look for signals: one that arrives just before a wait for a lock does not end it."""


class LoopThread:
    """An event loop in a thread of its own, which runs only while a caller waits for it."""

    def __init__(self, new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.SelectorEventLoop) -> None:
        self._threads = ThreadPoolExecutor(1, _NAME)
        self._loop = self._threads.submit(new_loop).result()
        self._end = weakref.finalize(self, _end, self._threads, self._loop)
        self._end.atexit = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine; it is cancelled if the caller is interrupted."""
        task = self._loop.create_task(work)
        running: list[Future[T]] = []
        try:
            running.append(self._threads.submit(self._loop.run_until_complete, task))
            while not wait(running, _MAX_WAIT_SECONDS).done:
                pass
            return running[0].result()
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(task.cancel)
            wait(running)
            raise

    def close(self) -> None:
        """Cancel what has not ended, and end the thread; closing it twice does nothing."""
        self._end()
        self._threads.shutdown()


def _end(threads: ThreadPoolExecutor, loop: asyncio.AbstractEventLoop) -> None:
    """End a thread and its loop, without waiting: garbage is collected in any thread, also in that one."""
    threads.submit(_close, loop)
    threads.shutdown(wait=False)


def _close(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks))
    loop.close()


def apart(work: Callable[[], T]) -> T:
    """The result of work in a thread in which no event loop runs."""
    with ThreadPoolExecutor(1, _NAME) as threads:
        return threads.submit(work).result()
