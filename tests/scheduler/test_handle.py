"""What a plugin can do with its handle while a scheduler is at work."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from moorage import Action, Handle, Interest, Namespace, Pod, Resource, Status, kinds, on, wait
from moorage.framework.loading.registry import Registry
from moorage.klog import quoted
from moorage.plugins import default_registry
from tests.scheduler.plugins import profile
from tests.scheduler.running import SchedulerHarness, in_harness
from tests.scheduler.test_watched_kinds import DEFINITION, DEFINITIONS, WIDGETS


class Busy:
    """Uses everything that it is lent."""

    name = "Busy"
    handle: Handle

    def __init__(self, handle: Handle) -> None:
        type(self).handle = handle
        type(self).seen = {}

    seen: dict[str, Any]

    def events(self) -> tuple[Interest, ...]:
        return (on(Resource.CSI_DRIVER, Action.ADD),)

    def filter_node(self, cycle: Any, pod: Pod, node: Any) -> str | None:
        return "asleep" if pod.name == "sleeper" and "awake" not in self.seen else None

    def permit(self, cycle: Any, pod: Pod, node_name: str) -> Status | None:
        self.seen["node"] = self.handle.nodes().names
        self.seen["nominated"] = [info.pod.name for info in self.handle.nominations.on("n2")]
        return wait(60) if pod.name.startswith("held") else None

    async def pre_bind(self, cycle: Any, pod: Pod, node_name: str) -> None:
        node = await self.handle.client.get(kinds.NODE, "", node_name)
        self.seen["capacity"] = node["status"]["capacity"]["cpu"]
        self.seen["namespaces"] = sorted(each.name for each in self.handle.objects.of(Namespace))
        self.handle.record_event(pod, "Prepared", f"{node_name} is prepared", action="Preparing")

    def post_bind(self, cycle: Any, pod: Pod, node_name: str) -> None:
        self.seen["bound"] = pod.name


def registry() -> Registry:
    made = default_registry()
    made.register("Busy", Busy)
    return made


def test_client_caches_nodes_and_events() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        harness.scheduler(config=profile("Busy", name="mine"), registry=registry())
        await harness.add_node("n1", cpu="4")
        await harness.add_pod("p", schedulerName="mine")
        await harness.passes(1)
        seen = Busy.seen
        assert (seen["bound"], seen["capacity"], seen["node"]) == ("p", "4", ["n1"])
        assert "kube-system" in seen["namespaces"]
        [event] = await harness.events("Prepared")
        assert event["message"] == "n1 is prepared"
        assert (event["type"], event["action"], event["reportingComponent"]) == (
            "Normal",
            "Preparing",
            "mine",
        )
        assert event["involvedObject"]["kind"] == "Pod"

    in_harness(scenario)


def test_events_about_other_objects() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = harness.scheduler(config=profile("Busy"), registry=registry())
        await harness.add_node("n1")
        await harness.add_pod("p")
        await harness.passes(1)
        [pod] = scheduler.cache.pods()
        [node] = scheduler.cache.nodes()
        Busy.handle.record_event(node, "Tired", "too many pods", type="Warning", related=pod)
        await harness.passes(1)
        [event] = await harness.events("Tired")
        about, related = event["involvedObject"], event["related"]
        assert (about["apiVersion"], about["kind"], about["name"]) == ("v1", "Node", "n1")
        assert (related["kind"], related["name"]) == ("Pod", "p")
        assert (event["metadata"]["namespace"], event["type"]) == ("default", "Warning")

    in_harness(scenario)


class WantsWidget:
    """Reads a kind that only it knows."""

    name = "WantsWidget"

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def events(self) -> tuple[Interest, ...]:
        return (on("widgets.v1.example.com", Action.ADD),)

    def filter_node(self, cycle: Any, pod: Pod, node: Any) -> str | None:
        sizes = [widget["size"] for widget in self._handle.custom("widgets.v1.example.com")]
        return None if 3 in sizes else f"the widgets are {sizes}"


def test_objects_of_a_kind_that_only_the_plugin_knows() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.client.create(DEFINITIONS, "", DEFINITION)
        await harness.passes(1)
        made = default_registry()
        made.register("WantsWidget", WantsWidget)
        harness.scheduler(config=profile("WantsWidget"), registry=made)
        await harness.add_node("n1")
        await harness.add_pod("p")
        for name, size in (("small", 1), ("large", 3)):
            await harness.passes(15)
            assert await harness.node_of("p") == ""
            widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}}
            await harness.client.create(WIDGETS, "default", {**widget, "size": size})
        await harness.passes(15)
        assert await harness.node_of("p") == "n1"

    in_harness(scenario)


@pytest.mark.parametrize("answer", ["allow", "reject"])
def test_pods_that_wait_can_be_listed_allowed_and_rejected(answer: str) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        harness.scheduler(config=profile("Busy"), registry=registry())
        await harness.add_node("n1")
        await harness.add_pod("held")
        await harness.passes(1)
        [waiting] = Busy.handle.waiting
        assert (waiting.pod.name, waiting.node_name, waiting.pending_plugins) == ("held", "n1", {"Busy"})
        if answer == "allow":
            waiting.allow("Busy")
        else:
            waiting.reject("Busy", "not today")
        await harness.passes(0.25)
        assert await harness.node_of("held") == ("n1" if answer == "allow" else "")
        if answer == "reject":
            assert (await harness.condition("held"))["message"] == "0/1 nodes are available: 1 not today."

    in_harness(scenario)


def test_pods_of_the_queue_can_be_activated_and_nominated() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = harness.scheduler(config=profile("Busy"), registry=registry())
        await harness.add_node("n1")
        await harness.add_node("n2", cpu="1")
        await harness.add_pod("sleeper", cpu="3")
        await harness.passes(30)
        [sleeper] = [queued.pod for queued in scheduler.queue]
        Busy.handle.nominations.put(sleeper, "n2")
        await harness.add_pod("other", cpu="1")
        await harness.passes(1)
        assert Busy.seen["nominated"] == ["sleeper"]
        Busy.handle.nominations.remove(sleeper.uid)
        Busy.seen["awake"] = True
        Busy.handle.activate([sleeper])
        await harness.passes(0.25)
        assert await harness.node_of("sleeper") == "n1"

    in_harness(scenario)


class Wrong:
    """Raises at one extension point."""

    name = "Wrong"
    point = ""

    def _asked(self, point: str) -> None:
        if point == self.point:
            raise ValueError("broken")

    def filter_node(self, cycle: Any, pod: Pod, node: Any) -> None:
        self._asked("filter")

    def reserve(self, cycle: Any, pod: Pod, node_name: str) -> None:
        self._asked("reserve")

    def permit(self, cycle: Any, pod: Pod, node_name: str) -> None:
        self._asked("permit")

    async def pre_bind(self, cycle: Any, pod: Pod, node_name: str) -> None:
        self._asked("pre_bind")


WORDS = {
    "filter": 'running "Wrong" filter plugin',
    "reserve": 'running Reserve plugin "Wrong"',
    "permit": 'running Permit plugin "Wrong"',
    "pre_bind": 'running PreBind plugin "Wrong"',
}


@pytest.mark.parametrize(("point", "words"), WORDS.items(), ids=WORDS.keys())
def test_a_plugin_that_raises_fails_one_attempt_and_is_found_in_condition_and_log(
    point: str, words: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Wrong, "point", point)
    caplog.set_level(logging.ERROR)

    async def scenario(harness: SchedulerHarness) -> None:
        made = default_registry()
        made.register("Wrong", Wrong)
        harness.scheduler(config=profile("Wrong"), registry=made)
        await harness.add_node("n1")
        await harness.add_pod("p")
        await harness.passes(0.25)
        condition = await harness.condition("p")
        assert condition["reason"] == "SchedulerError"
        assert condition["message"].startswith(f"{words}: ValueError: broken (test_handle.py:")
        failed = f'err={quoted(condition["message"])} logger="UnhandledError" pod="default/p"'
        assert f'"Error scheduling pod; retrying" {failed}' in caplog.text
        monkeypatch.setattr(Wrong, "point", "")
        await harness.passes(5)
        assert await harness.node_of("p") == "n1"

    in_harness(scenario)
