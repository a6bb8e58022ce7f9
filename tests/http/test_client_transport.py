"""The transport over HTTP, against servers that behave and servers that do not."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from moorage.http.client_transport import Endpoint, HttpTransport
from moorage.http.errors import AnswerLost, ConnectionFailed
from moorage.http.transport import Request, Response
from tests.http.sockets import CHUNKED, Asked, SocketServer, Writer, answer, chunk, proxying, serving

GET = Request("GET", "/api/v1/nodes")
WATCH = Request("GET", "/api/v1/nodes", "watch=1")
POST = Request("POST", "/api/v1/nodes", "", {"content-type": "application/json"}, b'{"a":1}')
SHORT_SECONDS = 0.2
LONG_SECONDS = 30.0

RUNNERS: dict[str, Callable[[Coroutine[Any, Any, None]], None]] = {
    "asyncio": asyncio.run,
    "uvloop": uvloop.run,
}


@pytest.fixture(params=list(RUNNERS.values()), ids=list(RUNNERS))
def run(request: pytest.FixtureRequest) -> Any:
    """On both event loops: the scheduler runs on uvloop, tests and tools mostly on asyncio's own."""
    return request.param


async def _good(server: SocketServer, asked: Asked, writer: Writer) -> None:
    writer.write(answer(b'{"fine":true}', x_more="yes"))


# -- requests and answers


def test_a_request_arrives_as_it_was_meant_and_so_does_its_answer(run: Any) -> None:
    async def scenario() -> None:
        async with serving(_good) as server, HttpTransport(Endpoint(f"{server.url}/prefix/")) as transport:
            response = await transport.handle(
                Request("POST", "/api/v1/näh x", "a=b", {"accept": "x", "host": "localhost"}, b"body")
            )
        assert (response.status, response.body) == (200, b'{"fine":true}')
        assert response.content_type == "application/json"
        assert response.headers["x-more"] == "yes"
        (asked,) = server.asked
        assert asked.line == "POST /prefix/api/v1/n%C3%A4h%20x?a=b HTTP/1.1"
        assert asked.header("host") == [server.url.removeprefix("http://")]
        assert asked.header("accept") == ["x"]
        assert asked.body == b"body"

    run(scenario())


def test_a_header_may_come_several_times() -> None:
    async def scenario() -> None:
        groups = [("impersonate-group", "a"), ("impersonate-group", "b")]
        async with serving(_good) as server, HttpTransport(Endpoint(server.url)) as transport:
            await transport.handle(Request("GET", "/", repeated=groups))
        assert server.asked[0].header("impersonate-group") == ["a", "b"]

    asyncio.run(scenario())


def test_the_client_is_named_with_every_request() -> None:
    async def scenario() -> None:
        async with serving(_good) as server, HttpTransport(Endpoint(server.url)) as transport:
            claims = Request("GET", "/", headers={"authorization": "Bearer own", "x": "1"})
            await transport.handle(claims)
            transport.introduce([("authorization", "Bearer a"), ("impersonate-group", "g")])
            await transport.handle(claims)
            await transport.handle(POST)
            transport.introduce([("authorization", "Bearer b")])
            await transport.handle(claims)
        headers_sent = [
            (each.header("authorization"), each.header("impersonate-group")) for each in server.asked
        ]
        a = (["Bearer a"], ["g"])
        assert headers_sent == [(["Bearer own"], []), a, a, (["Bearer b"], [])]
        assert [each.header("x") for each in server.asked] == [["1"], ["1"], [], ["1"]]

    asyncio.run(scenario())


SMUGGLED = {
    "a header": Request("GET", "/", headers={"x": "a\r\nevil: yes"}),
    "the query": Request("GET", "/", "a=b HTTP/1.1\r\nevil: yes"),
    "a bare line feed": Request("GET", "/", headers={"x": "a\nevil: yes"}),
}


@pytest.mark.parametrize("request_", SMUGGLED.values(), ids=SMUGGLED)
def test_nothing_can_be_smuggled_into_the_head(request_: Request) -> None:
    async def scenario() -> None:
        async with serving(_good) as server, HttpTransport(Endpoint(server.url)) as transport:
            with pytest.raises(ValueError, match="line break"):
                await transport.handle(request_)
        assert not server.asked

    asyncio.run(scenario())


def test_connections_are_kept_and_no_more_are_opened_than_allowed(run: Any) -> None:
    async def behaviour(server: SocketServer, asked: Asked, writer: Writer) -> None:
        await asyncio.sleep(0)
        writer.write(answer())

    async def scenario() -> None:
        async with (
            serving(behaviour) as server,
            HttpTransport(Endpoint(server.url), most_connections=3) as transport,
        ):
            await asyncio.gather(*(transport.handle(GET) for _ in range(50)))
        assert len(server.asked) == 50
        assert server.connections == 3

    run(scenario())


