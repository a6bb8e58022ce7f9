"""Kinds that plugins declare: read as their types, wherever objects come from."""

from __future__ import annotations

from typing import Any

import pytest

from moorage import DependsOn, NodeView, Object, Objects, Struct, declare_kind
from moorage.api.decode import decode_object
from moorage.api.pod import Pod
from moorage.client.kinds import Kind
from moorage.config.load import parse_config
from moorage.framework.interface.cycle_state import CycleState
from moorage.queue.cluster_events import Action, Interest, on
from tests.scheduler.plugins import profile, registry_with
from tests.scheduler.running import SchedulerHarness, in_harness

DEFINITIONS = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False
)


def definition(kind: str) -> dict[str, Any]:
    singular, properties = (
        kind.lower(),
        {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    )
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{singular}s.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": f"{singular}s", "singular": singular, "kind": kind},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


class GadgetSpec(Struct):
    size: int = 0


class Gadget(Object):
    """A custom resource whose type a plugin declares."""

    spec: GadgetSpec = GadgetSpec()


GADGET = declare_kind("example.com/v1", "gadgets", Gadget)


class WantsGadget:
    """Refuses pods until there is a gadget that is large enough."""

    name = "WantsGadget"
    watched_kinds = (GADGET,)

    def events(self) -> tuple[Interest, ...]:
        return (on(GADGET.resource, Action.ADD, lambda pod, old, new: new.spec.size > 1),)

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn:
        return DependsOn(tables=(Gadget,))

    def filter_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> str | None:
        return None if any(gadget.spec.size > 1 for gadget in node.objects.of(Gadget)) else "no gadget"


def test_kinds_that_a_plugin_declares_are_read_as_its_type() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await harness.client.create(DEFINITIONS, "", definition("Gadget"))
        await harness.passes(1)
        scheduler = harness.scheduler(config=profile("WantsGadget"), registry=registry_with(WantsGadget()))
        await harness.add_node("n1")
        await harness.add_pod("p")
        await harness.passes(1)
        for name, size in (("small", 1), ("large", 2)):
            assert await harness.node_of("p") == ""
            gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": name}}
            await harness.client.create(GADGET, "default", {**gadget, "spec": {"size": size}})
            await harness.passes(5)
        assert await harness.node_of("p") == "n1"
        assert len(await harness.events("FailedScheduling")) == 1
        await harness.check(scheduler)

    in_harness(scenario)


def test_objects_are_read_as_the_newest_declaration_says() -> None:
    first, second = (type("Gizmo", (Object,), {"__module__": __name__}) for _ in range(2))

    def declared(gizmo: Any) -> Any:
        kind = declare_kind("example.com/v1", "gizmos", gizmo)

        class ReadsGizmos:
            name = "ReadsGizmos"
            watched_kinds = (kind,)

            def filter_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> str | None:
                return None

        return ReadsGizmos()

    async def scenario(harness: SchedulerHarness) -> None:
        await harness.client.create(DEFINITIONS, "", definition("Gizmo"))
        await harness.passes(1)
        config = profile("ReadsGizmos")
        scheduler = harness.scheduler(config=config, registry=registry_with(declared(first)))
        gizmo = {"apiVersion": "example.com/v1", "kind": "Gizmo", "metadata": {"name": "g"}}
        await harness.client.create(Kind("example.com", "v1", "Gizmo", "gizmos"), "default", gizmo)
        await harness.passes(1)
        assert [len(scheduler.cache.objects.of(each)) for each in (first, second)] == [1, 0]
        reloaded = registry_with(declared(second))
        task = harness.runs(scheduler.reconfigure(parse_config(config), reloaded))
        await harness.passes(5)
        await task
        assert [len(scheduler.cache.objects.of(each)) for each in (first, second)] == [0, 1]

    in_harness(scenario)


@pytest.mark.parametrize(
    ("api_version", "type", "reason"),
    [
        pytest.param("example.com/", Gadget, "is no API version", id="no version"),
        pytest.param("/v1", Gadget, "is no API version", id="no group"),
        pytest.param("example.com/v1", GadgetSpec, "derived from moorage.Object", id="no object"),
    ],
)
def test_a_declaration_that_cannot_be_used_is_an_error(api_version: str, type: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        declare_kind(api_version, "gadgets", type)


def test_declared_kinds_are_read_from_manifests_of_their_group() -> None:
    manifest = {"kind": "Gadget", "metadata": {"name": "g"}, "spec": {"size": 3}}
    read = decode_object({"apiVersion": "example.com/v2", **manifest})
    assert isinstance(read, Gadget)
    assert read.spec.size == 3
    assert decode_object({"apiVersion": "other.example.com/v1", **manifest}) is None
    assert decode_object(manifest) is None
