from __future__ import annotations

import asyncio

import pytest

from moorage.api.node import Namespace
from moorage.clock import VirtualClock
from moorage.framework.handle import Handle
from tests.builders import make_namespace


def handle() -> tuple[Handle, VirtualClock]:
    clock = VirtualClock()
    return Handle(clock=clock), clock


def test_waiting_ends_when_an_object_changes_to_what_is_waited_for() -> None:
    async def run() -> bool:
        made, _ = handle()
        table = made.objects.of(Namespace)
        waiting = asyncio.ensure_future(made.wait_until(lambda: table.get("", "b") is not None, 10))
        await asyncio.sleep(0)
        table.put(make_namespace("a"))
        await asyncio.sleep(0)
        assert not waiting.done()
        table.put(make_namespace("b"))
        return await waiting

    assert asyncio.run(run())


def test_waiting_ends_with_the_time() -> None:
    async def run() -> bool:
        made, clock = handle()
        waiting = asyncio.ensure_future(made.wait_until(lambda: False, 10))
        await asyncio.sleep(0)
        clock.advance(9.9)
        await asyncio.sleep(0)
        assert not waiting.done()
        clock.advance(0.1)
        return await waiting

    assert not asyncio.run(run())


def test_what_the_condition_raises_ends_the_wait() -> None:
    async def run() -> None:
        made, _ = handle()
        table = made.objects.of(Namespace)

        def condition() -> bool:
            if len(table):
                raise LookupError("gone")
            return False

        waiting = asyncio.ensure_future(made.wait_until(condition, 10))
        await asyncio.sleep(0)
        table.put(make_namespace("a"))
        await waiting

    with pytest.raises(LookupError, match="gone"):
        asyncio.run(run())


def test_virtual_time_runs_timers_in_order_and_forgets_cancelled_ones() -> None:
    clock, rung = VirtualClock(), []
    clock.call_later(2, lambda: rung.append("b"))
    clock.call_later(1, lambda: rung.append("a"))
    clock.call_later(1.5, lambda: rung.append("never")).cancel()
    clock.call_later(1, lambda: clock.call_later(0.5, lambda: rung.append("nested")))
    clock.advance(3)
    assert (rung, clock.now()) == (["a", "nested", "b"], 3)
