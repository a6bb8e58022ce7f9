"""NodeResourcesFit: what fits, the scoring strategies, and extended resources that devices back."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.base import Object
from moorage.api.decode import convert
from moorage.api.devices import DeviceClass
from moorage.cluster.cache import Cache
from moorage.engine.decision import Decision
from moorage.engine.engine import Engine
from moorage.framework.interface.status import Code
from tests.builders import container, make_framework, make_node, make_pod
from tests.plugins.plugin_rules import refusals, scores

GPU = "example.com/gpu"


FILTER: dict[str, tuple[dict[str, Any], str]] = {
    "requests that fit exactly": ({"requests": {"cpu": "3", "memory": "6Gi"}}, ""),
    "too little cpu is left": ({"requests": {"cpu": "3001m"}}, "Insufficient cpu"),
    "too little memory is left": ({"requests": {"memory": "7Gi"}}, "Insufficient memory"),
    "every shortage is named": (
        {"requests": {"cpu": "4", "memory": "8Gi"}},
        "Insufficient cpu, Insufficient memory",
    ),
    "a resource that the node does not have": ({"requests": {GPU: "1"}}, f"Insufficient {GPU}"),
    "a request of zero needs nothing": ({"requests": {GPU: "0"}}, ""),
    "containers add up": (
        {"containers": [container({"cpu": "2"}, name="a"), container({"cpu": "2"}, name="b")]},
        "Insufficient cpu",
    ),
    "init containers run one after the other": (
        {"init_containers": [container({"cpu": "3"}, name="a"), container({"cpu": "3"}, name="b")]},
        "",
    ),
    "a sidecar adds to the containers": (
        {
            "init_containers": [container({"cpu": "2"}, name="a", restart_policy="Always")],
            "containers": [container({"cpu": "2"}, name="b")],
        },
        "Insufficient cpu",
    ),
    "overhead adds to the requests": (
        {"requests": {"cpu": "3"}, "overhead": {"cpu": "100m"}},
        "Insufficient cpu",
    ),
}


@pytest.mark.parametrize(("spec", "reason"), FILTER.values(), ids=FILTER.keys())
def test_filter(spec: dict[str, Any], reason: str) -> None:
    existing = make_pod("existing", on="n", requests={"cpu": "1", "memory": "2Gi"})
    assert refusals("NodeResourcesFit", make_pod("p", **spec), make_node("n"), existing) == {"n": reason}


def test_a_node_takes_no_more_pods_than_it_allows() -> None:
    node = make_node("n", allocatable={"cpu": "4", "memory": "8Gi", "pods": "1"})
    existing = make_pod("existing", on="n")
    assert refusals("NodeResourcesFit", make_pod("p"), node, existing) == {"n": "Too many pods"}


RATIO = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
STRATEGIES: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    # The mean of what is left: of 4 cpus 2 or 3, of 8 Gi 2 or 6.
    "LeastAllocated prefers empty nodes": ({"type": "LeastAllocated"}, {"used": 37, "empty": 75}),
    "MostAllocated prefers full nodes": ({"type": "MostAllocated"}, {"used": 62, "empty": 25}),
    "weights count": (
        {
            "type": "LeastAllocated",
            "resources": [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}],
        },
        {"used": 43, "empty": 75},
    ),
    "RequestedToCapacityRatio follows its shape": (
        {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": RATIO}},
        {"used": 63, "empty": 25},
    ),
}


@pytest.mark.parametrize(("strategy", "expected"), STRATEGIES.values(), ids=STRATEGIES.keys())
def test_score(strategy: dict[str, Any], expected: dict[str, int]) -> None:
    existing = make_pod("existing", on="used", requests={"cpu": "1", "memory": "4Gi"})
    pod = make_pod("p", requests={"cpu": "1", "memory": "2Gi"})
    args = {"scoringStrategy": strategy}
    nodes = make_node("used"), make_node("empty")
    assert scores("NodeResourcesFit", pod, *nodes, existing, args=args) == expected


def gpu_class() -> DeviceClass:
    return convert(
        {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}},
        DeviceClass,
    )


def decide(*objects: Object, cpu: str = "1") -> Decision:
    nodes = [
        make_node("own", allocatable={GPU: "1", "cpu": "4", "pods": "9"}),
        make_node("none", allocatable={"cpu": "1", "pods": "9"}),
        make_pod("user", on="own", requests={GPU: "1"}),
    ]
    cache = Cache([*nodes, *objects])
    pod = make_pod("p", requests={GPU: "1", "cpu": cpu})
    return Engine(seed=0).decide(make_framework("NodeResourcesFit"), pod, cache.snapshot())


def test_a_resource_that_devices_back_is_left_to_them_where_the_node_has_none() -> None:
    decision = decide(gpu_class())
    assert decision.feasible.names == ["none"]
    assert decision.diagnosis.tally() == {f"Insufficient {GPU}": 1}


@pytest.mark.parametrize(
    ("cpu", "busy", "code"),
    [("1", True, Code.UNSCHEDULABLE), ("2", False, Code.UNRESOLVABLE)],
)
def test_what_is_left_to_devices_does_not_make_another_shortage_final(
    cpu: str, busy: bool, code: Code
) -> None:
    others = [make_pod("other", on="none", requests={"cpu": "1"})] if busy else []
    decision = decide(gpu_class(), *others, cpu=cpu)
    row = decision.feasible.snapshot.row_of["none"]
    refusal = decision.diagnosis.of(row)
    assert refusal is not None
    assert (refusal.reason.texts, refusal.reason.code) == (("Insufficient cpu",), code)


def test_without_a_device_class_the_resource_is_just_missing() -> None:
    decision = decide()
    assert decision.node is None
    assert decision.diagnosis.tally() == {f"Insufficient {GPU}": 2}
