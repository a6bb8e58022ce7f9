"""Topology keys that no node has make no arrays and no work; what others make is bounded in total."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from moorage.api.affinity import AffinityTerm, PodTerms
from moorage.api.selectors import Selector, equality_selector
from moorage.cluster.cache import Cache
from moorage.cluster.snapshot import Snapshot
from moorage.plugins.inter_pod_affinity.terms import ExistingAntiAffinity, Incoming
from moorage.plugins.pod_topology_spread.constraints import DO_NOT_SCHEDULE, constraints
from moorage.plugins.pod_topology_spread.filtering import IncrementalSpread
from moorage.plugins.topology_counts import incremental as following_module
from moorage.plugins.topology_counts import pod_counters
from moorage.plugins.topology_counts.incremental import IncrementalCounts, LatestIncrementalCounts
from moorage.plugins.topology_counts.pod_counters import PodCounter
from moorage.plugins.topology_counts.row_count import FEW_ROWS_CELLS
from tests.builders import HOSTNAME, REQUIRED, ZONE, make_node, make_pod, pod_term, spread

KNOWN = tuple(f"known-{number}" for number in range(5))


def incoming(app: str) -> Incoming:
    return Incoming("default", frozenset({("app", app)}), frozenset())


def bound_pod(name: str, keys: Sequence[str], selector: dict[str, Any] | None = None) -> Any:
    """A pod on a node whose anti-affinity terms mean all pods, unless a selector says which."""
    terms = [pod_term(key, selector or {}, namespace_selector={}) for key in keys]
    return make_pod(name, uid=name, on="a", affinity={"podAntiAffinity": {REQUIRED: terms}})


def cluster() -> Cache:
    return Cache([make_node("a", labels=dict.fromkeys(KNOWN, "x")), make_node("b")])


class Counting:
    """A question that counts how many terms it was put to."""

    def __init__(self, app: str = "x") -> None:
        self._question = ExistingAntiAffinity(incoming(app))
        self.labels = self._question.labels
        self.candidates = self._question.candidates
        self.terms_seen = 0

    def __call__(self, terms: PodTerms) -> Any:
        self.terms_seen += len(terms)
        return self._question(terms)


def test_thousands_of_unknown_topology_keys_share_one_array() -> None:
    incremental = IncrementalCounts(cluster().snapshot())
    columns = [incremental.domains(f"unknown-{number}") for number in range(5000)]
    assert len({id(each.slots) for each in columns}) == 1
    incremental.domains(KNOWN[0])
    assert list(incremental._domains) == [KNOWN[0]]


def test_arrays_for_known_topology_keys_are_bounded_the_least_recently_used_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(following_module, "_MAX_CELLS", 0)
    monkeypatch.setattr(following_module, "_MIN_COLUMNS", 3)
    incremental = IncrementalCounts(cluster().snapshot())
    for key in (*KNOWN[:3], KNOWN[0], KNOWN[3]):
        incremental.domains(key)
    assert list(incremental._domains) == [KNOWN[2], KNOWN[0], KNOWN[3]]


def test_spread_constraints_with_unknown_keys_share_their_arrays() -> None:
    wanted = [spread(f"unknown-{number}", {"matchLabels": {"app": "x"}}) for number in range(15)]
    pod = make_pod("p", topology_spread_constraints=[spread(KNOWN[0], {}), *wanted])
    snapshot = cluster().snapshot()
    hard = constraints(pod, DO_NOT_SCHEDULE, (), snapshot.objects)
    parts = IncrementalSpread(IncrementalCounts(snapshot), pod, hard)._parts
    assert len({id(part.spread.eligible) for part in parts}) == 1
    assert len({id(part._counts._slots) for part in parts}) == 2, "one for the known key, one for all others"


def test_terms_of_pods_on_nodes_with_thousands_of_unknown_topology_keys_are_not_looked_at() -> None:
    cache = cluster()
    for pod in range(10):
        cache.put(bound_pod(f"p{pod}", [f"unknown-{pod}-{number}" for number in range(100)]))
    counts = IncrementalCounts(cache.snapshot()).terms
    query = Counting()
    counter = counts.counter_for(query)
    cache.put(bound_pod("late", [*(f"late-{number}" for number in range(99)), KNOWN[0]]))
    cache.snapshot()
    counts.catch_up()
    assert (query.terms_seen, list(counter.by_key)) == (1, [KNOWN[0]])


def held(counts: Any) -> int:
    return sum(len(counter.by_key) for counter in counts._counters.values())


def counted_rows(counter: PodCounter) -> int:
    return sum(len(count.where()[0]) for count in counter.by_key.values())


def test_counts_for_topology_keys_are_bounded_in_total_and_freed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pod_counters, "_MAX_CELLS", 12 * FEW_ROWS_CELLS)
    cache = cluster()
    cache.put(bound_pod("p", KNOWN))
    follower = LatestIncrementalCounts()
    incremental = follower.of(cache.snapshot())
    asked = []
    for number in range(20):
        asked.append(incremental.terms.counter_for(ExistingAntiAffinity(incoming(str(number)))))
        assert held(incremental.terms) <= 12 + len(KNOWN)
    assert asked[-1].is_kept
    assert all(counted_rows(counter) for counter in asked[-3:]), "what is in use during an attempt is there"
    follower.of(cache.snapshot())
    assert {counter.is_kept: bool(counted_rows(counter)) for counter in asked} == {True: True, False: False}


def test_a_pod_with_many_topology_keys_that_means_all_others_cannot_multiply_their_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pod_counters, "_MAX_CELLS", 12 * FEW_ROWS_CELLS)
    cache = cluster()
    counts = IncrementalCounts(cache.snapshot()).terms
    for number in range(10):
        counts.counter_for(ExistingAntiAffinity(incoming(str(number))))
    cache.put(bound_pod("p", KNOWN))
    cache.snapshot()
    counts.catch_up()
    assert held(counts) == 0
    assert set(counts.counter_for(ExistingAntiAffinity(incoming("0"))).by_key) == set(KNOWN)


def test_new_terms_on_nodes_are_put_to_a_bounded_number_of_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_counters, "_MAX_MATCHES", 50)
    cache = cluster()
    counts = IncrementalCounts(cache.snapshot()).terms
    queries = [Counting(str(number)) for number in range(10)]
    for each in queries:
        counts.counter_for(each)
    for number in range(3):
        cache.put(bound_pod(f"p{number}", KNOWN[:2] * (number + 1)))
    cache.snapshot()
    counts.catch_up()
    assert sum(each.terms_seen for each in queries) <= 50
    assert set(counts.counter_for(queries[0]).by_key) == set(KNOWN[:2])


@dataclass(frozen=True)
class Watched(Selector):
    """A selector that notes who matched it."""

    matched: list[int] = field(default_factory=list)
    number: int = 0

    def matches(self, labels: Mapping[str, str]) -> bool:
        self.matched.append(self.number)
        return self.number > 0


def test_terms_after_the_first_that_keeps_a_pod_away_from_a_domain_are_not_matched() -> None:
    matched: list[int] = []
    everywhere = equality_selector({})
    terms = PodTerms(
        required_anti=tuple(
            AffinityTerm(key, Watched((), matched, number), frozenset(), everywhere)
            for number, key in enumerate([ZONE] * 100 + [HOSTNAME])
        )
    )
    assert dict(ExistingAntiAffinity(incoming("x"))(terms)) == {ZONE: 1, HOSTNAME: 1}
    assert matched == [0, 1, 100]


def test_terms_with_an_unknown_key_are_found_from_when_a_node_has_it_and_leave_nothing() -> None:
    cache = cluster()
    cache.put(bound_pod("p", ["rack"]))

    def found(snapshot: Snapshot) -> set[int]:
        return snapshot.pods.terms_codes.may_match([("app", "x")])

    assert found(cache.snapshot()) == set()
    cache.put(make_node("b", labels={"rack": "r"}))
    assert found(cache.snapshot()) == {0}
    cache.put(make_node("b"))
    cache.put(bound_pod("q", ["rack", "row"]))
    cache.snapshot()
    for name in "pq":
        cache.remove(bound_pod(name, ["rack"]))
    codes = cache.snapshot().pods.terms_codes
    assert (codes._by_label, codes._by_missing_key) == ({}, {})