def test_a_connection_that_the_server_closes_is_not_used_again(run: Any) -> None:
    async def behaviour(server: SocketServer, asked: Asked, writer: Writer) -> None:
        writer.write(answer(connection="close"))
        await writer.drain()
        writer.close()

    async def scenario() -> None:
        async with serving(behaviour) as server, HttpTransport(Endpoint(server.url)) as transport:
            for _ in range(3):
                assert (await transport.handle(POST)).status == 200
        assert server.connections == 3

    run(scenario())


def test_a_connection_with_an_abandoned_request_is_not_used_again(run: Any) -> None:
    async def behaviour(server: SocketServer, asked: Asked, writer: Writer) -> None:
        if len(server.asked) == 1:
            await server.released.wait()
        writer.write(answer(b'"%d"' % len(server.asked)))

    async def scenario() -> None:
        async with serving(behaviour) as server, HttpTransport(Endpoint(server.url)) as transport:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(transport.handle(GET), SHORT_SECONDS)
            assert (await transport.handle(GET)).body == b'"2"'
        assert [asked.connection for asked in server.asked] == [1, 2]

    run(scenario())


# -- failures


def test_a_server_that_is_not_there_cannot_have_done_anything(run: Any) -> None:
    async def scenario() -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{unused.getsockname()[1]}"
            async with HttpTransport(Endpoint(url)) as transport:
                with pytest.raises(
                    ConnectionFailed, match=r"cannot be reached: connection refused"
                ) as caught:
                    await transport.handle(POST)
        assert not isinstance(caught.value, AnswerLost)

    run(scenario())


async def _hang_up(server: SocketServer, asked: Asked, writer: Writer) -> None:
    writer.close()


async def _hang_up_in_the_answer(server: SocketServer, asked: Asked, writer: Writer) -> None:
    writer.write(answer(b'{"long":"answer"}')[:-4])
    writer.close()


async def _hang_up_in_a_chunk(server: SocketServer, asked: Asked, writer: Writer) -> None:
    writer.write(CHUNKED + chunk(b'{"long":"answer"}')[:-6])
    writer.close()


async def _talk_nonsense(server: SocketServer, asked: Asked, writer: Writer) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")


async def _stay_silent(server: SocketServer, asked: Asked, writer: Writer) -> None:
    await server.released.wait()


async def _stop_in_the_answer(server: SocketServer, asked: Asked, writer: Writer) -> None:
    writer.write(answer(b'{"long":"answer"}')[:-4])
    await server.released.wait()


BROKEN = {
    "it hangs up": (_hang_up, "broke"),
    "it hangs up in the answer": (_hang_up_in_the_answer, "broke"),
    "it hangs up in a chunk": (_hang_up_in_a_chunk, "broke"),
    "it speaks something else": (_talk_nonsense, "does not speak HTTP"),
    "it says nothing": (_stay_silent, "nothing for 0.2 s"),
    "it stops in the answer": (_stop_in_the_answer, "nothing for 0.2 s"),
}


@pytest.mark.parametrize(("behaviour", "message"), BROKEN.values(), ids=BROKEN)
def test_an_answer_that_does_not_come_is_lost(run: Any, behaviour: Any, message: str) -> None:
    async def scenario() -> None:
        async with (
            serving(behaviour) as server,
            HttpTransport(Endpoint(server.url), idle_seconds=SHORT_SECONDS) as transport,
        ):
            with pytest.raises(AnswerLost, match=message):
                await transport.handle(POST)
            assert len(server.asked) == 1, "asked again, which is the caller's to decide"

    run(scenario())


def test_a_slow_answer_is_waited_for_as_long_as_something_comes(run: Any) -> None:
    pieces, limit = 5, 0.8

    async def behaviour(server: SocketServer, asked: Asked, writer: Writer) -> None:
        writer.write(CHUNKED)
        for _ in range(pieces):
            await asyncio.sleep(limit / (pieces - 1))
            writer.write(chunk(b"x"))
        writer.write(chunk(b""))

    async def scenario() -> None:
        async with (
            serving(behaviour) as server,
            HttpTransport(Endpoint(server.url), idle_seconds=limit) as transport,
        ):
            assert (await transport.handle(GET)).body == b"x" * pieces

    run(scenario())


def test_a_server_that_does_not_take_connections_is_given_up() -> None:
    async def scenario() -> None:
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            address = full.getsockname()
            fillers = [socket.socket() for _ in range(3)]
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(address)
            url = f"http://127.0.0.1:{address[1]}"
            async with HttpTransport(Endpoint(url), connect_seconds=SHORT_SECONDS) as transport:
                with pytest.raises(ConnectionFailed, match="time-out"):
                    await transport.handle(GET)
            for filler in fillers:
                filler.close()

    asyncio.run(scenario())


# -- streams


async def _read(response: Response) -> bytes:
    assert not isinstance(response.body, bytes)
    return b"".join([piece async for piece in response.body])


