"""Counts that follow the pods, one case at a time; sequences of events are in test_followed_counts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from moorage.api.selectors import equality_selector
from moorage.cluster.cache import Cache
from moorage.cluster.pod_class import PodClass
from moorage.plugins.inter_pod_affinity.terms import ExistingTermWeights, Incoming
from moorage.plugins.topology_counts import pod_counters
from moorage.plugins.topology_counts.pod_counters import PodCounter, of_classes, of_terms
from moorage.plugins.topology_counts.pod_matcher import ANY_KEY, PodMatcher
from moorage.plugins.topology_counts.row_count import FEW_ROWS_CELLS, RowCount
from moorage.plugins.topology_counts.slots import Slots
from tests.builders import HOSTNAME, PREFERRED, ZONE, make_node, make_pod, pod_term


def matcher(labels: Mapping[str, str]) -> PodMatcher:
    return PodMatcher(((equality_selector(labels), None),), terminating=True)


A, B = matcher({"app": "a"}), matcher({"app": "b"})


def weights(count: RowCount, rows: int) -> list[int]:
    by_slot, _ = count.by_slot(Slots(np.arange(rows), rows))
    return by_slot[:-1].tolist()


def pods(counter: PodCounter, rows: int) -> list[int]:
    return counter.count(ANY_KEY).pods(rows).tolist()


def test_counts_follow_pods_that_come_and_go_on_old_nodes_and_new_ones() -> None:
    cache = Cache([make_node("n0"), make_pod("p0", on="n0", labels={"app": "a"})])
    counts = of_classes(cache.snapshot().pods)
    counter = counts.counter_for(A)
    assert pods(counter, 1) == [1]
    cache.put(make_node("n1"))
    for name, place, app in (("p1", "n1", "a"), ("p2", "n1", "a"), ("p3", "n1", "b")):
        cache.put(make_pod(name, on=place, labels={"app": app}))
    cache.remove(make_pod("p0", on="n0"))
    cache.snapshot()
    counts.catch_up()
    assert pods(counter, 2) == [0, 2]
    cache.put(make_pod("p3", on="n1", labels={"app": "a"}))
    cache.snapshot()
    counts.catch_up()
    assert pods(counter, 2) == [0, 3]
    assert counts.counter_for(A) is counter


def test_pods_that_were_away_when_a_question_came_count_when_they_are_back() -> None:
    """They come back as the very same objects: what was known of them then is not all there is to know."""
    cache = Cache([make_node("n0"), make_pod("p0", on="n0", labels={"app": "b"})])
    counts = of_classes(cache.snapshot().pods)
    counts.counter_for(A)
    cache.put(make_pod("p1", on="n0", labels={"app": "b"}))
    cache.snapshot()
    counts.catch_up()
    cache.remove_node("n0")
    cache.snapshot()
    counter = counts.counter_for(B)
    assert pods(counter, 1) == [0]
    cache.put(make_node("n0"))
    cache.snapshot()
    counts.catch_up()
    assert pods(counter, 1) == [2]


def test_weights_are_added_up_by_topology_key() -> None:
    def wish(weight: int, key: str) -> dict[str, object]:
        return {"weight": weight, "podAffinityTerm": pod_term(key, {"matchLabels": {"app": "a"}})}

    queries = {PREFERRED: [wish(3, ZONE), wish(4, ZONE), wish(5, HOSTNAME), wish(6, "unknown")]}
    cache = Cache([make_node("n0", labels={ZONE: "z", HOSTNAME: "n0"})])
    counts = of_terms(cache.snapshot().pods)
    incoming = Incoming("default", frozenset({("app", "a")}), frozenset())
    counter = counts.counter_for(ExistingTermWeights(incoming, required_weight=1))
    assert not counter.by_key
    for name in ("p0", "p1"):
        cache.put(make_pod(name, on="n0", affinity={"podAffinity": queries}))
    cache.snapshot()
    counts.catch_up()
    assert {key: weights(count, 1) for key, count in counter.by_key.items()} == {
        ZONE: [14],
        HOSTNAME: [10],
    }
    assert {key: count.pods(1).tolist() for key, count in counter.by_key.items()} == {
        ZONE: [2],
        HOSTNAME: [2],
    }
    again = of_terms(cache.snapshot().pods).counter_for(ExistingTermWeights(incoming, required_weight=1))
    assert weights(again.by_key[ZONE], 1) == [14], "counted at once or one by one"


def test_what_is_of_use_is_kept_and_what_was_not_for_longest_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pod_counters, "_MAX_CELLS", 4 * FEW_ROWS_CELLS)
    cache = Cache([make_node("n0")])
    counts = of_classes(cache.snapshot().pods)
    asked = [counts.counter_for(matcher({"app": letter})) for letter in "abcd"]
    counts.touch(asked[0])
    counts.counter_for(matcher({"app": "e"}))
    assert [counter.is_kept for counter in asked] == [True, False, False, True]
    cache.put(make_pod("p", on="n0", labels={"app": "b"}))
    cache.snapshot()
    assert pods(counts.counter_for(B), 1) == [1], "a dropped counter is made again"


class RecordingQuery:
    """A question that remembers whom it was put to."""

    def __init__(self, matcher: PodMatcher) -> None:
        self._matcher = matcher
        self.labels = matcher.labels
        self.asked: list[str] = []
        self.candidates = matcher.candidates

    def __call__(self, each: PodClass) -> tuple[tuple[str, int], ...]:
        self.asked.append(dict(each.labels)["app"])
        return self._matcher(each)


def test_each_class_is_evaluated_once_and_only_where_it_can_count() -> None:
    cache = Cache([make_node("n0"), make_pod("a0", on="n0", labels={"app": "a"})])
    counts = of_classes(cache.snapshot().pods)
    query = RecordingQuery(A)
    counter = counts.counter_for(query)
    assert query.asked == ["a"]
    for name, labels in (("a1", {"app": "a"}), ("a2", {"app": "a", "x": "y"}), ("b0", {"app": "b"})):
        cache.put(make_pod(name, on="n0", labels=labels))
    cache.snapshot()
    counts.catch_up()
    for name in ("a1", "a2"):
        cache.remove(make_pod(name, on="n0"))
    cache.snapshot()
    counts.catch_up()
    assert query.asked == ["a", "a"], "once for each of the two classes that have the label"
    assert pods(counter, 1) == [1]
