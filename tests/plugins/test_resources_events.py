"""What may help pods that NodeResourcesFit refused."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.base import Object
from moorage.api.pod import Pod
from tests.builders import container, make_node, make_pod
from tests.plugins.dynamic_resources.device_objects import device_class
from tests.plugins.requeueing import wakes

GPU = "example.com/gpu"
BY_CLASS = "deviceclass.resource.kubernetes.io/gpu"


def wanting(name: str = "p", **fields: Any) -> Pod:
    requests = fields.pop("requests", {"cpu": "2"})
    return make_pod(name, uid=name, requests=requests, **fields)


def sized(**room: str) -> Any:
    return make_node("n", allocatable={"cpu": "1", "memory": "1Gi", "pods": "10", **room})


def running(**requests: str) -> Pod:
    return make_pod("q", uid="q", on="n", requests=requests)


SMALL, LARGE = sized(), sized(cpu="4")
BEST_EFFORT = make_pod("p", uid="p")

CASES: dict[str, tuple[Pod, Object | None, Object | None, bool]] = {
    "a node comes that is large enough": (wanting(), None, LARGE, True),
    "a node comes that is too small": (wanting(), None, SMALL, False),
    "a node comes that takes no pods": (wanting(), None, sized(cpu="4", pods="0"), False),
    "a node comes without the resource": (wanting(requests={GPU: "1"}), None, LARGE, False),
    "a node grows": (wanting(), SMALL, LARGE, True),
    "a node grows, but not enough": (wanting(), SMALL, sized(cpu="1500m"), False),
    "a large node grows in something else": (wanting(), LARGE, sized(cpu="4", memory="2Gi"), False),
    "a large node grows in what is needed": (wanting(), LARGE, sized(cpu="8"), True),
    "a large node shrinks": (wanting(), sized(cpu="8"), LARGE, False),
    "a node takes more pods": (BEST_EFFORT, SMALL, sized(pods="11"), True),
    "a pod without requests needs no cpu": (BEST_EFFORT, SMALL, LARGE, False),
    "labels change": (wanting(), LARGE, make_node("n", labels={"a": "b"}), False),
    "a node goes": (wanting(), LARGE, None, False),
    "a pod goes": (wanting(), running(cpu="1"), None, True),
    "a pod goes that requested nothing": (wanting(), running(), None, True),
    "a pod goes that had no node": (wanting(), make_pod("q", uid="q"), None, False),
    "a nominated pod goes": (
        wanting(),
        make_pod("q", uid="q", status={"nominatedNodeName": "n"}),
        None,
        True,
    ),
    "a pod comes": (wanting(), None, running(cpu="1"), False),
    "a pod shrinks": (wanting(), running(cpu="2"), running(cpu="1"), True),
    "a pod shrinks in something else": (
        wanting(),
        running(cpu="1", memory="2Gi"),
        running(cpu="1", memory="1Gi"),
        False,
    ),
    "a pod grows": (wanting(), running(cpu="1"), running(cpu="2"), False),
    "a pod without a node shrinks": (wanting(), wanting("q"), wanting("q", requests={"cpu": "1"}), False),
    "the pod itself shrinks": (
        wanting(requests={"cpu": "1"}),
        wanting(),
        wanting(requests={"cpu": "1"}),
        True,
    ),
    "an extended resource gets free": (
        wanting(requests={GPU: "1"}),
        make_pod("q", on="n", containers=[container({GPU: "2"})]),
        make_pod("q", on="n", containers=[container({GPU: "1"})]),
        True,
    ),
    "a class stands behind the resource": (
        wanting(requests={GPU: "1"}),
        None,
        device_class("gpu", extendedResourceName=GPU),
        True,
    ),
    "a class stands behind another resource": (
        wanting(requests={GPU: "1"}),
        None,
        device_class("gpu", extendedResourceName="example.com/x"),
        False,
    ),
    "a class comes that is asked for by its name": (
        wanting(requests={BY_CLASS: "1"}),
        None,
        device_class("gpu"),
        True,
    ),
    "a class comes that is not asked for": (wanting(), None, device_class("gpu"), False),
    "a class changes to the resource": (
        wanting(requests={GPU: "1"}),
        device_class("gpu"),
        device_class("gpu", extendedResourceName=GPU),
        True,
    ),
    "a class keeps its resource": (
        wanting(requests={GPU: "1"}),
        device_class("gpu", extendedResourceName=GPU),
        device_class("gpu", "true", extendedResourceName=GPU),
        False,
    ),
    "a class that is asked for by its name changes": (
        wanting(requests={BY_CLASS: "1"}),
        device_class("gpu"),
        device_class("gpu", "true"),
        False,
    ),
}


@pytest.mark.parametrize(("pod", "old", "new", "woken"), CASES.values(), ids=CASES.keys())
def test_hints(pod: Pod, old: Object | None, new: Object | None, woken: bool) -> None:
    assert wakes("NodeResourcesFit", pod, old, new) is woken


def test_what_devices_back_need_not_be_on_the_node() -> None:
    pod = wanting(requests={"cpu": "2", GPU: "1"})
    backed = [device_class("gpu", extendedResourceName=GPU)]
    assert wakes("NodeResourcesFit", pod, None, LARGE, objects=backed)
    assert not wakes("NodeResourcesFit", pod, None, SMALL, objects=backed)


def test_what_is_ignored_is_not_needed() -> None:
    pod = wanting(requests={"cpu": "2", GPU: "1"})
    assert wakes("NodeResourcesFit", pod, None, LARGE, args={"ignoredResources": [GPU]})
