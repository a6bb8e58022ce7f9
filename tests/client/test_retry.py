"""What is asked again, how often, and after how long."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from random import Random

import pytest

from moorage.client.retry import RetryingTransport
from moorage.clock import VirtualClock
from moorage.http.errors import AnswerLost, ConnectionFailed, NoAccess
from moorage.http.transport import Request, Response
from tests.client.faults import refusal
from tests.client.harness import settled
from tests.client.scripted import Answer, ScriptedTransport

OK = Response(200, b"{}")
GET = Request("GET", "/api/v1/nodes")
PUT = Request("PUT", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/it", body=b"{}")
DELETE = Request("DELETE", "/api/v1/namespaces/default/pods/one")
BIND = Request("POST", "/api/v1/namespaces/default/pods/one/binding", body=b"{}")
MERGE = Request("PATCH", "/api/v1/nodes/one", headers={"content-type": "application/merge-patch+json"})
JSON_PATCH = Request("PATCH", "/api/v1/nodes/one", headers={"content-type": "application/json-patch+json"})
REFUSED = ConnectionFailed("refused")
LOST = AnswerLost("lost")
TICK_SECONDS = 1 / 64

CASES: dict[str, tuple[Request, list[Answer], int]] = {
    "a good answer": (GET, [OK], 1),
    "a refusal is an answer": (GET, [refusal(409), OK], 1),
    "Retry-After": (GET, [refusal(429, 1), OK], 2),
    "Retry-After, a binding too": (BIND, [refusal(429, 1), OK], 2),
    "Retry-After by a server in trouble": (BIND, [refusal(503, 2), OK], 2),
    "Retry-After again and again": (GET, [refusal(429, 1)], 11),
    "no Retry-After": (GET, [refusal(500), OK], 2),
    "no Retry-After, again and again": (GET, [refusal(503)], 5),
    "no Retry-After, a binding": (BIND, [refusal(500), OK], 1),
    "too many requests without a time, a binding": (BIND, [refusal(429), OK], 1),
    "not reached": (GET, [REFUSED, OK], 2),
    "not reached, a binding: nothing was sent": (BIND, [REFUSED, OK], 2),
    "never reached": (GET, [REFUSED], 5),
    "not to be trusted": (GET, [NoAccess("another server"), OK], 1),
    "answer lost": (GET, [LOST, OK], 2),
    "answer lost, a replacement": (PUT, [LOST, OK], 2),
    "answer lost, a deletion": (DELETE, [LOST, OK], 2),
    "answer lost, a merge patch": (MERGE, [LOST, OK], 2),
    "answer lost, a JSON patch": (JSON_PATCH, [LOST, OK], 1),
    "answer lost, a binding: only looking helps": (BIND, [LOST, OK], 1),
}


@pytest.mark.parametrize(("request_", "answers", "asked"), CASES.values(), ids=CASES)
def test_what_is_asked_again(request_: Request, answers: list[Answer], asked: int) -> None:
    last = answers[min(asked, len(answers)) - 1]
    transport, outcome = _tried(request_, answers)
    assert len(transport.asked) == asked
    assert outcome is last


def test_the_server_says_how_long_to_wait() -> None:
    transport, _ = _tried(GET, [refusal(429, 7), refusal(503, 3), OK])
    assert transport.times == pytest.approx([0, 7, 10], abs=TICK_SECONDS)


def test_pauses_double_and_are_jittered() -> None:
    transport, _ = _tried(GET, [REFUSED])
    gaps = [later - earlier for earlier, later in pairwise(transport.times)]
    assert all(
        first <= gap <= 2 * first + TICK_SECONDS
        for first, gap in zip((0.1, 0.2, 0.4, 0.8), gaps, strict=True)
    )
    other, _ = _tried(GET, [REFUSED], seed=2)
    assert other.times != transport.times


def _tried(
    request: Request, answers: list[Answer], seed: int = 1
) -> tuple[ScriptedTransport, Response | BaseException]:
    async def run() -> tuple[ScriptedTransport, Response | BaseException]:
        clock = VirtualClock()
        transport = ScriptedTransport(clock, answers)
        asking = asyncio.ensure_future(RetryingTransport(transport, clock, Random(seed)).handle(request))
        while not asking.done():
            await settled()
            clock.advance(TICK_SECONDS)
        (outcome,) = await asyncio.gather(asking, return_exceptions=True)
        return transport, outcome

    return asyncio.run(run())
