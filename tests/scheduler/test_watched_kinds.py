"""What is followed: what the enabled plugins look at, and no more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from moorage.api.base import ObjectMeta
from moorage.api.devices import DeviceTaintRule
from moorage.api.pod import Pod
from moorage.client import kinds
from moorage.client.declared_kinds import object_type
from moorage.client.kinds import Kind
from moorage.cluster.cache import Cache
from moorage.framework.interface.cycle_state import CycleState
from moorage.plugins import DEFAULT_PLUGINS, GROUP_PLUGINS
from moorage.queue.cluster_events import Action, ClusterEvent, Interest, Resource, on
from moorage.scheduler.event_handlers import EventHandlers, event_resource
from moorage.scheduler.measured_events import time_events
from moorage.scheduler.watched_kinds import WATCHED_BY_DEFAULT_PLUGINS, CustomObject, needed_kinds
from moorage.services.metrics import Metrics
from tests.builders import make_framework
from tests.framework.helpers import framework_of
from tests.scheduler.plugins import profile, registry_with
from tests.scheduler.running import SchedulerHarness, in_harness

WIDGETS = Kind("example.com", "v1", "Widget", "widgets")
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "properties": {"size": {"type": "integer"}}}
                },
            }
        ],
    },
}
ALWAYS_WATCHED = {Resource.NODE, Resource.POD, Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD}
DEFINITIONS = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False
)


@pytest.mark.parametrize("plugin", [*DEFAULT_PLUGINS, *GROUP_PLUGINS], ids=lambda plugin: plugin.name)
def test_every_default_plugin_declares_the_kinds_of_its_events(plugin: Any) -> None:
    made = make_framework(plugin.name).plugins[plugin.name]
    named = {str(interest.event.resource) for interest in getattr(made, "events", tuple)()}
    types = (object_type(kind) for kind in plugin.watched_kinds)
    declared = {event_resource(each) for each in types if each is not None}
    assert named <= {*ALWAYS_WATCHED, *declared}


class DeclaresNothing:
    """May read any kind that the default plugins read."""

    name = "DeclaresNothing"

    def filter_node(self, cycle: CycleState, pod: Pod, node: Any) -> str | None:
        return None


class ReadsNamespaces(DeclaresNothing):
    """Declares what it reads."""

    name = "ReadsNamespaces"
    watched_kinds = (kinds.NAMESPACE,)


def test_a_plugin_from_outside_may_declare_what_it_reads() -> None:
    assert needed_kinds([framework_of(ReadsNamespaces())]) == [kinds.NAMESPACE]
    assert set(needed_kinds([framework_of(DeclaresNothing())])) == set(WATCHED_BY_DEFAULT_PLUGINS)


def _only(*plugins: str) -> dict[str, Any]:
    config = profile(*plugins)
    config["profiles"][0]["plugins"]["multiPoint"]["disabled"] = [{"name": "*"}]
    return config


@pytest.mark.parametrize(
    ("plugins", "followed"),
    [
        ((), {"nodes", "pods"}),
        (("NodeAffinity", "TaintToleration"), {"nodes", "pods"}),
        (("InterPodAffinity",), {"nodes", "pods", "namespaces"}),
        (("VolumeRestrictions",), {"nodes", "pods", "persistentvolumeclaims"}),
        (("DefaultPreemption",), {"nodes", "pods", "poddisruptionbudgets"}),
    ],
)
def test_kinds_that_no_plugin_looks_at_are_not_asked_for(
    plugins: tuple[str, ...], followed: set[str]
) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = harness.scheduler(config=_only("PrioritySort", "DefaultBinder", *plugins))
        await harness.passes(1)
        assert {informer.kind.plural for informer in scheduler.informers} == followed
        assert {
            path.rsplit("/", 1)[-1] for method, path in harness.line.requests if method == "GET"
        } == followed
        await harness.add_node("n1")
        await harness.add_pod("p")
        await harness.passes(1)
        assert await harness.node_of("p") == "n1"
        await harness.check(scheduler)

    in_harness(scenario)


class WantsWidget:
    """Refuses pods until there is a widget that is large enough."""

    name = "WantsWidget"

    def __init__(self) -> None:
        self.is_there = False

    def events(self) -> tuple[Interest, ...]:
        return (on("widgets.v1.example.com", Action.ADD, self._is_large),)

    def _is_large(self, pod: Pod, old: CustomObject | None, new: CustomObject) -> bool:
        self.is_there = new.content["size"] > 1 and new.name == "large"
        return self.is_there

    def filter_node(self, cycle: CycleState, pod: Pod, node: Any) -> str | None:
        return None if self.is_there else "no widget"


def test_kinds_that_only_a_plugin_knows_are_followed_for_it() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.client.create(DEFINITIONS, "", DEFINITION)
        await harness.passes(1)
        scheduler = harness.scheduler(config=profile("WantsWidget"), registry=registry_with(WantsWidget()))
        await harness.add_node("n1")
        await harness.add_pod("p")
        await harness.passes(1)
        for name, size in (("small", 1), ("large", 2)):
            assert await harness.node_of("p") == ""
            widget = {
                "apiVersion": "example.com/v1",
                "kind": "Widget",
                "metadata": {"name": name},
                "size": size,
            }
            await harness.client.create(WIDGETS, "default", widget)
            await harness.passes(5)
        assert await harness.node_of("p") == "n1"
        assert len(await harness.events("FailedScheduling")) == 1
        await harness.check(scheduler)

    in_harness(scenario)


class RecordedEvents:
    """A queue that only records which events it is told of."""

    def __init__(self) -> None:
        self.labels: list[str] = []

    def move_all(self, event: ClusterEvent, old: Any, new: Any) -> None:
        self.labels.append(event.label)


def test_a_taint_rule_that_comes_or_goes_is_an_update_of_slices() -> None:
    cache, queue, nothing = Cache(), RecordedEvents(), cast(Any, None)
    handlers = EventHandlers(cache, cast(Any, queue), nothing, nothing, nothing)
    rule = DeviceTaintRule(metadata=ObjectMeta(name="broken"))
    for type, before in (("ADDED", None), ("MODIFIED", rule), ("DELETED", rule)):
        handlers.other(cast(Any, type), rule, before)
        assert len(cache.objects.of(DeviceTaintRule)) == (type != "DELETED")
    assert queue.labels == ["resource.k8s.io/ResourceSliceUpdate"] * 3


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        pytest.param(kinds.RESOURCE_CLAIM, "resource.k8s.io/ResourceClaimAdd", id="claim"),
        pytest.param(kinds.DEVICE_TAINT_RULE, "resource.k8s.io/ResourceSliceUpdate", id="taint rule"),
        pytest.param(kinds.POD_GROUP, "scheduling.k8s.io/PodGroupAdd", id="group"),
        pytest.param(
            kinds.COMPOSITE_POD_GROUP, "scheduling.k8s.io/CompositePodGroupAdd", id="composite group"
        ),
        pytest.param(WIDGETS, "widgets.v1.example.comAdd", id="custom"),
        pytest.param(kinds.NAMESPACE, "", id="no pod waits for it"),
    ],
)
def test_the_time_of_an_event_is_measured_under_its_label(kind: Kind, label: str) -> None:
    metrics = Metrics()
    informer = cast(Any, SimpleNamespace(kind=kind, listeners=[lambda type, obj, before: None]))
    time_events([informer], metrics)
    informer.listeners[0]("ADDED", object(), None)
    assert [*metrics.event_handling_duration.cells] == [(label,)] * bool(label)
