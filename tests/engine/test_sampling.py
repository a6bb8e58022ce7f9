"""percentageOfNodesToScore: which nodes are searched, and where the next search begins."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.labels import BETA_ZONE, REGION, ZONE
from moorage.api.node import Node
from moorage.cluster.cache import Cache
from moorage.engine.decision import Decision
from moorage.engine.engine import Engine
from moorage.engine.sampling import MIN_FEASIBLE_NODES
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.filter_result import FilterResult
from moorage.framework.interface.nodes import Nodes
from moorage.framework.runtime.framework import Framework
from tests.builders import make_node, make_pod
from tests.engine.helpers import Only, framework_of
from tests.oracle.search import Search
from tests.strategies import examples

POD = make_pod("p")


class Flat:
    name = "Flat"

    def score(self, cycle: CycleState, pod: object, nodes: Nodes) -> np.ndarray:
        return np.zeros(len(nodes), int)


class ByName:
    """Narrows the search to some nodes, and refuses some of them, as a test tells it to."""

    name = "ByName"

    def __init__(self) -> None:
        self.among: set[str] | None = None
        self.refused: set[str] = set()

    def pre_filter(self, cycle: CycleState, pod: object, nodes: Nodes) -> set[str] | None:
        return self.among

    def filter(self, cycle: CycleState, pod: object, nodes: Nodes) -> FilterResult:
        keep = np.array([name not in self.refused for name in nodes.names], bool)
        return keep.view(type(nodes.unschedulable)).otherwise("refused")


def numbered(count: int) -> list[Node]:
    """Nodes n0, n1, … without zones."""
    return [make_node(f"n{i}") for i in range(count)]


def halves(count: int) -> list[Node]:
    """Nodes of which the first half is in zone z1 and the second half in zone z2."""
    return [make_node(f"n{i:03}", labels={ZONE: "z1" if i < count // 2 else "z2"}) for i in range(count)]


def zones_of(decision: Decision) -> Counter[str]:
    return Counter(node.labels[ZONE] for node in decision.feasible)


def refused_by(decision: Decision) -> set[str]:
    names = decision.feasible.snapshot.names
    return {name for row, name in enumerate(names) if decision.diagnosis.of(row) is not None}


@pytest.mark.parametrize(
    ("percentage", "nodes", "expected"),
    [
        (0, 300, 300),
        (100, 300, 300),
        (50, 300, 150),
        (10, 300, MIN_FEASIBLE_NODES),
        (10, 2000, 200),
        (1, 50, 50),
    ],
)
def test_a_share_of_the_nodes_is_never_fewer_than_a_hundred(
    percentage: int, nodes: int, expected: int
) -> None:
    engine = Engine(percentage_of_nodes_to_score=percentage, seed=0)
    decision = engine.decide(framework_of(Flat()), POD, Cache(numbered(nodes)).snapshot())
    assert len(decision.feasible) == expected
    assert decision.evaluated == expected


def test_a_share_starts_where_the_last_one_ended_and_a_profile_may_ask_for_its_own() -> None:
    snapshot = Cache(numbered(300)).snapshot()
    engine = Engine(percentage_of_nodes_to_score=100, seed=0)
    framework = framework_of(Flat(), percentage=40)
    seen = [set(engine.decide(framework, POD, snapshot).feasible.names) for _ in range(3)]
    assert [len(names) for names in seen] == [120, 120, 120]
    assert not seen[0] & seen[1]
    assert len(seen[0] | seen[1] | seen[2]) == 300


def test_each_of_several_profiles_has_its_own_share() -> None:
    snapshot = Cache(numbered(300)).snapshot()
    engine = Engine(percentage_of_nodes_to_score=100, seed=0)
    profiles = [framework_of(Flat(), percentage=40), framework_of(Flat())]
    seen = [len(engine.decide(each, POD, snapshot).feasible) for each in profiles * 2]
    assert seen == [120, 300, 120, 300]


def test_a_quarter_of_400_nodes_in_two_zones_has_as_many_of_each() -> None:
    snapshot = Cache(halves(400)).snapshot()
    engine, framework = Engine(percentage_of_nodes_to_score=25, seed=0), framework_of(Flat())
    decisions = [engine.decide(framework, POD, snapshot) for _ in range(4)]
    assert [zones_of(decision) for decision in decisions] == [{"z1": 50, "z2": 50}] * 4
    assert len({name for decision in decisions for name in decision.feasible.names}) == 400


def test_the_first_nodes_of_all_zones_are_searched_before_the_second_ones() -> None:
    labels = [{REGION: "r", ZONE: "a"}, {ZONE: "a"}, {REGION: "r", BETA_ZONE: "a", ZONE: "b"}, {}]
    nodes = [make_node(f"n{i}", labels=labels[i // 50]) for i in range(200)]
    framework = framework_of(Flat(), percentage=1)
    decision = Engine(seed=0).decide(framework, POD, Cache(nodes).snapshot())
    # The third group of nodes is in the zone of the first: the deprecated label decides.
    assert decision.feasible.names[:6] == ["n0", "n50", "n150", "n1", "n51", "n151"]
    assert decision.feasible.names[-1] == "n33"


def test_a_node_that_changes_its_zone_moves_when_the_next_node_comes() -> None:
    cache = Cache(halves(200))
    framework = framework_of(Flat(), percentage=1)

    def first(count: int) -> list[str]:
        return Engine(seed=0).decide(framework, POD, cache.snapshot()).feasible.names[:count]

    assert first(3) == ["n000", "n100", "n001"]
    cache.put_node(make_node("n000", labels={ZONE: "z2"}))
    assert first(3) == ["n000", "n100", "n001"]
    cache.put_node(make_node("new", labels={ZONE: "z3"}))
    assert first(4) == ["n001", "n100", "new", "n002"]


def test_only_nodes_that_were_searched_count_as_refused() -> None:
    names = [f"n{i}" for i in range(400)]
    framework = framework_of(Only(*names[::2]), Flat(), percentage=1)
    decision = Engine(seed=0).decide(framework, POD, Cache(numbered(400)).snapshot())
    assert len(decision.feasible) == MIN_FEASIBLE_NODES
    # The search ends at n200, the first node that passes and is not needed.
    assert refused_by(decision) == set(names[1:200:2])


def test_a_nominated_node_that_is_refused_counts_though_the_search_does_not_reach_it() -> None:
    plugin = ByName()
    plugin.refused = {"n250"}
    framework, engine = framework_of(plugin, Flat(), percentage=1), Engine(seed=0)
    pod = make_pod("p", status={"nominatedNodeName": "n250"})
    snapshot = Cache(numbered(300)).snapshot()
    decision = engine.decide(framework, pod, snapshot)
    assert (refused_by(decision), decision.evaluated) == ({"n250"}, 101)
    assert engine.decide(framework, POD, snapshot).feasible.names[0] == "n101"


def test_a_pod_for_one_node_alone_moves_the_start_by_one() -> None:
    plugin = ByName()
    framework, engine = framework_of(plugin, Flat(), percentage=1), Engine(seed=0)
    snapshot = Cache(numbered(300)).snapshot()
    plugin.among = {"n7"}
    assert engine.decide(framework, POD, snapshot).node == "n7"
    plugin.among = None
    assert engine.decide(framework, POD, snapshot).feasible.names[0] == "n1"


NAMES = [f"n{i:03}" for i in range(140)]
ZONES: tuple[dict[str, str], ...] = (
    {},
    {ZONE: "a"},
    {ZONE: "b"},
    {ZONE: "c"},
    {REGION: "r", ZONE: "a"},
    {BETA_ZONE: "b", ZONE: "a"},
)


NODES = {(name, zone): make_node(name, labels=labels) for name in NAMES for zone, labels in enumerate(ZONES)}
SOME = st.tuples(st.integers(0, 9), st.integers(1, 9))
"""A slice of the nodes: the first one, and the step to the next."""
KIND = st.sampled_from(("decide", "decide", "narrowed", "put", "remove", "replace"))
Step = tuple[str, tuple[int, int], tuple[int, int], int]
STEPS = st.lists(st.tuples(KIND, SOME, SOME, st.integers(0, len(ZONES) - 1)), max_size=10)


def names_of(some: tuple[int, int]) -> set[str]:
    first, step = some
    return set(NAMES[first::step])


class Compared:
    """A cache with an engine, and the oracle, to which the same things happen."""

    def __init__(self, framework: Framework, plugin: ByName, enough: int | None) -> None:
        self.cache, self.engine, self.search = Cache(), Engine(seed=0), Search()
        self.framework, self.plugin, self.enough = framework, plugin, enough

    def put(self, name: str, zone: int) -> None:
        node = NODES[name, zone % len(ZONES)]
        self.cache.put_node(node)
        self.search.put(node)

    def remove(self, name: str) -> None:
        self.cache.remove_node(name)
        self.search.remove(name)

    def decide(self, refused: set[str], among: set[str] | None) -> None:
        self.plugin.refused, self.plugin.among = refused, among
        snapshot = self.cache.snapshot()
        if len(snapshot) == 0:
            return
        decision = self.engine.decide(self.framework, POD, snapshot)
        found, missed = self.search.find(
            lambda nodes: self.enough or max(nodes * 80 // 100, 100), among, lambda name: name not in refused
        )
        assert decision.feasible.names == found
        assert refused_by(decision) == set(missed)


@given(st.booleans(), STEPS)
@examples(30)
def test_samples_are_those_of_a_search_that_visits_nodes_one_at_a_time(
    is_scored: bool, steps: list[Step]
) -> None:
    plugin = ByName()
    framework = framework_of(plugin, *([Flat()] if is_scored else []), percentage=80)
    compared = Compared(framework, plugin, None if is_scored else 1)
    for place, name in enumerate(NAMES):
        compared.put(name, place * place)
    compared.decide(set(), None)  # From here on the order is kept.
    for kind, first, second, zone in steps:
        some, others = names_of(first), names_of(second)
        if kind in ("decide", "narrowed"):
            compared.decide(some - others, others if kind == "narrowed" else None)
        for place, name in enumerate(sorted(some)):
            if kind in ("remove", "replace"):
                compared.remove(name)
            if kind in ("put", "replace"):
                compared.put(name, zone + place)
    compared.decide(set(), None)
    compared.decide(names_of((0, 3)), None)
    compared.cache.validate()
