"""What a client can have the server hold, and for how long."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from typing import Any

import pytest

from moorage.http.server_connection import HttpConnection
from moorage.http.server_connections import Connections
from moorage.http.transport import Response, Stream
from tests.http.wire import (
    AtOnce,
    Later,
    Lines,
    Wire,
    answers_in,
    connected,
    echoed,
    get,
    play,
    post,
    settled,
    streaming,
)

LINGERING = {
    "for the first request": (b"", 32),
    "for the rest of a head": (get("/a") + b"GET / HTTP/1.1\r\nX: ", 32),
    "for a body": (post(b"x" * 10)[:-1], 60),
    "for the next request": (get("/a"), 90),
}


@pytest.mark.parametrize(("sent", "seconds"), LINGERING.values(), ids=LINGERING)
def test_a_client_that_keeps_the_server_waiting_is_dropped(sent: bytes, seconds: int) -> None:
    async def scenario() -> None:
        wire, connection, connections = connected(AtOnce())
        connection.data_received(sent)
        for _ in range(seconds):
            connections.pass_time(1.0)
        assert wire.is_open
        connections.pass_time(1.0)
        assert not wire.is_open

    play(scenario)


def test_a_head_that_comes_byte_by_byte_has_no_more_time() -> None:
    async def scenario() -> None:
        wire, connection, connections = connected(AtOnce())
        for byte in get("/")[:33]:
            assert wire.is_open
            connection.data_received(bytes((byte,)))
            connections.pass_time(1.0)
        assert wire.was_aborted

    play(scenario)


def test_a_client_that_goes_on_asking_may_stay() -> None:
    async def scenario() -> None:
        wire, connection, connections = connected(AtOnce())
        for _ in range(3):
            connection.data_received(get("/a"))
            connections.pass_time(80.0)
        assert wire.is_open

    play(scenario)


def test_a_client_that_does_not_read_its_answer_is_dropped_unless_it_does_so_slowly() -> None:
    async def scenario() -> None:
        wire, connection, connections = connected(AtOnce())
        wire.unsent_bytes = 1000
        connection.data_received(get("/a", "Connection: close"))
        for _ in range(3):
            connections.pass_time(40.0)
            wire.unsent_bytes -= 1
        assert not wire.was_aborted
        connections.pass_time(0.0)
        connections.pass_time(60.0)
        assert wire.was_aborted

    play(scenario)


def test_a_watch_that_says_nothing_is_not_silence() -> None:
    async def scenario() -> None:
        lines, (wire, connection, connections) = streaming()
        connection.data_received(get("/w"))
        await settled()
        for _ in range(3):
            connections.pass_time(1000.0)
        assert wire.is_open
        lines.close()
        await settled()

    play(scenario)


class NarrowWire(Wire):
    """A wire that takes no more once this many bytes are unsent."""

    def __init__(self, high_water_bytes: int) -> None:
        super().__init__()
        self.high_water_bytes = high_water_bytes
        self.connection: HttpConnection

    def write(self, data: Any) -> None:
        super().write(data)
        self.unsent_bytes += len(data)
        if self.unsent_bytes > self.high_water_bytes:
            self.connection.pause_writing()

    def drain(self) -> None:
        self.unsent_bytes = 0
        self.connection.resume_writing()


def test_pipelined_requests_are_not_answered_before_their_client_reads() -> None:
    async def scenario() -> None:
        transport = AtOnce()
        transport.response = lambda _: Response(200, b"x" * 100_000)
        wire = NarrowWire(150_000)
        wire.connection = HttpConnection(transport, Connections(1))
        wire.connection.connection_made(wire)
        wire.connection.data_received(get("/a") * 2000)
        await settled()
        assert len(transport.asked) == 2
        assert not wire.is_read_from
        wire.drain()
        await settled()
        assert len(transport.asked) == 4
        while not wire.is_read_from:
            wire.drain()
            await asyncio.sleep(0)
        assert len(transport.asked) == 2000

    play(scenario)


@pytest.mark.parametrize("is_known_at_once", [True, False])
def test_a_long_answer_leaves_as_its_client_reads(is_known_at_once: bool) -> None:
    async def scenario() -> None:
        answer = Response(200, bytes(1_000_000))
        transport: AtOnce | Later = AtOnce() if is_known_at_once else Later()
        wire = NarrowWire(300_000)
        wire.connection = HttpConnection(transport, Connections(1))
        wire.connection.connection_made(wire)
        if isinstance(transport, AtOnce):
            transport.response = lambda _: answer
        wire.connection.data_received(get("/a", "Connection: close"))
        await settled()
        if isinstance(transport, Later):
            transport.answers[0].set_result(answer)
            await settled()
        assert sum(map(len, wire.writes)) < 600_000
        while wire.is_open:
            wire.drain()
            await asyncio.sleep(0)
        assert answers_in(wire) == [(200, answer.body)]

    play(scenario)


def test_of_what_waits_little_is_made_into_requests() -> None:
    async def scenario() -> None:
        wire, connection, _ = connected(transport := Later())
        connection.data_received(b"GET / HTTP/1.1\r\n\r\n" * 50_000)
        await settled()
        assert len(transport.asked) == 1
        assert len(connection._asked) < 4000
        assert not wire.is_read_from
        connection.connection_lost(None)
        transport.answers[0].cancel()
        await settled()

    play(scenario)


def test_many_requests_of_one_client_leave_others_their_turn() -> None:
    async def scenario() -> None:
        wire, connection, _ = connected(transport := AtOnce())
        connection.data_received(get("/a") * 1000)
        assert len(transport.asked) < 200
        while not wire.is_read_from:
            await asyncio.sleep(0)
        assert len(transport.asked) == 1000

    play(scenario)


def test_a_client_that_asks_for_the_head_of_a_stream_gets_no_stream() -> None:
    async def scenario() -> None:
        lines, (wire, connection, _) = streaming()
        lines.say(b"one\n")
        connection.data_received(get("/w", method="HEAD") + get("/b"))
        await settled()
        assert lines.is_closed
        assert [code for code, _ in answers_in(wire)] == [200, 200]
        assert b"one" not in b"".join(wire.writes)
        assert b"".join(wire.writes).endswith(b"/b")

    play(scenario)


def test_where_there_are_too_many_connections_the_most_idle_one_makes_room() -> None:
    async def scenario() -> None:
        connections = Connections(2)
        lines, transport = Lines(), AtOnce()
        transport.response = lambda _: Response(200, lines)
        watching, idle = HttpConnection(transport, connections), HttpConnection(AtOnce(), connections)
        watching.connection_made(watching_wire := Wire())
        watching.data_received(get("/w"))
        idle.connection_made(idle_wire := Wire())
        await settled()
        room = asyncio.ensure_future(connections.room())
        await settled()
        assert idle_wire.was_aborted
        assert watching_wire.is_open
        assert not room.done()
        idle.connection_lost(None)
        await room
        watching.connection_lost(None)
        await connections.close(0.0)

    play(scenario)


def test_where_all_connections_are_busy_or_begun_no_more_are_accepted() -> None:
    async def scenario() -> None:
        connections = Connections(1)
        connections.open(asyncio.Event().wait())  # type: ignore[arg-type]
        room = asyncio.ensure_future(connections.room())
        await room  # The one that had not begun to speak TLS is let go.
        lines, transport = Lines(), AtOnce()
        transport.response = lambda _: Response(200, lines)
        watching = HttpConnection(transport, connections)
        watching.connection_made(wire := Wire())
        watching.data_received(get("/w"))
        room = asyncio.ensure_future(connections.room())
        await settled()
        assert not room.done()
        assert wire.is_open
        watching.connection_lost(None)
        await room

    play(scenario)


class Outrun(Stream):
    """A stream of which a piece is lost."""

    def __init__(self) -> None:
        self._lines = Lines()
        self._lines.say(b"one\n")

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self._lines)

    def close(self) -> None:
        self._lines.close()

    @property
    def is_behind(self) -> bool:
        return True


def test_a_watcher_that_reads_nothing_until_it_is_too_late_is_dropped() -> None:
    async def scenario() -> None:
        transport = AtOnce()
        transport.response = lambda _: Response(200, Outrun())
        wire, connection, connections = connected(transport)
        connection.data_received(get("/w"))
        await settled()
        connection.pause_writing()
        connections.pass_time(1.0)
        assert wire.was_aborted
        connection.connection_lost(None)
        await connections.close(0.0)

    play(scenario)


def test_a_watcher_that_reads_gets_an_error_when_it_is_behind() -> None:
    async def scenario() -> None:
        wire, connection, connections = connected(transport := AtOnce())
        transport.response = lambda _: Response(200, Outrun())
        connection.data_received(get("/w"))
        await settled()
        connections.pass_time(1.0)
        assert wire.is_open
        connection.connection_lost(None)
        await connections.close(0.0)

    play(scenario)


def test_connections_that_are_gone_leave_nothing_behind() -> None:
    async def scenario() -> None:
        lines, transport = Lines(), AtOnce()
        transport.response = lambda request: Response(200, lines) if request.path == "/w" else echoed(request)
        for sent in (b"", get("/a"), post(b"x")[:-1], get("/b")[:-2], get("/w"), b"nonsense\r\n\r\n"):
            wire, connection, connections = connected(transport)
            connection.data_received(sent)
            await settled()
            connection.connection_lost(None)
            await settled()
            remains = weakref.ref(connection._reader), weakref.ref(connection)
            await connections.close(0.0)
            del wire, connection
            assert [each() for each in remains] == [None, None], sent

    gc.disable()
    try:
        play(scenario)
    finally:
        gc.enable()
