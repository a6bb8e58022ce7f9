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
from tests.client.harness import ClientHarness, config_map, in_default, in_world, running, settled, versions
from tests.client.scripted import BOOKMARK, Changed, Pieces, said, scripted_object, watched

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


class NeverHeardOfWatchList(Changed):
    """A server from before watch-lists: it ignores what it does not know."""

    def changed(self, request: Request) -> Request:
        query = dict(pair.split("=", 1) for pair in request.query.split("&") if pair)
        query.pop("sendInitialEvents", None)
        query.pop("resourceVersionMatch", None)
        return Request(request.method, request.path, urlencode(query), request.headers, request.body)


def test_the_state_comes_with_the_watch_where_that_is_offered() -> None:
    async def scenario(world: ClientHarness) -> None:
        await world.client.create(CONFIG_MAP, "default", config_map("one", "1"))
        transport = Changed(world.server.api)
        heard = world.informer(transport)
        async with running(heard):
            await heard.informer.synced()
            await world.client.create(CONFIG_MAP, "default", config_map("two", "2"))
            await settled()
            assert in_default(heard) == versions(await world.objects())
        assert [query.get("sendInitialEvents") for query in transport.asked] == ["true"]
        assert 300 <= int(transport.asked[0]["timeoutSeconds"]) <= 600

    in_world(scenario)


def test_where_no_watch_list_is_offered_everything_is_listed_in_pages() -> None:
    async def scenario(world: ClientHarness) -> None:
        for number in range(MANY):
            await world.client.create(CONFIG_MAP, "default", config_map(f"m-{number}", ""))
        transport = NoWatchList(world.server.api)
        heard = world.informer(transport)
        async with running(heard):
            await heard.informer.synced()
            await settled()
            await world.client.delete(CONFIG_MAP, "default", "m-0")
            await settled()
            assert in_default(heard) == versions(await world.objects())
            assert len(heard.reported) == len(set(heard.reported))
        lists = [query for query in transport.asked if "watch" not in query]
        assert ["continue" in query for query in lists] == [False, True, True]
        assert {query["limit"] for query in lists} == {"500"}

    in_world(scenario)


def test_it_is_asked_only_once_whether_watch_lists_are_offered() -> None:
    async def scenario(world: ClientHarness) -> None:
        transport = NoWatchList(world.server.api)
        heard = world.informer(transport)
        async with running(heard):
            await world.passes(1500, step=5)
        assert sum("sendInitialEvents" in query for query in transport.asked) == 1
        assert sum("resourceVersion" in query for query in transport.asked) > 1, "no watch was ever resumed"

    in_world(scenario)


def test_a_server_that_does_not_know_watch_lists_is_recognised_by_its_first_bookmark() -> None:
    async def scenario(world: ClientHarness) -> None:
        await world.client.create(CONFIG_MAP, "default", config_map("one", "1"))
        heard = world.informer(NeverHeardOfWatchList(world.server.api))
        async with running(heard):
            await world.passes(90, step=1)
            assert in_default(heard) == versions(await world.objects())
        assert sum(name == "one" for _, name, _ in heard.reported) == 1

    in_world(scenario)


def test_pages_that_have_expired_are_replaced_by_one_list() -> None:
    class Forgetful(NoWatchList):
        def answer(self, query: dict[str, str]) -> Response | None:
            return refusal(410) if "continue" in query else super().answer(query)

    async def scenario(world: ClientHarness) -> None:
        for number in range(MANY):
            await world.client.create(CONFIG_MAP, "default", config_map(f"m-{number}", ""))
        transport = Forgetful(world.server.api)
        heard = world.informer(transport)
        async with running(heard):
            await heard.informer.synced()
            assert in_default(heard) == versions(await world.objects())
        assert "limit" not in [query for query in transport.asked if "watch" not in query][-1]

    in_world(scenario)


# -- watch-lists that fail

NO_PROGRESS = (
    "a watch stream was requested by the client but the required storage feature "
    "RequestWatchProgress is disabled"
)
FALLBACK = "Watch-list not supported for configmaps, falling back to list and watch"


def _raised(error: Exception) -> Response:
    raise error


def _error_event(code: int, message: str) -> bytes:
    return said("ERROR", {"kind": "Status", "status": "Failure", "code": code, "message": message})


