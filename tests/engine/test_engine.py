"""One scheduling cycle: filter, score, pick, and what happens at the edges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest

from moorage.api.node import Node
from moorage.cluster.cache import Cache
from moorage.engine.engine import Engine
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.filter_result import ALL, FilterResult
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SKIP, Status, unresolvable, unschedulable
from tests.builders import make_framework, make_node, make_pod
from tests.engine.helpers import Only, framework_of

POD = make_pod("p")


def nodes_named(names: Iterable[str]) -> list[Node]:
    return [make_node(name) for name in names]


class Scored:
    name = "Scored"

    def __init__(self, **scores: int) -> None:
        self.scores = scores

    def score(self, cycle: CycleState, pod: object, nodes: Nodes) -> np.ndarray:
        return np.array([self.scores[name] for name in nodes.names])


def test_six_nodes_of_which_three_pass_and_score_5_10_and_5() -> None:
    cache = Cache(nodes_named("abcdef"))
    framework = framework_of(Only("b", "d", "e"), Scored(b=5, d=10, e=5))
    decision = Engine(seed=0).decide(framework, POD, cache.snapshot())
    assert decision.node == "d"
    assert sorted(decision.feasible.names) == ["b", "d", "e"]
    assert {name: decision.scores_of(name) for name in "bde"} == {
        "b": {"Scored": 5},
        "d": {"Scored": 10},
        "e": {"Scored": 5},
    }
    assert decision.diagnosis.tally() == {"not wanted": 3}
    assert decision.evaluated == 6
    assert decision.message == ""


def test_the_choice_among_the_best_is_seeded_and_fair() -> None:
    snapshot = Cache(nodes_named("abc")).snapshot()
    framework = framework_of(Scored(a=7, b=3, c=7))
    engine = Engine(seed=4)
    chosen = Counter(engine.decide(framework, POD, snapshot).node for _ in range(200))
    assert set(chosen) == {"a", "c"}
    assert min(chosen.values()) > 60
    again = Engine(seed=4)
    assert Counter(again.decide(framework, POD, snapshot).node for _ in range(200)) == chosen


def test_one_feasible_node_is_not_scored() -> None:
    class Never:
        name = "Never"

        def score(self, cycle: CycleState, pod: object, nodes: Nodes) -> np.ndarray:
            raise AssertionError("there is nothing to compare")

    decision = Engine().decide(framework_of(Only("b"), Never()), POD, Cache(nodes_named("abc")).snapshot())
    assert (decision.node, decision.scores) == ("b", None)


def test_no_nodes_at_all() -> None:
    decision = Engine().decide(make_framework(), POD, Cache().snapshot())
    assert (decision.node, decision.message) == (None, "no nodes available to schedule pods")


def test_without_score_plugins_every_node_scores_one_and_the_first_found_will_do() -> None:
    decision = Engine(seed=0).decide(framework_of(Only("a", "b")), POD, Cache(nodes_named("abc")).snapshot())
    assert decision.node in ("a", "b")


def test_each_filter_sees_only_the_nodes_still_alive_and_a_node_stops_at_its_first_refusal() -> None:
    class First(Only):
        name = "First"

    class Second(Only):
        name = "Second"

    first, second = First("a", "b"), Second("b", "c")
    framework = framework_of(first, second, Scored(a=1, b=1, c=1))
    decision = Engine(seed=0).decide(framework, POD, Cache(nodes_named("abc")).snapshot())
    assert second.asked == [["a", "b"]]
    assert decision.node == "b"
    snapshot = decision.feasible.snapshot
    refused_by = {name: decision.diagnosis.of(snapshot.row_of[name]) for name in "ac"}
    assert {name: refusal.plugin for name, refusal in refused_by.items() if refusal} == {
        "a": "Second",
        "c": "First",
    }


class Narrow:
    name = "Narrow"

    def __init__(self, answer: Status | set[str] | None, name: str = "Narrow") -> None:
        self.answer = answer
        self.name = name

    def pre_filter(self, cycle: CycleState, pod: object, nodes: Nodes) -> Status | set[str] | None:
        return self.answer

    def filter(self, cycle: CycleState, pod: object, nodes: Nodes) -> FilterResult:
        return ALL


@pytest.mark.parametrize(
    ("plugins", "message"),
    [
        (
            [Narrow({"a", "x"}), Only()],
            "0/3 nodes are available: 1 not wanted, 2 node(s) didn't satisfy plugin(s) [Narrow].",
        ),
        ([Narrow({"x"})], "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [Narrow]."),
        ([Narrow(set())], "0/3 nodes are available: node(s) didn't satisfy plugin Narrow."),
        (
            [Narrow({"a"}), Narrow({"b"}, "Other")],
            "0/3 nodes are available: node(s) didn't satisfy plugin(s) [Narrow Other] simultaneously.",
        ),
        ([Narrow(unresolvable("never", "ever"))], "0/3 nodes are available: never, ever."),
        ([Narrow(unschedulable("later"))], "0/3 nodes are available: later."),
    ],
)
def test_what_pre_filters_leave(plugins: list[object], message: str) -> None:
    decision = Engine().decide(framework_of(*plugins), POD, Cache(nodes_named("abc")).snapshot())
    assert decision.node is None
    assert decision.message == message


def test_pre_filter_narrows_to_one_node_and_skip_leaves_the_filter_out() -> None:
    class Skipping:
        name = "Skipping"

        def pre_filter(self, cycle: CycleState, pod: object, nodes: Nodes) -> Status:
            return SKIP

        def filter(self, cycle: CycleState, pod: object, nodes: Nodes) -> FilterResult:
            raise AssertionError("skipped")

    decision = Engine().decide(
        framework_of(Skipping(), Narrow({"b"})), POD, Cache(nodes_named("abc")).snapshot()
    )
    assert decision.node == "b"


def test_the_message_counts_reasons_and_sorts_them_as_text() -> None:
    nodes = [make_node(f"n{i}", allocatable={"cpu": "1", "memory": "1Gi", "pods": "0"}) for i in range(10)]
    nodes += [make_node(f"c{i}", unschedulable=True) for i in range(2)]
    pod = make_pod("big", requests={"cpu": "2", "memory": "1Mi"}, preemption_policy="Never")
    decision = Engine().decide(
        make_framework("NodeUnschedulable", "NodeResourcesFit"), pod, Cache(nodes).snapshot()
    )
    assert decision.message == (
        "0/12 nodes are available: 10 Insufficient cpu, 10 Too many pods, 2 node(s) were unschedulable."
    )


def test_a_plugin_that_fails_ends_the_attempt_with_its_name() -> None:
    class Broken:
        name = "Broken"

        def filter(self, cycle: CycleState, pod: object, nodes: Nodes) -> FilterResult:
            raise KeyError("oops")

    decision = Engine().decide(framework_of(Broken()), POD, Cache(nodes_named("ab")).snapshot())
    assert decision.node is None
    assert decision.error is not None
    assert decision.message.startswith("running \"Broken\" filter plugin: KeyError: 'oops' (test_engine.py:")


def test_a_nominated_node_is_tried_first_and_alone() -> None:
    cache = Cache(nodes_named("abc"))
    framework = framework_of(Scored(a=100, b=0, c=0))
    pod = make_pod("p", status={"nominatedNodeName": "b"})
    assert Engine().decide(framework, pod, cache.snapshot()).node == "b"
    elsewhere = make_pod("p", status={"nominatedNodeName": "gone"})
    assert Engine().decide(framework, elsewhere, cache.snapshot()).node == "a"


def test_a_nominated_node_that_does_not_fit_says_why_even_if_it_is_not_asked_again() -> None:
    by_name = {"key": "metadata.name", "operator": "In", "values": ["b"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [by_name]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    pod = make_pod("p", requests={"cpu": "9"}, affinity=affinity, status={"nominatedNodeName": "a"})
    framework = make_framework("NodeResourcesFit", "NodeAffinity")
    decision = Engine().decide(framework, pod, Cache(nodes_named("abc")).snapshot())
    assert decision.message == (
        "0/3 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity], 2 Insufficient cpu."
    )


def test_pods_nominated_to_a_node_count_there_unless_they_are_less_important() -> None:
    cache = Cache(
        [
            make_node("a", allocatable={"cpu": "2", "pods": "9"}),
            make_node("b", allocatable={"cpu": "1", "pods": "9"}),
        ]
    )
    cache.nominations.put(make_pod("waiting", uid="w", requests={"cpu": "2"}, priority=5), "a")
    framework = make_framework("NodeResourcesFit")

    def chosen(priority: int, uid: str = "p") -> list[str]:
        pod = make_pod("p", uid=uid, requests={"cpu": "1"}, priority=priority)
        return Engine(seed=0).decide(framework, pod, cache.snapshot()).feasible.names

    assert chosen(priority=1) == ["b"]
    assert chosen(priority=5) == ["b"]
    assert sorted(chosen(priority=6)) == ["a", "b"]
    assert sorted(chosen(priority=1, uid="w")) == ["a", "b"]


def test_a_node_must_also_pass_without_the_pods_nominated_to_it() -> None:
    cache = Cache([make_node("a", labels={"zone": "z"}), make_node("b")])
    matching_pod = make_pod("friend", uid="f", labels={"app": "db"}, priority=9)
    cache.nominations.put(matching_pod, "a")
    near = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}
            ]
        }
    }
    pod = make_pod("p", affinity=near)
    assert Engine().decide(make_framework("InterPodAffinity"), pod, cache.snapshot()).node is None
    cache.put_pod(make_pod("friend", uid="f", labels={"app": "db"}, on="a"))
    assert Engine().decide(make_framework("InterPodAffinity"), pod, cache.snapshot()).node == "a"
