"""Plugins derived from DefaultPreemption choose the pods that may be evicted."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from moorage import DefaultPreemption, DefaultPreemptionArgs, EvictPods, Handle, Nodes, Pod, PodGroupInfo
from moorage.cluster.cache import Cache
from moorage.engine.engine import Engine
from moorage.framework.runtime.framework import Framework
from moorage.plugins import default_registry
from tests.builders import make_node, make_pod, make_profile


class TakesFromBorrowers(DefaultPreemption):
    """Evicts pods with a label, whatever their priority."""

    name = "TakesFromBorrowers"

    def __init__(self, handle: Handle) -> None:
        super().__init__(DefaultPreemptionArgs(), handle)

    def potential_victims(
        self, pod: Pod, nodes: Nodes, group: PodGroupInfo | None
    ) -> NDArray[np.bool_] | None:
        return np.array(["borrowed" in info.pod.labels for info in nodes.snapshot.pods.infos], bool)


def pod(name: str, priority: int, **fields: Any) -> Pod:
    return make_pod(name, uid=name, requests={"cpu": "1"}, priority=priority, **fields)


@pytest.mark.parametrize(
    ("first", "second", "victims"),
    [
        pytest.param({"borrowed": ""}, {}, {"first"}, id="more important, and chosen"),
        pytest.param({}, {"borrowed": ""}, {"second"}, id="less important, and chosen"),
        pytest.param({"borrowed": ""}, {"borrowed": ""}, {"second"}, id="both: the less important one"),
        pytest.param({}, {}, set(), id="none"),
    ],
)
def test_only_chosen_pods_are_evicted(
    first: dict[str, str], second: dict[str, str], victims: set[str]
) -> None:
    cache = Cache([make_node("n1", allocatable={"cpu": "2", "pods": "10"})])
    for name, priority, labels in (("first", 10, first), ("second", 0, second)):
        cache.put_pod(pod(name, priority, on="n1", labels=labels))
    registry = default_registry()
    registry.register(TakesFromBorrowers.name, TakesFromBorrowers)
    profile = make_profile("NodeResourcesFit", "TakesFromBorrowers")
    framework = Framework(profile, registry, Handle(random=Random(1)))
    result = Engine(seed=0).decide(framework, pod("new", 5), cache.snapshot()).post_filter
    assert result is not None
    evictions = [effect for effect in result.effects if isinstance(effect, EvictPods)]
    assert {victim.name for each in evictions for victim in each.victims} == victims
