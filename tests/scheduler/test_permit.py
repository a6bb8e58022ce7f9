"""Pods that wait for a permit, and pods that are stopped on the way."""

from __future__ import annotations

import asyncio

import pytest

from tests.scheduler.plugins import Diary, Hold, Wake, profile, registry_with
from tests.scheduler.running import World, in_world


def test_a_pod_is_bound_once_it_is_allowed() -> None:
    async def scenario(world: World) -> None:
        hold = Hold()
        scheduler = world.scheduler(config=profile("Hold"), registry=registry_with(hold))
        await world.add_node("n1")
        await world.add_pod("held")
        await world.passes(5)
        assert await world.node_of("held") == ""
        assert (await world.pod("held"))["status"]["nominatedNodeName"] == "n1"
        assert scheduler.cache.assumed_count == 1
        hold.waiting().allow("Hold")
        await world.passes(1)
        bound = await world.pod("held")
        assert bound["spec"]["nodeName"] == "n1"
        assert "nominatedNodeName" not in bound["status"]
        await world.check(scheduler)

    in_world(scenario)


def test_a_pod_that_is_rejected_gives_its_room_to_others_and_waits() -> None:
    async def scenario(world: World) -> None:
        hold = Hold()
        scheduler = world.scheduler(config=profile("Hold"), registry=registry_with(hold))
        await world.add_node("n1")
        await world.add_pod("held", cpu="3")
        await world.passes(1)
        await world.add_pod("other", cpu="3")
        await world.passes(1)
        assert await world.node_of("other") == ""
        hold.waiting().reject("Hold", "not today")
        await world.passes(5)
        assert await world.node_of("other") == "n1"
        condition = await world.condition("held")
        assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
        assert condition["message"] == "0/1 nodes are available: 1 not today."
        assert "nominatedNodeName" not in (await world.pod("held"))["status"]
        held = next(each for each in scheduler.queue if each.pod.name == "held")
        assert held.unschedulable_plugins == {"Hold"}
        scheduler.queue.validate()

    in_world(scenario)


def test_a_pod_does_not_wait_forever() -> None:
    async def scenario(world: World) -> None:
        world.scheduler(config=profile("Hold"), registry=registry_with(Hold(90)))
        await world.add_node("n1")
        await world.add_pod("held")
        await world.passes(88)
        assert (await world.condition_or_none("held")) is None
        await world.passes(3)
        condition = await world.condition("held")
        assert condition["message"] == (
            "0/1 nodes are available: 1 rejected due to timeout after waiting 1m30s at plugin Hold."
        )

    in_world(scenario)


@pytest.mark.parametrize("finalizers", [[], ["example.com/keep"]], ids=["gone at once", "terminating"])
def test_a_pod_that_is_deleted_while_it_waits_frees_its_room(finalizers: list[str]) -> None:
    async def scenario(world: World) -> None:
        scheduler = world.scheduler(config=profile("Hold"), registry=registry_with(Hold()))
        await world.add_node("n1")
        await world.add_pod("held", cpu="3")
        await world.label("held", {"finalizers": finalizers})
        await world.passes(1)
        assert scheduler.cache.assumed_count == 1
        await world.add_pod("other", cpu="3")
        await world.delete_pod("held")
        await world.passes(5)
        assert await world.node_of("other") == "n1"
        assert scheduler.cache.assumed_count == 0
        assert world.line.bound.total() == 1

    in_world(scenario)


def test_a_waiting_victim_is_stopped_in_memory() -> None:
    async def scenario(world: World) -> None:
        scheduler = world.scheduler(config=profile("Hold"), registry=registry_with(Hold()))
        await world.add_node("n1")
        await world.add_priority("high", 1000)
        victim = await world.add_pod("held", cpu="3")
        await world.passes(1)
        preemptor = await world.add_pod("greater", cpu="3", priorityClassName="high")
        await world.passes(5)
        assert await world.node_of("greater") == "n1"
        stored = await world.pod("held")
        assert stored["metadata"]["uid"] == victim["metadata"]["uid"]
        assert "deletionTimestamp" not in stored["metadata"]
        assert "DisruptionTarget" not in [each["type"] for each in stored["status"]["conditions"]]
        (event,) = await world.events("Preempted")
        note = f"Preempted by pod {preemptor['metadata']['uid']} on node n1 (in kube-scheduler memory)."
        assert (event["message"], event["involvedObject"]["name"]) == (note, "held")
        failed = [each["message"] for each in await world.events("FailedScheduling")]
        assert "waiting on permit for pod: preempted" in failed
        scheduler.cache.validate()
        scheduler.queue.validate()

    in_world(scenario)


def test_a_victim_in_pre_bind_is_stopped_in_memory() -> None:
    async def scenario(world: World) -> None:
        never = asyncio.Event()
        slow = Diary("Slow", [], {"pre_bind lesser": never})
        scheduler = world.scheduler(config=profile("Slow"), registry=registry_with(slow))
        await world.add_node("n1")
        await world.add_priority("high", 1000)
        await world.add_pod("lesser", cpu="3")
        await world.passes(1)
        assert (await world.pod("lesser"))["status"]["nominatedNodeName"] == "n1"
        await world.add_pod("greater", cpu="3", priorityClassName="high")
        await world.passes(5)
        assert await world.node_of("greater") == "n1"
        assert await world.node_of("lesser") == ""
        failed = [each["message"] for each in await world.events("FailedScheduling")]
        assert 'running PreBind plugin "Slow": preempted by DefaultPreemption' in failed
        never.set()
        await world.delete_pod("greater")
        await world.passes(20)
        assert await world.node_of("lesser") == "n1"
        await world.check(scheduler)

    in_world(scenario)


@pytest.mark.parametrize("point", ["permit", "post_bind"])
def test_plugins_wake_pods_after_the_cycle_and_after_the_binding(point: str) -> None:
    async def scenario(world: World) -> None:
        wake = Wake(point)
        scheduler = world.scheduler(config=profile("Wake"), registry=registry_with(wake))
        await world.add_node("n1")
        await world.add_pod("sleeper")
        await world.passes(20)
        assert await world.node_of("sleeper") == ""
        await world.add_pod("other")
        await world.passes(1)
        assert await world.node_of("sleeper") == "n1"
        await world.check(scheduler)

    in_world(scenario)
