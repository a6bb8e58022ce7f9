"""Failures of zones and nodes, and that everything is undone between them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.labels import ZONE
from moorage.planning.failures import NODE, plan_failures
from moorage.planning.results import Interrupted
from moorage.planning.trial import Trial
from tests.planning.planning_cases import (
    SETTINGS,
    clusters,
    decoded,
    node,
    nodes_of,
    places_after,
    pod,
    pods_of,
)


@settings(max_examples=40)
@given(clusters())
def test_each_zone_fails_alone_and_its_pods_go_where_there_is_room(cluster: list[Object]) -> None:
    plan, nodes, pods = plan_failures(cluster, SETTINGS), nodes_of(cluster), pods_of(cluster)
    for each in plan.domains:
        gone = {name for name, one in nodes.items() if one.labels[ZONE] == each.name}
        displaced = {name for name, one in pods.items() if one.spec.node_name in gone}
        pending = {one.name for one in each.pending}
        assert pending | {move.name for move in each.moves} == displaced
        assert each.displaced == len(each.moves) + len(pending) == len(displaced)
        places = places_after(cluster, each.moves, pending)
        assert not gone & set(places.values())
        assert sum(one.pods for one in each.reasons) == len(pending)
    assert [each.name for each in plan.domains] == sorted({one.labels[ZONE] for one in nodes.values()})


@settings(max_examples=40)
@given(clusters())
def test_a_trial_is_undone_completely(cluster: list[Object]) -> None:
    trial = Trial(cluster, SETTINGS)
    before = trial.cluster.cache.snapshot().contents()
    mark = trial.mark()
    nodes = trial.nodes()
    again = [trial.evict(each) for each in trial.pods_on(nodes[0])]
    trial.remove_node(nodes[0])
    for each in nodes[1:]:
        trial.cordon(each)
    for one in again:
        trial.place(one)
    for each in nodes[1:2]:
        for one in [trial.evict(one) for one in trial.pods_on(each)]:
            trial.place(one)
    trial.undo_to(mark)
    trial.cluster.cache.validate()
    assert trial.cluster.cache.snapshot().contents() == before


def test_what_stays_pending_is_counted_by_reason() -> None:
    cluster = decoded(
        node("n1", "a"),
        node("n2", "b", cpu="3"),
        pod("p", "2", on="n1"),
        pod("q", "2", on="n1"),
        pod("r", on="n2"),
    )
    plan = plan_failures(cluster, SETTINGS)
    first, second = plan.domains
    assert (first.name, first.nodes, first.displaced, len(first.moves)) == ("a", 1, 2, 1)
    assert [(each.message, each.pods) for each in first.reasons] == [
        (
            "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: "
            "1 No preemption victims found for incoming pod.",
            1,
        )
    ]
    assert (first.usage[0].resource, first.usage[0].requested, first.usage[0].allocatable) == (
        "cpu",
        3000,
        3000,
    )
    assert ([each.name for each in second.pending], second.moves) == (["r"], [])


def test_important_pods_are_placed_first() -> None:
    cluster = decoded(
        node("n1", "a"),
        node("n2", "b", cpu="2"),
        pod("low", "2", on="n1"),
        pod("top", "2", on="n1", priority=9),
    )
    failed = plan_failures(cluster, SETTINGS).domains[0]
    assert [each.name for each in failed.moves] == ["top"]
    assert [each.name for each in failed.pending] == ["low"]


def test_pods_without_a_controller_are_lost_unless_somebody_creates_them_again() -> None:
    cluster = decoded(
        node("n1", "a"), node("n2", "b"), pod("bare", on="n1", kind=""), pod("d", on="n1", kind="DaemonSet")
    )
    lost = plan_failures(cluster, SETTINGS).domains[0]
    assert (lost.lost, lost.displaced, lost.moves) == (["default/bare"], 0, [])
    found = plan_failures(cluster, SETTINGS, recreates_bare=True).domains[0]
    assert (found.lost, [each.node for each in found.moves]) == ([], ["n2"])


def test_by_node_and_by_label() -> None:
    cluster = decoded(node("n1", labels={"rack": "r1"}), node("n2", labels={"rack": "r1"}), node("n3"))
    assert [each.name for each in plan_failures(cluster, SETTINGS, NODE).domains] == ["n1", "n2", "n3"]
    (rack,) = plan_failures(cluster, SETTINGS, "rack").domains
    assert (rack.name, rack.nodes) == ("r1", 2)
    with pytest.raises(InputError, match="no node has the label row"):
        plan_failures(cluster, SETTINGS, "row")


def test_an_interruption_leaves_the_domains_up_to_then() -> None:
    def interrupt(done: int, total: int) -> None:
        raise Interrupted

    plan = plan_failures(decoded(node("n1", "a"), node("n2", "b")), SETTINGS, progress=interrupt)
    assert ([each.name for each in plan.domains], plan.complete) == (["a"], False)
