"""Time as an event loop has it."""

from __future__ import annotations

import asyncio

from moorage.clock import LoopClock


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
