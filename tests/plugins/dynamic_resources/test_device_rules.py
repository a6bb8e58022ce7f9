"""What v1.36 and v1.37 differ in: each test has the answers of both."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.framework.interface.status import PluginError, unschedulable
from moorage.plugins.dynamic_resources.plugin import CANNOT_ALLOCATE, INVALID_POOLS, NO_HELP, NOTHING_TO_DO
from moorage.plugins.dynamic_resources.structured.device_rules import NEWER_RULES, OLDER_RULES, DeviceRules
from tests.builders import make, make_node, make_pod
from tests.plugins.dynamic_resources.device_objects import (
    DRIVER,
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

POD = pod_claiming("pod", "c")
SHARED: dict[str, Any] = {"allowMultipleAllocations": True}


def answer(rules: DeviceRules, *objects: Any, pod: Pod = POD) -> str:
    """What is said of node n1; an empty text if it passes, or the error that ends the attempt."""
    scene = Scene(make_node("n1"), device_class(), *objects, rules=rules)
    try:
        return scene.filter_nodes(pod)["n1"]
    except PluginError as error:
        return str(error)


def held(*devices: str, **fields: Any) -> Any:
    names = {"share_id": "shareID", "consumed_capacity": "consumedCapacity"}
    return claim(
        "held", request("r", asking()), status=allocated(*devices, **{names[k]: v for k, v in fields.items()})
    )


def test_all_devices_must_have_room() -> None:
    devices = [device(name, capacity={"memory": "10"}, **SHARED) for name in ("full", "free")]
    taken = held("p/full", share_id="s", consumed_capacity={"memory": "10"})
    wanted = claim("c", request("r", asking(None, capacity={"requests": {"memory": "5"}})))
    objects = (pool_slice("p", *devices), taken, wanted)
    assert answer(OLDER_RULES, *objects) == ""
    assert answer(NEWER_RULES, *objects) == CANNOT_ALLOCATE


@pytest.mark.parametrize("rules", [OLDER_RULES, NEWER_RULES])
def test_a_device_without_the_requested_capacity_is_left_out(rules: DeviceRules) -> None:
    devices = [device("small"), device("large", capacity={"memory": "10"})]
    wanted = claim("c", request("r", asking(capacity={"requests": {"memory": "5"}})))
    scene = Scene(make_node("n1"), device_class(), pool_slice("p", *devices), wanted, rules=rules)
    assert scene.bind(POD) is None
    assert scene.devices("c") == ["p/large"]


MAX_INT64 = (1 << 63) - 1


@pytest.mark.parametrize(("count", "shown"), [(1, f"{DRIVER}/p/d"), (None, "d")])
@pytest.mark.parametrize(
    ("amount", "reason"),
    [
        (f"{MAX_INT64}", f"rounding request {MAX_INT64} up to the next step passes MaxInt64"),
        (f"{MAX_INT64 + 2}", f"request {MAX_INT64 + 2} exceeds MaxInt64"),
    ],
)
def test_an_amount_that_cannot_be_rounded_up_fails_the_attempt(
    amount: str, reason: str, count: int | None, shown: str
) -> None:
    steps = {"value": "10", "requestPolicy": {"default": "1", "validRange": {"min": "1", "step": "4"}}}
    wanted = claim("c", request("r", asking(count, capacity={"requests": {"memory": amount}})))
    objects = (pool_slice("p", device("d", capacity={"memory": steps})), wanted)
    assert answer(OLDER_RULES, *objects) == CANNOT_ALLOCATE
    assert (
        f'claim default/c, request r: checking capacity for device {shown}: capacity "memory": '
        f"capacity request cannot be represented in the device's range arithmetic: {reason}"
    ) in answer(NEWER_RULES, *objects)


def test_a_share_without_amounts_has_its_counters() -> None:
    counters = pool_slice("s1", pool="p", count=2, counters={"engines": "1"})
    shared = device("full", consumes={"engines": "1"}, **SHARED)
    devices = pool_slice("s2", shared, pool="p", count=2)
    objects = (counters, devices, held("p/full", share_id="s"), claim("c", request("r", asking())))
    assert answer(OLDER_RULES, *objects) == CANNOT_ALLOCATE
    assert answer(NEWER_RULES, *objects) == ""


def test_compatibility_groups_make_a_pool_incomplete() -> None:
    counters = pool_slice("s1", pool="p", count=3, counters={"engines": "2"})
    grouped = device("grouped", consumes={"engines": "1"})
    grouped["consumesCounters"][0]["compatibilityGroups"] = ["g"]
    objects = (
        counters,
        pool_slice("s2", "plain", pool="p", count=3),
        pool_slice("s3", grouped, pool="p", count=3),
    )
    some, everything = claim("c", request("r", asking())), claim("c", request("r", asking(None)))
    assert answer(OLDER_RULES, *objects, some) == ""
    assert answer(NEWER_RULES, *objects, some) == CANNOT_ALLOCATE
    assert "resource pool gpu.example.com/p is currently being updated" in answer(
        NEWER_RULES, *objects, everything
    )


def test_invalid_counters_concern_the_nodes_they_select() -> None:
    counters = [
        pool_slice(f"s{n}", pool="bad", count=2, counters={"engines": "1"}, node="elsewhere") for n in (1, 2)
    ]
    objects = (*counters, claim("c", request("r", asking())))
    assert answer(OLDER_RULES, *objects) == INVALID_POOLS
    assert answer(NEWER_RULES, *objects) == CANNOT_ALLOCATE


def test_counters_of_other_nodes_count_for_a_pools_devices() -> None:
    counters = pool_slice("s1", pool="p", count=2, counters={"engines": "1"}, node="elsewhere")
    devices = [device(name, consumes={"engines": "1"}) for name in ("a", "b")]
    objects = (counters, pool_slice("s2", *devices, pool="p", count=2))
    for rules in (OLDER_RULES, NEWER_RULES):
        assert answer(rules, *objects, claim("c", request("r", asking(1)))) == ""
        assert answer(rules, *objects, claim("c", request("r", asking(2)))) == CANNOT_ALLOCATE


def taint_rule(name: str, selector: dict[str, str] | None, effect: str = "NoSchedule") -> Object:
    spec: dict[str, Any] = {"taint": {"key": "broken", "effect": effect}}
    if selector is not None:
        spec["deviceSelector"] = selector
    return make({"apiVersion": "v1", "kind": "DeviceTaintRule", "metadata": {"name": name}, "spec": spec})


SELECTORS: dict[str, tuple[dict[str, str] | None, list[str]]] = {
    "all devices": (None, []),
    "a driver": ({"driver": DRIVER}, []),
    "a pool": ({"pool": "p"}, ["q/c"]),
    "a device": ({"driver": DRIVER, "pool": "p", "device": "a"}, ["p/b", "q/c"]),
    "another driver": ({"driver": "other"}, ["p/a", "p/b", "q/c"]),
}


@pytest.mark.parametrize(("selector", "left"), SELECTORS.values(), ids=SELECTORS)
def test_taint_rules_taint_devices(selector: dict[str, str] | None, left: list[str]) -> None:
    claims = [claim(f"c{n}", request("r", asking())) for n in range(3)]
    slices = (pool_slice("p", "a", "b"), pool_slice("q", "c"))
    for rules, expected in ((OLDER_RULES, ["p/a", "p/b", "q/c"]), (NEWER_RULES, left)):
        scene = Scene(make_node("n1"), device_class(), *slices, *claims, rules=rules)
        scene.feasible(pod_claiming("first", "c0"))
        scene.cache.objects.put(taint_rule("rule", selector))
        given = []
        for each in claims:
            pod = pod_claiming(f"pod-{each.name}", each.name)
            if scene.feasible(pod):
                assert scene.bind(pod) is None
                given += scene.devices(each.name)
        assert given == expected


def test_a_taint_rule_that_is_gone_taints_nothing() -> None:
    wanted, rule = claim("c", request("r", asking())), taint_rule("rule", None)
    scene = Scene(make_node("n1"), device_class(), pool_slice("p", "a"), wanted, rule, rules=NEWER_RULES)
    assert scene.filter_nodes(POD) == {"n1": CANNOT_ALLOCATE}
    scene.cache.objects.remove(rule)
    assert scene.filter_nodes(POD) == {"n1": ""}
    scene.cache.objects.put(taint_rule("rule", None, effect="None"))
    assert scene.filter_nodes(POD) == {"n1": ""}


def test_taint_rules_are_watched_where_they_count() -> None:
    watched = [
        {kind.name for kind in Scene(rules=rules).plugin.watched_kinds}
        for rules in (OLDER_RULES, NEWER_RULES)
    ]
    assert watched[1] - watched[0] == {"DeviceTaintRule"}


OPAQUE = {"driver": DRIVER, "parameters": {}}
CONFIGS: dict[str, tuple[list[str], list[list[str]], list[list[str]]]] = {
    "all": (["r", "s"], [["r", "s"], ["r", "s"]], [[]]),
    "one": (["r"], [["r"]], [["r"]]),
    "unnamed": ([], [[]], [[]]),
    "an alternative": (["r", "s/a1"], [["r", "s/a1"], ["r", "s/a1"]], [[]]),
    "another alternative": (["r", "s/a0"], [["r", "s/a0"]], [["r", "s/a0"]]),
}


@pytest.mark.parametrize(("requests", "before", "now"), CONFIGS.values(), ids=CONFIGS)
def test_settings_for_all_requests_name_none(
    requests: list[str], before: list[list[str]], now: list[list[str]]
) -> None:
    wanted = claim(
        "c",
        request("r", asking()),
        request("s", asking(5), asking(1)),
        config=[{"requests": requests, "opaque": OPAQUE}],
    )
    for rules, expected in ((OLDER_RULES, before), (NEWER_RULES, now)):
        scene = Scene(make_node("n1"), device_class(), pool_slice("p", "a", "b"), wanted, rules=rules)
        assert scene.bind(POD) is None
        given = scene.claim("c").status.allocation
        assert given is not None
        assert [list(each.requests) for each in given.devices.config] == expected


def test_errors_of_selectors_name_the_device() -> None:
    missing = claim("c", request("r", asking(1, f'device.attributes["{DRIVER}"].none == 1')))
    objects = (pool_slice("p", "d"), missing)
    assert "claim default/c: selector #0: CEL runtime error: no such key: none" in answer(
        OLDER_RULES, *objects
    )
    assert (
        "claim default/c: selector #0 on device gpu.example.com/p/d: CEL runtime error: no such key: none. "
        "consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() "
        "for optional fields"
    ) in answer(NEWER_RULES, *objects)


def test_distinct_attributes_are_those_of_all_devices() -> None:
    colours = [device(f"d{n}", {"colour": colour}) for n, colour in enumerate(("red", "blue", "red"))]
    wanted = claim(
        "c", request("r", asking(3)), constraints=[{"distinctAttribute": f"{DRIVER}/colour", "requests": []}]
    )
    assert answer(OLDER_RULES, pool_slice("p", *colours), wanted) == ""
    assert answer(NEWER_RULES, pool_slice("p", *colours), wanted) == CANNOT_ALLOCATE
    green = device("d3", {"colour": "green"})
    assert answer(NEWER_RULES, pool_slice("p", *colours, green), wanted) == ""


def test_pods_that_nothing_is_deallocated_for_are_not_told_so() -> None:
    wanted = claim("c", request("r", asking()))
    for rules, nothing, no_help in (
        (OLDER_RULES, unschedulable(NOTHING_TO_DO), unschedulable(NO_HELP)),
        (NEWER_RULES, unschedulable(), unschedulable()),
    ):
        scene = Scene(make_node("n1"), device_class(), wanted, rules=rules)
        scene.pre_filter(make_pod("plain"))
        assert scene.post_filter(make_pod("plain")) == nothing
        scene.filter_nodes(POD)
        assert scene.post_filter(POD) == no_help


def test_the_deletion_of_an_allocated_claim_helps() -> None:
    taken, free = held("p/d"), claim("free", request("r", asking()))
    for rules, helped in ((OLDER_RULES, []), (NEWER_RULES, [True, False])):
        scene = Scene(make_node("n1"), rules=rules)
        hints = [
            interest.hint
            for interest in scene.plugin.events()
            if interest.event.label.startswith("resource.k8s.io/ResourceClaim")
            and interest.event.action & interest.event.action.DELETE
        ]
        assert [hint(POD, gone, None) for hint in hints if hint for gone in (taken, free)] == helped
