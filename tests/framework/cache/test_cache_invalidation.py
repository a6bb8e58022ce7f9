"""What ends a memory: each of these would go unnoticed if answers were kept for too long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.cluster.object_tables import Objects
from moorage.engine.engine import Engine
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.dependencies import NODE_AND_PODS, DependsOn
from moorage.framework.interface.filter_result import FilterResult, refuse_where
from moorage.framework.interface.nodes import Nodes
from tests.builders import expression, make, make_framework, make_node, make_pod, make_service
from tests.framework.helpers import framework_of

GPU = "example.com/gpu"
GPU_CLASS = make({"kind": "DeviceClass", "metadata": {"name": "gpus"}, "spec": {"extendedResourceName": GPU}})
NAMED = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [expression("metadata.name", "In", "b")]}]
        }
    }
}


def _nominate(cache: Cache) -> None:
    cache.nominations.put(make_pod("rival", uid="rival", requests={"cpu": "4"}, priority=9), "a")


def _nominate_itself(cache: Cache) -> None:
    cache.nominations.put(make_pod("p", uid="p", requests={"cpu": "3"}), "a")


CASES: dict[str, tuple[dict[str, Any], Callable[[Cache], Any]]] = {
    "a device class stands in for a resource": ({"requests": {GPU: "1"}}, lambda c: c.put(GPU_CLASS)),
    "a pod is nominated": ({"requests": {"cpu": "1"}}, _nominate),
    "the pod itself is nominated": ({"requests": {"cpu": "3"}}, _nominate_itself),
    "a node is cordoned": ({}, lambda c: c.put(make_node("a", unschedulable=True))),
    "a node is tainted": ({}, lambda c: c.put(make_node("a", taints=["k:NoSchedule"]))),
    "a node goes": ({}, lambda c: c.remove_node("a")),
    "a node comes": ({}, lambda c: c.put(make_node("z"))),
    "an image comes": (
        {"containers": [{"name": "main", "image": "web:1"}]},
        lambda c: c.put(make_node("c", images=[(["web:1"], 900_000_000)])),
    ),
    "a service comes": ({"labels": {"app": "a"}}, lambda c: c.put(make_service("s", {"app": "a"}))),
    "a pod takes all room": (
        {"requests": {"cpu": "1"}},
        lambda c: c.put(make_pod("big", uid="big", on="a", requests={"cpu": "4"})),
    ),
    "a pod goes": ({"requests": {"cpu": "4"}}, lambda c: c.remove_pod(make_pod("there", uid="there"))),
    "pods name their nodes": ({"affinity": NAMED}, lambda c: c.put(make_node("b", unschedulable=True))),
}


@pytest.mark.parametrize(("parts", "happens"), CASES.values(), ids=CASES)
def test_what_is_remembered_ends_when(parts: dict[str, Any], happens: Callable[[Cache], Any]) -> None:
    images = [(["web:1"], 900_000_000)]
    cache = Cache([make_node("a", images=images), *(make_node(name) for name in "bcdefgh")])
    cache.put(make_pod("there", uid="there", on="b", requests={"cpu": "1"}))
    framework, other = make_framework(), make_framework()
    remembering, plain = Engine(seed=0), Engine(seed=0, remembers=False)
    pod = make_pod("p", uid="p", **parts)
    remembering.decide(framework, pod, cache.snapshot())
    happens(cache)
    snapshot = cache.snapshot()
    decision, expected = remembering.decide(framework, pod, snapshot), plain.decide(other, pod, snapshot)
    assert sorted(decision.feasible.names) == sorted(expected.feasible.names)
    assert decision.message == expected.message
    assert sorted(decision.best()) == sorted(expected.best())
    if decision.scores is not None and expected.scores is not None:
        assert decision.scores.totals.tolist() == expected.scores.totals.tolist()


class RejectsLabelledNeighbours:
    """A plugin from outside: rejects nodes with a pod that has a certain label."""

    name = "RejectsLabelledNeighbours"

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn:
        return NODE_AND_PODS

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        pods_of = nodes.snapshot.pods_of
        rows = [nodes.snapshot.row_of[name] for name in nodes.names]
        rejected = [any("zone" in info.pod.labels for info in pods_of(row).infos) for row in rows]
        return refuse_where(np.array(rejected), "a neighbour has a zone")


def test_what_a_plugin_from_outside_says_of_pods_on_a_node_ends_when_one_is_relabelled() -> None:
    neighbour = make_pod("there", uid="there", on="a")
    cache = Cache([make_node("a"), neighbour])
    framework, engine = framework_of(RejectsLabelledNeighbours()), Engine(seed=0)
    feasible = []
    for labels in ({}, {"zone": "z"}, {}):
        cache.put(replace(neighbour, metadata=replace(neighbour.metadata, labels=labels)))
        decision = engine.decide(framework, make_pod("p", uid="p"), cache.snapshot())
        feasible.append(sorted(decision.feasible.names))
    assert feasible == [["a"], [], ["a"]]