class BreakingStream(Pieces):
    """A stream of given pieces, which then breaks."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in super().__aiter__():
            yield piece
        raise AnswerLost("the connection broke")


FAILED_WATCH_LISTS: dict[str, Callable[[], Response]] = {
    "etcd cannot report progress": lambda: watched(_error_event(500, NO_PROGRESS)),
    "an error amid the initial events": lambda: watched(
        said("ADDED", scripted_object("gone", 1)), _error_event(500, "etcdserver: leader changed")
    ),
    "an error without a code": lambda: watched(said("ERROR", {"kind": "Status"})),
    "an error that says expired": lambda: watched(_error_event(410, "too old resource version")),
    "an unreadable event": lambda: watched(b"<html>\n"),
    "half an event": lambda: watched(said("ADDED", scripted_object("gone", 1))[:20]),
    "a broken stream": lambda: Response(200, BreakingStream(said("ADDED", scripted_object("gone", 1)))),
    "a stream that ends early": lambda: watched(said("ADDED", scripted_object("gone", 1))),
    "an empty stream": watched,
    "a bookmark that is not the last initial event": lambda: watched(said("BOOKMARK", BOOKMARK)),
    "a lost answer": lambda: _raised(AnswerLost("the connection broke")),
    **{f"status {code}": partial(refusal, code) for code in (400, 404, 410, 422, 500, 503)},
}


@pytest.mark.parametrize("failure", FAILED_WATCH_LISTS.values(), ids=FAILED_WATCH_LISTS)
def test_whatever_fails_a_watch_list_a_list_and_a_watch_take_its_place(
    failure: Callable[[], Response], caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: ClientHarness) -> None:
        await world.client.create(CONFIG_MAP, "default", config_map("one", "1"))
        transport = WatchListAnswer(world.server.api, failure)
        heard = world.informer(transport)
        async with running(heard):
            assert in_default(heard) == versions(await world.objects())
            await world.client.create(CONFIG_MAP, "default", config_map("two", "2"))
            await settled()
            assert in_default(heard) == versions(await world.objects())
        assert [name for _, name, _ in heard.reported if name == "gone"] == []
        assert _requests(transport) == ["watch-list", "list", "watch"]

    with caplog.at_level(logging.INFO):
        in_world(scenario)
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
        said("ADDED", scripted_object("one", 1)), _error_event(429, "storage is (re)initializing")
    ),
    **{f"status {code}": partial(refusal, code) for code in (401, 403, 429)},
}


@pytest.mark.parametrize("failure", RETRIED_WATCH_LISTS.values(), ids=RETRIED_WATCH_LISTS)
def test_a_failure_that_says_nothing_of_watch_lists_is_retried_with_growing_pauses(
    failure: Callable[[], Response],
) -> None:
    async def scenario(world: ClientHarness) -> None:
        transport = WatchListAnswer(world.server.api, failure)
        async with running(world.informer(transport)):
            await world.passes(120)
        assert set(_requests(transport)) == {"watch-list"}
        assert 4 < len(transport.asked) < 9

    in_world(scenario)


def test_a_watch_list_is_tried_again_at_the_first_full_list_after_five_minutes() -> None:
    class Upgraded(WatchListAnswer):
        """Knows watch-lists from its upgrade on."""

        has_them = False

        def answer(self, query: dict[str, str]) -> Response | None:
            return None if self.has_them else super().answer(query)

    async def scenario(world: ClientHarness) -> None:
        transport = Upgraded(world.server.api, FAILED_WATCH_LISTS["etcd cannot report progress"])
        heard = world.informer(transport)
        heard.informer.listeners.clear()  # Objects that are decoded again are reported again.

        async def requests_of_a_full_list() -> list[str]:
            transport.asked.clear()
            heard.informer.relist_with(msgspec.json.decode)
            async with running(heard):
                await settled()
            return _requests(transport)

        assert await requests_of_a_full_list() == ["watch-list", "list", "watch"]
        transport.has_them = True
        await world.passes(299, step=1)
        assert await requests_of_a_full_list() == ["list", "watch"]
        await world.passes(1)
        assert await requests_of_a_full_list() == ["watch-list"]

    in_world(scenario)


def test_a_list_that_fails_in_place_of_a_watch_list_is_retried_with_growing_pauses() -> None:
    class Overloaded(WatchListAnswer):
        def answer(self, query: dict[str, str]) -> Response | None:
            return super().answer(query) or refusal(503)

    async def scenario(world: ClientHarness) -> None:
        partial_state = FAILED_WATCH_LISTS["a stream that ends early"]
        transport = Overloaded(world.server.api, partial_state)
        async with running(world.informer(transport)):
            await world.passes(120)
        kinds = _requests(transport)
        assert kinds == ["watch-list", *["list"] * (len(kinds) - 1)]
        assert 5 < len(kinds) < 10

    in_world(scenario)
