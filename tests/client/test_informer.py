"""What an informer asks for, and what it makes of the answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from itertools import pairwise
from random import Random

import msgspec
import pytest

from moorage.api.base import Object
from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.client.declared_kinds import declare_kind
from moorage.client.informer import Informer
from moorage.client.kinds import CONFIG_MAP, NODE, Kind
from moorage.http.transport import Response, Stream
from tests.client.faults import refusal
from tests.client.harness import ClientHarness, RecordingInformer, in_harness, running, settled
from tests.client.scripted import (
    ALL_SENT,
    Changed,
    Pieces,
    ScriptedTransport,
    scripted_object,
    watch_event,
    watched,
)

# -- odd servers, by script


def _scripted(
    harness: ClientHarness, *answers: Response | Exception
) -> tuple[RecordingInformer, ScriptedTransport]:
    transport = ScriptedTransport(harness.clock, answers)
    return harness.informer(transport), transport


def test_a_server_that_ends_watches_at_once_is_not_asked_without_end() -> None:
    async def scenario(harness: ClientHarness) -> None:
        recorded, transport = _scripted(harness, watched(watch_event("BOOKMARK", ALL_SENT)), watched())
        async with running(recorded):
            await harness.passes(60)
        gaps = [later - earlier for earlier, later in pairwise(transport.times)]
        assert gaps[0] == 0, "a watch that ended well goes on at once"
        assert all(gap >= 0.75 for gap in gaps[1:])
        assert 3 < len(transport.times) < 10

    in_harness(scenario)


def test_pauses_grow_to_half_a_minute_and_no_two_clients_have_the_same() -> None:
    async def scenario(harness: ClientHarness) -> None:
        found = []
        for seed in (1, 2):
            transport = ScriptedTransport(harness.clock, [refusal(503)])
            client = Client(transport)
            recorded = RecordingInformer(Informer(client, CONFIG_MAP, harness.clock, random=Random(seed)))
            async with running(recorded):
                await harness.passes(400)
            times = transport.times
            found.append([later - earlier for earlier, later in pairwise(times)])
        for gaps in found:
            assert gaps[0] == 0, "a list follows a watch-list that failed"
            assert 0.75 <= gaps[1] <= 1.85
            assert 29.75 <= max(gaps) <= 60.25
        assert found[0] != found[1]

    in_harness(scenario)


class _Widget(Object):
    """A custom resource that a plugin reads."""


_WIDGET = declare_kind("example.com/v1", "widgets", _Widget)


@pytest.mark.parametrize(
    ("kind", "is_synced"), [(_WIDGET, True), (CONFIG_MAP, False)], ids=lambda each: str(each)
)
def test_only_a_declared_kind_may_be_missing(kind: Kind, is_synced: bool) -> None:
    async def scenario(harness: ClientHarness) -> None:
        page = {"metadata": {"resourceVersion": "10"}, "items": [scripted_object("first", 9)]}
        listed = Response(200, Pieces(msgspec.json.encode(page)))
        transport = ScriptedTransport(harness.clock, [refusal(404), refusal(404), listed, watched()])
        informer = Informer(Client(transport), kind, harness.clock, random=Random(1))
        recorded = RecordingInformer(informer)
        synced = asyncio.ensure_future(informer.synced())
        async with running(recorded):
            await settled()
            assert (synced.done(), informer.objects) == (is_synced, {})
            await harness.passes(60)
        assert recorded.reported == [("ADDED", "first", 9)]
        assert synced.done()

    in_harness(scenario)


def test_a_server_that_always_says_expired_is_not_listed_without_end() -> None:
    async def scenario(harness: ClientHarness) -> None:
        recorded, transport = _scripted(harness, refusal(410))
        async with running(recorded):
            await harness.passes(60)
        assert len(transport.times) < 12

    in_harness(scenario)


def test_an_object_that_makes_no_sense_is_left_out_and_the_others_are_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def decode(raw: bytes) -> Manifest:
        obj: Manifest = msgspec.json.decode(raw)
        if obj["metadata"].get("labels") == {"broken": "yes"}:
            raise ValueError("broken")
        return obj

    broken = scripted_object("odd", 13)
    broken["metadata"]["labels"] = {"broken": "yes"}
    events = [
        watch_event("ADDED", scripted_object("odd", 5)),
        watch_event("BOOKMARK", ALL_SENT),
        watch_event("ADDED", scripted_object("even", 12)),
        watch_event("MODIFIED", broken),
        watch_event("ADDED", {"metadata": {"name": 1}}),
        watch_event("ADDED", scripted_object("last", 14)),
    ]

    async def scenario(harness: ClientHarness) -> None:
        client = Client(ScriptedTransport(harness.clock, [watched(*events), refusal(503)]))
        recorded = RecordingInformer(Informer(client, CONFIG_MAP, harness.clock, decode=decode))
        async with running(recorded):
            assert recorded.known == {"odd": 5, "even": 12, "last": 14}

    with caplog.at_level(logging.ERROR):
        in_harness(scenario)
    assert 'keeping its last known state" err=' in caplog.text
    assert 'type="*v1.ConfigMap" object="default/odd"' in caplog.text


def test_another_object_of_the_same_name_is_reported_as_deleted_and_added() -> None:
    async def scenario(harness: ClientHarness) -> None:
        recorded, _ = _scripted(
            harness,
            watched(
                watch_event("ADDED", scripted_object("one", 5, "first")), watch_event("BOOKMARK", ALL_SENT)
            ),
            refusal(410),
            watched(
                watch_event("ADDED", scripted_object("one", 9, "second")), watch_event("BOOKMARK", ALL_SENT)
            ),
            refusal(503),
        )
        async with running(recorded):
            assert recorded.reported == [("ADDED", "one", 5), ("DELETED", "one", 5), ("ADDED", "one", 9)]

    in_harness(scenario)


def test_a_server_restored_from_a_backup_is_listed_again() -> None:
    earlier = {"metadata": {"resourceVersion": "4"}}
    restored = {"metadata": {"resourceVersion": "4", "annotations": {"k8s.io/initial-events-end": "true"}}}

    async def scenario(harness: ClientHarness) -> None:
        recorded, _ = _scripted(
            harness,
            watched(watch_event("ADDED", scripted_object("one", 5)), watch_event("BOOKMARK", ALL_SENT)),
            watched(watch_event("BOOKMARK", earlier)),
            watched(watch_event("ADDED", scripted_object("one", 3)), watch_event("BOOKMARK", restored)),
            refusal(503),
        )
        recorded.informer.listeners.clear()  # Changes that are undone are reported as well, for once.
        async with running(recorded):
            assert recorded.known == {"one": 3}
            assert recorded.informer.version == 4

    in_harness(scenario)


def test_versions_that_are_no_numbers_are_only_compared() -> None:
    def listed(version: str) -> Manifest:
        return {
            "metadata": {"resourceVersion": version, "annotations": {"k8s.io/initial-events-end": "true"}}
        }

    one = scripted_object("one", 0)
    one["metadata"]["resourceVersion"] = "b/7"
    two = scripted_object("two", 0)
    two["metadata"]["resourceVersion"] = "a/9"

    async def scenario(harness: ClientHarness) -> None:
        client = Client(
            ScriptedTransport(
                harness.clock,
                [
                    watched(
                        watch_event("ADDED", one),
                        watch_event("BOOKMARK", listed("b/7")),
                        watch_event("ADDED", two),
                    ),
                    refusal(503),
                ],
            )
        )
        informer = Informer(client, CONFIG_MAP, harness.clock)
        task = asyncio.ensure_future(informer.run())
        await settled()
        assert {name for _, name in informer.objects} == {"one", "two"}
        assert informer.version == 0
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    in_harness(scenario)


# -- silence


def test_a_watch_on_which_nothing_comes_is_begun_again_after_a_minute_and_a_half() -> None:
    class Silent(Stream):
        def __init__(self) -> None:
            self._closed = asyncio.Event()

        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield watch_event("BOOKMARK", ALL_SENT)
            await self._closed.wait()

        def close(self) -> None:
            self._closed.set()

    async def scenario(harness: ClientHarness) -> None:
        recorded, transport = _scripted(harness, Response(200, Silent()), refusal(503))
        async with running(recorded):
            await harness.passes(89)
            assert len(transport.times) == 1
            await harness.passes(2)
            assert len(transport.times) > 1

    in_harness(scenario)


def test_bookmarks_keep_a_watch_of_a_quiet_kind_alive() -> None:
    async def scenario(harness: ClientHarness) -> None:
        transport = Changed(harness.server.api)
        client = Client(transport, harness.server.token)
        recorded = RecordingInformer(Informer(client, NODE, harness.clock, random=Random(1)))
        async with running(recorded):
            await harness.passes(290, step=1)
        assert len(transport.asked) == 1

    in_harness(scenario)
