"""The attempts that a scheduler remembers, and its queue as others read it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from moorage.api.pod import Pod
from moorage.client.client import Client
from moorage.client.scheduler_api import Attempt, QueueEntry, read_attempts, read_queue
from moorage.clock import VirtualClock
from moorage.http.transport import Request, Response
from moorage.queue.queued_pod import QueuedPod
from moorage.scheduler.attempt_history import AttemptHistory
from moorage.scheduler.inspection import inspection_routes
from moorage.scheduler.observers import Observer, Observers
from moorage.scheduler.scheduler import Scheduler
from moorage.services.responses import Handler
from tests.builders import make_pod
from tests.scheduler.running import START, SchedulerHarness, in_harness


class Port:
    """The scheduler's port, without authentication."""

    def __init__(self, routes: dict[str, Handler]) -> None:
        self._routes = routes

    async def handle(self, request: Request) -> Response:
        found = max((path for path in self._routes if request.path.startswith(path)), key=len)
        return await self._routes[found](request)


def port(scheduler: Scheduler, history: AttemptHistory, harness: SchedulerHarness) -> Client:
    return Client(Port(inspection_routes(scheduler.queue, history, harness.clock)))


def remembering(harness: SchedulerHarness) -> tuple[Scheduler, AttemptHistory]:
    history = AttemptHistory(harness.clock)
    return harness.scheduler(observer=Observers(Observer(), history)), history


def test_attempts_are_remembered_with_the_numbers_of_their_moment() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        for name, cpu in (("small", "1"), ("large", "4"), ("largest", "8")):
            await harness.add_node(name, cpu)
        scheduler, history = remembering(harness)
        await harness.settles()
        await harness.add_pod("fits", "2")
        await harness.add_pod("huge", "9")
        await harness.passes(5)
        await harness.add_node("new", "16")
        await harness.passes(5)
        client = port(scheduler, history, harness)

        [fits] = await read_attempts(client, "default", "fits")
        assert (fits.result, fits.node, fits.attempt) == ("Scheduled", "largest", 1)
        assert (fits.evaluated_nodes, fits.feasible_nodes) == (3, 2)
        assert [node.name for node in fits.nodes] == ["largest", "large"]
        assert fits.nodes[0].total == sum(fits.nodes[0].scores.values()) > fits.nodes[1].total
        assert fits.time == START + timedelta(seconds=0)

        rejected, bound = await read_attempts(client, "default", "huge")
        assert rejected.result == "Unschedulable"
        assert rejected.message.startswith("0/3 nodes are available: 3 Insufficient cpu.")
        assert [(each.plugin, each.nodes) for each in rejected.rejections] == [("NodeResourcesFit", 3)]
        assert (bound.result, bound.node, bound.attempt) == ("Scheduled", "new", 2)
        assert bound.time > rejected.time
        assert await read_attempts(client, "default", "huge", after=rejected.id) == (bound,)
        assert await read_attempts(client, "default", "unknown") == ()

    in_harness(scenario)


def test_an_attempt_remembers_whom_it_evicts() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_node("only", "2")
        await harness.add_priority("urgent", 1000)
        _, history = remembering(harness)
        await harness.settles()
        await harness.add_pod("victim", "2")
        await harness.passes(1)
        await harness.add_pod("urgent", "2", priorityClassName="urgent")
        await harness.passes(1)
        first = history.of("default/urgent")[0]
        assert (first.nominated_node, first.victims) == ("only", ("default/victim",))

    in_harness(scenario)


def waiting(entries: tuple[QueueEntry, ...]) -> dict[str, QueueEntry]:
    return {entry.pod.removeprefix("default/"): entry for entry in entries}


def test_the_queue_tells_where_pods_wait_and_what_would_wake_them() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.add_node("only", "2")
        scheduler, history = remembering(harness)
        await harness.settles()
        await harness.add_pod("huge", "9")
        await harness.add_pod("gated", schedulingGates=[{"name": "example.com/later"}])
        await harness.passes(3)
        client = port(scheduler, history, harness)
        entries = waiting(await read_queue(client))

        huge = entries["huge"]
        assert (huge.place, huge.attempts, huge.rejected_by) == ("unschedulable", 1, ("NodeResourcesFit",))
        assert huge.since == START
        assert huge.next_attempt == START + timedelta(minutes=5)
        [awaited] = huge.awaited
        assert {"NodeAdd", "NodeUpdateNodeAllocatable", "PodDelete"} <= set(awaited.events)
        assert huge.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")

        gated = entries["gated"]
        assert (gated.place, gated.attempts, gated.gated_by) == ("gated", 0, "SchedulingGates")
        assert [each.plugin for each in gated.awaited] == ["SchedulingGates"]
        assert gated.next_attempt is None
        assert await read_queue(client, "elsewhere") == ()

        await harness.add_node("second", "10")
        await harness.add_pod("next", "9")
        await harness.settles()
        entries = waiting(await read_queue(client))
        assert entries["next"].place == "unschedulable"
        assert entries.keys() == {"next", "gated"}

    in_harness(scenario)


