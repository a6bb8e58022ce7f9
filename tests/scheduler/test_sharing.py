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
from tests.scheduler.running import World, in_world


def test_two_schedulers_share_a_cluster_by_name() -> None:
    async def scenario(world: World) -> None:
        ours = world.scheduler(seed=1)
        theirs = world.scheduler(config=profile(name="theirs"), seed=2)
        await world.add_node("n1")
        await world.add_node("n2")
        for index in range(8):
            await world.add_pod(f"a{index}", cpu="1")
            await world.passes(0.25)
            await world.add_pod(f"b{index}", cpu="1", schedulerName="theirs")
            await world.passes(0.25)
        await world.passes(30)
        placed = [item["spec"].get("nodeName") for item in await world.client.list(POD)]
        assert sorted(filter(None, placed)) == ["n1"] * 4 + ["n2"] * 4
        assert len(ours.queue) + len(theirs.queue) == 8
        assert all(each.pod.spec.scheduler_name == "theirs" for each in theirs.queue)
        reporters = {each["reportingComponent"] for each in await world.events("Scheduled")}
        assert reporters == {"default-scheduler", "theirs"}

    in_world(scenario)


def test_two_of_the_same_name_never_bind_a_pod_twice() -> None:
    async def scenario(world: World) -> None:
        schedulers = [world.scheduler(seed=seed) for seed in (1, 2)]
        for name in ("n1", "n2", "n3"):
            await world.add_node(name)
        for index in range(6):
            await world.add_pod(f"p{index}", cpu="1")
        await world.passes(60)
        for scheduler in schedulers:
            await world.check(scheduler)
        assert world.line.bound.total() == 6

    in_world(scenario)


def test_the_one_who_is_refused_by_the_node_recovers() -> None:
    """Two schedulers race for the last slot; the node rejects one pod, which its owner recreates."""

    async def scenario(world: World) -> None:
        slow = Diary("Slow", [], {"pre_bind": (gate := asyncio.Event())})
        first = world.scheduler(config=profile("Slow"), registry=registry_with(slow))
        world.scheduler(config=profile(name="theirs"))
        await world.add_node("n1", cpu="1")
        await world.add_pod("ours", cpu="1")
        await world.passes(1)
        await world.add_pod("theirs", cpu="1", schedulerName="theirs")
        await world.passes(1)
        assert await world.node_of("theirs") == "n1"
        gate.set()
        await world.passes(1)
        assert await world.node_of("ours") == "n1"  # Both cannot be right; the node decides.
        await world.client.patch(POD, "default", "ours", _refused(), "strategic", "status")
        await world.passes(1)
        await world.delete_pod("ours")
        await world.add_pod("ours", cpu="1")
        await world.passes(1)
        assert (await world.condition("ours"))["reason"] == "Unschedulable"
        await world.add_node("n2", cpu="1")
        await world.passes(5)
        assert await world.node_of("ours") == "n2"
        await world.check(first)

    in_world(scenario)


def _refused() -> Manifest:
    return {
        "status": {"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough resource"}
    }


def test_pods_of_others_are_counted_but_not_touched() -> None:
    async def scenario(world: World) -> None:
        scheduler = world.scheduler()
        await world.add_node("n1")
        await world.add_pod("running", cpu="3", schedulerName="other", nodeName="n1")
        untouched = await world.add_pod("waiting", cpu="1", schedulerName="other")
        await world.add_pod("ours", cpu="2")
        await world.passes(5)
        assert await world.node_of("ours") == ""
        assert await world.pod("waiting") == untouched
        assert len(scheduler.queue) == 1
        await world.client.patch(
            POD, "default", "running", {"status": {"phase": "Succeeded"}}, "merge", "status"
        )
        await world.passes(3)
        assert await world.node_of("ours") == "n1"

    in_world(scenario)


def test_a_node_that_comes_makes_a_pending_pod_run() -> None:
    async def scenario(world: World) -> None:
        scheduler = world.scheduler()
        await world.add_node("n1", cpu="1")
        await world.add_pod("p", cpu="2")
        await world.passes(60)
        assert await world.node_of("p") == ""
        await world.add_node("n2")
        await world.passes(1)
        assert await world.node_of("p") == "n2"
        await world.client.delete(NODE, "", "n1")
        await world.passes(1)
        await world.check(scheduler)

    in_world(scenario)


def test_gates_are_lifted_one_by_one() -> None:
    async def scenario(world: World) -> None:
        scheduler = world.scheduler()
        await world.add_node("n1")
        gates = [{"name": "example.com/one"}, {"name": "example.com/two"}]
        await world.add_pod("p", schedulingGates=gates)
        await world.passes(5)
        assert (await world.condition("p"))["reason"] == "SchedulingGated"
        one_less = {"spec": {"schedulingGates": gates[1:]}}
        await world.client.patch(POD, "default", "p", one_less, "merge")
        await world.passes(5)
        assert await world.node_of("p") == ""
        assert await world.events("FailedScheduling") == []
        await world.client.patch(POD, "default", "p", {"spec": {"schedulingGates": None}}, "merge")
        await world.passes(1)
        assert await world.node_of("p") == "n1"
        await world.check(scheduler)

    in_world(scenario)


