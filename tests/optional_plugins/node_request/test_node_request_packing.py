"""Which nodes NodeRequest asks for: choice, limits, places on nodes that are on their way, groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import Pod, Shape
from moorage.optional_plugins.node_request.packing import NO_PARTS, NO_SHAPE, Packed
from tests.builders import make_node
from tests.optional_plugins.node_request.packing_scene import (
    PackingScene,
    alone,
    counted,
    gang,
    shape,
    together,
    worker,
)

SMALL, LARGE = shape("small", 1.0, "4", "16Gi"), shape("large", 3.0, "16", "64Gi")
DEAR = shape("dear", 5.0, "4", "16Gi")
WIDE = shape("wide", 1.0, "4", "64Gi")
GPU = shape(
    "gpu",
    9.0,
    resources={"nvidia.com/gpu": "1"},
    taints=[{"key": "gpu", "effect": "NoSchedule"}],
    labels={"gpu": "true"},
)


def workers(count: int, cpu: str = "1", **fields: Any) -> list[Pod]:
    return [worker(f"w{number}", cpu, **fields) for number in range(count)]


@pytest.mark.parametrize(
    ("shapes", "args", "pods", "expected"),
    [
        pytest.param([SMALL], {}, workers(1000), {"small": 250}, id="exactly as many as are needed"),
        pytest.param([SMALL], {}, workers(101), {"small": 26}, id="the last one is not full"),
        pytest.param([DEAR, SMALL], {}, workers(4), {"small": 1}, id="the cheaper one"),
        pytest.param([SMALL, LARGE], {}, workers(16), {"large": 1}, id="the cheaper one for all of them"),
        pytest.param([SMALL, LARGE], {}, workers(18), {"large": 1, "small": 1}, id="less for the rest"),
        pytest.param([SMALL, LARGE], {}, workers(1, "8"), {"large": 1}, id="the only one that fits"),
        pytest.param([WIDE, SMALL], {"choice": "LeastWaste"}, workers(4), {"small": 1}, id="least waste"),
        pytest.param([SMALL], {"max_nodes": 3}, workers(40), {"small": 3}, id="a limit of all nodes"),
        pytest.param(
            [shape("few", 0.5, max=2), SMALL], {}, workers(16), {"few": 2, "small": 2}, id="of a shape"
        ),
        pytest.param(
            [GPU, SMALL],
            {},
            workers(1, node_selector={"gpu": "true"}, tolerations=[{"operator": "Exists"}]),
            {"gpu": 1},
            id="labels and taints",
        ),
    ],
)
def test_nodes_are_asked_for(
    shapes: list[Shape], args: dict[str, Any], pods: list[Pod], expected: Mapping[str, int]
) -> None:
    assert counted(PackingScene(shapes, **args).names(pods)) == expected


@pytest.mark.parametrize(
    ("shapes", "args", "pod", "reason"),
    [
        pytest.param(
            [SMALL, LARGE, GPU],
            {},
            worker("w", "32"),
            "1 node(s) had untolerated taint(s), 2 Insufficient cpu",
            id="fits nowhere",
        ),
        pytest.param(
            [shape("few", max=0)], {}, worker("w"), "1 max node count of few reached (0)", id="of a shape"
        ),
        pytest.param([SMALL], {"max_nodes": 0}, worker("w"), "1 max node count reached (0)", id="of all"),
        pytest.param(
            [SMALL],
            {"max_resources": shape("x", cpu="3").resources},
            worker("w"),
            "1 max cpu reached (3)",
            id="of a resource",
        ),
    ],
)
def test_why_no_node_is_asked_for(shapes: list[Shape], args: dict[str, Any], pod: Pod, reason: str) -> None:
    packed = PackingScene(shapes, **args).pack([alone(pod)])
    assert (packed.new, packed.places, packed.reasons) == ([], {}, {pod.uid: reason})


def test_pods_get_places_on_nodes_that_are_on_their_way() -> None:
    scene = PackingScene([SMALL])
    assert scene.names(workers(3)) == ["small-0"]
    later = scene.pack([alone(worker("x")), alone(worker("y"))])
    assert [new.node.name for new in later.new] == ["small-1"]
    assert later.places == {"x": "small-0", "y": "small-1"}


def test_nodes_that_are_there_count_for_limits_and_their_names_are_taken() -> None:
    there = make_node("few-0", labels={"node.kubernetes.io/instance-type": "few"}, allocatable={"cpu": "4"})
    scene = PackingScene([shape("few", max=2)], there)
    assert scene.names(workers(9)) == ["few-1"]
    assert scene.names([worker("more")]) == []


def test_an_offer_in_backoff_is_left_out() -> None:
    scene = PackingScene([SMALL, DEAR])
    packed = scene.pack([alone(worker("w"))], lambda offer: "later" if offer.shape is SMALL else "")
    assert [new.node.name for new in packed.new] == ["dear-0"]


def test_the_more_important_pod_gets_the_last_node() -> None:
    scene = PackingScene([SMALL], max_nodes=1)
    packed = scene.pack([alone(worker("low", "4")), alone(worker("high", "4", priority=10))])
    assert packed.places == {"high": "small-0"}
    assert list(packed.reasons) == ["low"]


ZONES = shape("zoned", zones=["west", "north"])
SPREAD: Mapping[str, Any] = {
    "labels": {"app": "w"},
    "topology_spread_constraints": [
        {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "w"}},
        }
    ],
}


def test_pods_that_are_there_count_for_spreading() -> None:
    """Each zone has a full node; two pods run in the west: the next ones have to go north, then in turn."""
    nodes = [
        make_node(name, labels={"topology.kubernetes.io/zone": name}, allocatable={"cpu": "0", "pods": "9"})
        for name in ("west", "north")
    ]
    running = [worker(f"r{number}", "0", on="west", labels={"app": "w"}) for number in range(2)]
    scene = PackingScene([ZONES], *nodes, *running)
    packed = scene.pack([alone(pod, is_local=False) for pod in workers(3, "4", **SPREAD)])
    assert sorted(new.node.name for new in packed.new) == ["zoned-north-0", "zoned-north-1", "zoned-north-2"]
    again = scene.pack([alone(worker("x", "4", **SPREAD), is_local=False)])
    assert [new.node.name for new in again.new] == ["zoned-west-0"]


def members(count: int, cpu: str = "2") -> list[Pod]:
    return [worker(f"g{number}", cpu, scheduling_group={"podGroupName": "g"}) for number in range(count)]


def packed_group(scene: PackingScene, minimum: int, count: int, topology: str = "") -> Packed:
    packed = scene.pack([together(gang("g", minimum, topology), members(count))])
    assert all(scene.paper.node_of(pod) in ("", *scene.paper.names) for pod in members(count))
    return packed


def test_a_group_asks_for_what_is_missing() -> None:
    free = make_node("free", allocatable={"cpu": "4", "memory": "16Gi", "pods": "9"})
    packed = packed_group(PackingScene([SMALL], free), 5, 5)
    assert [new.node.name for new in packed.new] == ["small-0", "small-1"]
    assert sorted(packed.places) == ["g2", "g3", "g4"]


@pytest.mark.parametrize(
    ("minimum", "expected"),
    [pytest.param(2, 1, id="enough for the quorum"), pytest.param(3, 0, id="nothing for a part of it")],
)
def test_a_group_asks_for_all_it_needs_or_for_nothing(minimum: int, expected: int) -> None:
    scene = PackingScene([SMALL], max_nodes=1)
    packed = packed_group(scene, minimum, 4)
    assert len(packed.new) == expected == len(scene.paper.names)
    assert (not packed.reasons) == bool(expected)


def test_a_group_keeps_its_topology_constraint() -> None:
    zones = [shape("a", zones=["west"], max=1), shape("b", 2.0, zones=["north"])]
    packed = packed_group(PackingScene(zones), 4, 4, "topology.kubernetes.io/zone")
    assert counted(new.node.name for new in packed.new) == {"b-north": 2}
    assert packed_group(PackingScene(zones), 4, 4, "rack").reasons == {("default", "g", False): NO_SHAPE}
    assert NO_PARTS != NO_SHAPE


CPUS = st.integers(1, 16)


@given(
    pods=st.lists(st.tuples(CPUS, st.integers(1, 32)), min_size=1, max_size=14),
    sizes=st.lists(st.tuples(CPUS, st.integers(1, 32), st.integers(0, 4)), min_size=1, max_size=3),
    most=st.integers(0, 8),
    batches=st.integers(1, 3),
)
def test_no_more_is_asked_for_than_is_needed(
    pods: list[tuple[int, int]], sizes: list[tuple[int, int, int]], most: int, batches: int
) -> None:
    """Against plain sums: nodes hold their pods, limits are kept, no two nodes of a shape could be one.

    And a pod is left out only if each shape is too small, or at a limit.
    """
    shapes = [
        shape(f"s{number}", 1.0 + number, f"{cpu}", f"{memory}Gi", max=limit)
        for number, (cpu, memory, limit) in enumerate(sizes)
    ]
    scene = PackingScene(shapes, max_nodes=most)
    wanted = {f"w{number}": amounts for number, amounts in enumerate(pods)}
    places: dict[str, str] = {}
    left: set[str] = set()
    for batch in range(batches):
        some = [worker(uid, f"{cpu}", f"{memory}Gi") for uid, (cpu, memory) in wanted.items()][batch::batches]
        packed = scene.pack([alone(pod) for pod in some])
        places |= packed.places
        left |= {str(key) for key in packed.reasons}
    assert places.keys() | left == wanted.keys()
    assert not places.keys() & left
    loads = {node.name: [0, 0] for _, node in scene.asked}
    for uid, name in places.items():
        for resource in range(2):
            loads[name][resource] += wanted[uid][resource]
    by_shape = {
        each.name: [load for name, load in loads.items() if name.startswith(f"{each.name}-")]
        for each in shapes
    }
    assert len(loads) <= most
    for number, (cpu, memory, limit) in enumerate(sizes):
        here = by_shape[f"s{number}"]
        assert len(here) <= limit
        assert all(0 < load[0] <= cpu and load[1] <= memory for load in here)
        merged = [(a[0] + b[0], a[1] + b[1]) for i, a in enumerate(here) for b in here[:i]]
        assert all(both[0] > cpu or both[1] > memory for both in merged)
    for uid in left:
        cpu, memory = wanted[uid]
        for number, (has_cpu, has_memory, limit) in enumerate(sizes):
            is_full = len(loads) == most or len(by_shape[f"s{number}"]) == limit
            assert cpu > has_cpu or memory > has_memory or is_full
