"""Waiting for others: never where little happens, never for long where much does."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from moorage.http.batching import MAX_UNBATCHED, BatchWindow
from moorage.http.client_connection import HttpClientConnection
from moorage.http.pipeline import Pipeline
from moorage.http.pool import ConnectionPool
from moorage.http.transport import Stream
from tests.http.test_pipeline import StagedPool

WINDOW_SECONDS = 0.01
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"


@given(st.lists(st.floats(0.0, 0.05), max_size=200))
def test_no_request_waits_longer_than_a_batch_window(pauses: list[float]) -> None:
    batch_window, now, done = BatchWindow(WINDOW_SECONDS), 100.0, list[float]()
    for pause in pauses:
        now += pause
        waits = batch_window.wait_seconds(now)
        assert 0.0 <= waits <= WINDOW_SECONDS + 1e-9
        now += waits
        done.append(now)
    for first, last in zip(done, done[MAX_UNBATCHED + 1 :], strict=False):
        assert last - first >= WINDOW_SECONDS - 1e-9, "no more than a few in a row"


@given(st.lists(st.floats(WINDOW_SECONDS, 10.0), max_size=50))
def test_what_is_rare_does_not_wait(pauses: list[float]) -> None:
    batch_window, now = BatchWindow(WINDOW_SECONDS), 100.0
    for pause in pauses:
        now += pause
        assert batch_window.wait_seconds(now) == 0.0


def test_requests_that_are_many_are_gathered() -> None:
    async def scenario() -> None:
        pool = StagedPool()
        pipeline = Pipeline(cast(ConnectionPool, pool), 60.0, gather_seconds=0.05)
        for _ in range(MAX_UNBATCHED):
            task = asyncio.ensure_future(pipeline.ask(b"x"))
            while pool.is_free:
                await asyncio.sleep(0)
            pool.connection.answer(0.0)
            await task
        assert pool.connection.sent == [1] * MAX_UNBATCHED, "at first each goes alone, and at once"
        tasks = []
        for _ in range(2):
            tasks.append(asyncio.ensure_future(pipeline.ask(b"x")))
            for _ in range(5):
                await asyncio.sleep(0)
        while pool.is_free:
            await asyncio.sleep(0)
        pool.connection.answer(0.0)
        await asyncio.gather(*tasks)
        assert pool.connection.sent[MAX_UNBATCHED:] == [2]

    asyncio.run(scenario())


class Tap(asyncio.Transport):
    """A connection's socket that notes whether it is read from."""

    def __init__(self) -> None:
        super().__init__()
        self.is_open = asyncio.Event()
        self.is_open.set()

    def write(self, data: Any) -> None:
        pass

    def abort(self) -> None:
        pass

    def pause_reading(self) -> None:
        self.is_open.clear()

    def resume_reading(self) -> None:
        self.is_open.set()


def receive(connection: HttpClientConnection, data: bytes) -> None:
    """Have a connection receive data, as an event loop does."""
    connection.get_buffer(len(data))[: len(data)] = data
    connection.buffer_updated(len(data))


async def opened() -> tuple[Tap, HttpClientConnection, Stream]:
    """A stream that has begun."""
    tap, connection = Tap(), HttpClientConnection()
    connection.connection_made(tap)
    asking = asyncio.ensure_future(connection.ask(b"GET", True, 60.0))
    await asyncio.sleep(0)
    receive(connection, HEAD)
    stream = (await asking).body
    assert not isinstance(stream, bytes)
    return tap, connection, stream


def test_all_that_a_connection_receives_comes_through_its_one_buffer() -> None:
    async def scenario() -> None:
        connection = HttpClientConnection()
        connection.connection_made(Tap())
        size = len(connection.get_buffer(-1))
        body = b"".join(str(number).encode() for number in range(size))
        answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
        asking = asyncio.ensure_future(connection.ask(b"GET", False, 60.0))
        await asyncio.sleep(0)
        for start in range(0, len(answer), size):
            receive(connection, answer[start : start + size])
        assert (await asking).body == body, "though later data has overwritten it in the buffer"
        assert connection.get_buffer(-1).obj is connection.get_buffer(2 * size).obj
        connection.connection_lost(None)

    asyncio.run(scenario())


def test_a_stream_on_which_much_comes_is_left_alone_between_beats() -> None:
    async def scenario() -> None:
        tap, connection, stream = await opened()
        pieces = aiter(stream)
        read = b""
        while tap.is_open.is_set():
            receive(connection, b"1\r\nx\r\n")
            read += await anext(pieces)
        assert len(read) >= MAX_UNBATCHED - 1, "at first all is read as it comes"
        await tap.is_open.wait()
        receive(connection, b"1\r\ny\r\n")
        assert await anext(pieces) == b"y"
        connection.connection_lost(None)

    asyncio.run(scenario())


def test_a_stream_that_breaks_between_two_beats_is_not_read_from_again() -> None:
    async def scenario() -> None:
        tap, connection, stream = await opened()
        while tap.is_open.is_set():
            receive(connection, b"1\r\nx\r\n")
        connection.connection_lost(None)
        assert set(await anext(aiter(stream))) == set(b"x"), "what came before is still read"
        loop = asyncio.get_running_loop()
        over = asyncio.Event()
        loop.call_later(2 * WINDOW_SECONDS, over.set)
        await over.wait()
        assert not tap.is_open.is_set()

    asyncio.run(scenario())
