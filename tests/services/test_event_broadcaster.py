"""Events as users find them in the cluster: what they say, when they are one series, and what faults do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.pod import Pod
from moorage.client.kinds import EVENT
from moorage.services import event_broadcaster as events_module
from moorage.services.event_broadcaster import (
    FINISH_SECONDS,
    MAX_QUEUED,
    MAX_WRITERS,
    REFRESH_SECONDS,
    Broadcaster,
    Recorder,
)
from moorage.services.event_series import Reference
from moorage_cluster.apiserver.embedded import Settings
from tests.apiserver.client import settled
from tests.builders import make_pod
from tests.services.faults import Link, ServerHarness


class Scene:
    """A cluster, and a profile that reports to it."""

    def __init__(self, harness: ServerHarness) -> None:
        self.harness = harness
        self.link = Link(harness.server.api, harness.clock)
        client = harness.client(self.link)
        self.broadcaster = Broadcaster(client, harness.clock, Random(1), "host-1")
        self.recorder: Recorder = self.broadcaster.recorder("blue")
        self._task = asyncio.ensure_future(self.broadcaster.run())

    async def stored(self) -> list[dict[str, Any]]:
        await settled()
        return await self.harness.client().list(EVENT, "default")

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


def on_scene(test: Callable[[Scene], Awaitable[None]], settings: Settings | None = None) -> None:
    async def body() -> None:
        harness = ServerHarness(settings)
        scene = Scene(harness)
        try:
            await settled()
            await test(scene)
        finally:
            await scene.end()
            harness.server.close()

    asyncio.run(body())


def a_pod(name: str = "web", version: str = "7") -> Pod:
    pod = make_pod(name, uid=f"uid-{name}")
    return replace(pod, metadata=replace(pod.metadata, resource_version=version))


def test_what_a_scheduled_event_says() -> None:
    async def test(scene: Scene) -> None:
        scene.recorder.scheduled(a_pod(), "node-1")
        [event] = await scene.stored()
        name = event["metadata"]["name"]
        assert name == f"web.{int(scene.harness.clock.utc_now().timestamp()) * 10**9:x}"
        del event["metadata"]
        assert event == {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "eventTime": "2026-03-01T12:00:00.000000Z",
            "reportingController": "blue",
            "reportingInstance": "blue-host-1",
            "action": "Binding",
            "reason": "Scheduled",
            "regarding": {
                "kind": "Pod",
                "namespace": "default",
                "name": "web",
                "uid": "uid-web",
                "apiVersion": "v1",
                "resourceVersion": "7",
            },
            "note": "Successfully assigned default/web to node-1",
            "type": "Normal",
            **{key: event[key] for key in event if key.startswith("deprecated")},
        }

    on_scene(test)


def test_what_other_events_say() -> None:
    async def test(scene: Scene) -> None:
        scene.recorder.failed(a_pod("poor"), "0/3 nodes are available")
        scene.recorder.preempted(a_pod("victim"), Reference.to_pod(a_pod("great")), "pod", "node-2")
        events = {event["reason"]: event for event in await scene.stored()}
        failed = events["FailedScheduling"]
        assert (failed["type"], failed["action"], failed["note"]) == (
            "Warning",
            "Scheduling",
            "0/3 nodes are available",
        )
        preempted = events["Preempted"]
        assert (preempted["type"], preempted["action"]) == ("Normal", "Preempting")
        assert preempted["note"] == "Preempted by pod uid-great on node node-2"
        assert preempted["regarding"]["name"] == "victim"
        assert preempted["related"]["name"] == "great"

    on_scene(test)


NOTES = {
    "short enough": ("x" * 1024, "x" * 1024),
    "too long": ("x" * 1025, "x" * 1020 + " ..."),
    "bytes count, not characters": ("é" * 600, "é" * 510 + " ..."),
    "no half characters": ("x" + "é" * 600, "x" + "é" * 509 + " ..."),
}


@pytest.mark.parametrize("case", NOTES)
def test_long_notes_are_cut(case: str) -> None:
    note, expected = NOTES[case]

    async def test(scene: Scene) -> None:
        scene.recorder.failed(a_pod(), note)
        [event] = await scene.stored()
        assert event["note"] == expected

    on_scene(test)


def test_what_happens_again_becomes_a_series() -> None:
    async def test(scene: Scene) -> None:
        pod = a_pod()
        scene.recorder.failed(pod, "no node")
        await scene.harness.pass_time(10, 1.0)
        [event] = await scene.stored()
        assert "series" not in event
        scene.recorder.failed(pod, "still no node")
        [event] = await scene.stored()
        assert event["series"] == {"count": 2, "lastObservedTime": "2026-03-01T12:00:10.000000Z"}
        assert event["note"] == "no node"
        for _ in range(5):
            await scene.harness.pass_time(10, 1.0)
            scene.recorder.failed(pod, "no node")
        [event] = await scene.stored()
        assert event["series"]["count"] == 2, "counted, but not written each time"
        await scene.harness.pass_time(2 * FINISH_SECONDS, 5.0)
        [event] = await scene.stored()
        assert event["series"] == {"count": 7, "lastObservedTime": "2026-03-01T12:01:00.000000Z"}
        scene.recorder.failed(pod, "no node")
        assert len(await scene.stored()) == 2, "the series had ended"

    on_scene(test)


def test_a_series_that_goes_on_is_refreshed() -> None:
    async def test(scene: Scene) -> None:
        for _ in range(int(REFRESH_SECONDS / 60) + 1):
            scene.recorder.failed(a_pod(), "no node")
            await scene.harness.pass_time(60, 30.0)
        [event] = await scene.stored()
        assert event["series"]["count"] in (30, 31)

    on_scene(test)


def test_after_a_while_the_same_is_another_event() -> None:
    async def test(scene: Scene) -> None:
        scene.recorder.failed(a_pod(), "no node")
        await scene.harness.pass_time(2 * FINISH_SECONDS, 5.0)
        scene.recorder.failed(a_pod(), "no node")
        assert [("series" in event) for event in await scene.stored()] == [False, False]

    on_scene(test)


DIFFERENT: dict[str, Callable[[Recorder], None]] = {
    "another pod": lambda recorder: recorder.failed(a_pod("other"), "no node"),
    "another version of the pod": lambda recorder: recorder.failed(a_pod(version="8"), "no node"),
    "another reason": lambda recorder: recorder.scheduled(a_pod(), "node-1"),
    "another type": lambda recorder: recorder.event(
        Reference.to_pod(a_pod()), None, "Normal", "FailedScheduling", "Scheduling", "no node"
    ),
    "another related object": lambda recorder: recorder.event(
        Reference.to_pod(a_pod()),
        Reference.to_pod(a_pod("other")),
        "Warning",
        "FailedScheduling",
        "Scheduling",
        "no node",
    ),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_differs_is_not_one_series(case: str) -> None:
    async def test(scene: Scene) -> None:
        scene.recorder.failed(a_pod(), "no node")
        DIFFERENT[case](scene.recorder)
        assert [("series" in event) for event in await scene.stored()] == [False, False]

    on_scene(test)


def test_two_profiles_have_series_of_their_own() -> None:
    async def test(scene: Scene) -> None:
        scene.recorder.failed(a_pod(), "no node")
        scene.broadcaster.recorder("green").failed(a_pod(), "no node")
        events = await scene.stored()
        assert sorted(event["reportingController"] for event in events) == ["blue", "green"]

    on_scene(test)


def test_a_series_whose_event_is_gone_gets_a_new_one() -> None:
    async def test(scene: Scene) -> None:
        scene.recorder.failed(a_pod(), "no node")
        [event] = await scene.stored()
        name = event["metadata"]["name"]
        await scene.harness.client().delete(EVENT, "default", name)
        scene.recorder.failed(a_pod(), "no node")
        [event] = await scene.stored()
        assert event["metadata"]["name"] == name
        assert event["series"]["count"] == 2

    on_scene(test)


def test_an_object_without_namespace_has_its_events_in_default() -> None:
    async def test(scene: Scene) -> None:
        node = Reference("v1", "Node", "", "node-1", "u", "3")
        scene.recorder.event(node, None, "Normal", "Tested", "Testing", "a note")
        [event] = await scene.stored()
        assert event["metadata"]["namespace"] == "default"
        assert "namespace" not in event["regarding"]

    on_scene(test)


def test_a_name_that_no_event_can_have() -> None:
    async def test(scene: Scene) -> None:
        odd = Reference("v1", "ConfigMap", "default", "Not_A_Subdomain", "u", "3")
        scene.recorder.event(odd, None, "Normal", "Tested", "Testing", "a note")
        [event] = await scene.stored()
        assert len(event["metadata"]["name"]) == 36

    on_scene(test)


def test_events_of_one_moment_have_different_names() -> None:
    async def test(scene: Scene) -> None:
        scene.recorder.failed(a_pod(), "no node")
        scene.recorder.scheduled(a_pod(), "node-1")
        assert len(await scene.stored()) == 2

    on_scene(test)


# -- when the API server fails


@pytest.mark.parametrize("outcome", ["refused", "lost"])
def test_events_are_written_when_the_server_is_back(outcome: str) -> None:
    async def test(scene: Scene) -> None:
        scene.link.plan = lambda request: outcome
        for _ in range(2):
            scene.recorder.failed(a_pod(), "no node")
            await settled()
        for number in range(20):
            scene.recorder.scheduled(a_pod(f"pod-{number}"), "node-1")
        await scene.harness.pass_time(30, 0.5)
        scene.link.heal()
        await scene.harness.pass_time(30, 0.5)
        events = await scene.stored()
        assert len(events) == 21
        [series] = [event["series"]["count"] for event in events if event["reason"] == "FailedScheduling"]
        assert series == 2
        await scene.broadcaster.flush(1)

    on_scene(test)


def test_retries_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    async def test(scene: Scene) -> None:
        scene.link.plan = lambda request: "refused"
        scene.recorder.failed(a_pod(), "no node")
        await scene.harness.pass_time(160, 1.0)
        assert len(scene.link.requests) == events_module.MAX_TRIES
        assert "retry limit exceeded" in caplog.text

    on_scene(test)


def test_what_the_server_refuses_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)

    async def test(scene: Scene) -> None:
        scene.link.plan = lambda request: "500"
        scene.recorder.failed(a_pod(), "no node")
        await scene.harness.pass_time(60, 1.0)
        assert len(scene.link.requests) == 1
        assert '"Server rejected event (will not retry!)" err="broken"' in caplog.text
        scene.link.heal()
        scene.recorder.failed(a_pod(), "no node")
        [event] = await scene.stored()
        assert event["series"]["count"] == 2

    on_scene(test)


def test_events_beyond_the_queue_are_dropped_without_blocking() -> None:
    async def test(scene: Scene) -> None:
        for number in range(MAX_QUEUED + 5):
            scene.recorder.scheduled(a_pod(f"pod-{number}"), "node-1")
        assert scene.broadcaster.dropped == 5
        flushing = asyncio.ensure_future(scene.broadcaster.flush(10))
        while not flushing.done():
            await settled()
        assert len(await scene.stored()) == MAX_QUEUED

    on_scene(test)


def test_a_slow_server_does_not_fill_the_queue() -> None:
    async def test(scene: Scene) -> None:
        scene.link.late_seconds = 100
        scene.link.plan = lambda request: "late"
        for number in range(5 * MAX_QUEUED):
            scene.recorder.scheduled(a_pod(f"pod-{number}"), "node-1")
            if number % 500 == 0:
                await settled()
        assert scene.broadcaster.dropped == 0
        assert len(scene.link.requests) == MAX_WRITERS, "a few at a time"

    on_scene(test)


def test_a_writer_that_has_written_one_event_writes_the_next() -> None:
    async def test(scene: Scene) -> None:
        scene.recorder.scheduled(a_pod("a"), "node-1")
        await scene.stored()
        under_way = len(asyncio.all_tasks())
        scene.recorder.scheduled(a_pod("b"), "node-1")
        scene.recorder.scheduled(a_pod("b"), "node-1")
        await scene.broadcaster.flush(0.0)
        assert [event["regarding"]["name"] for event in await scene.stored()] == ["a", "b"]
        assert len(asyncio.all_tasks()) == under_way

    on_scene(test)


def test_flushing_does_not_wait_for_what_is_only_counted() -> None:
    async def test(scene: Scene) -> None:
        for _ in range(3):  # The second makes it a series; from then on it is written now and then.
            scene.recorder.failed(a_pod(), "no node")
            await scene.harness.pass_time(1)
        flushing = asyncio.ensure_future(scene.broadcaster.flush(10))
        await settled()
        assert flushing.done()

    on_scene(test)


def test_flushing_tries_at_once_what_waits_for_a_retry() -> None:
    async def test(scene: Scene) -> None:
        scene.link.plan = lambda request: "refused"
        scene.recorder.scheduled(a_pod(), "node-1")
        await scene.harness.pass_time(1)
        flushing = asyncio.ensure_future(scene.broadcaster.flush(1))
        await scene.harness.pass_time(2)
        assert flushing.done()
        assert len(scene.link.requests) == 2, "tried again once, not in a loop"
        scene.link.heal()
        flushing = asyncio.ensure_future(scene.broadcaster.flush(1))
        await settled()
        assert flushing.done()
        assert len(await scene.stored()) == 1

    on_scene(test)


def test_flushing_gives_up(caplog: pytest.LogCaptureFixture) -> None:
    async def test(scene: Scene) -> None:
        scene.link.late_seconds = 100
        scene.link.plan = lambda request: "late"
        scene.recorder.scheduled(a_pod(), "node-1")
        flushing = asyncio.ensure_future(scene.broadcaster.flush(3))
        await scene.harness.pass_time(2)
        assert not flushing.done()
        await scene.harness.pass_time(2)
        assert flushing.done()
        assert '"Shutting down with unwritten events" count=1' in caplog.text

    on_scene(test)


def test_only_so_much_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "MAX_CACHED_EVENTS", 3)

    async def test(scene: Scene) -> None:
        for _ in range(3):
            scene.recorder.failed(a_pod("often"), "no node")
            await settled()
        for number in range(3):
            scene.recorder.scheduled(a_pod(f"pod-{number}"), "node-1")
        await settled()
        [often] = [event for event in await scene.stored() if event["regarding"]["name"] == "often"]
        assert often["series"]["count"] == 3, "what is forgotten is written first"
        scene.recorder.failed(a_pod("often"), "no node")
        assert len(await scene.stored()) == 5

    on_scene(test)


def test_events_before_the_start_are_written() -> None:
    async def test() -> None:
        harness = ServerHarness()
        broadcaster = Broadcaster(harness.client(), harness.clock, Random(1), "host-1")
        broadcaster.recorder("blue").scheduled(a_pod(), "node-1")
        task = asyncio.ensure_future(broadcaster.run())
        await broadcaster.flush(1)
        assert len(await harness.client().list(EVENT, "default")) == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        harness.server.close()

    asyncio.run(test())


@pytest.mark.parametrize("turns", range(8))
def test_a_broadcaster_that_ends_with_events_left_starts_no_writer(turns: int) -> None:
    failures: list[dict[str, Any]] = []

    async def test(scene: Scene) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: failures.append(context))
        scene.link.plan = lambda request: "late"
        for number in range(50):
            scene.recorder.scheduled(a_pod(f"p{number}"), "node-1")
        for _ in range(turns):
            await asyncio.sleep(0)
        await scene.end()

    on_scene(test)
    assert failures == []
