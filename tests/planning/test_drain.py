"""Drains on paper: budgets are kept, pods are where there is room, and obstacles are named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.planning.budgets import SEVERAL_BUDGETS, DisruptionBudgets
from moorage.planning.drain import plan_drain
from moorage.planning.evictions import BARE, LOCAL_STORAGE, Permissions
from moorage.planning.results import Interrupted
from tests.builders import ZONE
from tests.planning.planning_cases import (
    SETTINGS,
    allowed_disruptions,
    budget,
    clusters,
    decoded,
    node,
    nodes_of,
    places_after,
    pod,
    pods_of,
)


@settings(max_examples=60)
@given(clusters(), st.data())
def test_a_drain_keeps_budgets_and_capacity(cluster: list[Object], data: st.DataObject) -> None:
    names = data.draw(
        st.lists(st.sampled_from(sorted(nodes_of(cluster))), min_size=1, max_size=2, unique=True)
    )
    plan = plan_drain(cluster, names, SETTINGS)
    pending = {each.name for each in plan.pending}
    places = places_after(cluster, plan.moves, pending)
    staying = {each.name for each in plan.blocked}
    assert {name for name, place in places.items() if place in names} == staying
    assert not {move.node for move in plan.moves} & set(names)
    pods = pods_of(cluster)
    for app, allowed in allowed_disruptions(cluster).items():
        evicted = [
            each
            for each in (*pending, *(move.name for move in plan.moves))
            if pods[each].labels["app"] == app
        ]
        missing = sum(pods[name].labels["app"] == app for name in pending)
        blocked = [each.name for each in plan.blocked if each.budget == app]
        assert missing <= allowed
        assert allowed or not evicted
        # What a budget forbids, it still forbids in the end: nothing else would have had to wait.
        assert all(pods[name].labels["app"] == app for name in blocked)
        assert not blocked or missing == allowed
    assert {each.budget for each in plan.blocked} <= allowed_disruptions(cluster).keys()
    assert plan == plan_drain(cluster, names, SETTINGS)


def test_a_budget_waits_for_the_pod_that_is_created_again() -> None:
    cluster = decoded(
        node("n1"), node("n2"), pod("a", on="n1"), pod("b", on="n1"), budget("red", minAvailable=1)
    )
    plan = plan_drain(cluster, ["n1"], SETTINGS)
    assert [(each.name, each.source, each.node) for each in plan.moves] == [
        ("a", "n1", "n2"),
        ("b", "n1", "n2"),
    ]
    assert plan.succeeds


def test_a_pod_that_stays_pending_uses_its_budget_up() -> None:
    cluster = decoded(
        node("n1"),
        node("n2", cpu="1"),
        pod("a", "2", on="n1"),
        pod("b", on="n1"),
        budget("red", maxUnavailable=1),
    )
    plan = plan_drain(cluster, ["n1"], SETTINGS)
    assert [each.name for each in plan.pending] == ["a"]
    assert [(each.name, each.reason, each.budget) for each in plan.blocked] == [
        ("b", "budget red needs 1 healthy pods and has 1", "red")
    ]
    assert plan.pending[0].message.startswith(
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unsched"
    )


def test_kubectl_refuses_pods_that_would_be_lost_and_ignores_those_of_nodes() -> None:
    volumes = [{"name": "data", "emptyDir": {}}]
    cluster = decoded(
        node("n1"),
        node("n2"),
        pod("bare", on="n1", kind=""),
        pod("data", on="n1", volumes=volumes),
        pod("agent", on="n1", kind="DaemonSet"),
        pod("leaving", on="n1", terminating=True),
    )
    plan = plan_drain(cluster, ["n1"], SETTINGS)
    assert [(each.name, each.reason) for each in plan.blocked] == [("bare", BARE), ("data", LOCAL_STORAGE)]
    assert (plan.moves, plan.ignored) == ([], 1)
    plan = plan_drain(cluster, ["n1"], SETTINGS, Permissions(bare=True, empty_dir=True))
    assert [each.name for each in plan.moves] == ["bare", "data"]
    assert plan.succeeds


def test_a_pod_that_would_preempt_says_where() -> None:
    cluster = decoded(
        node("n1"), node("n2", cpu="2"), pod("high", "2", on="n1", priority=100), pod("low", "2", on="n2")
    )
    plan = plan_drain(cluster, ["n1"], SETTINGS)
    assert [(each.name, each.preempts_on) for each in plan.pending] == [("high", "n2")]
    assert plan.moves == []


def test_a_pod_gets_the_zone_of_its_new_node() -> None:
    """Binding adds the zone as a label: what is created again does not have it."""
    manifest = pod("a", on="n1")
    manifest["metadata"]["labels"][ZONE] = "a"
    plan = plan_drain(decoded(node("n1", "a"), node("n2", "b"), manifest), ["n1"], SETTINGS)
    assert [each.node for each in plan.moves] == ["n2"]


def test_what_is_left_is_counted_without_the_drained_nodes() -> None:
    plan = plan_drain(decoded(node("n1"), node("n2"), pod("a", on="n1")), ["n1"], SETTINGS)
    assert [(each.resource, each.requested, each.allocatable) for each in plan.usage] == [
        ("cpu", 1000, 4000),
        ("memory", 0, 8 << 30),
    ]


def test_an_interrupted_drain_has_the_moves_up_to_then() -> None:
    def interrupt(done: int, total: int) -> None:
        raise Interrupted

    cluster = decoded(node("n1"), node("n2"), node("n3"), pod("a", on="n1"), pod("b", on="n2"))
    plan = plan_drain(cluster, ["n1", "n2"], SETTINGS, progress=interrupt)
    assert ([each.name for each in plan.moves], plan.complete) == (["a"], False)


def test_an_unknown_node_is_an_error() -> None:
    with pytest.raises(InputError, match="there is no node n9"):
        plan_drain(decoded(node("n1")), ["n9"], SETTINGS)


def _refusal(status: dict[str, Any], *others: dict[str, Any], **spec: Any) -> str:
    ready = {"conditions": [{"type": "Ready", "status": "False"}]}
    cluster = decoded(
        pod("a", on="n1", status=ready), pod("b", on="n1"), budget("red", status=status, **spec), *others
    )
    return DisruptionBudgets(cluster).refusal(pods_of(cluster)["a"])[0]


def test_the_eviction_api_lets_pods_go_that_are_not_ready() -> None:
    """By default only while enough others are healthy; AlwaysAllow: in any case."""
    enough = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 2}
    few = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 2, "expectedPods": 2}
    assert _refusal(enough) == ""
    assert _refusal(few) == "budget red needs 2 healthy pods and has 1"
    assert _refusal(few, unhealthyPodEvictionPolicy="AlwaysAllow") == ""
    second = {**budget("red"), "metadata": {"name": "second", "namespace": "default"}}
    assert _refusal(enough, second) == SEVERAL_BUDGETS


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"minAvailable": 2}, 1),
        ({"minAvailable": "50%"}, 1),
        ({"maxUnavailable": "50%"}, 2),
        ({"maxUnavailable": 0}, 0),
        ({"minAvailable": 5}, 0),
        ({}, 3),
    ],
)
def test_a_budget_without_a_status_counts_the_pods_that_are_there(spec: dict[str, Any], allowed: int) -> None:
    """Percentages are rounded up, as the disruption controller does."""
    cluster = decoded(*(pod(name, on="n1") for name in "abc"), budget("red", **spec))
    budgets, pods = DisruptionBudgets(cluster), pods_of(cluster)
    evicted = 0
    for each in pods.values():
        if not budgets.refusal(each)[0]:
            budgets.evicted(each)
            evicted += 1
    assert evicted == allowed
