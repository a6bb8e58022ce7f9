"""Work in the background: done by few tasks, none waits for another, and shutdown waits for all of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from moorage.scheduler.background_tasks import BackgroundTasks

Scenario = Callable[[BackgroundTasks], Awaitable[None]]


def in_background(scenario: Scenario) -> None:
    """Run a scenario; at its end the task group is cancelled, as when a scheduler shuts down."""

    async def run() -> None:
        async with asyncio.TaskGroup() as tasks:
            background = BackgroundTasks()
            background.begin(tasks)
            await scenario(background)
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

    asyncio.run(run())


def _noted(handles: list[asyncio.Handle], handle: asyncio.Handle) -> asyncio.Handle:
    handles.append(handle)
    return handle


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_work_that_does_not_suspend_needs_no_task_of_its_own() -> None:
    done_by: list[asyncio.Task[None] | None] = []

    async def work() -> None:
        done_by.append(asyncio.current_task())

    async def scenario(background: BackgroundTasks) -> None:
        for _ in range(50):
            for _ in range(20):
                background.start(work())
            await turns()
        assert len(done_by) == 1000
        assert len(set(done_by)) <= 20

    in_background(scenario)


def test_one_worker_is_woken_for_all_work_of_a_turn_as_long_as_none_suspends() -> None:
    wakeups: list[asyncio.Handle] = []

    async def work() -> None:
        pass

    async def scenario(background: BackgroundTasks) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(3):
            for _ in range(20):
                background.start(work())
            await turns()
        call_soon = loop.call_soon
        loop.call_soon = lambda *arguments, **options: _noted(wakeups, call_soon(*arguments, **options))  # type: ignore[method-assign]
        for _ in range(20):
            background.start(work())
        loop.call_soon = call_soon  # type: ignore[method-assign]
        await turns()
        assert len(background) == 0
        assert len(wakeups) == 2

    in_background(scenario)


def test_work_that_begins_to_suspend_holds_up_no_other() -> None:
    begun: list[int] = []

    async def scenario(background: BackgroundTasks) -> None:
        go_on = asyncio.Event()

        async def work(number: int, *, suspends: bool) -> None:
            begun.append(number)
            if suspends:
                await go_on.wait()

        for _ in range(3):
            background.start(work(-1, suspends=False))
            await turns()
        begun.clear()
        for number in range(50):
            background.start(work(number, suspends=True))
        await turns(2)
        assert begun == list(range(50))
        for number in range(50, 100):
            background.start(work(number, suspends=True))
        await turns(1)
        assert begun == list(range(100))
        go_on.set()
        await background.all_ended()

    in_background(scenario)


def test_all_work_of_a_turn_begins_in_order_even_if_each_piece_suspends() -> None:
    begun: list[int] = []

    async def scenario(background: BackgroundTasks) -> None:
        go_on = asyncio.Event()

        async def work(number: int) -> None:
            begun.append(number)
            await go_on.wait()

        for number in range(200):
            background.start(work(number))
        await turns(1)
        assert begun == list(range(200))
        assert len(background) == background.awaited == 200
        go_on.set()
        await background.all_ended()
        assert len(background) == background.awaited == 0

    in_background(scenario)


def test_work_goes_on_after_one_piece_has_failed_or_cancelled_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done: list[str] = []

    async def failing() -> None:
        raise LookupError("broken")

    async def cancelled() -> None:
        raise asyncio.CancelledError

    async def fine() -> None:
        done.append("fine")

    async def scenario(background: BackgroundTasks) -> None:
        for work in (failing(), cancelled(), fine()):
            background.start(work)
        await background.all_ended()
        assert done == ["fine"]

    with caplog.at_level(logging.ERROR, "moorage.scheduler.background_tasks"):
        in_background(scenario)
    assert [record.getMessage() for record in caplog.records] == ['"Background task failed" err="broken"']


def test_shutdown_waits_for_awaited_work_only() -> None:
    async def scenario(background: BackgroundTasks) -> None:
        first, second, never = asyncio.Event(), asyncio.Event(), asyncio.Event()
        background.start(_wait(never), is_awaited=False)
        background.start(_wait(first))
        background.start(_wait(second))
        done = asyncio.ensure_future(background.all_done(but=lambda: 0))
        all_but_one = asyncio.ensure_future(background.all_done(but=lambda: 1))
        await turns()
        assert not all_but_one.done()
        first.set()
        await all_but_one
        assert not done.done()
        second.set()
        await done
        assert (len(background), background.awaited) == (1, 0)

    in_background(scenario)


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


def test_work_that_has_not_begun_is_closed_at_shutdown() -> None:
    async def scenario(background: BackgroundTasks) -> None:
        background.start(_wait(asyncio.Event()))
        await turns()
        background.start(_wait(asyncio.Event()))

    in_background(scenario)  # A coroutine that is never awaited would be a warning, which is an error here.
