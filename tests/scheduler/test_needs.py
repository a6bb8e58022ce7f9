"""What is followed: what the enabled plugins look at, and no more."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.pod import Pod
from moorage.client.kinds import Kind
from moorage.framework.interface.cycle_state import CycleState
from moorage.plugins import DEFAULT_PLUGINS
from moorage.queue.events import Action, Interest, on
from moorage.scheduler.needs import LOOKED_AT, CustomObject
from tests.scheduler.plugins import profile, registry_with
from tests.scheduler.running import World, in_world

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
DEFINITIONS = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False
)


def test_of_every_default_plugin_it_is_known_what_it_looks_at() -> None:
    assert {plugin.name for plugin in DEFAULT_PLUGINS} == LOOKED_AT.keys()  # type: ignore[attr-defined]


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
    async def scenario(world: World) -> None:
        scheduler = world.scheduler(config=_only("PrioritySort", "DefaultBinder", *plugins))
        await world.passes(1)
        assert {informer.kind.plural for informer in scheduler.informers} == followed
        assert {
            path.rsplit("/", 1)[-1] for method, path in world.line.requests if method == "GET"
        } == followed
        await world.add_node("n1")
        await world.add_pod("p")
        await world.passes(1)
        assert await world.node_of("p") == "n1"
        await world.check(scheduler)

    in_world(scenario)


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
    async def scenario(world: World) -> None:
        await world.client.create(DEFINITIONS, "", DEFINITION)
        await world.passes(1)
        scheduler = world.scheduler(config=profile("WantsWidget"), registry=registry_with(WantsWidget()))
        await world.add_node("n1")
        await world.add_pod("p")
        await world.passes(1)
        for name, size in (("small", 1), ("large", 2)):
            assert await world.node_of("p") == ""
            widget = {
                "apiVersion": "example.com/v1",
                "kind": "Widget",
                "metadata": {"name": name},
                "size": size,
            }
            await world.client.create(WIDGETS, "default", widget)
            await world.passes(5)
        assert await world.node_of("p") == "n1"
        assert len(await world.events("FailedScheduling")) == 1
        await world.check(scheduler)

    in_world(scenario)
