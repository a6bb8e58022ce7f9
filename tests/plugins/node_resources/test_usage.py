"""Amounts as floats give the integers that integers give, and what is kept of nodes follows their changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from moorage.cluster.cache import Cache
from moorage.config.args import UtilizationShapePoint
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.plugins.node_resources import balanced_allocation
from moorage.plugins.node_resources.free_columns import EXACT_MAX, FreeColumns
from moorage.plugins.node_resources.scoring_strategies import strategy
from moorage.plugins.node_resources.usage import ResourceUsage, ScoredRequests
from tests.builders import make_framework, make_node, make_pod
from tests.strategies import examples

SHAPE = (UtilizationShapePoint(utilization=0, score=3), UtilizationShapePoint(utilization=100, score=10))
STRATEGIES = [
    strategy(kind, SHAPE) for kind in ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
]
BALANCED = "NodeResourcesBalancedAllocation"
COLUMN_MAX = ((1 << 63) - 1) // 100

Node = tuple[int, int]
"""Allocatable and allocated."""


@st.composite
def nodes_of_size(draw: st.DrawFn, largest: int) -> Node:
    """A node that is about as full as a whole number of percents, or that is not."""
    allocatable = draw(st.integers(0, largest) | st.integers(max(largest - 50, 0), largest))
    percent, off_by = draw(st.integers(0, 101)), draw(st.integers(-2, 2))
    near = max(0, allocatable * percent // 100 + off_by)
    return allocatable, draw(st.sampled_from((near, near, COLUMN_MAX)) | st.integers(0, COLUMN_MAX))


def usage_of(pairs: list[tuple[Node, Node]], dtype: Any) -> ResourceUsage:
    allocatable = np.array([[node[lane][0] for node in pairs] for lane in (0, 1)], np.int64).astype(dtype)
    weights = np.maximum(1 * (allocatable[0] != 0) + 3 * (allocatable[1] != 0), 1)
    free = np.array([[node[lane][0] - node[lane][1] for node in pairs] for lane in (0, 1)], np.int64)
    divisor = np.maximum(allocatable, 1)
    free = (free if dtype is np.float64 else np.maximum(free, 0)) * 100
    min_free = [float(lane.min()) for lane in free]
    amounts = list(allocatable), list(divisor), list(free.astype(dtype))
    return ResourceUsage(*amounts, weights, len(pairs), min_free, 100)


@pytest.mark.hypothesis
@pytest.mark.parametrize("largest", [100, 1 << 20, EXACT_MAX])
def test_floats_score_as_integers_do(largest: int) -> None:
    @examples(200)
    @given(
        st.lists(st.tuples(nodes_of_size(largest), nodes_of_size(largest)), min_size=1, max_size=8),
        st.tuples(*[st.sampled_from((0, 1, 2, COLUMN_MAX)) | st.integers(0, largest)] * 2),
    )
    def check(pairs: list[tuple[Node, Node]], requests: tuple[int, int]) -> None:
        wanted = ScoredRequests(
            (("cpu", 1), ("memory", 3)), requests, is_anything=True, is_node_local=True, lanes=(0, 1)
        )
        floats, integers = usage_of(pairs, np.float64), usage_of(pairs, np.int64)
        for each in STRATEGIES:
            expected = [
                each.on_one(
                    [
                        (weight, allocatable, allocated, allocated + request)
                        for (_, weight), (allocatable, allocated), request in zip(
                            wanted.resources, pair, requests, strict=True
                        )
                        if allocatable
                    ]
                )
                for pair in pairs
            ]
            assert each.on_all(floats, wanted).tolist() == expected
            assert each.on_all(integers, wanted).tolist() == expected

    check()


@pytest.mark.parametrize(("memory", "dtype"), [(EXACT_MAX, np.float64), (EXACT_MAX + 1, np.int64)])
def test_amounts_are_floats_only_where_that_is_exact(memory: int, dtype: type[Any]) -> None:
    cache = Cache([make_node("a", allocatable={"cpu": "4", "memory": str(memory), "pods": "9"})])
    plugin: Any = make_framework("NodeResourcesFit").plugins["NodeResourcesFit"]
    pod = make_pod("p", requests={"memory": str(memory // 2)})
    usage = plugin._scored.usage(Nodes(cache.snapshot()), plugin._wanted(pod))
    assert usage.allocatable[0].dtype == dtype
    scores = plugin.score(CycleState(), pod, Nodes(cache.snapshot()))
    assert scores.tolist() == [plugin.score_node(CycleState(), pod, NodeView(cache.snapshot(), 0))]


def balanced() -> Any:
    return make_framework(BALANCED).plugins[BALANCED]


def test_the_balance_without_a_pod_is_kept_while_few_nodes_change(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated = []
    work_out = balanced_allocation._balance

    def counting(usage: ResourceUsage, requests: Sequence[int]) -> NDArray[np.int16]:
        evaluated.append(usage.count)
        return work_out(usage, requests)

    monkeypatch.setattr(balanced_allocation, "_balance", counting)
    cache, plugin = Cache(make_node(f"n{number}") for number in range(20)), balanced()
    for number in range(4):
        pod = make_pod(f"p{number}", uid=f"p{number}", requests={"cpu": f"{number + 1}00m"})
        plugin.score(CycleState(), pod, Nodes(cache.snapshot()))
        cache.assume_pod(pod, "n3")
    # Once without a pod, and with each of the four.
    assert evaluated == [20] * 5


def test_the_kept_balance_follows_pods_and_nodes() -> None:
    cache, plugin = Cache(make_node(f"n{number}") for number in range(20)), balanced()

    def check() -> None:
        pod, snapshot = make_pod("new", requests={"cpu": "1", "memory": "3Gi"}), cache.snapshot()
        expected = [
            plugin.score_node(CycleState(), pod, NodeView(snapshot, row)) for row in range(len(snapshot))
        ]
        assert plugin.score(CycleState(), pod, Nodes(snapshot)).tolist() == expected
        assert plugin.score(CycleState(), pod, Nodes(snapshot, np.arange(1, 18))).tolist() == expected[1:18]
        assert plugin.score(CycleState(), pod, Nodes(snapshot, np.arange(3))).tolist() == expected[:3]

    check()
    pods = [make_pod(f"p{n}", uid=f"p{n}", on=f"n{n}", requests={"cpu": f"{n}00m"}) for n in range(20)]
    for pod in pods:
        cache.put_pod(pod)
    check()
    cache.put_pod(make_pod("q", uid="q", on="n7", requests={"memory": "5Gi"}))
    cache.remove_pod(pods[4])
    check()
    cache.put_node(make_node("n2", allocatable={"cpu": "2", "pods": "9"}))
    check()
    cache.remove_node("n0")
    check()


def test_free_columns_follow_pods_and_nodes() -> None:
    cache = Cache(make_node(f"n{number}") for number in range(40))

    def check() -> None:
        snapshot = cache.snapshot()
        kept, fresh = FreeColumns.of(snapshot), FreeColumns()
        fresh._fill(snapshot)
        for name in ("allocatable", "allocated", "divisor", "free", "free_scoring", "free_pods"):
            assert np.array_equal(getattr(kept, name), getattr(fresh, name)), name
        assert kept.is_exact == fresh.is_exact
        for name in ("min_free", "min_free_scoring"):
            bounds = zip(getattr(kept, name), getattr(fresh, name), strict=True)
            assert all(bound <= least for bound, least in bounds), name
        assert kept.is_even((0, 1)) == fresh.is_even((0, 1))

    check()
    cache.put_pod(make_pod("p", uid="p", on="n7", requests={"memory": "5Gi", "ephemeral-storage": "1Gi"}))
    cache.put_pod(make_pod("q", uid="q", on="n8"))
    check()
    for number in range(40):
        cache.put_pod(make_pod(f"r{number}", uid=f"r{number}", on=f"n{number}", requests={"cpu": "1"}))
    check()
    cache.put_node(make_node("n2", allocatable={"cpu": "2", "pods": "9"}))
    assert not FreeColumns.of(cache.snapshot()).is_even((0, 1))
    check()
    cache.remove_node("n2")
    assert FreeColumns.of(cache.snapshot()).is_even((0, 1))
    check()
    cache.put_node(make_node("n3", allocatable={"cpu": "2", "memory": str(EXACT_MAX + 1), "pods": "9"}))
    assert not FreeColumns.of(cache.snapshot()).is_exact
    check()


def test_nodes_that_all_have_room_are_not_compared_one_by_one() -> None:
    cache, pod = Cache(make_node(f"n{number}") for number in range(3)), make_pod("p", requests={"cpu": "1"})
    fit: Any = make_framework("NodeResourcesFit").plugins["NodeResourcesFit"]

    def compared(column: list[int]) -> bool:
        """Whether a filter reads the cpu that is free, which is replaced by a column that no pod fits in."""
        columns = FreeColumns.of(cache.snapshot())
        before, columns.free[0] = columns.free[0], np.array(column, np.float64)
        refused = fit.filter(CycleState(), pod, Nodes(cache.snapshot())).codes is not None
        columns.free[0] = before
        return refused

    assert not compared([0, 0, 0])
    full = make_pod("full", uid="full", on="n1", requests={"cpu": "4"})
    cache.put_pod(full)
    assert compared([0, 0, 0])
    cache.remove_pod(full)
    assert compared([0, 0, 0]), "the bound is not known to be higher yet"
    assert fit.filter(CycleState(), pod, Nodes(cache.snapshot())).codes is None
    assert not compared([0, 0, 0])


def test_the_usage_of_all_nodes_is_kept_until_what_nodes_have_changes() -> None:
    cache, plugin = Cache(make_node(f"n{number}") for number in range(3)), balanced()

    def usage(cpu: str) -> ResourceUsage:
        wanted = plugin._wanted(make_pod("p", requests={"cpu": cpu}))
        found = plugin._scored.usage(Nodes(cache.snapshot()), wanted)
        assert isinstance(found, ResourceUsage)
        return found

    first = usage("1")
    cache.put_pod(make_pod("q", uid="q", on="n1", requests={"cpu": "3"}))
    assert usage("2") is first
    assert first.free[0].tolist() == [4000, 1000, 4000]
    assert first.min_free[0] == 1000
    cache.put_node(make_node("n3"))
    assert len(usage("2").free[0]) == 4


def test_what_is_left_is_not_compared_with_zero_where_all_nodes_have_room() -> None:
    free, divisor = [np.array([-5.0, 300.0])], [np.array([4.0, 4.0])]
    usage = ResourceUsage(divisor, divisor, free, 1, 2, [100.0], 100)
    assert usage.left(0, 1).tolist() == [-105.0, 200.0], "the bound says that no node has less than 100 free"
    assert usage.left(0, 2).tolist() == [0.0, 100.0]


def test_nodes_are_not_sorted_by_the_resources_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    def sorts(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("nodes were sorted")

    monkeypatch.setattr(np, "unique", sorts)
    objects = (
        make_node("both"),
        make_node("no-cpu", allocatable={"memory": "8Gi", "pods": "9"}),
        make_node("neither", allocatable={"pods": "9"}),
    )
    nodes = Nodes(Cache(objects).snapshot())
    assert balanced().score(CycleState(), make_pod("p", requests={"cpu": "4"}), nodes).tolist() == [
        50,
        75,
        75,
    ]
