"""Threads with their own event loop, besides the scheduler's loop.

State of the scheduler's loop is read only there: requests for it are handled in that loop (`LoopHandlers`),
or rejected once the loop is known to be stuck.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any

from moorage.http.transport import Request, Response
from moorage.services import responses
from moorage.services.loop_watchdog import LoopWatchdog
from moorage.services.responses import Handler


def run_in_thread(name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Future[None]:
    """Start a coroutine in a new thread; the returned future, of the running loop, completes with it."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def main() -> None:
        try:
            asyncio.run(work())
        except BaseException as error:
            settle: Callable[[], None] = partial(ended.set_exception, error)
        else:
            settle = partial(ended.set_result, None)
        loop.call_soon_threadsafe(settle)

    threading.Thread(target=main, name=name, daemon=True).start()
    return ended


@asynccontextmanager
async def entered_in_thread(
    name: str, context: Callable[[], AbstractAsyncContextManager[None]]
) -> AsyncIterator[None]:
    """Enter a context in a new thread for the duration of this one; its errors are raised here."""
    loop = asyncio.get_running_loop()
    entered: asyncio.Future[Callable[[], object]] = loop.create_future()

    async def hold() -> None:
        async with context():
            leaving = asyncio.Event()
            leave = partial(asyncio.get_running_loop().call_soon_threadsafe, leaving.set)
            loop.call_soon_threadsafe(entered.set_result, leave)
            await leaving.wait()

    ended = run_in_thread(name, hold)
    await asyncio.wait((entered, ended), return_when=asyncio.FIRST_COMPLETED)
    if not entered.done():
        await ended
    try:
        yield
    finally:
        entered.result()()
        await ended


class LoopHandlers:
    """Handles requests from another thread in a watched loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, watchdog: LoopWatchdog) -> None:
        self._loop = loop
        self._watchdog = watchdog

    def in_loop(self, handler: Handler) -> Handler:
        """A handler that runs another one in the loop; 503 if the loop is stuck."""

        async def call(request: Request) -> Response:
            return await handler(request)

        async def answer(request: Request) -> Response:
            answered = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(request), self._loop))
            try:
                while not answered.done():
                    problem = self._watchdog.problem
                    if problem is not None:
                        return responses.error(HTTPStatus.SERVICE_UNAVAILABLE, problem)
                    await asyncio.wait((answered,), timeout=self._watchdog.interval_seconds)
                return answered.result()
            finally:
                answered.cancel()

        return answer
