"""One connection to the server, in bytes and without a socket: what comes in, what goes out, and when."""

from __future__ import annotations

import asyncio

import pytest

from moorage.http.guard import MAX_BODY_BYTES
from moorage.http.request_reader import MAX_HEAD_BYTES, MAX_HEADERS, MAX_TARGET_BYTES
from moorage.http.server_connection import HttpConnection
from moorage.http.transport import Response
from tests.http.wire import (
    AtOnce,
    Later,
    Wire,
    answers_in,
    connected,
    get,
    play,
    post,
    settled,
    streaming,
)

# -- what comes, and how


BATCH = get("/a") + post(b"one") + get("/b") + post(b"two")
ANSWERS = [(200, b"/a"), (200, b"one"), (200, b"/b"), (200, b"two")]


def test_answers_to_what_came_together_leave_together() -> None:
    async def scenario() -> None:
        wire, connection, _ = connected(AtOnce())
        connection.data_received(BATCH)
        assert len(wire.writes) == 1
        assert answers_in(wire) == ANSWERS
        assert wire.is_open

    play(scenario)


@pytest.mark.parametrize("size", [1, 3, 50])
def test_it_is_all_the_same_in_which_pieces_requests_come(size: int) -> None:
    async def scenario() -> None:
        wire, connection, _ = connected(AtOnce())
        for at in range(0, len(BATCH), size):
            connection.data_received(BATCH[at : at + size])
        assert answers_in(wire) == ANSWERS

    play(scenario)


def test_a_request_is_read_as_it_was_meant() -> None:
    async def scenario() -> None:
        transport = AtOnce()
        _, connection, _ = connected(transport)
        connection.data_received(
            get("/x%20y?a=b&c=%2F", "X-Some: One", "x-some: two", "Transfer-Encoding: chunked", method="PUT")
            + b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"
        )
        (request,) = transport.asked
        assert (request.method, request.path, request.query) == ("PUT", "/x%20y", "a=b&c=%2F")
        assert request.body == b"abcdefg"
        assert request.headers["x-some"] == "two"
        assert [value for name, value in request.repeated if name == "x-some"] == ["One", "two"]

    play(scenario)


HEADS: list[tuple[tuple[str, ...], tuple[str | None, str | None]]] = [
    (("X-A: 1", "X-B: 2"), ("1", "2")),
    (("X-A: 1", "X-B: 2"), ("1", "2")),
    (("X-A: 1", "X-B: 5"), ("1", "5")),
    (("X-A: 1",), ("1", None)),
    (("x-a: 3", "X-A: 4"), ("4", None)),
    ((), (None, None)),
    (("X-A: 1", "X-B: 2"), ("1", "2")),
]


def test_every_request_has_its_own_headers_and_no_others() -> None:
    async def scenario() -> None:
        transport = AtOnce()
        _, connection, _ = connected(transport)
        for head, _ in HEADS:
            connection.data_received(get("/", *head))
        seen = [(each.headers.get("x-a"), each.headers.get("x-b")) for each in transport.asked]
        assert seen == [meant for _, meant in HEADS]
        assert [len(each.repeated) for each in transport.asked] == [1 + len(head) for head, _ in HEADS]

    play(scenario)


def test_what_follows_a_body_is_no_header() -> None:
    async def scenario() -> None:
        transport = AtOnce()
        _, connection, _ = connected(transport)
        trailer = b"3\r\nabc\r\n0\r\nAuthorization: Bearer late\r\n\r\n"
        for _ in range(2):
            connection.data_received(get("/", "Transfer-Encoding: chunked", method="PUT") + trailer)
        connection.data_received(get("/"))
        assert [each.body for each in transport.asked] == [b"abc", b"abc", b""]
        assert not any("authorization" in each.headers for each in transport.asked)

    play(scenario)


