from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from moorage.clock import VirtualClock
from moorage.http.errors import ConnectionFailed, RequestError
from moorage_cluster.nodes.outbox import Outbox


def play(scene: Callable[[Outbox, VirtualClock], Awaitable[None]]) -> None:
    async def run() -> None:
        clock = VirtualClock()
        outbox = Outbox(clock, workers=2)
        task = asyncio.create_task(outbox.run())
        try:
            await scene(outbox, clock)
        finally:
            task.cancel()
            await asyncio.wait([task])

    asyncio.run(run())


async def settled(turns: int = 20) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


def test_of_writes_that_wait_only_the_newest_is_sent() -> None:
    sent: list[str] = []

    def write(text: str) -> Callable[[], Awaitable[None]]:
        async def send() -> None:
            sent.append(text)

        return send

    async def scene(outbox: Outbox, clock: VirtualClock) -> None:
        outbox.put("a", write("a1"))
        outbox.put("b", write("b1"))
        outbox.put("a", write("a2"))
        assert not outbox.is_idle
        await settled()
        assert sent == ["a2", "b1"]
        assert outbox.is_idle

    play(scene)


def test_writes_of_a_key_never_overtake_each_other() -> None:
    sent: list[str] = []

    async def scene(outbox: Outbox, clock: VirtualClock) -> None:
        answered = asyncio.Event()

        async def first() -> None:
            await answered.wait()
            sent.append("first")

        async def second() -> None:
            sent.append("second")

        outbox.put("a", first)
        await settled()
        outbox.put("a", second)
        await settled()
        assert sent == []
        assert outbox.holds("a")
        answered.set()
        await settled()
        assert sent == ["first", "second"]
        assert not outbox.holds("a")

    play(scene)


@pytest.mark.parametrize(
    ("failure", "is_tried_again"),
    [
        pytest.param(ConnectionFailed("gone"), True, id="no-answer"),
        pytest.param(RequestError(503, "ServiceUnavailable", "later"), True, id="unavailable"),
        pytest.param(RequestError(429, "TooManyRequests", "later"), True, id="too-many-requests"),
        pytest.param(RequestError(404, "NotFound", "no such pod"), False, id="not-found"),
        pytest.param(RequestError(409, "Conflict", "another pod"), False, id="conflict"),
        pytest.param(RequestError(422, "Invalid", "nonsense"), False, id="invalid"),
    ],
)
def test_failures_that_may_pass_are_tried_again(failure: Exception, is_tried_again: bool) -> None:
    attempts: list[float] = []

    async def scene(outbox: Outbox, clock: VirtualClock) -> None:
        async def write() -> None:
            attempts.append(clock.now())
            if len(attempts) < 4:
                raise failure

        outbox.put("a", write)
        await settled()
        for _ in range(20):
            clock.advance(0.5)
            await settled()
        assert attempts == ([0.0, 0.5, 1.5, 3.5] if is_tried_again else [0.0])

    play(scene)


def test_a_server_may_fail_any_number_of_times() -> None:
    attempts: list[float] = []

    async def scene(outbox: Outbox, clock: VirtualClock) -> None:
        async def write() -> None:
            attempts.append(clock.now())
            raise ConnectionFailed("gone")

        outbox.put("a", write)
        await settled()
        for _ in range(1100):
            clock.advance(30.0)
            await settled(turns=4)
        assert attempts == [30.0 * number for number in range(1101)]

    play(scene)
