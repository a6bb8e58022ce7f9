"""Time as an event loop has it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from moorage.clock import LoopClock, VirtualClock
from moorage.services.timing import MonotonicClock


def test_a_clock_shows_the_time_of_the_loop_that_runs_now() -> None:
    clock = LoopClock()

    async def is_right() -> bool:
        loop = asyncio.get_running_loop()
        before = loop.time()
        return before <= clock.now() <= loop.time()

    class Later(asyncio.SelectorEventLoop):
        def time(self) -> float:
            return super().time() + 1000.0

    assert asyncio.run(is_right())
    with asyncio.Runner(loop_factory=Later) as runner:
        assert runner.run(is_right())
        assert runner.run(is_right())
    assert asyncio.run(is_right())


def test_a_virtual_clock_s_wall_time_moves_with_its_seconds() -> None:
    clock = VirtualClock(epoch=datetime(2026, 3, 1, tzinfo=UTC))
    clock.advance(90.0)
    assert clock.utc_now() == datetime(2026, 3, 1, 0, 1, 30, tzinfo=UTC)
    assert VirtualClock(60.0).utc_now() == datetime(1970, 1, 1, 0, 1, tzinfo=UTC)


def test_real_clocks_have_the_wall_time_without_a_running_loop() -> None:
    for clock in (LoopClock(), MonotonicClock()):
        before = datetime.now(UTC)
        assert before <= clock.utc_now() <= datetime.now(UTC)
