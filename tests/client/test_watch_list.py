"""How an informer gets its first state: by a watch-list where that works, else by list and watch."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from functools import partial
from urllib.parse import urlencode

import msgspec
import pytest

from moorage.client.kinds import CONFIG_MAP
from moorage.http.errors import AnswerLost, ConnectionFailed, NoAccess
from moorage.http.transport import Request, Response, Transport
from tests.client.faults import refusal
from tests.client.harness import ClientHarness, config_map, in_default, in_harness, running, settled, versions
from tests.client.scripted import BOOKMARK, Changed, Pieces, scripted_object, watch_event, watched

MANY = 1201


class WatchListAnswer(Changed):
    """A server whose answers to watch-lists are scripted."""

    def __init__(self, transport: Transport, answer: Callable[[], Response]) -> None:
        super().__init__(transport)
        self._answer = answer

    def answer(self, query: dict[str, str]) -> Response | None:
        return self._answer() if "sendInitialEvents" in query else None


class NoWatchList(WatchListAnswer):
    """A server that refuses watch-lists."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport, lambda: refusal(422))


class WithoutWatchList(Changed):
    """A server from before watch-lists: it ignores what it does not know."""

    def changed(self, request: Request) -> Request:
        query = dict(pair.split("=", 1) for pair in request.query.split("&") if pair)
        query.pop("sendInitialEvents", None)
        query.pop("resourceVersionMatch", None)
        return Request(request.method, request.path, urlencode(query), request.headers, request.body)


def test_the_state_comes_with_the_watch_where_that_is_offered() -> None:
    async def scenario(harness: ClientHarness) -> None:
        await harness.client.create(CONFIG_MAP, "default", config_map("one", "1"))
        transport = Changed(harness.server.api)
        recorded = harness.informer(transport)
        async with running(recorded):
            await recorded.informer.synced()
            await harness.client.create(CONFIG_MAP, "default", config_map("two", "2"))
            await settled()
            assert in_default(recorded) == versions(await harness.objects())
        assert [query.get("sendInitialEvents") for query in transport.asked] == ["true"]
        assert 300 <= int(transport.asked[0]["timeoutSeconds"]) <= 600

    in_harness(scenario)


def test_where_no_watch_list_is_offered_everything_is_listed_in_pages() -> None:
    async def scenario(harness: ClientHarness) -> None:
        for number in range(MANY):
            await harness.client.create(CONFIG_MAP, "default", config_map(f"m-{number}", ""))
        transport = NoWatchList(harness.server.api)
        recorded = harness.informer(transport)
        async with running(recorded):
            await recorded.informer.synced()
            await settled()
            await harness.client.delete(CONFIG_MAP, "default", "m-0")
            await settled()
            assert in_default(recorded) == versions(await harness.objects())
            assert len(recorded.reported) == len(set(recorded.reported))
        lists = [query for query in transport.asked if "watch" not in query]
        assert ["continue" in query for query in lists] == [False, True, True]
        assert {query["limit"] for query in lists} == {"500"}

    in_harness(scenario)


def test_it_is_asked_only_once_whether_watch_lists_are_offered() -> None:
    async def scenario(harness: ClientHarness) -> None:
        transport = NoWatchList(harness.server.api)
        recorded = harness.informer(transport)
        async with running(recorded):
            await harness.passes(1500, step=5)
        assert sum("sendInitialEvents" in query for query in transport.asked) == 1
        assert sum("resourceVersion" in query for query in transport.asked) > 1, "no watch was ever resumed"

    in_harness(scenario)


def test_a_server_that_does_not_know_watch_lists_is_recognised_by_its_first_bookmark() -> None:
    async def scenario(harness: ClientHarness) -> None:
        await harness.client.create(CONFIG_MAP, "default", config_map("one", "1"))
        recorded = harness.informer(WithoutWatchList(harness.server.api))
        async with running(recorded):
            await harness.passes(90, step=1)
            assert in_default(recorded) == versions(await harness.objects())
        assert sum(name == "one" for _, name, _ in recorded.reported) == 1

    in_harness(scenario)


def test_pages_that_have_expired_are_replaced_by_one_list() -> None:
    class Forgetful(NoWatchList):
        def answer(self, query: dict[str, str]) -> Response | None:
            return refusal(410) if "continue" in query else super().answer(query)

    async def scenario(harness: ClientHarness) -> None:
        for number in range(MANY):
            await harness.client.create(CONFIG_MAP, "default", config_map(f"m-{number}", ""))
        transport = Forgetful(harness.server.api)
        recorded = harness.informer(transport)
        async with running(recorded):
            await recorded.informer.synced()
            assert in_default(recorded) == versions(await harness.objects())
        assert "limit" not in [query for query in transport.asked if "watch" not in query][-1]

    in_harness(scenario)


# -- watch-lists that fail

NO_PROGRESS = (
    "a watch stream was requested by the client but the required storage feature "
    "RequestWatchProgress is disabled"
)
FALLBACK = "Watch-list not supported for configmaps, falling back to list and watch"


def _raised(error: Exception) -> Response:
    raise error


def _error_event(code: int, message: str) -> bytes:
    return watch_event("ERROR", {"kind": "Status", "status": "Failure", "code": code, "message": message})


