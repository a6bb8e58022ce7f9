"""What is missing in a cluster for a group: what is free on all nodes, and how the rest is printed."""

from __future__ import annotations

import pytest

from moorage.cluster.cache import Cache
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.coscheduling.resource_gap import Amount, resource_gap
from tests.builders import make_node, make_pod

GPU = "nvidia.com/gpu"
TWO_NODES = [
    make_node("a", allocatable={"cpu": "4", "memory": "8Gi", "pods": "10"}),
    make_node("b", allocatable={"cpu": "2", "memory": "8Gi", "pods": "10", GPU: "1"}),
]

GAPS: dict[str, tuple[dict[str, str | int], int, str]] = {
    "nothing is asked for": ({}, 1, ""),
    "all is there": ({"cpu": "6", "memory": "16Gi", GPU: 1}, 20, ""),
    "cpu": ({"cpu": "8"}, 1, "cpu:{{2000 -3} {<nil>}  DecimalSI}"),
    "cpu in thousandths": ({"cpu": "6500m"}, 1, "cpu:{{500 -3} {<nil>}  DecimalSI}"),
    "finer than thousandths": ({"cpu": "6000100u"}, 1, "cpu:{{100 -6} {<nil>}  DecimalSI}"),
    "memory": ({"memory": "17Gi"}, 1, "memory:{{1073741824 0} {<nil>}  BinarySI}"),
    "memory in decimal units": ({"memory": "20G"}, 1, "memory:{{2820130816 0} {<nil>}  DecimalSI}"),
    "an exponent": ({"memory": "2e10"}, 1, "memory:{{2820130816 0} {<nil>}  DecimalExponent}"),
    "pods": ({}, 21, "pods:{{1 0} {<nil>}  DecimalSI}"),
    "a number": ({GPU: 3}, 1, "nvidia.com/gpu:{{2 0} {<nil>}  DecimalSI}"),
    "a resource that no node has": ({"x.io/y": "1k"}, 1, "x.io/y:{{1 3} {<nil>}  DecimalSI}"),
    "several, in order": (
        {GPU: "2", "cpu": "7"},
        1,
        "cpu:{{1000 -3} {<nil>}  DecimalSI} nvidia.com/gpu:{{1 0} {<nil>}  DecimalSI}",
    ),
}


@pytest.mark.parametrize(("needed", "pods", "gap"), GAPS.values(), ids=GAPS.keys())
def test_the_message_says_what_is_missing(needed: dict[str, str | int], pods: int, gap: str) -> None:
    nodes = Nodes(Cache(TWO_NODES).snapshot())
    expected = f"resource gap: map[{gap}]" if gap else ""
    assert resource_gap(needed, pods, nodes) == expected


def test_without_nodes_everything_is_missing_as_it_is_written() -> None:
    gap = resource_gap({"cpu": "1.5", "memory": "1Gi"}, 2, Nodes(Cache().snapshot()))
    assert gap == (
        "resource gap: map[cpu:{{15 -1} {<nil>} 1.5 DecimalSI} "
        "memory:{{1073741824 0} {<nil>} 1Gi BinarySI} pods:{{2 0} {<nil>}  DecimalSI}]"
    )


def test_what_pods_use_is_not_free_but_for_those_of_the_group() -> None:
    running = make_pod("other", uid="other", requests={"cpu": "3"}, node_name="a")
    own = make_pod("own", uid="own", requests={"cpu": "1"}, node_name="b")
    snapshot = Cache([*TWO_NODES, running, own]).snapshot()
    nodes, members = Nodes(snapshot), snapshot.pods.rows_of(["own"])
    assert resource_gap({"cpu": "3"}, 1, nodes) == "resource gap: map[cpu:{{1000 -3} {<nil>}  DecimalSI}]"
    assert resource_gap({"cpu": "3"}, 19, nodes, members) == ""


def test_what_an_earlier_node_covers_an_overcommitted_one_does_not_take_back() -> None:
    full = make_node("c", allocatable={"cpu": "1", "pods": "10"})
    heavy = make_pod("heavy", uid="heavy", requests={"cpu": "9"}, node_name="c")
    assert resource_gap({"cpu": "6"}, 1, Nodes(Cache([*TWO_NODES, full, heavy]).snapshot())) == ""


@pytest.mark.parametrize(
    ("text", "value", "scale"),
    [("0", 0, 0), ("007", 7, 0), ("0.50", 50, -2), (".5", 5, -1), ("+3", 3, 0), ("-3", -3, 0), ("2E", 2, 18)],
    ids=str,
)
def test_digits_are_kept_as_they_are_written(text: str, value: int, scale: int) -> None:
    assert Amount.parse(text) == Amount(value, scale, "DecimalSI", text)
