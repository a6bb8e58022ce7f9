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
from tests.scheduler.running import SchedulerHarness, in_harness

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


async def begin(harness: SchedulerHarness, plugin: Any, threads: int = 4) -> Scheduler:
    config = profile(plugin.name)
    if hasattr(plugin, "bind"):
        binders = [{"name": plugin.name}, {"name": "DefaultBinder"}]
        config["profiles"][0]["plugins"]["bind"] = {"enabled": binders, "disabled": [{"name": "*"}]}
    scheduler = harness.scheduler(config=config, registry=registry_with(plugin), plugin_threads=threads)
    await harness.add_node("n1", cpu="4")
    return scheduler


async def blocks(harness: SchedulerHarness, plugin: Blocking, name: str = "slow", **spec: Any) -> None:
    """Add a pod, and wait until the plugin blocks at it."""
    await harness.add_pod(name, **spec)
    await until(harness, lambda: plugin.entered.acquire(blocking=False))


async def until(harness: SchedulerHarness, condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not condition():
            await harness.settles()


async def bound(harness: SchedulerHarness, *names: str) -> None:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not all([await harness.node_of(name) for name in names]):
            await harness.settles()


@pytest.mark.parametrize("point", ["pre_bind", "bind", "post_bind"])
def test_other_pods_are_bound_while_a_plugin_blocks(point: str) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        plugin = Blocking(point)
        scheduler = await begin(harness, plugin)
        await blocks(harness, plugin)
        await harness.add_pod("quick-1")
        await harness.add_pod("quick-2")
        await bound(harness, "quick-1", "quick-2")
        assert f"{point} slow ended" not in plugin.calls
        assert bool(await harness.node_of("slow")) is (point == "post_bind")
        plugin.released.set()
        await bound(harness, "slow")
        await until(harness, lambda: "post_bind slow" in plugin.calls and not scheduler.background_task_count)
        await harness.check(scheduler)

    in_harness(scenario)


def test_a_pod_that_is_deleted_while_its_pre_bind_blocks() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        plugin = Blocking()
        scheduler = await begin(harness, plugin)
        await blocks(harness, plugin, cpu="3")
        await harness.delete_pod("slow")
        await harness.add_pod("quick", cpu="3")
        await bound(harness, "quick")  # The room is free at once,
        assert "unreserve slow" not in plugin.calls  # but nothing is undone that is still being done.
        plugin.released.set()
        await until(harness, lambda: "unreserve slow" in plugin.calls)
        own = [call for call in plugin.calls if "slow" in call]
        assert own.index("pre_bind slow ended") == own.index("unreserve slow") - 1
        assert plugin.was_stopped
        assert "bind slow" not in plugin.calls
        await until(harness, lambda: not scheduler.background_task_count)
        await harness.check(scheduler)

    in_harness(scenario)


def test_a_victim_of_preemption_whose_pre_bind_blocks() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        plugin = Blocking()
        scheduler = await begin(harness, plugin)
        await harness.add_priority("high", 1000)
        await blocks(harness, plugin, cpu="3")
        await harness.add_pod("greater", cpu="3", priorityClassName="high")
        await harness.passes(5)
        assert (await harness.node_of("greater"), "unreserve slow" in plugin.calls) == ("", False)
        plugin.released.set()
        await until(harness, lambda: "unreserve slow" in plugin.calls)
        await harness.passes(5)
        await bound(harness, "greater")
        failed = [each["message"] for each in await harness.events("FailedScheduling")]
        assert 'running PreBind plugin "Blocking": preempted by DefaultPreemption' in failed
        await until(harness, lambda: not scheduler.background_task_count)

    in_harness(scenario)


@pytest.mark.parametrize("point", ["pre_bind", "bind", "post_bind"])
def test_a_scheduler_ends_while_a_plugin_blocks(point: str, caplog: pytest.LogCaptureFixture) -> None:
    plugin = Blocking(point)

    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = await begin(harness, plugin)
        await blocks(harness, plugin)
        draining = asyncio.ensure_future(scheduler.drain(20))
        await harness.passes(19)
        assert not draining.done()
        await harness.passes(2)
        await draining
        assert '"In-flight bindings are abandoned" count=1' in caplog.text

    in_harness(scenario)  # At its end, the scheduler is cancelled.
    assert f"{point} slow ended" not in plugin.calls
    plugin.released.set()


def test_pods_wait_for_a_thread(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        plugin = Blocking()
        scheduler = await begin(harness, plugin, threads=1)
        await blocks(harness, plugin)
        await harness.add_pod("waiting")  # Not for long, as far as is known: no warning.
        await until(harness, lambda: scheduler.pre_binding == 2)
        assert not caplog.records
        await harness.passes(7)
        for name in ("deleted", "other"):
            await harness.add_pod(name)
        await until(harness, lambda: scheduler.pre_binding == 4)
        await harness.delete_pod("deleted")
        await until(harness, lambda: "unreserve deleted" in plugin.calls)
        plugin.released.set()
        await bound(harness, "slow", "waiting", "other")
        assert "pre_bind deleted" not in plugin.calls
        await until(harness, lambda: not scheduler.background_task_count)

    in_harness(scenario)
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
    async def scenario(harness: SchedulerHarness) -> None:
        plugin = Helpful()
        await begin(harness, plugin)
        await harness.add_pod("held")
        await harness.add_pod("asks")
        await bound(harness, "asks", "held")
        assert plugin.seen == {"cpu": "4", "nodes": ["n1"]}
        [event] = await harness.events("Asked")
        assert event["message"] == "about n1"

    in_harness(scenario)


WRONG = {
    "client": "WrongThreadError: handle.client: not in a thread; write handle.on_loop(lambda: handle.client",
    "nodes": "WrongThreadError: handle.nodes: not in a thread; write handle.on_loop(lambda: handle.nodes",
    "raises": "LookupError: no such thing (test_blocking_plugins.py:",
}


@pytest.mark.parametrize(("name", "complaint"), WRONG.items(), ids=WRONG.keys())
def test_a_plugin_that_fails_in_a_thread(name: str, complaint: str) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = await begin(harness, Helpful())
        await harness.add_pod(name)
        await until(harness, lambda: not scheduler.background_task_count and len(scheduler.queue) == 1)
        condition = await harness.condition(name)
        assert condition["message"].startswith(f'running PreBind plugin "Helpful": {complaint}')

    in_harness(scenario)