@pytest.mark.parametrize("grace_seconds", [0, 30])
def test_preemption_waits_for_its_victims_to_end(grace_seconds: int) -> None:
    async def scenario(world: World) -> None:
        scheduler = world.scheduler()
        await world.add_node("n1", cpu="4")
        await world.add_priority("high", 1000)
        for index in range(4):
            await world.add_pod(f"v{index}", cpu="1", terminationGracePeriodSeconds=grace_seconds)
        await world.passes(1)
        await world.add_pod("greater", cpu="2", priorityClassName="high")
        await world.passes(2)
        pods = {item["metadata"]["name"]: item for item in await world.client.list(POD)}
        assert pods["greater"]["status"].get("nominatedNodeName", "n1") == "n1"
        victims = [name for name, item in pods.items() if "deletionTimestamp" in item["metadata"]]
        if grace_seconds:
            assert len(victims) == 2
            assert await world.node_of("greater") == ""
            # A pod of no importance does not get the room that was made for another.
            await world.add_pod("small", cpu="1")
            await world.passes(5)
            for name in victims:
                await world.delete_pod(name)
        await world.passes(20)
        assert await world.node_of("greater") == "n1"
        assert "nominatedNodeName" not in (await world.pod("greater"))["status"]
        if grace_seconds:
            assert await world.node_of("small") == ""
        await world.check(scheduler)

    in_world(scenario)


class Mute:
    """Does not let statuses of pods through."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def handle(self, request: Request) -> Response:
        if request.method == "PATCH" and request.path.endswith("/greater/status"):
            raise ConnectionFailed("not this one")
        return await self._world.line.handle(request)


def test_room_is_kept_for_a_preemptor_even_if_nobody_can_be_told() -> None:
    async def scenario(world: World) -> None:
        scheduler = world.scheduler(transport=Mute(world))
        await world.add_node("n1", cpu="4")
        await world.add_priority("high", 1000)
        await world.add_pod("lesser", cpu="4", terminationGracePeriodSeconds=30)
        await world.passes(1)
        made = await world.add_pod("greater", cpu="4", priorityClassName="high")
        await world.passes(1)
        assert "nominatedNodeName" not in (await world.pod("greater"))["status"]
        assert scheduler.cache.nominations.node_of(made["metadata"]["uid"]) == "n1"
        await world.delete_pod("greater")
        await world.passes(1)
        assert scheduler.cache.nominations.node_of(made["metadata"]["uid"]) is None

    in_world(scenario)


class Replacing:
    """Replaces a victim by another pod of its name when the first request about it is made."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._is_replaced = False

    async def handle(self, request: Request) -> Response:
        if request.path.endswith("/lesser/status") and not self._is_replaced:
            self._is_replaced = True
            await self._world.delete_pod("lesser")
            await self._world.add_pod("lesser", cpu="4", schedulerName="other")
        return await self._world.line.handle(request)


def test_a_victim_that_was_replaced_by_a_pod_of_its_name_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        world.scheduler(transport=Replacing(world))
        await world.add_node("n1", cpu="4")
        await world.add_priority("high", 1000)
        await world.add_pod("lesser", cpu="4")
        await world.passes(1)
        await world.add_pod("greater", cpu="4", priorityClassName="high")
        await world.passes(5)
        assert await world.node_of("greater") == "n1"
        replacement = await world.pod("lesser")
        assert "deletionTimestamp" not in replacement["metadata"]

    in_world(scenario)
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


class Silent:
    """Never answers writes of a pod's status."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def handle(self, request: Request) -> Response:
        if request.path.endswith("/p/status"):
            await asyncio.Event().wait()
        return await self._world.line.handle(request)


def test_draining_does_not_wait_for_conditions_of_pods_without_a_node() -> None:
    async def scenario(world: World) -> None:
        scheduler = world.scheduler(transport=Silent(world))
        await world.add_node("n1", cpu="1")
        await world.add_pod("p", cpu="4")
        await world.passes(1)
        assert scheduler.background_task_count == 1
        draining = asyncio.ensure_future(scheduler.drain(60.0))
        await world.settles()
        assert draining.done()

    in_world(scenario)


def test_draining_does_not_wait_for_permits_nor_for_longer_than_it_may() -> None:
    async def scenario(world: World) -> None:
        plugins = Hold(), Diary("Slow", [], {"pre_bind slow": asyncio.Event()})
        scheduler = world.scheduler(config=profile("Hold", "Slow"), registry=registry_with(*plugins))
        await world.add_node("n1")
        await world.add_pod("held")
        await world.passes(1)
        await scheduler.drain(60.0)
        again = world.scheduler(config=profile("Slow", name="again"), registry=registry_with(plugins[1]))
        await world.add_pod("slow", schedulerName="again")
        await world.passes(1)
        draining = asyncio.ensure_future(again.drain(60.0))
        await world.passes(59)
        assert not draining.done()
        await world.passes(2)
        assert draining.done()

    in_world(scenario)


def test_draining_ends_cycles_and_waits_for_bindings() -> None:
    async def scenario(world: World) -> None:
        slow = Diary("Slow", [], {"pre_bind": (gate := asyncio.Event())})
        scheduler = world.scheduler(config=profile("Slow"), registry=registry_with(slow))
        await world.add_node("n1")
        await world.add_pod("first")
        await world.passes(1)
        draining = asyncio.ensure_future(scheduler.drain(60.0))
        await world.passes(1)
        await world.add_pod("second")
        await world.passes(1)
        assert not draining.done()
        gate.set()
        await world.passes(1)
        assert draining.done()
        assert await world.node_of("first") == "n1"
        assert await world.node_of("second") == ""
        assert len(await world.events("Scheduled")) == 1

    in_world(scenario)
