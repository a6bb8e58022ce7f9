"""Plugins that block in the binding cycle hold up their own pods only."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from moorage.api.pod import Pod
from moorage.client import kinds
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.status import SKIP, Status, wait
from moorage.scheduler.scheduler import Scheduler
from tests.scheduler.plugins import Quiet, profile, registry_with
from tests.scheduler.running import World, in_world

TIMEOUT_SECONDS = 20
"""Bound of what never takes that long, so that a failure is not a hang."""


class Blocking(Quiet):
    """Blocks at one extension point, for pods whose name begins with `slow`, until it is released."""

    name = "Blocking"

    def __init__(self, point: str = "pre_bind") -> None:
        self._point = point
        self.entered = threading.Semaphore(0)
        self.released = threading.Event()
        self.calls: list[str] = []
        self.was_stopped = False

    def _called(self, point: str, pod: Pod) -> None:
        self.calls.append(f"{point} {pod.name}")
        if point == self._point and pod.name.startswith("slow"):
            self.entered.release()
            assert self.released.wait(TIMEOUT_SECONDS)
            self.was_stopped = self.handle.pre_binding.is_stopped(pod.uid)
            self.calls.append(f"{point} {pod.name} ended")

    def reserve(self, cycle: CycleState, pod: Pod, node_name: str) -> None: ...

    def unreserve(self, cycle: CycleState, pod: Pod, node_name: str) -> None:
        self._called("unreserve", pod)

    def pre_bind(self, cycle: CycleState, pod: Pod, node_name: str) -> None:
        self._called("pre_bind", pod)

    def bind(self, cycle: CycleState, pod: Pod, node_name: str) -> Status:
        self._called("bind", pod)
        return SKIP

    def post_bind(self, cycle: CycleState, pod: Pod, node_name: str) -> None:
        self._called("post_bind", pod)


async def begin(world: World, plugin: Any, threads: int = 4) -> Scheduler:
    config = profile(plugin.name)
    if hasattr(plugin, "bind"):
        binders = [{"name": plugin.name}, {"name": "DefaultBinder"}]
        config["profiles"][0]["plugins"]["bind"] = {"enabled": binders, "disabled": [{"name": "*"}]}
    scheduler = world.scheduler(config=config, registry=registry_with(plugin), plugin_threads=threads)
    await world.add_node("n1", cpu="4")
    return scheduler


async def blocks(world: World, plugin: Blocking, name: str = "slow", **spec: Any) -> None:
    """Add a pod, and wait until the plugin blocks at it."""
    await world.add_pod(name, **spec)
    await until(world, lambda: plugin.entered.acquire(blocking=False))


async def until(world: World, condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not condition():
            await world.settles()


async def bound(world: World, *names: str) -> None:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not all([await world.node_of(name) for name in names]):
            await world.settles()


@pytest.mark.parametrize("point", ["pre_bind", "bind", "post_bind"])
def test_other_pods_are_bound_while_a_plugin_blocks(point: str) -> None:
    async def scenario(world: World) -> None:
        plugin = Blocking(point)
        scheduler = await begin(world, plugin)
        await blocks(world, plugin)
        await world.add_pod("quick-1")
        await world.add_pod("quick-2")
        await bound(world, "quick-1", "quick-2")
        assert f"{point} slow ended" not in plugin.calls
        assert bool(await world.node_of("slow")) is (point == "post_bind")
        plugin.released.set()
        await bound(world, "slow")
        await until(world, lambda: "post_bind slow" in plugin.calls and not scheduler.background_task_count)
        await world.check(scheduler)

    in_world(scenario)


def test_a_pod_that_is_deleted_while_its_pre_bind_blocks() -> None:
    async def scenario(world: World) -> None:
        plugin = Blocking()
        scheduler = await begin(world, plugin)
        await blocks(world, plugin, cpu="3")
        await world.delete_pod("slow")
        await world.add_pod("quick", cpu="3")
        await bound(world, "quick")  # The room is free at once,
        assert "unreserve slow" not in plugin.calls  # but nothing is undone that is still being done.
        plugin.released.set()
        await until(world, lambda: "unreserve slow" in plugin.calls)
        own = [call for call in plugin.calls if "slow" in call]
        assert own.index("pre_bind slow ended") == own.index("unreserve slow") - 1
        assert plugin.was_stopped
        assert "bind slow" not in plugin.calls
        await until(world, lambda: not scheduler.background_task_count)
        await world.check(scheduler)

    in_world(scenario)


def test_a_victim_of_preemption_whose_pre_bind_blocks() -> None:
    async def scenario(world: World) -> None:
        plugin = Blocking()
        scheduler = await begin(world, plugin)
        await world.add_priority("high", 1000)
        await blocks(world, plugin, cpu="3")
        await world.add_pod("greater", cpu="3", priorityClassName="high")
        await world.passes(5)
        assert (await world.node_of("greater"), "unreserve slow" in plugin.calls) == ("", False)
        plugin.released.set()
        await until(world, lambda: "unreserve slow" in plugin.calls)
        await world.passes(5)
        await bound(world, "greater")
        failed = [each["message"] for each in await world.events("FailedScheduling")]
        assert 'running PreBind plugin "Blocking": preempted by DefaultPreemption' in failed
        await until(world, lambda: not scheduler.background_task_count)

    in_world(scenario)


@pytest.mark.parametrize("point", ["pre_bind", "bind", "post_bind"])
def test_a_scheduler_ends_while_a_plugin_blocks(point: str, caplog: pytest.LogCaptureFixture) -> None:
    plugin = Blocking(point)

    async def scenario(world: World) -> None:
        scheduler = await begin(world, plugin)
        await blocks(world, plugin)
        draining = asyncio.ensure_future(scheduler.drain(20))
        await world.passes(19)
        assert not draining.done()
        await world.passes(2)
        await draining
        assert '"In-flight bindings are abandoned" count=1' in caplog.text

    in_world(scenario)  # At its end, the scheduler is cancelled.
    assert f"{point} slow ended" not in plugin.calls
    plugin.released.set()


def test_pods_wait_for_a_thread(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        plugin = Blocking()
        scheduler = await begin(world, plugin, threads=1)
        await blocks(world, plugin)
        await world.add_pod("waiting")  # Not for long, as far as is known: no warning.
        await until(world, lambda: scheduler.pre_binding == 2)
        assert not caplog.records
        await world.passes(7)
        for name in ("deleted", "other"):
            await world.add_pod(name)
        await until(world, lambda: scheduler.pre_binding == 4)
        await world.delete_pod("deleted")
        await until(world, lambda: "unreserve deleted" in plugin.calls)
        plugin.released.set()
        await bound(world, "slow", "waiting", "other")
        assert "pre_bind deleted" not in plugin.calls
        await until(world, lambda: not scheduler.background_task_count)

    in_world(scenario)
    warnings = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert warnings == [
        '"All threads for blocking plugins are in use: further pods wait" threads=1 longestSeconds=7'
    ]


class Helpful(Quiet):
    """Uses its handle in a thread."""

    name = "Helpful"

    def __init__(self) -> None:
        self.seen: dict[str, Any] = {}

    def permit(self, cycle: CycleState, pod: Pod, node_name: str) -> Status | None:
        return wait(600) if pod.name == "held" else None

    def pre_bind(self, cycle: CycleState, pod: Pod, node_name: str) -> None:
        match pod.name:
            case "client":
                _ = self.handle.client
            case "nodes":
                self.handle.nodes()
            case "raises":
                raise LookupError("no such thing")
            case "asks":
                handle = self.handle
                node = handle.on_loop(lambda: handle.client.get(kinds.NODE, "", node_name))
                self.seen["cpu"] = node["status"]["capacity"]["cpu"]
                self.seen["nodes"] = handle.on_loop(lambda: handle.nodes().names)
                handle.record_event(pod, "Asked", f"about {node_name}")
                for waiting in handle.waiting:
                    waiting.allow(self.name)


def test_what_a_handle_lends_in_a_thread() -> None:
    async def scenario(world: World) -> None:
        plugin = Helpful()
        await begin(world, plugin)
        await world.add_pod("held")
        await world.add_pod("asks")
        await bound(world, "asks", "held")
        assert plugin.seen == {"cpu": "4", "nodes": ["n1"]}
        [event] = await world.events("Asked")
        assert event["message"] == "about n1"

    in_world(scenario)


WRONG = {
    "client": "WrongThreadError: handle.client: not in a thread; write handle.on_loop(lambda: handle.client",
    "nodes": "WrongThreadError: handle.nodes: not in a thread; write handle.on_loop(lambda: handle.nodes",
    "raises": "LookupError: no such thing (test_blocking_plugins.py:",
}


@pytest.mark.parametrize(("name", "complaint"), WRONG.items(), ids=WRONG.keys())
def test_a_plugin_that_fails_in_a_thread(name: str, complaint: str) -> None:
    async def scenario(world: World) -> None:
        scheduler = await begin(world, Helpful())
        await world.add_pod(name)
        await until(world, lambda: not scheduler.background_task_count and len(scheduler.queue) == 1)
        condition = await world.condition(name)
        assert condition["message"].startswith(f'running PreBind plugin "Helpful": {complaint}')

    in_world(scenario)
