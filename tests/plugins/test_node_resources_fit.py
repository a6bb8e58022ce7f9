"""NodeResourcesFit where devices back an extended resource; the rest is compared with an oracle."""

from __future__ import annotations

import pytest

from moorage.api.base import Object
from moorage.api.decode import convert
from moorage.api.devices import DeviceClass
from moorage.cluster.cache import Cache
from moorage.engine.decision import Decision
from moorage.engine.engine import Engine
from moorage.framework.interface.status import Code
from tests.builders import make_framework, make_node, make_pod

GPU = "example.com/gpu"


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