class BreakingStream(Pieces):
    """A stream of given pieces, which then breaks."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in super().__aiter__():
            yield piece
        raise AnswerLost("the connection broke")


FAILED_WATCH_LISTS: dict[str, Callable[[], Response]] = {
    "etcd cannot report progress": lambda: watched(_error_event(500, NO_PROGRESS)),
    "an error amid the initial events": lambda: watched(
        watch_event("ADDED", scripted_object("gone", 1)), _error_event(500, "etcdserver: leader changed")
    ),
    "an error without a code": lambda: watched(watch_event("ERROR", {"kind": "Status"})),
    "an error that says expired": lambda: watched(_error_event(410, "too old resource version")),
    "an unreadable event": lambda: watched(b"<html>\n"),
    "half an event": lambda: watched(watch_event("ADDED", scripted_object("gone", 1))[:20]),
    "a broken stream": lambda: Response(
        200, BreakingStream(watch_event("ADDED", scripted_object("gone", 1)))
    ),
    "a stream that ends early": lambda: watched(watch_event("ADDED", scripted_object("gone", 1))),
    "an empty stream": watched,
    "a bookmark that is not the last initial event": lambda: watched(watch_event("BOOKMARK", BOOKMARK)),
    "a lost answer": lambda: _raised(AnswerLost("the connection broke")),
    **{f"status {code}": partial(refusal, code) for code in (400, 404, 410, 422, 500, 503)},
}


@pytest.mark.parametrize("failure", FAILED_WATCH_LISTS.values(), ids=FAILED_WATCH_LISTS)
def test_whatever_fails_a_watch_list_a_list_and_a_watch_take_its_place(
    failure: Callable[[], Response], caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(harness: ClientHarness) -> None:
        await harness.client.create(CONFIG_MAP, "default", config_map("one", "1"))
        transport = WatchListAnswer(harness.server.api, failure)
        recorded = harness.informer(transport)
        async with running(recorded):
            assert in_default(recorded) == versions(await harness.objects())
            await harness.client.create(CONFIG_MAP, "default", config_map("two", "2"))
            await settled()
            assert in_default(recorded) == versions(await harness.objects())
        assert [name for _, name, _ in recorded.reported if name == "gone"] == []
        assert _requests(transport) == ["watch-list", "list", "watch"]

    with caplog.at_level(logging.INFO):
        in_harness(scenario)
    assert caplog.text.count(FALLBACK) == 1


def _requests(transport: Changed) -> list[str]:
    return [
        "watch-list" if "sendInitialEvents" in query else "watch" if "watch" in query else "list"
        for query in transport.asked
    ]


RETRIED_WATCH_LISTS: dict[str, Callable[[], Response]] = {
    "nothing listens": lambda: _raised(ConnectionFailed("connection refused")),
    "no credentials": lambda: _raised(NoAccess("no token")),
    "too many requests, in the stream": lambda: watched(
        watch_event("ADDED", scripted_object("one", 1)), _error_event(429, "storage is (re)initializing")
    ),
    **{f"status {code}": partial(refusal, code) for code in (401, 403, 429)},
}


@pytest.mark.parametrize("failure", RETRIED_WATCH_LISTS.values(), ids=RETRIED_WATCH_LISTS)
def test_a_failure_that_says_nothing_of_watch_lists_is_retried_with_growing_pauses(
    failure: Callable[[], Response],
) -> None:
    async def scenario(harness: ClientHarness) -> None:
        transport = WatchListAnswer(harness.server.api, failure)
        async with running(harness.informer(transport)):
            await harness.passes(120)
        assert set(_requests(transport)) == {"watch-list"}
        assert 4 < len(transport.asked) < 9

    in_harness(scenario)


def test_a_watch_list_is_tried_again_at_the_first_full_list_after_five_minutes() -> None:
    class Upgraded(WatchListAnswer):
        """Knows watch-lists from its upgrade on."""

        has_them = False

        def answer(self, query: dict[str, str]) -> Response | None:
            return None if self.has_them else super().answer(query)

    async def scenario(harness: ClientHarness) -> None:
        transport = Upgraded(harness.server.api, FAILED_WATCH_LISTS["etcd cannot report progress"])
        recorded = harness.informer(transport)
        recorded.informer.listeners.clear()  # Objects that are decoded again are reported again.

        async def requests_of_a_full_list() -> list[str]:
            transport.asked.clear()
            recorded.informer.relist_with(msgspec.json.decode)
            async with running(recorded):
                await settled()
            return _requests(transport)

        assert await requests_of_a_full_list() == ["watch-list", "list", "watch"]
        transport.has_them = True
        await harness.passes(299, step=1)
        assert await requests_of_a_full_list() == ["list", "watch"]
        await harness.passes(1)
        assert await requests_of_a_full_list() == ["watch-list"]

    in_harness(scenario)


def test_a_list_that_fails_in_place_of_a_watch_list_is_retried_with_growing_pauses() -> None:
    class Overloaded(WatchListAnswer):
        def answer(self, query: dict[str, str]) -> Response | None:
            return super().answer(query) or refusal(503)

    async def scenario(harness: ClientHarness) -> None:
        partial_state = FAILED_WATCH_LISTS["a stream that ends early"]
        transport = Overloaded(harness.server.api, partial_state)
        async with running(harness.informer(transport)):
            await harness.passes(120)
        kinds = _requests(transport)
        assert kinds == ["watch-list", *["list"] * (len(kinds) - 1)]
        assert 5 < len(kinds) < 10

    in_harness(scenario)
