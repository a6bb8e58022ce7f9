"""Bindings whose answer does not say whether they happened."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from moorage.api.decode import convert
from moorage.api.pod import Pod
from moorage.client.client import Client
from moorage.http.errors import AnswerLost, ConnectionFailed, RequestError
from moorage.http.transport import Request, Response
from moorage.scheduler.binder import Binder
from tests.client.faults import refusal
from tests.scheduler.running import SchedulerHarness, in_harness


class Unsure:
    """Carries bindings out, or not, and answers something else; then looking may fail for a while."""

    def __init__(
        self, harness: SchedulerHarness, answer: Response | Exception, happens: bool, blind: int = 0
    ) -> None:
        self._harness = harness
        self._answer = answer
        self._happens = happens
        self._blind = blind
        self.asked: list[str] = []

    async def handle(self, request: Request) -> Response:
        self.asked.append(request.method)
        if request.method == "GET":
            self._blind -= 1
            if self._blind >= 0:
                raise ConnectionFailed("not now")
            return await self._harness.line.handle(request)
        if self._happens:
            await self._harness.line.handle(request)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


SUCCESS = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'
ANSWERS = {
    "lost": AnswerLost("connection reset"),
    "conflict": refusal(409),
    "internal error": refusal(500),
    "unavailable": refusal(503),
    "a captive portal": Response(200, b"<html>Log in</html>", "text/html"),
    "nothing": Response(204, b""),
    "JSON of something else": Response(200, b'{"ok":true}'),
    "no object": Response(201, b'"done"'),
    "not done yet": Response(202, SUCCESS),
    "a failure that looks like success": Response(201, SUCCESS.replace(b"Success", b"Failure")),
    "the pod": Response(200, b'{"kind":"Pod","status":{"phase":"Pending"}}'),
    "half of it": Response(201, SUCCESS[:40]),
    "no text": Response(201, SUCCESS.replace(b"Success", b"\xff")),
}


@pytest.mark.parametrize("blind", [0, 3])
@pytest.mark.parametrize("happens", [True, False])
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_the_pod_says_whether_it_is_bound(answer: Response | Exception, happens: bool, blind: int) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        pod = convert(await harness.add_pod("p"), Pod)
        unsure = Unsure(harness, answer, happens, blind)
        binder = Binder(Client(unsure, harness.server.token), harness.clock, Random(1))
        binding = asyncio.ensure_future(binder.bind(pod, "n1"))
        await harness.passes(30)
        assert unsure.asked == ["POST", *["GET"] * (blind + 1)]
        if happens:
            assert binding.result() is None
        else:
            assert isinstance(binding.exception(), AnswerLost | RequestError)
        assert await harness.node_of("p") == ("n1" if happens else "")

    in_harness(scenario)


@pytest.mark.parametrize("answer", [refusal(409), AnswerLost("connection reset")], ids=["conflict", "lost"])
def test_a_pod_that_is_somewhere_else_is_not_bound(answer: Response | Exception) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        pod = convert(await harness.add_pod("p"), Pod)
        unsure = Unsure(harness, answer, happens=True)
        binder = Binder(Client(unsure, harness.server.token), harness.clock, Random(1))
        await binder.bind(pod, "n1")
        with pytest.raises((RequestError, AnswerLost)):
            await binder.bind(pod, "n2")
        assert await harness.node_of("p") == "n1"

    in_harness(scenario)


def test_what_cannot_have_happened_is_not_looked_for() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        pod = convert(await harness.add_pod("p"), Pod)
        unsure = Unsure(harness, ConnectionFailed("connection refused"), happens=False)
        binder = Binder(Client(unsure, harness.server.token), harness.clock, Random(1))
        with pytest.raises(ConnectionFailed):
            await binder.bind(pod, "n1")
        assert unsure.asked == ["POST"]

    in_harness(scenario)


def test_bindings_are_written_a_limited_number_at_a_time() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        open_requests = 0
        most = 0
        gate = asyncio.Event()

        class Slow:
            async def handle(self, request: Request) -> Response:
                nonlocal open_requests, most
                open_requests += 1
                most = max(most, open_requests)
                await gate.wait()
                open_requests -= 1
                return Response(201, SUCCESS)

        binder = Binder(Client(Slow()), harness.clock, Random(1))
        pod = convert(await harness.add_pod("p"), Pod)
        bindings = [asyncio.ensure_future(binder.bind(pod, "n1")) for _ in range(400)]
        await harness.settles()
        assert 1 < most <= 128
        gate.set()
        await asyncio.gather(*bindings)

    in_harness(scenario)


def test_a_cancelled_binding_leaves_its_turn_to_the_next() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        gates: list[asyncio.Event] = []

        class Slow:
            async def handle(self, request: Request) -> Response:
                gates.append(asyncio.Event())
                await gates[-1].wait()
                return Response(201, SUCCESS)

        binder = Binder(Client(Slow()), harness.clock, Random(1))
        pod = convert(await harness.add_pod("p"), Pod)
        bindings = [asyncio.ensure_future(binder.bind(pod, "n1")) for _ in range(130)]
        await harness.settles()
        bindings[0].cancel()  # Wakes the first that waits, which is cancelled before it runs.
        await asyncio.sleep(0)
        bindings[128].cancel()
        await harness.settles()
        assert len(gates) == 129
        for gate in gates:
            gate.set()
        await asyncio.gather(*bindings, return_exceptions=True)
        assert [each.cancelled() for each in bindings].count(True) == 2

    in_harness(scenario)
