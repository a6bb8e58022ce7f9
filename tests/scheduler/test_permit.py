"""Pods that wait for a permit, and pods that are stopped on the way."""

from __future__ import annotations

import asyncio

import pytest

from tests.scheduler.plugins import Diary, Hold, Wake, profile, registry_with
from tests.scheduler.running import SchedulerHarness, in_harness


def test_a_pod_is_bound_once_it_is_allowed() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        hold = Hold()
        scheduler = harness.scheduler(config=profile("Hold"), registry=registry_with(hold))
        await harness.add_node("n1")
        await harness.add_pod("held")
        await harness.passes(5)
        assert await harness.node_of("held") == ""
        assert (await harness.pod("held"))["status"]["nominatedNodeName"] == "n1"
        assert scheduler.cache.assumed_count == 1
        hold.waiting().allow("Hold")
        await harness.passes(1)
        bound = await harness.pod("held")
        assert bound["spec"]["nodeName"] == "n1"
        assert "nominatedNodeName" not in bound["status"]
        await harness.check(scheduler)

    in_harness(scenario)


def test_a_pod_that_is_rejected_gives_its_room_to_others_and_waits() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        hold = Hold()
        scheduler = harness.scheduler(config=profile("Hold"), registry=registry_with(hold))
        await harness.add_node("n1")
        await harness.add_pod("held", cpu="3")
        await harness.passes(1)
        await harness.add_pod("other", cpu="3")
        await harness.passes(1)
        assert await harness.node_of("other") == ""
        hold.waiting().reject("Hold", "not today")
        await harness.passes(5)
        assert await harness.node_of("other") == "n1"
        condition = await harness.condition("held")
        assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
        assert condition["message"] == "0/1 nodes are available: 1 not today."
        assert "nominatedNodeName" not in (await harness.pod("held"))["status"]
        held = next(each for each in scheduler.queue if each.pod.name == "held")
        assert held.unschedulable_plugins == {"Hold"}
        scheduler.queue.validate()

    in_harness(scenario)


def test_a_pod_does_not_wait_forever() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        harness.scheduler(config=profile("Hold"), registry=registry_with(Hold(90)))
        await harness.add_node("n1")
        await harness.add_pod("held")
        await harness.passes(88)
        assert (await harness.condition_or_none("held")) is None
        await harness.passes(3)
        condition = await harness.condition("held")
        assert condition["message"] == (
            "0/1 nodes are available: 1 rejected due to timeout after waiting 1m30s at plugin Hold."
        )

    in_harness(scenario)


@pytest.mark.parametrize("finalizers", [[], ["example.com/keep"]], ids=["gone at once", "terminating"])
def test_a_pod_that_is_deleted_while_it_waits_frees_its_room(finalizers: list[str]) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = harness.scheduler(config=profile("Hold"), registry=registry_with(Hold()))
        await harness.add_node("n1")
        await harness.add_pod("held", cpu="3")
        await harness.label("held", {"finalizers": finalizers})
        await harness.passes(1)
        assert scheduler.cache.assumed_count == 1
        await harness.add_pod("other", cpu="3")
        await harness.delete_pod("held")
        await harness.passes(5)
        assert await harness.node_of("other") == "n1"
        assert scheduler.cache.assumed_count == 0
        assert harness.line.bound.total() == 1

    in_harness(scenario)


def test_a_waiting_victim_is_stopped_in_memory() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = harness.scheduler(config=profile("Hold"), registry=registry_with(Hold()))
        await harness.add_node("n1")
        await harness.add_priority("high", 1000)
        victim = await harness.add_pod("held", cpu="3")
        await harness.passes(1)
        preemptor = await harness.add_pod("greater", cpu="3", priorityClassName="high")
        await harness.passes(5)
        assert await harness.node_of("greater") == "n1"
        stored = await harness.pod("held")
        assert stored["metadata"]["uid"] == victim["metadata"]["uid"]
        assert "deletionTimestamp" not in stored["metadata"]
        assert "DisruptionTarget" not in [each["type"] for each in stored["status"]["conditions"]]
        (event,) = await harness.events("Preempted")
        note = f"Preempted by pod {preemptor['metadata']['uid']} on node n1 (in kube-scheduler memory)."
        assert (event["message"], event["involvedObject"]["name"]) == (note, "held")
        failed = [each["message"] for each in await harness.events("FailedScheduling")]
        assert "waiting on permit for pod: preempted" in failed
        scheduler.cache.validate()
        scheduler.queue.validate()

    in_harness(scenario)


def test_a_victim_in_pre_bind_is_stopped_in_memory() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        never = asyncio.Event()
        slow = Diary("Slow", [], {"pre_bind lesser": never})
        scheduler = harness.scheduler(config=profile("Slow"), registry=registry_with(slow))
        await harness.add_node("n1")
        await harness.add_priority("high", 1000)
        await harness.add_pod("lesser", cpu="3")
        await harness.passes(1)
        assert (await harness.pod("lesser"))["status"]["nominatedNodeName"] == "n1"
        await harness.add_pod("greater", cpu="3", priorityClassName="high")
        await harness.passes(5)
        assert await harness.node_of("greater") == "n1"
        assert await harness.node_of("lesser") == ""
        failed = [each["message"] for each in await harness.events("FailedScheduling")]
        assert 'running PreBind plugin "Slow": preempted by DefaultPreemption' in failed
        never.set()
        await harness.delete_pod("greater")
        await harness.passes(20)
        assert await harness.node_of("lesser") == "n1"
        await harness.check(scheduler)

    in_harness(scenario)


@pytest.mark.parametrize("point", ["permit", "post_bind"])
def test_plugins_wake_pods_after_the_cycle_and_after_the_binding(point: str) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        wake = Wake(point)
        scheduler = harness.scheduler(config=profile("Wake"), registry=registry_with(wake))
        await harness.add_node("n1")
        await harness.add_pod("sleeper")
        await harness.passes(20)
        assert await harness.node_of("sleeper") == ""
        await harness.add_pod("other")
        await harness.passes(1)
        assert await harness.node_of("sleeper") == "n1"
        await harness.check(scheduler)

    in_harness(scenario)
