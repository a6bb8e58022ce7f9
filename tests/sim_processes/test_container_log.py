from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from moorage.apimachinery.errors import ApiError
from moorage_cluster.nodes.log_options import LogOptions
from moorage_cluster.processes.container_log import ContainerLog, LogStream

START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


class Times:
    """A second passes with every look at the clock."""

    def __init__(self) -> None:
        self._seconds = -1

    def __call__(self) -> datetime:
        self._seconds += 1
        return START + timedelta(seconds=self._seconds)


def written(*pieces: bytes, max_bytes: int = 1000) -> ContainerLog:
    async def run() -> ContainerLog:
        log = ContainerLog(Times(), max_bytes)
        for piece in pieces:
            log.write(piece)
        log.close()
        return log

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, b"one\ntwo\nthree"),
        ({"tailLines": "1"}, b"three"),
        ({"tailLines": "0"}, b""),
        ({"limitBytes": "5"}, b"one\nt"),
        ({"sinceSeconds": "8"}, b"three"),
        ({"sinceTime": "2026-03-01T12:00:01Z"}, b"two\nthree"),
        ({"timestamps": "true", "tailLines": "1"}, b"2026-03-01T12:00:03.000000Z three"),
    ],
)
def test_what_is_asked_for(query: dict[str, str], expected: bytes) -> None:
    # The second line ends with what came a second later, the last one when the log was closed.
    log = written(b"one\nt", b"wo\nthr", b"ee")
    assert log.read(LogOptions.of(query, START + timedelta(seconds=10))) == expected


def test_only_the_newest_lines_are_kept() -> None:
    log = written(b"first\n", b"second\n", b"third\n", max_bytes=13)
    assert log.read(LogOptions()) == b"second\nthird\n"
    assert log.tail(1, 4) == "ird\n"


def test_a_log_that_is_followed_ends_with_its_container() -> None:
    async def run() -> list[bytes]:
        log = ContainerLog(Times())
        log.write(b"old\none\n")
        pieces = []
        async for piece in LogStream(log, LogOptions(tail_lines=1)):
            pieces.append(piece)
            if piece == b"one\n":
                log.write(b"two\nthr")
                log.close()
        return pieces

    assert asyncio.run(run()) == [b"one\n", b"two\nthr"]


def test_a_reader_that_goes_ends_the_stream() -> None:
    async def run() -> list[bytes]:
        log = ContainerLog(Times())
        stream = LogStream(log, LogOptions(limit_bytes=100))
        asyncio.get_running_loop().call_soon(stream.close)
        return [piece async for piece in stream]

    assert asyncio.run(run()) == []


@pytest.mark.parametrize("query", [{"tailLines": "x"}, {"sinceTime": "yesterday"}])
def test_an_option_that_cannot_be_read(query: dict[str, str]) -> None:
    with pytest.raises(ApiError, match=next(iter(query))):
        LogOptions.of(query, START)
