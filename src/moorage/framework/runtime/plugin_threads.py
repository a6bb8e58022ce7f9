"""Plugin methods that may block, called in threads beside the scheduler's event loop.

All state belongs to one loop, so methods that wait there must be async. `pre_bind`, `bind` and `post_bind` of
plugins from outside need not be: each call of an ordinary method has a thread while it lasts. A call cannot
be interrupted: cancelling it takes effect when it returns, because work in progress cannot be undone. Only
the shutdown of the scheduler does not wait for calls. The threads are daemons: none keeps the process alive.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import wraps
from queue import SimpleQueue
from threading import Thread, get_ident
from time import perf_counter
from typing import Any, Final, NamedTuple

from moorage.framework.runtime.error_location import described
from moorage.klog import Logger

MAX_PLUGIN_THREADS: Final = 64
"""Maximum number of concurrent calls."""
_LONG_SECONDS: Final = 1.0
"""Duration from which on a call counts as blocking, in seconds."""
_WARNING_INTERVAL_SECONDS: Final = 60.0

log = Logger(__name__)


class WrongThreadError(RuntimeError):
    """A plugin used, in a thread, something restricted to the scheduler's loop; or the reverse."""


class _Outcome(NamedTuple):
    answer: Any
    error: BaseException | None


class _Call(NamedTuple):
    """A call for a thread, and the future for its result."""

    method: Callable[..., Any]
    arguments: tuple[Any, ...]
    loop: asyncio.AbstractEventLoop
    outcome: asyncio.Future[_Outcome]

    def make(self) -> None:
        try:
            outcome = _Outcome(self.method(*self.arguments), None)
        except BaseException as error:
            outcome = _Outcome(None, error)
        with suppress(RuntimeError):  # The loop is closed: nothing waits for this any more.
            self.loop.call_soon_threadsafe(self._set_outcome, outcome)

    def _set_outcome(self, outcome: _Outcome) -> None:
        if not self.outcome.done():
            self.outcome.set_result(outcome)


class PluginThreads:
    """The threads of one scheduler; they are started when there is work for them.

    limit: the maximum number of threads. Zero: everything runs on the loop, in one order, as in simulations.
    """

    def __init__(self, limit: int = 0, now: Callable[[], float] = perf_counter) -> None:
        self.limit = limit
        self._now = now
        self._free = asyncio.Semaphore(limit)
        self._calls: SimpleQueue[_Call] = SimpleQueue()
        self._started = 0
        self._running: dict[asyncio.Future[_Outcome], float] = {}
        """Start time of each running call, the earliest first."""
        self._warned: float | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread = 0

    def begin(self, tasks: asyncio.TaskGroup) -> None:
        """Use this thread's loop as the scheduler's from now on; it ends when `tasks` are cancelled."""
        if self.limit:
            self._loop, self._loop_thread = asyncio.get_running_loop(), get_ident()
            self._ended: asyncio.Future[None] = self._loop.create_future()
            tasks.create_task(self._wait_for_end())

    async def _wait_for_end(self) -> None:
        try:
            await asyncio.shield(self._ended)
        finally:
            self._ended.set_result(None)

    # On the loop

    def called(self, method: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
        """A method that is called in a thread, as an async one."""

        @wraps(method)
        async def call(*arguments: Any) -> Any:
            if self._free.locked():
                self._all_in_use()
            async with self._free:
                answer = await self._call(method, arguments)
            return await answer if inspect.isawaitable(answer) else answer

        return call

    async def _call(self, method: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        outcome = self._begin_call(method, arguments)
        cancelled: asyncio.CancelledError | None = None
        while not outcome.done():
            try:
                await asyncio.wait((outcome, self._ended), return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError as request:
                cancelled = request
            if self._ended.done():
                raise cancelled or asyncio.CancelledError
        del self._running[outcome]
        answer, error = outcome.result()
        if cancelled is not None:
            if inspect.iscoroutine(answer):
                answer.close()
            raise cancelled
        if isinstance(error, Exception):
            raise error
        if error is not None:
            raise RuntimeError(described(error)) from error
        return answer

    def _begin_call(self, method: Callable[..., Any], arguments: tuple[Any, ...]) -> asyncio.Future[_Outcome]:
        assert self._loop is not None, "the scheduler has not begun"
        outcome: asyncio.Future[_Outcome] = self._loop.create_future()
        self._running[outcome] = self._now()
        if len(self._running) > self._started:
            self._started += 1
            Thread(target=self._work, name=f"plugin-{self._started}", daemon=True).start()
        self._calls.put(_Call(method, arguments, self._loop, outcome))
        return outcome

    def _work(self) -> None:
        while True:
            self._calls.get().make()

    def _all_in_use(self) -> None:
        """Warn, at limited rate, that a call has to wait for a thread, if that can take long."""
        now = self._now()
        seconds = now - next(iter(self._running.values()), now)
        is_warned = self._warned is not None and now - self._warned < _WARNING_INTERVAL_SECONDS
        if seconds >= _LONG_SECONDS and not is_warned:
            self._warned = now
            message = "All threads for blocking plugins are in use: further pods wait"
            log.warning(message, threads=self.limit, longestSeconds=round(seconds))

    # In threads

    def is_elsewhere(self) -> bool:
        """Whether this is called in another thread than that of the scheduler's loop."""
        return self._loop is not None and get_ident() != self._loop_thread

    def post(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Schedule a call on the loop."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(call, *arguments)

    def wait_for(self, call: Callable[[], Any]) -> Any:
        """Call something on the loop, async or not; blocks until it has ended."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(_called(call), self._loop).result()


async def _called(call: Callable[[], Any]) -> Any:
    answer = call()
    return await answer if inspect.isawaitable(answer) else answer
