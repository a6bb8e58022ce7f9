"""Nodes that could be emptied: all pods stay placed, none over capacity, budgets kept at each step."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from moorage.api.base import Object
from moorage.planning.consolidation import CONTROL_PLANE, SCALE_DOWN_DISABLED, plan_consolidation
from moorage.planning.evictions import SAFE_TO_EVICT, Permissions
from moorage.planning.results import Interrupted
from moorage.simulation.shapes import PRICE
from tests.planning.planning_cases import (
    SETTINGS,
    allowed_disruptions,
    apart,
    budget,
    clusters,
    decoded,
    node,
    places_after,
    pod,
    pods_of,
)


@settings(max_examples=60)
@given(clusters())
def test_every_pod_stays_placed_within_capacity_and_budgets(cluster: list[Object]) -> None:
    plan = plan_consolidation(cluster, SETTINGS)
    allowed, pods = allowed_disruptions(cluster), pods_of(cluster)
    emptied = [each.node for each in plan.emptied]
    moves = [move for each in plan.emptied for move in each.moves]
    for count, move in enumerate(moves):
        places_after(cluster, moves[: count + 1])  # After each step, no node is over its capacity.
        assert allowed.get(pods[move.name].labels["app"], 1) >= 1
        assert move.node not in emptied
    places = places_after(cluster, moves)
    assert all(places.values())
    assert not set(places.values()) & set(emptied)
    assert {each.node for each in plan.kept}.isdisjoint(emptied)
    for each in plan.emptied:
        assert {move.source for move in each.moves} <= {each.node}


def _emptied(*manifests: dict[str, Any], **permitted: bool) -> list[str]:
    plan = plan_consolidation(decoded(*manifests), SETTINGS, Permissions(**permitted))
    return [each.node for each in plan.emptied]


def _priced(manifest: dict[str, Any], price: str) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": {PRICE: price}}}


def test_the_node_with_the_fewest_pods_is_emptied_first_and_saves_its_price() -> None:
    cluster = decoded(
        _priced(node("n1", cpu="3"), "0.5"),
        _priced(node("n2", cpu="3"), "0.25"),
        pod("a", on="n1"),
        pod("b", on="n1"),
        pod("c", on="n2"),
    )
    plan = plan_consolidation(cluster, SETTINGS)
    assert [(each.node, [move.name for move in each.moves]) for each in plan.emptied] == [("n2", ["c"])]
    assert [each.node for each in plan.kept] == ["n1"]
    assert (plan.saving_per_hour, plan.cost_per_hour) == (0.25, 0.75)


def test_no_pod_moves_to_a_node_that_is_emptied_later() -> None:
    nodes = [node(f"n{number}", cpu="4") for number in range(4)]
    pods = [pod(f"p{number}", on=f"n{number}") for number in range(4)]
    plan = plan_consolidation(decoded(*nodes, *pods), SETTINGS)
    assert len(plan.emptied) == 3
    (kept,) = (each.node for each in plan.kept)
    assert {move.node for each in plan.emptied for move in each.moves} == {kept}


@pytest.mark.parametrize(
    ("fields", "permission"),
    [
        ({"kind": ""}, "bare"),
        ({"volumes": [{"name": "data", "emptyDir": {}}]}, "empty_dir"),
        ({"annotations": {SAFE_TO_EVICT: "false"}}, "unsafe"),
    ],
)
def test_pods_that_lose_something_are_moved_only_if_asked(fields: dict[str, Any], permission: str) -> None:
    annotations = fields.pop("annotations", {})
    manifest = pod("p", on="n1", **fields)
    manifest["metadata"]["annotations"] = annotations
    full = pod("full", "4", on="n2")
    cluster = node("n1"), node("n2", cpu="5"), manifest, full
    assert _emptied(*cluster) == []
    assert _emptied(*cluster, **{permission: True}) == ["n1"]


def test_a_pod_that_says_it_is_safe_may_lose_its_volume() -> None:
    manifest = pod("p", on="n1", volumes=[{"name": "data", "emptyDir": {}}])
    manifest["metadata"]["annotations"] = {SAFE_TO_EVICT: "true"}
    assert _emptied(node("n1"), node("n2", cpu="5"), manifest, pod("full", "4", on="n2")) == ["n1"]


def test_nodes_that_say_so_and_those_of_the_control_plane_stay() -> None:
    disabled, control = node("n1"), node("n2", labels={CONTROL_PLANE: ""})
    disabled["metadata"]["annotations"] = {SCALE_DOWN_DISABLED: "true"}
    plan = plan_consolidation(decoded(disabled, control, node("n3")), SETTINGS)
    assert [each.node for each in plan.emptied] == ["n3"]
    assert [(each.node, each.reason) for each in plan.kept] == [
        ("n1", f"{SCALE_DOWN_DISABLED} is true"),
        ("n2", "it is of the control plane"),
    ]


def test_pods_of_daemon_sets_go_with_their_node() -> None:
    cluster = node("n1"), node("n2", cpu="1"), pod("agent", on="n1", kind="DaemonSet"), pod("web", on="n2")
    assert _emptied(*cluster) == ["n1"]


def test_a_budget_and_anti_affinity_keep_nodes() -> None:
    pods = [pod(f"p{number}", on=f"n{number}", affinity=apart()) for number in range(2)]
    assert _emptied(node("n0"), node("n1"), *pods) == []
    assert (
        _emptied(node("n0"), node("n1"), pod("p", on="n0"), pod("q", on="n1"), budget("red", minAvailable=2))
        == []
    )


def test_an_interrupted_consolidation_has_what_was_tried() -> None:
    def interrupt(done: int, total: int) -> None:
        raise Interrupted

    plan = plan_consolidation(decoded(node("n1"), node("n2")), SETTINGS, progress=interrupt)
    assert ([each.node for each in plan.emptied], plan.complete) == (["n1"], False)
