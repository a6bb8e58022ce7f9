"""Work in a thread beside the loop that owns the state."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from moorage.clock import VirtualClock
from moorage.http.transport import Request, Response
from moorage.services import responses
from moorage.services.loop_thread import LoopHandlers, entered_in_thread
from moorage.services.loop_watchdog import LoopWatchdog

REQUEST = Request("GET", "/metrics")


def stuck_watchdog() -> LoopWatchdog:
    """A watchdog that has found its loop stuck."""
    clock = VirtualClock()
    watchdog = LoopWatchdog(1.0, lambda problem, stack: None, now=clock.now)
    for _ in range(8):
        clock.advance(0.125)
        watchdog.check()
    assert watchdog.problem is not None
    return watchdog


def test_state_is_read_in_the_loop_that_owns_it() -> None:
    threads: list[str] = []

    async def handler(request: Request) -> Response:
        threads.append(threading.current_thread().name)
        return responses.text(request.path)

    async def main() -> Response:
        watchdog = LoopWatchdog(1.0, lambda problem, stack: None)
        in_loop = LoopHandlers(asyncio.get_running_loop(), watchdog).in_loop(handler)
        answered: list[Response] = []

        @asynccontextmanager
        async def asking() -> AsyncIterator[None]:
            threads.append(threading.current_thread().name)
            answered.append(await in_loop(REQUEST))
            yield

        async with entered_in_thread("serving", asking):
            return answered[0]

    assert asyncio.run(main()).body == b"/metrics"
    assert threads == ["serving", "MainThread"]


def test_a_stuck_loop_gives_an_error_instead_of_no_answer() -> None:
    async def never(request: Request) -> Response:
        raise AssertionError("the loop does not turn")

    stuck = asyncio.new_event_loop()
    try:
        handler = LoopHandlers(stuck, stuck_watchdog()).in_loop(never)
        response: Response = asyncio.run(handler(REQUEST))  # type: ignore[arg-type]
    finally:
        stuck.run_until_complete(asyncio.sleep(0))
        stuck.close()
    assert (response.status, response.body) == (503, b"the scheduling loop has not turned for 1.0 s\n")


def test_what_fails_when_it_begins_is_raised() -> None:
    @asynccontextmanager
    async def failing() -> AsyncIterator[None]:
        raise ValueError("no port")
        yield

    async def main() -> None:
        async with entered_in_thread("serving", failing):
            raise AssertionError("it has not begun")

    with pytest.raises(ValueError, match="no port"):
        asyncio.run(main())