def queued(name: str, attempts: int = 1) -> QueuedPod:
    return QueuedPod(make_pod(name), 0.0, attempts=attempts)


def test_the_number_of_attempts_of_a_pod_is_bounded() -> None:
    history = AttemptHistory(VirtualClock(), max_attempts=3)
    for number in range(1, 6):
        history.failed(queued("pod", number), "Unschedulable", "no room")
    assert [each.attempt for each in history.of("default/pod")] == [3, 4, 5]


def test_the_size_of_all_attempts_is_bounded() -> None:
    history = AttemptHistory(VirtualClock(), max_bytes=100_000)
    for number in range(1000):
        history.failed(queued(f"pod-{number}"), "Unschedulable", "x" * number)
        assert history.size_bytes <= 100_000
    assert 0 < len(history) < 1000
    assert history.of("default/pod-999")
    assert not history.of("default/pod-0")


FAILURES: dict[str, Callable[[Observer, QueuedPod], Any]] = {
    "Unschedulable": lambda observer, pod: observer.failed(pod, "Unschedulable", "rejected by permit"),
    "SchedulerError": lambda observer, pod: observer.failed(pod, "SchedulerError", "the binding failed"),
}


@pytest.mark.parametrize("result", FAILURES)
def test_a_failure_without_a_decision_is_remembered(result: str) -> None:
    history = AttemptHistory(VirtualClock())
    FAILURES[result](history, queued("pod"))
    [attempt] = history.of("default/pod")
    assert isinstance(attempt, Attempt)
    assert attempt.result == result
    assert history.last_message("default/pod") == attempt.message != ""


def test_scores_are_read_for_a_share_of_the_time() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        for name in ("one", "two"):
            await harness.add_node(name)
        took = iter(range(100))  # Each reading of scores takes a second.
        history = AttemptHistory(harness.clock, stopwatch=lambda: float(next(took)))
        harness.scheduler(observer=Observers(Observer(), history))
        await harness.settles()
        for name in ("first", "second"):
            await harness.add_pod(name)
            await harness.passes(1)
        await harness.passes(400)
        await harness.add_pod("third")
        await harness.passes(1)
        kept = {name: history.of(f"default/{name}")[0] for name in ("first", "second", "third")}
        assert all(each.result == "Scheduled" and each.feasible_nodes == 2 for each in kept.values())
        assert [len(each.nodes) for each in kept.values()] == [2, 0, 2]

    in_harness(scenario)


def test_a_pod_that_is_created_again_has_its_own_attempts() -> None:
    history = AttemptHistory(VirtualClock())
    for uid in ("first", "second"):
        pod: Pod = make_pod("pod", uid=uid)
        history.failed(QueuedPod(pod, 0.0, attempts=1), "Unschedulable", "no room")
    assert [(each.uid, each.attempt) for each in history.of("default/pod")] == [("first", 1), ("second", 1)]


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("/moorage/v1/attempts/default", "", 404),
        ("/moorage/v1/attempts/default/", "", 404),
        ("/moorage/v1/attempts/default/pod/more", "", 404),
        ("/moorage/v1/attempts/default/pod", "after=soon", 400),
    ],
)
def test_wrong_requests_get_a_line(path: str, query: str, status: int) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler, history = remembering(harness)
        routes = inspection_routes(scheduler.queue, history, harness.clock)
        answer = await Port(routes).handle(Request("GET", path, query))
        assert answer.status == status

    in_harness(scenario)


def test_an_attempt_has_one_time_whenever_it_is_read_until_the_clock_is_set() -> None:
    clock = _Drifting()
    history = AttemptHistory(clock)
    first = history._wall_time_at_zero()
    clock.drift = timedelta(milliseconds=3)
    assert history._wall_time_at_zero() == first
    clock.drift = timedelta(minutes=3)
    assert history._wall_time_at_zero() == first + timedelta(minutes=3)


class _Drifting(VirtualClock):
    """A clock whose wall time is set."""

    drift = timedelta()

    def utc_now(self) -> datetime:
        return super().utc_now() + self.drift
