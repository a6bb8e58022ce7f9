"""Requests that share connections: each gets its own answer, and a slow server is not made slower."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, cast

import pytest
import uvloop

from moorage.client.retry import RetryingTransport
from moorage.clock import VirtualClock
from moorage.http.client_transport import Endpoint, HttpTransport
from moorage.http.errors import AnswerLost, ConnectionFailed
from moorage.http.pipeline import MAX_GROUP_SIZE, MAX_GROUPS, Pipeline
from moorage.http.pool import ConnectionPool
from moorage.http.transport import Request, Response
from tests.http.sockets import Asked, SocketServer, Writer, answer, counting_in_flight, serving


@pytest.fixture(params=(asyncio.run, uvloop.run), ids=("asyncio", "uvloop"))
def run(request: pytest.FixtureRequest) -> Any:
    return request.param


def post(name: str) -> Request:
    return Request("POST", f"/{name}", "", {"content-type": "application/json"}, b"{}", may_share=True)


def _pipelining(url: str) -> HttpTransport:
    return HttpTransport(Endpoint(url), pipelining=True)


async def _echo(server: SocketServer, asked: Asked, writer: Writer) -> None:
    writer.write(answer(asked.line.split(" ")[1].encode()))


# -- over sockets


def test_each_gets_its_own_answer_over_few_connections(run: Any) -> None:
    names = [f"n{number}" for number in range(200)]

    async def scenario() -> None:
        async with serving(_echo) as server, _pipelining(server.url) as transport:
            answers = await asyncio.gather(*(transport.handle(post(name)) for name in names))
        assert [one.body for one in answers] == [f"/{name}".encode() for name in names]
        assert server.connections <= MAX_GROUPS

    run(scenario())


def test_a_client_that_waits_no_longer_does_not_take_the_answers_of_others(run: Any) -> None:
    async def behaviour(server: SocketServer, asked: Asked, writer: Writer) -> None:
        await server.released.wait()
        await _echo(server, asked, writer)

    async def scenario() -> None:
        async with serving(behaviour) as server, _pipelining(server.url) as transport:
            tasks = [asyncio.ensure_future(transport.handle(post(f"n{number}"))) for number in range(6)]
            while not server.asked:
                await asyncio.sleep(0)
            for task in tasks[0], tasks[4]:  # One that has been sent, one that has not.
                task.cancel()
            server.released.set()
            answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [one.body if isinstance(one, Response) else type(one) for one in answers] == [
            asyncio.CancelledError, b"/n1", b"/n2", b"/n3", asyncio.CancelledError, b"/n5",
        ]  # fmt: skip

    run(scenario())


def test_a_server_that_answers_one_request_a_connection_is_soon_sent_one(run: Any) -> None:
    async def behaviour(server: SocketServer, asked: Asked, writer: Writer) -> None:
        writer.write(answer(connection="close"))
        await writer.drain()
        writer.close()

    async def scenario() -> None:
        async with serving(behaviour) as server, _pipelining(server.url) as transport:
            first = await asyncio.gather(
                *(transport.handle(post(f"n{number}")) for number in range(10)), return_exceptions=True
            )
            assert [type(one) for one in first].count(ConnectionFailed) == 1
            assert [type(one) for one in first].count(Response) == 9

    run(scenario())


def test_if_the_connection_breaks_all_answers_are_lost_and_the_next_requests_do_well(run: Any) -> None:
    async def behaviour(server: SocketServer, asked: Asked, writer: Writer) -> None:
        if len(server.asked) == 5:
            writer.close()
        else:
            await _echo(server, asked, writer)

    async def scenario() -> None:
        async with serving(behaviour) as server, _pipelining(server.url) as transport:
            answers = await asyncio.gather(
                *(transport.handle(post(f"n{number}")) for number in range(20)), return_exceptions=True
            )
            lost = [number for number, one in enumerate(answers) if isinstance(one, AnswerLost)]
            assert lost
            assert all(
                isinstance(one, AnswerLost)
                or (isinstance(one, Response) and one.body == f"/n{number}".encode())
                for number, one in enumerate(answers)
            )
            assert (await transport.handle(post("later"))).body == b"/later"

    run(scenario())


def test_requests_behind_an_answer_that_closes_the_connection_are_sent_again(run: Any) -> None:
    async def behaviour(server: SocketServer, asked: Asked, writer: Writer) -> None:
        closes = len(server.asked) % 5 == 0
        writer.write(answer(asked.body, connection="close" if closes else "keep-alive"))
        if closes:
            await writer.drain()
            writer.close()

    async def scenario() -> None:
        async with serving(behaviour) as server, _pipelining(server.url) as transport:
            clock = VirtualClock()
            retrying = RetryingTransport(transport, clock, Random(1))
            tasks = [asyncio.ensure_future(retrying.handle(post(f"n{number}"))) for number in range(40)]
            while not all(task.done() for task in tasks):
                await asyncio.sleep(0)
                clock.advance(0.01)
            for task in tasks:
                assert task.result().status == 200
        assert len(server.asked) == 40, "nothing was carried out twice"

    run(scenario())


@pytest.mark.parametrize("pipelining", [False, True])
def test_only_with_pipelining_a_connection_has_several_requests_under_way(run: Any, pipelining: bool) -> None:
    class Server:
        async def handle(self, request: Request) -> Response:
            return Response(200, request.path.encode())

    async def scenario() -> None:
        async with (
            counting_in_flight(Server()) as in_flight,
            HttpTransport(Endpoint(in_flight.url), pipelining=pipelining) as transport,
        ):
            names = [f"n{number}" for number in range(50)]
            answers = await asyncio.gather(*(transport.handle(post(name)) for name in names))
        assert [one.body for one in answers] == [f"/{name}".encode() for name in names]
        assert len(in_flight.now) <= MAX_GROUPS
        assert (in_flight.most > 1) is pipelining

    run(scenario())


def test_an_unreachable_server_is_reported_as_connection_failure(run: Any) -> None:
    async def scenario() -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{unused.getsockname()[1]}"
            async with _pipelining(url) as transport:
                answers = await asyncio.gather(
                    *(transport.handle(post(f"n{number}")) for number in range(9)), return_exceptions=True
                )
        assert {type(one) for one in answers} == {ConnectionFailed}

    run(scenario())


def test_waiting_requests_fail_when_the_pipeline_closes() -> None:
    async def behaviour(server: SocketServer, asked: Asked, writer: Writer) -> None:
        await server.released.wait()

    async def scenario() -> None:
        async with serving(behaviour) as server:
            async with _pipelining(server.url) as transport:
                tasks = [asyncio.ensure_future(transport.handle(post(f"n{number}"))) for number in range(9)]
                while not server.asked:
                    await asyncio.sleep(0)
            answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(one, ConnectionFailed) for one in answers)
        assert sum(isinstance(one, AnswerLost) for one in answers) == 2, "only what was sent can be lost"

    asyncio.run(scenario())


# -- how many go together


class StagedConnection:
    """A connection whose answers come when a test says so, and as slowly."""

    def __init__(self) -> None:
        self.is_reusable = True
        self.answers_took_seconds = 0.0
        self.sent: list[int] = []
        self._answers: list[asyncio.Future[Response]] = []
        self._done: Callable[[], None] | None = None

    def send(
        self,
        requests: bytes,
        answers: Iterable[asyncio.Future[Response]],
        idle_seconds: float,
        done: Callable[[], None],
    ) -> None:
        self._answers, self._done = list(answers), done
        self.sent.append(len(self._answers))

    def answer(self, took_seconds: float) -> None:
        self.answers_took_seconds = took_seconds
        for one in self._answers:
            one.set_result(Response(200, b""))
        assert self._done is not None
        self._done()


class StagedPool:
    """One connection, and no more to be had."""

    def __init__(self) -> None:
        self.connection = StagedConnection()
        self.is_free = True

    def take_idle(self) -> StagedConnection | None:
        is_free, self.is_free = self.is_free, False
        return self.connection if is_free else None

    def give_back(self, connection: StagedConnection) -> None:
        self.is_free = True

    async def connect(self) -> StagedConnection:
        return await asyncio.get_running_loop().create_future()


PACES: dict[str, tuple[list[Callable[[int], float]], list[int]]] = {
    "all answers come at once": ([lambda count: 0.0] * 6, [2, 4, 8, 16, MAX_GROUP_SIZE, MAX_GROUP_SIZE]),
    "5 ms each": ([lambda count: 0.005 * (count - 1)] * 6, [2, 4, 2, 4, 2, 4]),
    "a second each": ([lambda count: 1.0 * (count - 1)] * 4, [2, 1, 1, 1]),
    "slow for a moment": ([lambda count: 0.1] + [lambda count: 0.0] * 3, [2, 1, 1, 1]),
    "slow long ago": ([lambda count: 0.1] + [lambda count: 0.0] * 22, [2, *[1] * 20, 2, 4]),
}


@pytest.mark.parametrize(("paces", "sent"), PACES.values(), ids=PACES)
def test_as_many_go_together_as_are_answered_in_a_moment(
    paces: list[Callable[[int], float]], sent: list[int]
) -> None:
    async def scenario() -> None:
        pool = StagedPool()
        pipeline = Pipeline(cast(ConnectionPool, pool), 60.0)
        tasks = [asyncio.ensure_future(pipeline.ask(b"x")) for _ in range(400)]
        for pace in paces:
            groups = len(pool.connection.sent)
            while len(pool.connection.sent) == groups or pool.is_free:
                await asyncio.sleep(0)
            pool.connection.answer(pace(pool.connection.sent[-1]))
        assert pool.connection.sent == sent
        pipeline.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(scenario())


def test_without_pipelining_a_request_leaves_at_once_if_a_connection_is_idle() -> None:
    async def scenario() -> None:
        pool = StagedPool()
        pipeline = Pipeline(cast(ConnectionPool, pool), 60.0, limit=1)
        first, second = pipeline.ask(b"first"), pipeline.ask(b"second")
        assert pool.connection.sent == [1]
        pool.connection.answer(0.0)
        assert (first.done(), pool.connection.sent) == (True, [1])  # What is behind the answer is read first.
        await asyncio.sleep(0)
        assert pool.connection.sent == [1, 1]
        pool.connection.answer(0.0)
        assert second.done()

    asyncio.run(scenario())


def test_before_a_request_leaves_that_has_waited_it_is_asked_again_whether_it_may() -> None:
    async def scenario() -> None:
        pool = StagedPool()
        sent_before: list[int] = []
        pipeline = Pipeline(
            cast(ConnectionPool, pool),
            60.0,
            limit=1,
            before_sending=lambda: sent_before.append(len(pool.connection.sent)),
        )
        for name in (b"first", b"second"):
            pipeline.ask(name)
        assert sent_before == [0]
        pool.connection.answer(0.0)
        await asyncio.sleep(0)
        assert sent_before == [0, 1]
        pool.connection.answer(0.0)

    asyncio.run(scenario())


@pytest.mark.parametrize("pipelining", [False, True])
def test_only_requests_with_a_body_are_asked_for(run: Any, pipelining: bool) -> None:
    asked: list[str] = []

    async def scenario() -> None:
        async with serving(_echo) as server:
            transport = HttpTransport(
                Endpoint(server.url), pipelining=pipelining, before_writing=lambda: asked.append("may I")
            )
            async with transport:
                await transport.handle(Request("GET", "/read"))
                assert asked == []
                await transport.handle(post("write"))

    run(scenario())
    assert asked == ["may I"]
