"""When requests are sent under a limit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from moorage.client.rate_limit import RateLimitedTransport
from moorage.clock import VirtualClock
from moorage.http.transport import Request, Response
from tests.client.harness import settled
from tests.client.scripted import ScriptedTransport

GET = Request("GET", "/api/v1/nodes")
STEP_SECONDS = 0.125

CASES: dict[str, tuple[float, int, list[float]]] = {
    "as many as the burst at once, then at the rate": (2, 3, [0, 0, 0, 0.5, 1.0, 1.5]),
    "one at a time": (1, 1, [0, 1, 2, 3]),
    "no burst is a burst of one": (4, 0, [0, 0.25, 0.5]),
    "no limit": (0, 1, [0] * 50),
    "a negative limit is none": (-1, 10, [0] * 50),
}


@pytest.mark.parametrize(("qps", "burst", "expected"), CASES.values(), ids=CASES)
def test_when_requests_are_sent(qps: float, burst: int, expected: list[float]) -> None:
    async def run() -> list[float]:
        clock = VirtualClock()
        transport = ScriptedTransport(clock, [Response(200, b"{}")])
        limited = RateLimitedTransport(transport, clock, qps, burst)
        asking = [asyncio.ensure_future(limited.handle(GET)) for _ in expected]
        await _until_done(clock, asking)
        return transport.times

    assert asyncio.run(run()) == expected


def test_a_bucket_that_was_not_used_is_full_and_no_fuller() -> None:
    async def run() -> list[float]:
        clock = VirtualClock()
        transport = ScriptedTransport(clock, [Response(200, b"{}")])
        limited = RateLimitedTransport(transport, clock, 1, 2)
        await limited.handle(GET)
        clock.advance(100)
        asking = [asyncio.ensure_future(limited.handle(GET)) for _ in range(3)]
        await _until_done(clock, asking)
        return transport.times

    assert asyncio.run(run()) == [0, 100, 100, 101]


def test_a_request_that_no_longer_waits_gives_its_turn_back() -> None:
    async def run() -> list[float]:
        clock = VirtualClock()
        transport = ScriptedTransport(clock, [Response(200, b"{}")])
        limited = RateLimitedTransport(transport, clock, 1, 1)
        await limited.handle(GET)
        given_up = asyncio.ensure_future(limited.handle(GET))
        await settled()
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        await _until_done(clock, [asyncio.ensure_future(limited.handle(GET))])
        return transport.times

    assert asyncio.run(run()) == [0, 1]


async def _until_done(clock: VirtualClock, asking: Sequence[asyncio.Future[Response]]) -> None:
    await settled()
    while not all(one.done() for one in asking):
        clock.advance(STEP_SECONDS)
        await settled()
    await asyncio.gather(*asking)
