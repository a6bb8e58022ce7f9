"""The nodes of all placements are added up at once, each placement on its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.decode import convert
from moorage.api.pod_groups import PodGroup, key_of
from moorage.cluster.cache import Cache
from moorage.config.args import NodeResourcesFitArgs
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.pod_groups import Assignment, Placement, PlacementAssignments, PodGroupInfo
from moorage.plugins.node_resources.fit import NodeResourcesFit
from moorage.plugins.node_resources.placement_sums import PlacementSums
from tests.builders import make_node, make_pod

ROWS = st.lists(st.integers(0, 3), unique=True)


@given(st.lists(ROWS, min_size=1, max_size=4))
def test_each_placement_is_added_up_on_its_own(placements: list[list[int]]) -> None:
    sizes = [1, 20, 300, 4000]
    snapshot = Cache([make_node(f"n{i}", allocatable={"cpu": f"{cpu}m"}) for i, cpu in enumerate(sizes)])
    nodes = [Nodes(snapshot.snapshot(), np.array(rows, np.intp)) for rows in placements]
    expected = [sum(sizes[row] for row in rows) for rows in placements]
    assert PlacementSums(nodes).of(Nodes.allocatable, "cpu") == expected


def fullness(args: dict[str, Any], *requests: dict[str, str]) -> list[int]:
    """The scores of two placements for a group of pods: a node in use, and an empty one."""
    allocatable = {"cpu": "8", "memory": "8Gi", "example.com/gpu": "4", "pods": "110"}
    running = make_pod("r", on="a", requests={"cpu": "2", "memory": "2Gi", "example.com/gpu": "2"})
    cache = Cache([make_node(name, allocatable=allocatable) for name in "ab"] + [running])
    group = convert({"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"basic": {}}}}, PodGroup)
    snapshot = cache.snapshot()
    placements = []
    for row, name in enumerate("ab"):
        pods = [make_pod(f"m{i}", requests=each) for i, each in enumerate(requests)]
        assignments = [Assignment(pod, name, CycleState()) for pod in pods]
        nodes = Nodes(snapshot, np.array([row], np.intp))
        placements.append(PlacementAssignments(Placement(name, nodes), assignments))
    plugin = NodeResourcesFit(convert(args, NodeResourcesFitArgs).defaulted(), Handle())
    info = PodGroupInfo(key_of(group), group)
    scores: list[int] = plugin.placement_score(CycleState(), info, placements).tolist()
    return scores


def test_the_fuller_placement_is_better() -> None:
    wants = {"cpu": "1", "memory": "1Gi"}
    assert fullness({}, wants, wants) == [50, 25]


def test_an_extended_resource_counts_only_if_the_group_requests_it() -> None:
    scored = [{"name": "cpu", "weight": 1}, {"name": "example.com/gpu", "weight": 1}]
    args = {"scoringStrategy": {"type": "LeastAllocated", "resources": scored}}
    assert fullness(args, {"cpu": "2"}) == [50, 25]
    assert fullness(args, {"cpu": "2", "example.com/gpu": "1"}) == [(50 + 75) // 2, (25 + 25) // 2]
