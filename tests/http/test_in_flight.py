"""Requests beyond the limits are refused at once, and nobody who waits has to wait for more than a turn."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from moorage.http.in_flight import InFlightLimits
from moorage.http.server_connection import HttpConnection
from moorage.http.server_connections import Connections
from moorage.simulation.virtual_loop import run_in_virtual_time
from tests.http.wire import AtOnce, Wire, answers_in, get, play, post, settled


class Clients:
    """Connections to a server with limits."""

    def __init__(self, count: int, limits: InFlightLimits) -> None:
        self.server = AtOnce()
        connections = Connections(count, limits)
        self.wires = [Wire() for _ in range(count)]
        self._connections = [HttpConnection(self.server, connections) for _ in self.wires]
        for connection, wire in zip(self._connections, self.wires, strict=True):
            connection.connection_made(wire)

    def send(self, *requests: bytes) -> list[int]:
        """Each connection sends the requests in one turn; returns the codes of the new answers."""
        return self.send_each(*[b"".join(requests)] * len(self.wires))

    def send_each(self, *requests: bytes) -> list[int]:
        """Each connection sends what is its own in one turn; returns the codes of the new answers."""
        before = [len(answers_in(wire)) for wire in self.wires]
        for connection, sent in zip(self._connections, requests, strict=True):
            connection.data_received(sent)
        return [
            code
            for wire, count in zip(self.wires, before, strict=True)
            for code, _ in answers_in(wire)[count:]
        ]


READ, WRITE = get("/r"), post(b"{}")
CASES = {
    "within the limits": (3, 3, [READ], [200, 200, 200]),
    "too many that read": (2, 3, [READ], [200, 200, 429]),
    "too many that write": (3, 1, [WRITE], [200, 429, 429]),
    "patches and deletions write": (3, 1, [get("/p", method="DELETE")], [200, 429, 429]),
    "after a refusal nothing is read": (1, 1, [READ, WRITE], [200, 200, 429, 429]),
    "watches are exempt": (1, 1, [get("/p?watch=1&resourceVersion=1")], [200, 200, 200]),
    "what is no watch is not": (1, 1, [get("/p?watch=false")], [200, 429, 429]),
    "no limits": (0, 0, [READ, WRITE], [200] * 6),
    "a connection counts once": (3, 3, [WRITE] * 4, [200] * 12),
}


@pytest.mark.parametrize("case", CASES)
def test_limits(case: str) -> None:
    reads, writes, requests, codes = CASES[case]

    async def scenario() -> None:
        limits = InFlightLimits(reads, writes)
        clients = Clients(3, limits)
        assert clients.send(*requests) == codes
        assert limits.refused == codes.count(429)
        assert len(clients.server.asked) == codes.count(200), "what is refused is not looked at"

    play(scenario)


def test_each_class_has_its_own_limit() -> None:
    async def scenario() -> None:
        clients = Clients(3, InFlightLimits(1, 2))
        assert clients.send_each(READ, WRITE, WRITE) == [200, 200, 200]
        await settled()
        assert clients.send_each(WRITE, READ, READ) == [200, 200, 429]

    play(scenario)


def test_the_clusters_own_components_have_a_share_of_their_own() -> None:
    own = get("/r", "Authorization: Bearer own")

    async def scenario() -> None:
        limits = InFlightLimits(1, 1, lambda request: request.headers.get("authorization") == "Bearer own")
        clients = Clients(4, limits)
        assert clients.send_each(READ, READ, own, own) == [200, 429, 200, 429]
        await settled()
        assert clients.send_each(own, b"", READ, b"") == [200, 429], "they use what others leave, too"

    play(scenario)


def test_each_turn_has_as_many() -> None:
    async def scenario() -> None:
        clients = Clients(3, InFlightLimits(2, 2))
        for _ in range(3):
            assert clients.send_each(READ, READ, b"") == [200, 200]
            await settled()

    play(scenario)


def test_after_a_refusal_the_next_request_is_read_when_it_may_be_sent() -> None:
    async def scenario() -> None:
        clients = Clients(2, InFlightLimits(1, 1))
        assert clients.send(READ) == [200, 429]
        await settled()
        assert clients.send(READ) == [200]
        assert [wire.is_read_from for wire in clients.wires] == [True, False]
        await asyncio.sleep(0.9)
        assert len(answers_in(clients.wires[1])) == 1
        await asyncio.sleep(0.2)
        assert [code for code, _ in answers_in(clients.wires[1])] == [429, 200]
        assert clients.wires[1].is_read_from

    run_in_virtual_time(scenario())


def test_a_refusal_says_when_to_try_again() -> None:
    async def scenario() -> None:
        clients = Clients(2, InFlightLimits(1, 1))
        clients.send(WRITE)
        head, _, body = clients.wires[1].writes[0].partition(b"\r\n\r\n")
        assert b"retry-after: 1" in head.lower()
        status = msgspec.json.decode(body)
        assert (status["kind"], status["code"], status["reason"]) == ("Status", 429, "TooManyRequests")
        assert status["details"]["retryAfterSeconds"] == 1

    play(scenario)