TARGETS = {
    "/a": ("/a", ""),
    "/a?": ("/a", ""),
    "/a?b?c": ("/a", "b?c"),
    "/a?b#c": ("/a", "b"),
    "//a": ("//a", ""),
    "https://127.0.0.1:1/a?b": ("/a", "b"),
    "https://127.0.0.1": ("/", ""),
}


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_asked_for(target: str) -> None:
    async def scenario() -> None:
        transport = AtOnce()
        _, connection, _ = connected(transport)
        connection.data_received(get(target))
        assert [(asked.path, asked.query) for asked in transport.asked] == [TARGETS[target]]

    play(scenario)


LAST = {
    "a client that wants no more": get("/a", "Connection: close"),
    "a client of old": get("/a", version="1.0"),
    "a client that wants to speak something else": get("/a", "Connection: Upgrade", "Upgrade: websocket"),
}


@pytest.mark.parametrize("sent", LAST.values(), ids=LAST)
def test_after_the_last_answer_the_connection_is_closed(sent: bytes) -> None:
    async def scenario() -> None:
        wire, connection, _ = connected(AtOnce())
        connection.data_received(sent + get("/b"))
        connection.data_received(get("/c"))
        assert answers_in(wire) == [(200, b"/a")]
        assert b"connection: close" in wire.writes[0]
        assert not wire.is_open

    play(scenario)


def test_a_client_that_asks_for_the_head_only_gets_no_body() -> None:
    async def scenario() -> None:
        wire, connection, _ = connected(AtOnce())
        connection.data_received(get("/abc", method="HEAD"))
        assert wire.writes[0].endswith(b"content-length: 4\r\n\r\n")

    play(scenario)


def test_a_client_that_expects_100_continue_gets_it() -> None:
    async def scenario() -> None:
        wire, connection, _ = connected(AtOnce())
        head, body = post(b"body", "Expect: 100-continue").split(b"\r\n\r\n")
        connection.data_received(head + b"\r\n\r\n")
        assert wire.writes == [b"HTTP/1.1 100 Continue\r\n\r\n"]
        connection.data_received(body)
        assert answers_in(wire)[1:] == [(200, b"body")]

    play(scenario)


REFUSED = {
    "no HTTP": (b"\x00\xff\x00\xff\r\n\r\n", 400),
    "a path that is none": (get("/ü"), 400),
    "a head without end": (get("/b")[:-2] + b"X: " + b"x" * 2 * MAX_HEAD_BYTES, 431),
    "a head that is too long": (get("/b", "X: " + "x" * MAX_HEAD_BYTES), 431),
    "too many headers": (get("/b", *(f"X-{n}: 1" for n in range(MAX_HEADERS))), 431),
    "a target that is too long": (get("/" + "x" * MAX_TARGET_BYTES), 414),
    "trailers without end": (
        get("/b", "Transfer-Encoding: chunked") + b"0\r\nX: " + b"x" * 3 * MAX_HEAD_BYTES,
        431,
    ),
    "a body that is too long": (post(b"x" * (MAX_BODY_BYTES + 1)), 413),
    "a body without end": (get("/b", "Content-Length: 99999999999") + b"x" * (9 * MAX_BODY_BYTES), 413),
}


