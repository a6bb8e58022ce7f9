"""Extended resources that devices back: which class, which requests, which claim, and what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.devices import DeviceClass, ResourceClaim
from moorage.api.pod import Pod
from moorage.cluster.object_tables import ObjectTable
from moorage.framework.interface.effects import CreateClaim, DeleteClaim, Effect, WriteExtendedResourceStatus
from moorage.framework.interface.status import SKIP, Code, Status, unschedulable
from moorage.plugins.dynamic_resources.device_totals import DeviceTotals
from moorage.plugins.dynamic_resources.extended_resources import (
    CLAIM_ANNOTATION,
    backing_class,
    new_claim,
    node_claim,
)
from moorage.plugins.dynamic_resources.plugin import CANNOT_ALLOCATE, CANNOT_FIT, DELETED, STALE_CLAIM
from moorage.sim.cache_effects import CacheEffects
from tests.builders import container, make_node, make_pod
from tests.plugins.dynamic_resources.device_objects import (
    Scene,
    allocated,
    asking,
    claim,
    device,
    device_class,
    pod_claiming,
    pool_slice,
    request,
)

GPU = "example.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"


def classes(*made: DeviceClass) -> ObjectTable[DeviceClass]:
    table: ObjectTable[DeviceClass] = ObjectTable()
    for each in made:
        table.put(each)
    return table


def created(name: str, year: int) -> DeviceClass:
    made = device_class(name, extendedResourceName=GPU)
    return replace(made, metadata=replace(made.metadata, creation_timestamp=datetime(year, 1, 1, tzinfo=UTC)))


BACKING: dict[str, tuple[list[DeviceClass], str, str | None]] = {
    "by name": ([device_class("gpu", extendedResourceName=GPU)], GPU, "gpu"),
    "by its own name, always": ([device_class("gpu")], IMPLICIT, "gpu"),
    "by nobody": ([device_class("gpu")], GPU, None),
    "never a native resource": ([device_class("gpu", extendedResourceName="cpu")], "cpu", None),
    "the newest": ([created("a", 2025), created("b", 2026), created("c", 2024)], GPU, "b"),
    "the first of equals": ([created("b", 2026), created("a", 2026)], GPU, "a"),
}


@pytest.mark.parametrize(("made", "resource", "expected"), BACKING.values(), ids=BACKING)
def test_a_resource_is_backed(made: list[DeviceClass], resource: str, expected: str | None) -> None:
    found = backing_class(resource, classes(*made))
    assert (None if found is None else found.name) == expected


class CountedTable(ObjectTable[DeviceClass]):
    """Counts how often the whole table is read."""

    reads = 0

    def __iter__(self) -> Iterator[DeviceClass]:
        self.reads += 1
        return super().__iter__()


def test_classes_are_read_when_they_change() -> None:
    table = CountedTable()
    for year, name in ((2024, "a"), (2026, "b"), (2025, "c")):
        table.put(created(name, year))
        for _ in range(3):
            found = backing_class(GPU, table)
            assert found is not None
            assert found.name == ("a" if year == 2024 else "b")
    assert table.reads == 3
    table.remove("", "b")
    found = backing_class(GPU, table)
    assert found is not None
    assert found.name == "c"


# Requests of containers


def wants(count: int, name: str, **fields: Any) -> dict[str, Any]:
    return container({"cpu": "1", GPU: str(count)}, name, **fields)


def init_pod(*inits: dict[str, Any], mains: tuple[dict[str, Any], ...]) -> Pod:
    return make_pod("pod", containers=mains, init_containers=list(inits))


REQUESTS: dict[str, tuple[Pod, dict[str, int], list[tuple[str, str]]]] = {
    "one container": (
        init_pod(mains=(wants(2, "a"),)),
        {"container-0-request-1": 2},
        [("a", "container-0-request-1")],
    ),
    "two containers": (
        init_pod(mains=(wants(2, "a"), wants(1, "b"))),
        {"container-0-request-1": 2, "container-1-request-1": 1},
        [("a", "container-0-request-1"), ("b", "container-1-request-1")],
    ),
    "an init container uses what comes later": (
        init_pod(wants(1, "i"), mains=(wants(2, "a"),)),
        {"container-1-request-1": 2},
        [("a", "container-1-request-1"), ("i", "container-1-request-1")],
    ),
    "an init container needs more than comes later": (
        init_pod(wants(3, "i"), mains=(wants(2, "a"),)),
        {"container-0-request-1": 1, "container-1-request-1": 2},
        [("a", "container-1-request-1"), ("i", "container-1-request-1"), ("i", "container-0-request-1")],
    ),
    "init containers share what they need on top": (
        init_pod(wants(3, "i"), wants(4, "j"), mains=(wants(2, "a"),)),
        {"container-1-request-1": 2, "container-2-request-1": 2},
        [
            ("a", "container-2-request-1"),
            ("i", "container-2-request-1"),
            ("i", "container-1-request-1"),
            ("j", "container-2-request-1"),
            ("j", "container-1-request-1"),
        ],
    ),
    "a container that keeps running has its own, and lends it to those before it": (
        init_pod(wants(1, "i"), wants(1, "s", restart_policy="Always"), mains=(wants(1, "a"),)),
        {"container-1-request-1": 1, "container-2-request-1": 1},
        [("s", "container-1-request-1"), ("a", "container-2-request-1"), ("i", "container-1-request-1")],
    ),
    "a container that asks for none": (
        init_pod(mains=(wants(1, "a"), container({"cpu": "1"}, "b"))),
        {"container-0-request-1": 1},
        [("a", "container-0-request-1")],
    ),
}


@pytest.mark.parametrize(("pod", "counts", "mappings"), REQUESTS.values(), ids=REQUESTS)
def test_containers_make_requests(pod: Pod, counts: dict[str, int], mappings: list[tuple[str, str]]) -> None:
    made = node_claim(pod, new_claim(pod), [GPU], classes(device_class("gpu", extendedResourceName=GPU)))
    requests = made.claim.spec.devices.requests
    assert {r.name: r.exactly.count for r in requests if r.exactly is not None} == counts
    assert [(m.container_name, m.request_name) for m in made.mappings] == mappings
    assert {m.resource_name for m in made.mappings} == {GPU}


# In a cluster


class Recording(CacheEffects):
    """Effects on a cache, written down."""

    def __init__(self, cache: Any) -> None:
        super().__init__(cache)
        self.performed: list[Effect] = []

    async def perform(self, effect: Effect) -> Object | None:
        self.performed.append(effect)
        return await super().perform(effect)


def scene(*objects: Object) -> Scene:
    made = Scene(
        make_node("n1"),
        make_node("n2"),
        make_node("plugin", allocatable={"cpu": "4", GPU: "2"}),
        device_class("gpu", extendedResourceName=GPU),
        pool_slice("p1", "a", "b"),
        *objects,
    )
    made.effects = made.handle.effects = Recording(made.cache)
    return made


POD = make_pod("pod", uid="u", requests={GPU: "2"})


def test_devices_stand_in_where_a_node_has_none_of_the_resource() -> None:
    assert scene().filter_nodes(POD) == {"n1": "", "n2": CANNOT_ALLOCATE, "plugin": ""}


def test_a_resource_that_no_node_provides_does_not_fit() -> None:
    pod = make_pod("pod", requests={GPU: "1", "example.com/other": "1"})
    assert set(scene().filter_nodes(pod).values()) == {CANNOT_FIT}


def test_a_resource_behind_which_no_class_stands_is_not_this_plugin_s_business() -> None:
    assert scene().pre_filter(make_pod("pod", requests={"example.com/other": "1"})) is SKIP


def test_a_claim_is_created_written_and_named_in_the_pod_s_status() -> None:
    made = scene()
    assert made.bind(POD) is None
    create, _, named = made.effects.performed  # type: ignore[attr-defined]
    assert isinstance(create, CreateClaim)
    assert create.claim.metadata.name == ""
    assert create.claim.metadata.generate_name == "pod-extended-resources-"
    assert create.claim.metadata.annotations == {CLAIM_ANNOTATION: "true"}
    assert create.claim.status.allocation is None
    assert isinstance(named, WriteExtendedResourceStatus)
    name = named.status.resource_claim_name
    assert made.devices(name) == ["p1/a", "p1/b"]
    (user,) = made.claim(name).status.reserved_for
    assert user.uid == "u"
    assert [m.request_name for m in named.status.request_mappings] == ["container-0-request-0"]
    assert made.plugin._in_flight.claims() == {}
    assert made.feasible(make_pod("next", uid="v", requests={GPU: "1"})) == ["plugin"]


def test_nothing_is_created_where_the_node_has_the_resource_itself() -> None:
    made = scene()
    assert made.bind(POD, "plugin") is None
    assert made.effects.performed == []  # type: ignore[attr-defined]


def test_claims_and_extended_resources_go_together() -> None:
    made = scene(claim("c", request("r", asking())))
    pod = pod_claiming("pod", "c", requests={GPU: "1"})
    assert made.feasible(pod) == ["n1"]
    assert made.bind(pod) is None
    assert made.devices("c") == ["p1/a"]


def test_with_a_claim_and_the_resource_on_the_node_only_the_claim_is_written() -> None:
    made = scene(claim("c", request("r", asking())), pool_slice("p3", "x", node="plugin"))
    pod = pod_claiming("pod", "c", requests={GPU: "1"})
    assert made.bind(pod, "plugin") is None
    assert len(made.effects.performed) == 1  # type: ignore[attr-defined]


def test_what_is_reserved_for_extended_resources_is_taken() -> None:
    made = scene()
    assert made.reserve(POD) is None
    cycle, other_pod = made.cycle, make_pod("next", uid="v", requests={GPU: "1"})
    assert made.feasible(other_pod) == ["plugin"]
    made.plugin.unreserve(cycle, POD, "n1")
    made.plugin.unreserve(cycle, POD, "n1")
    assert made.feasible(other_pod) == ["n1", "plugin"]


def test_a_claim_that_was_created_is_deleted_when_binding_fails() -> None:
    made = scene()
    made.reserve(POD)

    async def run() -> None:
        assert await made._pre_bind(POD, "n1") is None
        made.plugin.unreserve(made.cycle, POD, "n1")
        made.plugin.unreserve(made.cycle, POD, "n1")
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(run())
    deleted = [e for e in made.effects.performed if isinstance(e, DeleteClaim)]  # type: ignore[attr-defined]
    assert len(deleted) == 1
    assert list(made.cache.objects.of(ResourceClaim)) == []
    assert made.feasible(POD) == ["n1", "plugin"]


def test_a_claim_of_an_earlier_attempt_is_deleted_first() -> None:
    owner = {"kind": "Pod", "name": "pod", "uid": "u", "controller": True}
    stale = claim(
        "pod-extended-resources-x",
        request("container-0-request-0", asking(2)),
        status=allocated("p1/a", "p1/b"),
        metadata={"annotations": {CLAIM_ANNOTATION: "true"}, "ownerReferences": [owner]},
    )
    made = scene(stale)
    assert set(made.filter_nodes(POD).values()) == {STALE_CLAIM}
    answer = made.post_filter(POD)
    assert answer.status == unschedulable(DELETED)
    (gone,) = answer.effects
    asyncio.run(made.effects.perform(gone))
    assert made.feasible(POD) == ["n1", "plugin"]


def test_a_server_that_answers_nothing_fails_the_binding() -> None:
    class Silent:
        async def perform(self, effect: Effect) -> Object | None:
            return None

    made = scene()
    made.handle.effects = Silent()
    made.reserve(POD)
    answer = asyncio.run(made._pre_bind(POD, "n1"))
    assert isinstance(answer, Status)
    assert answer.code is Code.ERROR


# Totals for scoring


def test_devices_are_counted_for_scoring() -> None:
    selector = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "z", "operator": "Exists"}]}]}
    made = scene(
        pool_slice("p2", "a", node=None, allNodes=True),
        pool_slice("p3", "a", node=None, nodeSelector=selector),
        pool_slice("p4", device("a", nodeName="n2"), device("b"), node=None, perDeviceNodeSelection=True),
        claim("c", status=allocated("p1/a", "p2/a")),
        make_node("n3", labels={"z": ""}),
    )
    totals = DeviceTotals(made.cache.objects)
    counted = totals.of(GPU, made.nodes)
    assert counted is not None
    there, taken = counted
    names = made.nodes.names
    assert dict(zip(names, there.tolist(), strict=True)) == {"n1": 3, "n2": 2, "plugin": 1, "n3": 2}
    assert dict(zip(names, taken.tolist(), strict=True)) == {"n1": 2, "n2": 1, "plugin": 1, "n3": 1}
    assert totals.of("example.com/other", made.nodes) is None


def test_devices_are_counted_again_for_another_class() -> None:
    made = Scene(make_node("n1"), pool_slice("p", "a", "b"), device_class("gpu", extendedResourceName=GPU))
    totals = DeviceTotals(made.cache.objects)
    for expression, expected in ((None, 2), ("false", 0), (None, 2)):
        made.cache.put(device_class("gpu", expression, extendedResourceName=GPU))
        counted = totals.of(GPU, made.nodes)
        assert counted is not None
        assert counted[0].tolist() == [expected]


def test_a_class_that_cannot_be_evaluated_counts_nothing() -> None:
    made = Scene(
        make_node("n1"), pool_slice("p", "a"), device_class("gpu", "device.nothing", extendedResourceName=GPU)
    )
    counted = DeviceTotals(made.cache.objects).of(GPU, made.nodes)
    assert counted is not None
    assert counted[0].tolist() == [0]