def test_a_watch_comes_as_it_is_sent_however_long_it_takes(run: Any) -> None:
    async def behaviour(server: SocketServer, asked: Asked, writer: Writer) -> None:
        writer.write(CHUNKED + chunk(b"one\n"))
        await server.released.wait()
        writer.write(chunk(b"two\n") + chunk(b""))

    async def scenario() -> None:
        async with (
            serving(behaviour) as server,
            HttpTransport(Endpoint(server.url), idle_seconds=SHORT_SECONDS) as transport,
        ):
            response = await transport.handle(WATCH)
            assert not isinstance(response.body, bytes)
            pieces = aiter(response.body)
            assert await anext(pieces) == b"one\n"
            waiting = asyncio.ensure_future(anext(pieces))
            await asyncio.wait([waiting], timeout=2 * SHORT_SECONDS)
            assert not waiting.done(), "how long a watch may be silent is its reader's to decide"
            server.released.set()
            assert await waiting == b"two\n"
            with pytest.raises(StopAsyncIteration):
                await anext(pieces)

    run(scenario())


def test_a_watch_that_breaks_is_not_one_that_ends(run: Any) -> None:
    async def behaviour(server: SocketServer, asked: Asked, writer: Writer) -> None:
        writer.write(CHUNKED + chunk(b"one\n"))
        writer.close()

    async def scenario() -> None:
        async with serving(behaviour) as server, HttpTransport(Endpoint(server.url)) as transport:
            response = await transport.handle(WATCH)
            assert not isinstance(response.body, bytes)
            pieces = aiter(response.body)
            assert await anext(pieces) == b"one\n"
            with pytest.raises(ConnectionFailed):
                await anext(pieces)

    run(scenario())


def test_a_watch_that_is_refused_is_an_ordinary_answer() -> None:
    async def behaviour(server: SocketServer, asked: Asked, writer: Writer) -> None:
        writer.write(answer(b'{"kind":"Status"}', "410 Gone"))

    async def scenario() -> None:
        async with serving(behaviour) as server, HttpTransport(Endpoint(server.url)) as transport:
            response = await transport.handle(WATCH)
            assert (response.status, response.body) == (410, b'{"kind":"Status"}')

    asyncio.run(scenario())


def test_closing_a_watch_ends_it_for_its_reader_and_for_the_server(run: Any) -> None:
    async def scenario() -> None:
        gone = asyncio.Event()

        async def behaviour(server: SocketServer, asked: Asked, writer: Writer) -> None:
            writer.write(CHUNKED + chunk(b"one\n"))
            try:
                while True:
                    await asyncio.sleep(0)
                    writer.write(chunk(b"more\n"))
                    await writer.drain()
            except ConnectionError:
                gone.set()

        async with serving(behaviour) as server, HttpTransport(Endpoint(server.url)) as transport:
            response = await transport.handle(WATCH)
            assert not isinstance(response.body, bytes)
            pieces = aiter(response.body)
            await anext(pieces)
            response.body.close()
            with pytest.raises(StopAsyncIteration):
                await anext(pieces)
            await asyncio.wait_for(gone.wait(), LONG_SECONDS)

    run(scenario())


def test_a_reader_that_does_not_keep_up_makes_the_server_wait(run: Any) -> None:
    piece, enough = b"x" * 65_536, 64 * 1024 * 1024

    async def scenario() -> None:
        stuck = asyncio.Event()
        sent = 0

        async def behaviour(server: SocketServer, asked: Asked, writer: Writer) -> None:
            nonlocal sent
            writer.write(CHUNKED)
            while sent < enough:
                writer.write(chunk(piece))
                sent += len(piece)
                draining = asyncio.ensure_future(writer.drain())
                await asyncio.wait([draining], timeout=SHORT_SECONDS)
                if not draining.done():
                    stuck.set()
                    await draining
            writer.write(chunk(b""))

        async with serving(behaviour) as server, HttpTransport(Endpoint(server.url)) as transport:
            response = await transport.handle(WATCH)
            await asyncio.wait_for(stuck.wait(), LONG_SECONDS)
            assert sent < enough
            assert len(await _read(response)) == enough

    run(scenario())


# -- a proxy


def test_a_server_is_reached_through_a_proxy(run: Any) -> None:
    async def scenario() -> None:
        async with proxying() as (address, asked), serving(_good) as server:
            proxy_url = f"http://me:secret@{address}"
            async with HttpTransport(Endpoint(server.url, proxy_url=proxy_url)) as transport:
                assert (await transport.handle(GET)).status == 200
                assert (await transport.handle(GET)).status == 200
        assert [one.line for one in asked] == [f"CONNECT {server.url[7:]} HTTP/1.1"]
        assert asked[0].header("proxy-authorization") == ["Basic bWU6c2VjcmV0"]

    run(scenario())


def test_what_a_proxy_refuses_is_reported() -> None:
    async def refuse(server: SocketServer, asked: Asked, writer: Writer) -> None:
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")

    async def scenario() -> None:
        async with (
            serving(refuse) as proxy,
            HttpTransport(Endpoint("http://10.0.0.1:80", proxy_url=proxy.url)) as transport,
        ):
            with pytest.raises(ConnectionFailed, match="407 proxy authentication required"):
                await transport.handle(GET)

    asyncio.run(scenario())
