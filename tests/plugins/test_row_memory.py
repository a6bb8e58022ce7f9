"""Scores kept from pod to pod: equal to new ones, and worked out only where rows have changed."""

from __future__ import annotations

import numpy as np

from moorage.cluster.cache import Cache
from moorage.framework.nodes import Nodes
from moorage.framework.points import Scores
from moorage.plugins.common.row_memory import RowMemory
from tests.builders import make_node, make_pod

CPU = "cpu"


class Scoring:
    """Scores nodes by the cpu in use, and remembers which it was asked about."""

    def __init__(self) -> None:
        self.memory = RowMemory()
        self.asked: list[str] = []

    def __call__(self, nodes: Nodes, kind: str = "small") -> list[int]:
        self.asked.clear()
        scores = self.memory.scores(kind, nodes, self._score).tolist()
        assert scores == nodes.requested(CPU).tolist()
        return scores

    def _score(self, nodes: Nodes) -> Scores:
        self.asked += nodes.names
        return nodes.requested(CPU).copy()


def cache_of(*names: str) -> Cache:
    return Cache(make_node(name) for name in names)


def test_only_nodes_that_have_changed_are_asked_about_again() -> None:
    cache, score = cache_of("a", "b", "c"), Scoring()
    assert score(Nodes(cache.snapshot())) == [0, 0, 0]
    assert score.asked == ["a", "b", "c"]
    cache.put(make_pod("p", uid="p", on="b", requests={CPU: "2"}))
    assert score(Nodes(cache.snapshot())) == [0, 2000, 0]
    assert score.asked == ["b"]
    assert score(Nodes(cache.snapshot(), np.array([2, 1]))) == [0, 2000]
    assert score.asked == []


def test_what_was_given_out_does_not_change_later() -> None:
    cache, score = cache_of("a", "b"), Scoring()
    before = score.memory.scores("small", Nodes(cache.snapshot()), score._score)
    cache.put(make_pod("p", uid="p", on="a", requests={CPU: "1"}))
    score(Nodes(cache.snapshot()))
    assert before.tolist() == [0, 0]


def test_rows_may_come_go_and_move() -> None:
    cache, score = cache_of("a", "b", "c"), Scoring()
    cache.put(make_pod("p", uid="p", on="c", requests={CPU: "2"}))
    score(Nodes(cache.snapshot()))
    cache.remove_node("a")
    cache.put(make_node("d"))
    assert sorted(score(Nodes(cache.snapshot()))) == [0, 0, 2000]
    cache.remove_node("d")
    assert sorted(score(Nodes(cache.snapshot()))) == [0, 2000]


def test_kinds_of_pods_and_clusters_are_kept_apart() -> None:
    cache, score = cache_of("a", "b"), Scoring()
    score(Nodes(cache.snapshot()))
    score(Nodes(cache.snapshot()), "large")
    assert score.asked == ["a", "b"]
    other = cache_of("a", "b")
    other.put(make_pod("p", uid="p", on="a", requests={CPU: "1"}))
    assert score(Nodes(other.snapshot())) == [1000, 0]


def test_a_few_of_many_nodes_are_not_worth_the_rest() -> None:
    cache, score = cache_of(*map(str, range(20))), Scoring()
    score(Nodes(cache.snapshot(), np.array([3, 4])))
    assert score.asked == ["3", "4"]
