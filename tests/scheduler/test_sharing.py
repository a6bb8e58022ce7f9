"""Several schedulers in one cluster, and room that is fought for."""

from __future__ import annotations

import asyncio
import logging

import pytest

from moorage.api.manifests import Manifest
from moorage.client.kinds import NODE, POD
from moorage.http.errors import ConnectionFailed
from moorage.http.transport import Request, Response
from tests.scheduler.plugins import Diary, Hold, profile, registry_with
from tests.scheduler.running import SchedulerHarness, in_harness


def test_two_schedulers_share_a_cluster_by_name() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        ours = harness.scheduler(seed=1)
        theirs = harness.scheduler(config=profile(name="theirs"), seed=2)
        await harness.add_node("n1")
        await harness.add_node("n2")
        for index in range(8):
            await harness.add_pod(f"a{index}", cpu="1")
            await harness.passes(0.25)
            await harness.add_pod(f"b{index}", cpu="1", schedulerName="theirs")
            await harness.passes(0.25)
        await harness.passes(30)
        placed = [item["spec"].get("nodeName") for item in await harness.client.list(POD)]
        assert sorted(filter(None, placed)) == ["n1"] * 4 + ["n2"] * 4
        assert len(ours.queue) + len(theirs.queue) == 8
        assert all(each.pod.spec.scheduler_name == "theirs" for each in theirs.queue)
        reporters = {each["reportingComponent"] for each in await harness.events("Scheduled")}
        assert reporters == {"default-scheduler", "theirs"}

    in_harness(scenario)


def test_two_of_the_same_name_never_bind_a_pod_twice() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        schedulers = [harness.scheduler(seed=seed) for seed in (1, 2)]
        for name in ("n1", "n2", "n3"):
            await harness.add_node(name)
        for index in range(6):
            await harness.add_pod(f"p{index}", cpu="1")
        await harness.passes(60)
        for scheduler in schedulers:
            await harness.check(scheduler)
        assert harness.line.bound.total() == 6

    in_harness(scenario)


def test_a_pod_that_the_node_rejects_is_recreated() -> None:
    """Two schedulers race for the last slot; the node rejects one pod, which its owner recreates."""

    async def scenario(harness: SchedulerHarness) -> None:
        slow = Diary("Slow", [], {"pre_bind": (gate := asyncio.Event())})
        first = harness.scheduler(config=profile("Slow"), registry=registry_with(slow))
        harness.scheduler(config=profile(name="theirs"))
        await harness.add_node("n1", cpu="1")
        await harness.add_pod("ours", cpu="1")
        await harness.passes(1)
        await harness.add_pod("theirs", cpu="1", schedulerName="theirs")
        await harness.passes(1)
        assert await harness.node_of("theirs") == "n1"
        gate.set()
        await harness.passes(1)
        assert await harness.node_of("ours") == "n1"  # Both cannot be right; the node decides.
        await harness.client.patch(POD, "default", "ours", _refused(), "strategic", "status")
        await harness.passes(1)
        await harness.delete_pod("ours")
        await harness.add_pod("ours", cpu="1")
        await harness.passes(1)
        assert (await harness.condition("ours"))["reason"] == "Unschedulable"
        await harness.add_node("n2", cpu="1")
        await harness.passes(5)
        assert await harness.node_of("ours") == "n2"
        await harness.check(first)

    in_harness(scenario)


def _refused() -> Manifest:
    return {
        "status": {"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough resource"}
    }


def test_pods_of_others_are_counted_but_not_touched() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = harness.scheduler()
        await harness.add_node("n1")
        await harness.add_pod("running", cpu="3", schedulerName="other", nodeName="n1")
        untouched = await harness.add_pod("waiting", cpu="1", schedulerName="other")
        await harness.add_pod("ours", cpu="2")
        await harness.passes(5)
        assert await harness.node_of("ours") == ""
        assert await harness.pod("waiting") == untouched
        assert len(scheduler.queue) == 1
        await harness.client.patch(
            POD, "default", "running", {"status": {"phase": "Succeeded"}}, "merge", "status"
        )
        await harness.passes(3)
        assert await harness.node_of("ours") == "n1"

    in_harness(scenario)


def test_a_node_that_comes_makes_a_pending_pod_run() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = harness.scheduler()
        await harness.add_node("n1", cpu="1")
        await harness.add_pod("p", cpu="2")
        await harness.passes(60)
        assert await harness.node_of("p") == ""
        await harness.add_node("n2")
        await harness.passes(1)
        assert await harness.node_of("p") == "n2"
        await harness.client.delete(NODE, "", "n1")
        await harness.passes(1)
        await harness.check(scheduler)

    in_harness(scenario)


def test_gates_are_lifted_one_by_one() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = harness.scheduler()
        await harness.add_node("n1")
        gates = [{"name": "example.com/one"}, {"name": "example.com/two"}]
        await harness.add_pod("p", schedulingGates=gates)
        await harness.passes(5)
        assert (await harness.condition("p"))["reason"] == "SchedulingGated"
        one_less = {"spec": {"schedulingGates": gates[1:]}}
        await harness.client.patch(POD, "default", "p", one_less, "merge")
        await harness.passes(5)
        assert await harness.node_of("p") == ""
        assert await harness.events("FailedScheduling") == []
        await harness.client.patch(POD, "default", "p", {"spec": {"schedulingGates": None}}, "merge")
        await harness.passes(1)
        assert await harness.node_of("p") == "n1"
        await harness.check(scheduler)

    in_harness(scenario)