@pytest.mark.parametrize(("sent", "code"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_answered_is_refused_once_all_before_it_is_answered(sent: bytes, code: int) -> None:
    async def scenario() -> None:
        transport = AtOnce()
        wire, connection, _ = connected(transport)
        data = get("/a") + sent
        for at in range(0, len(data), 65_536):
            connection.data_received(data[at : at + 65_536])
        assert [answer[0] for answer in answers_in(wire)] == [200, code]
        assert len(transport.asked) == 1
        assert not wire.is_open

    play(scenario)


# -- answers that take their time


def test_requests_are_answered_in_order_and_further_ones_wait() -> None:
    async def scenario() -> None:
        transport = Later()
        wire, connection, _ = connected(transport)
        connection.data_received(get("/a") + get("/b"))
        await settled()
        assert [asked.path for asked in transport.asked] == ["/a"]
        assert not wire.is_read_from
        transport.answers[0].set_result(Response(200, b"first"))
        await settled()
        assert [asked.path for asked in transport.asked] == ["/a", "/b"]
        assert wire.is_read_from
        transport.answers[1].set_result(Response(404, b"second"))
        await settled()
        assert answers_in(wire) == [(200, b"first"), (404, b"second")]

    play(scenario)


def test_a_client_that_does_not_read_gets_nothing_more_until_it_does() -> None:
    async def scenario() -> None:
        transport = AtOnce()
        wire, connection, _ = connected(transport)
        connection.pause_writing()
        connection.data_received(get("/a") + get("/b"))
        assert not transport.asked
        assert not wire.is_read_from
        connection.resume_writing()
        assert answers_in(wire) == [(200, b"/a"), (200, b"/b")]
        assert wire.is_read_from

    play(scenario)


def test_a_handler_that_fails_is_an_answer_too(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        transport = Later()
        wire, connection, _ = connected(transport)
        connection.data_received(get("/a") + get("/b"))
        await settled()
        transport.answers[0].set_exception(RuntimeError("oh"))
        await settled()
        assert answers_in(wire) == [(500, b"Internal Server Error")]
        assert not wire.is_open

    play(scenario)
    assert "GET /a failed" in caplog.text


def test_no_header_is_smuggled_into_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        transport = AtOnce()
        transport.response = lambda _: Response(200, b"", headers={"Warning": "a\r\nevil: yes"})
        wire, connection, _ = connected(transport)
        connection.data_received(get("/a"))
        assert answers_in(wire) == [(500, b"Internal Server Error")]
        assert b"evil" not in wire.writes[0]

    play(scenario)
    assert "cannot be sent" in caplog.text


# -- streams


def test_a_stream_goes_out_as_it_comes_and_then_others_are_answered() -> None:
    async def scenario() -> None:
        lines, (wire, connection, _) = streaming()
        connection.data_received(get("/a") + get("/w") + get("/b"))
        await settled()
        lines.say(b"one\n")
        await settled()
        assert b"".join(wire.writes).endswith(b"transfer-encoding: chunked\r\n\r\n4\r\none\n\r\n")
        lines.close()
        await settled()
        assert b"0\r\n\r\nHTTP/1.1 200 OK\r\n" in b"".join(wire.writes)
        assert wire.writes[-1].endswith(b"/b")

    play(scenario)


def test_a_stream_ends_when_its_client_goes() -> None:
    async def scenario() -> None:
        lines, (_, connection, connections) = streaming()
        connection.data_received(get("/w"))
        await settled()
        assert not lines.is_closed
        connection.connection_lost(None)
        assert lines.is_closed
        await connections.close(0.0)

    play(scenario)


def test_a_stream_waits_for_a_client_that_does_not_read() -> None:
    async def scenario() -> None:
        lines, (wire, connection, _) = streaming()
        connection.data_received(get("/w"))
        await settled()
        connection.pause_writing()
        lines.say(b"one\n")
        lines.say(b"two\n")
        await settled()
        assert b"two" not in b"".join(wire.writes)
        connection.resume_writing()
        await settled()
        assert b"two" in b"".join(wire.writes)
        lines.close()
        await settled()

    play(scenario)


# -- the end


def test_at_the_end_streams_end_and_what_is_under_way_is_answered() -> None:
    async def scenario() -> None:
        lines, watching = streaming()
        watching.connection.data_received(get("/w"))
        idle = HttpConnection(AtOnce(), watching.connections)
        idle.connection_made(idle_wire := Wire())
        await settled()
        closing = asyncio.ensure_future(watching.connections.close(60.0))
        await settled()
        assert not idle_wire.is_open
        assert lines.is_closed
        assert watching.wire.writes[-1] == b"0\r\n\r\n"
        assert not watching.wire.is_open
        assert not closing.done()
        for connection in idle, watching.connection:
            connection.connection_lost(None)
        await closing

    play(scenario)
