"""Several coroutines at the same time: each begins although others wait, and only those need tasks."""

from __future__ import annotations

import asyncio

import pytest

from moorage.scheduler.concurrent_work import run_concurrently


class Works:
    """Coroutines that note what they do."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.gate = asyncio.Event()

    async def quick(self, name: str) -> None:
        self.log.append(name)

    async def slow(self, name: str) -> None:
        self.log.append(f"{name} begins")
        await self.gate.wait()
        self.log.append(f"{name} ends")

    async def failing(self, name: str) -> None:
        self.log.append(name)
        raise ValueError(name)


async def turns(number: int = 3) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def test_works_that_do_not_suspend_are_run_in_order_without_tasks() -> None:
    async def scenario() -> None:
        works, before = Works(), asyncio.all_tasks()
        others = asyncio.create_task(turns())
        await run_concurrently([works.quick("a"), works.quick("b")])
        assert works.log == ["a", "b"]
        assert not others.done()
        assert asyncio.all_tasks() == before | {others}
        await others

    asyncio.run(scenario())


def test_works_begin_while_another_waits() -> None:
    async def scenario() -> None:
        works = Works()
        running = asyncio.create_task(
            run_concurrently([works.quick("a"), works.slow("b"), works.slow("c"), works.quick("d")])
        )
        await turns()
        assert works.log == ["a", "b begins", "c begins", "d"]
        works.gate.set()
        await running
        assert works.log[-2:] == ["b ends", "c ends"]

    asyncio.run(scenario())


@pytest.mark.parametrize("is_first", [True, False], ids=["without suspending", "in a task"])
def test_the_first_error_is_raised_when_all_have_ended(is_first: bool) -> None:
    async def scenario() -> None:
        works = Works()
        failing = [works.failing("x"), works.failing("y")]
        each = [*failing, works.slow("b")] if is_first else [works.slow("b"), *failing]
        running = asyncio.create_task(run_concurrently(each))
        await turns()
        assert not running.done()
        works.gate.set()
        with pytest.raises(ValueError, match="x"):
            await running
        assert "b ends" in works.log

    asyncio.run(scenario())


@pytest.mark.parametrize("count", [1, 3], ids=["before the others begin", "after they have begun"])
def test_none_goes_on_after_cancellation(count: int) -> None:
    async def scenario() -> None:
        works, before = Works(), asyncio.all_tasks()
        running = asyncio.create_task(run_concurrently([works.slow("a"), works.slow("b")]))
        await turns(count)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await turns()
        works.gate.set()
        await turns()
        assert not any("ends" in line for line in works.log)
        assert asyncio.all_tasks() == before

    asyncio.run(scenario())