@pytest.mark.parametrize("grace_seconds", [0, 30])
def test_preemption_waits_for_its_victims_to_end(grace_seconds: int) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = harness.scheduler()
        await harness.add_node("n1", cpu="4")
        await harness.add_priority("high", 1000)
        for index in range(4):
            await harness.add_pod(f"v{index}", cpu="1", terminationGracePeriodSeconds=grace_seconds)
        await harness.passes(1)
        await harness.add_pod("greater", cpu="2", priorityClassName="high")
        await harness.passes(2)
        pods = {item["metadata"]["name"]: item for item in await harness.client.list(POD)}
        assert pods["greater"]["status"].get("nominatedNodeName", "n1") == "n1"
        victims = [name for name, item in pods.items() if "deletionTimestamp" in item["metadata"]]
        if grace_seconds:
            assert len(victims) == 2
            assert await harness.node_of("greater") == ""
            # A pod of no importance does not get the room that was made for another.
            await harness.add_pod("small", cpu="1")
            await harness.passes(5)
            for name in victims:
                await harness.delete_pod(name)
        await harness.passes(20)
        assert await harness.node_of("greater") == "n1"
        assert "nominatedNodeName" not in (await harness.pod("greater"))["status"]
        if grace_seconds:
            assert await harness.node_of("small") == ""
        await harness.check(scheduler)

    in_harness(scenario)


class Mute:
    """Does not let statuses of pods through."""

    def __init__(self, harness: SchedulerHarness) -> None:
        self._harness = harness

    async def handle(self, request: Request) -> Response:
        if request.method == "PATCH" and request.path.endswith("/greater/status"):
            raise ConnectionFailed("not this one")
        return await self._harness.line.handle(request)


def test_nominated_room_is_kept_even_if_the_nomination_cannot_be_written() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = harness.scheduler(transport=Mute(harness))
        await harness.add_node("n1", cpu="4")
        await harness.add_priority("high", 1000)
        await harness.add_pod("lesser", cpu="4", terminationGracePeriodSeconds=30)
        await harness.passes(1)
        made = await harness.add_pod("greater", cpu="4", priorityClassName="high")
        await harness.passes(1)
        assert "nominatedNodeName" not in (await harness.pod("greater"))["status"]
        assert scheduler.cache.nominations.node_of(made["metadata"]["uid"]) == "n1"
        await harness.delete_pod("greater")
        await harness.passes(1)
        assert scheduler.cache.nominations.node_of(made["metadata"]["uid"]) is None

    in_harness(scenario)


class Replacing:
    """Replaces a victim by another pod of its name when the first request about it is made."""

    def __init__(self, harness: SchedulerHarness) -> None:
        self._harness = harness
        self._is_replaced = False

    async def handle(self, request: Request) -> Response:
        if request.path.endswith("/lesser/status") and not self._is_replaced:
            self._is_replaced = True
            await self._harness.delete_pod("lesser")
            await self._harness.add_pod("lesser", cpu="4", schedulerName="other")
        return await self._harness.line.handle(request)


def test_a_victim_that_was_replaced_by_a_pod_of_its_name_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        harness.scheduler(transport=Replacing(harness))
        await harness.add_node("n1", cpu="4")
        await harness.add_priority("high", 1000)
        await harness.add_pod("lesser", cpu="4")
        await harness.passes(1)
        await harness.add_pod("greater", cpu="4", priorityClassName="high")
        await harness.passes(5)
        assert await harness.node_of("greater") == "n1"
        replacement = await harness.pod("lesser")
        assert "deletionTimestamp" not in replacement["metadata"]

    in_harness(scenario)
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


class Silent:
    """Never answers writes of a pod's status."""

    def __init__(self, harness: SchedulerHarness) -> None:
        self._harness = harness

    async def handle(self, request: Request) -> Response:
        if request.path.endswith("/p/status"):
            await asyncio.Event().wait()
        return await self._harness.line.handle(request)


def test_draining_does_not_wait_for_conditions_of_pods_without_a_node() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = harness.scheduler(transport=Silent(harness))
        await harness.add_node("n1", cpu="1")
        await harness.add_pod("p", cpu="4")
        await harness.passes(1)
        assert scheduler.background_task_count == 1
        draining = asyncio.ensure_future(scheduler.drain(60.0))
        await harness.settles()
        assert draining.done()

    in_harness(scenario)


def test_draining_does_not_wait_for_permits_nor_for_longer_than_it_may() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        plugins = Hold(), Diary("Slow", [], {"pre_bind slow": asyncio.Event()})
        scheduler = harness.scheduler(config=profile("Hold", "Slow"), registry=registry_with(*plugins))
        await harness.add_node("n1")
        await harness.add_pod("held")
        await harness.passes(1)
        await scheduler.drain(60.0)
        again = harness.scheduler(config=profile("Slow", name="again"), registry=registry_with(plugins[1]))
        await harness.add_pod("slow", schedulerName="again")
        await harness.passes(1)
        draining = asyncio.ensure_future(again.drain(60.0))
        await harness.passes(59)
        assert not draining.done()
        await harness.passes(2)
        assert draining.done()

    in_harness(scenario)


def test_draining_ends_cycles_and_waits_for_bindings() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        slow = Diary("Slow", [], {"pre_bind": (gate := asyncio.Event())})
        scheduler = harness.scheduler(config=profile("Slow"), registry=registry_with(slow))
        await harness.add_node("n1")
        await harness.add_pod("first")
        await harness.passes(1)
        draining = asyncio.ensure_future(scheduler.drain(60.0))
        await harness.passes(1)
        await harness.add_pod("second")
        await harness.passes(1)
        assert not draining.done()
        gate.set()
        await harness.passes(1)
        assert draining.done()
        assert await harness.node_of("first") == "n1"
        assert await harness.node_of("second") == ""
        assert len(await harness.events("Scheduled")) == 1

    in_harness(scenario)
