"""Hundreds of templates: what is counted and kept for one costs the others nothing, and is exact for all."""

from __future__ import annotations

import random
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from moorage.api.pod import Pod
from moorage.api.selectors import equality_selector
from moorage.cluster.cache import Cache
from moorage.config.args import PodTopologySpreadArgs
from moorage.framework.cache.equivalence_classes import EquivalenceClass
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.plugins import default_registry
from moorage.plugins.pod_topology_spread.constraints import SCHEDULE_ANYWAY, constraints
from moorage.plugins.pod_topology_spread.scoring import IncrementalSpreadScores
from moorage.plugins.pod_topology_spread.topology import Cells
from moorage.plugins.topology_counts import incremental, pod_counters, row_count
from moorage.plugins.topology_counts.incremental import IncrementalCounts
from moorage.plugins.topology_counts.pod_counters import of_classes
from moorage.plugins.topology_counts.pod_matcher import ANY_KEY, PodMatcher
from moorage.plugins.topology_counts.row_count import RowCount
from moorage.plugins.topology_counts.slots import Slots
from tests import builders as b
from tests.builders import (
    HOSTNAME,
    PREFERRED,
    REQUIRED,
    ZONE,
    Manifest,
    make_node,
    make_pod,
    pod_term,
    spread,
)
from tests.plugins.topology_counts.test_incremental_counts import Event, RunningScenario
from tests.strategies import Case

TEMPLATES = 200
PLACES = tuple(f"n{number}" for number in range(8))


def matcher(app: str) -> PodMatcher:
    return PodMatcher(((equality_selector({"app": app}), None),), terminating=True)


def wish(weight: int, app: str) -> Manifest:
    return {"weight": weight, "podAffinityTerm": pod_term(ZONE, {"matchLabels": {"app": app}})}


def template(number: int) -> Manifest:
    """One of hundreds: its constraint or terms are about its own pods, or about those of another one."""
    own, other = f"app-{number}", f"app-{number * 7 % TEMPLATES}"
    selector = {"matchLabels": {"app": own}}
    labels = {"app": own, "tier": f"tier-{number % 3}"}
    fields: dict[str, Any] = {}
    match number % 6:
        case 0:
            fields["topology_spread_constraints"] = [spread(ZONE, selector, hard=False)]
        case 1:
            keys = (HOSTNAME, ZONE)
            fields["topology_spread_constraints"] = [spread(key, selector, hard=False) for key in keys]
        case 2:
            fields["topology_spread_constraints"] = [spread(ZONE, selector, node_taints_policy="Honor")]
        case 3:
            fields["affinity"] = {"podAntiAffinity": {REQUIRED: [pod_term(HOSTNAME, selector)]}}
        case 4:
            fields["affinity"] = {"podAffinity": {PREFERRED: [wish(3, other), wish(5, own)]}}
        case 5:
            tier = {"matchLabels": {"tier": labels["tier"]}}
            fields["affinity"] = {"podAffinity": {REQUIRED: [pod_term(ZONE, tier)]}}
    return b.pod(f"new-{number}", labels=labels, **fields)


def zone_node(name: str, chance: random.Random) -> Manifest:
    labels = {HOSTNAME: name, ZONE: chance.choice("abc")} if chance.random() < 0.9 else {}
    return b.node(name, labels=labels)


def event(chance: random.Random) -> Event:
    place, name = chance.choice(PLACES), f"p{chance.randrange(150)}"
    match chance.choices(("assume", "pod goes", "node", "taints", "node goes"), (80, 14, 2, 2, 2))[0]:
        case "assume":
            return "assume", (chance.randrange(TEMPLATES), name, place)
        case "pod goes":
            return "pod goes", name
        case "node":
            return "put", [zone_node(place, chance)]
        case "taints":
            return "taints", (place, chance.choice(([], ["old:NoSchedule"])))
    return "node goes", place


SMALL = (
    (row_count, "MAX_FEW_ROWS", 2),
    (pod_counters, "_MAX_CELLS", 60 * row_count.FEW_ROWS_CELLS),
    (pod_counters, "_MAX_COUNTERS_PER_GROUP", 8),
    (incremental, "_MAX_RESULT_CELLS", 100),
)
"""Limits that hundreds of templates with few pods reach."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "limits", [pytest.param((), id="usual limits"), pytest.param(SMALL, id="small limits")]
)
def test_hundreds_of_templates_get_the_answers_of_an_unused_plugin_under_random_events(
    monkeypatch: pytest.MonkeyPatch, limits: Sequence[tuple[ModuleType, str, int]]
) -> None:
    for module, limit, value in limits:
        monkeypatch.setattr(module, limit, value)
    chance = random.Random(len(limits))
    running = RunningScenario(
        Case([zone_node(name, chance) for name in PLACES], [template(number) for number in range(TEMPLATES)])
    )
    for _ in range(40):
        for _ in range(chance.randrange(1, 12)):
            running.happen(event(chance))
        for index in chance.sample(range(TEMPLATES), 3):
            running.compare(index)


class Reading(list[Any]):
    """Values by code that record which codes are read."""

    def __init__(self, values: Sequence[Any]) -> None:
        super().__init__(values)
        self.codes: list[int] = []

    def __getitem__(self, code: Any) -> Any:
        self.codes.append(code)
        return super().__getitem__(code)


def crowded(templates: int) -> Cache:
    pods = [make_pod(f"p{number}", on="n0", labels={"app": str(number)}) for number in range(templates)]
    return Cache([make_node("n0"), make_node("n1"), *pods])


def test_a_new_query_looks_at_the_classes_that_it_may_match_and_at_no_others() -> None:
    cache = crowded(100)
    table = cache.snapshot().pods
    counts = of_classes(table)
    for number in range(50):
        counts.counter_for(matcher(str(number)))
        cache.put(make_pod(f"q{number}", on="n1", labels={"app": str(number)}))
        cache.snapshot()
    counts.catch_up()
    table.class_codes.values = reading = Reading(table.class_codes.values)
    counter = counts.counter_for(matcher("70"))
    assert len(set(reading.codes)) == 1
    assert counter.count(ANY_KEY).pods(2).tolist() == [1, 0]


def test_a_pod_is_counted_for_the_queries_that_match_it_and_for_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cache = crowded(3)
    counts = of_classes(cache.snapshot().pods)
    for number in range(300):
        counts.counter_for(matcher(str(number)))
    added: list[tuple[int, int, int]] = []
    monkeypatch.setattr(RowCount, "add", lambda _, *step: added.append(step) or 0)
    cache.put(make_pod("new", on="n1", labels={"app": "2"}))
    cache.put(make_pod("of-a-new-class", on="n1", labels={"app": "299"}))
    cache.snapshot()
    counts.catch_up()
    assert added == [(1, 1, 1), (1, 1, 1)]


def test_thousands_of_templates_with_few_pods_have_counts_at_the_same_time() -> None:
    counts = of_classes(crowded(10).snapshot().pods)
    counters = [counts.counter_for(matcher(str(number))) for number in range(10_000)]
    assert all(counter.is_kept for counter in counters)


def test_counts_with_arrays_are_bounded_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_count, "MAX_FEW_ROWS", 1)
    for module in (row_count, pod_counters):
        monkeypatch.setattr(module, "FEW_ROWS_CELLS", 1)
    monkeypatch.setattr(pod_counters, "_MAX_CELLS", 100)
    names = [f"n{number}" for number in range(50)]
    cache = Cache([make_node(name) for name in names])
    counts = of_classes(cache.snapshot().pods)
    few, many = counts.counter_for(matcher("few")), counts.counter_for(matcher("many"))
    for name in names:
        cache.put(make_pod(f"p-{name}", on=name, labels={"app": "many"}))
    cache.snapshot()
    counts.counter_for(matcher("next"))
    assert (few.is_kept, many.is_kept) == (True, True)
    counts.counter_for(matcher("many-too"))
    for name in names:
        cache.put(make_pod(f"q-{name}", on=name, labels={"app": "many-too"}))
    cache.snapshot()
    counts.counter_for(matcher("last"))
    assert (few.is_kept, many.is_kept) == (False, False)


def test_queries_that_count_the_same_pods_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them costs a step for each of these pods; tenants choose selectors."""
    monkeypatch.setattr(pod_counters, "_MAX_COUNTERS_PER_GROUP", 4)
    counts = of_classes(crowded(2).snapshot().pods)
    queries = [PodMatcher(matcher("0").selectors * times, terminating=True) for times in range(1, 20)]
    other = counts.counter_for(matcher("1"))
    counters = [counts.counter_for(query) for query in queries]
    assert sum(counter.is_kept for counter in counters) <= 4
    assert counters[-1].is_kept
    assert other.is_kept


def test_a_count_is_the_same_in_a_dict_and_in_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(1)
    few = RowCount(is_weighted=True)
    monkeypatch.setattr(row_count, "MAX_FEW_ROWS", 0)
    arrays = RowCount(is_weighted=True)
    steps = [(chance.randrange(9), 1, chance.randrange(-5, 6)) for _ in range(40)]
    slots = Slots(np.array([chance.randrange(4) for _ in range(9)]), 3)
    for count in (few, arrays):
        monkeypatch.setattr(row_count, "MAX_FEW_ROWS", 20 if count is few else 0)
        for row, pods, weight in (*steps, *((row, -pods, -weight) for row, pods, weight in steps[:25])):
            count.add(row, pods, weight)
    assert few.pods(9).tolist() == arrays.pods(9).tolist()
    assert [few.at(row) for row in range(9)] == [arrays.at(row) for row in range(9)]
    assert [dict(zip(*map(np.ndarray.tolist, each.where()), strict=True)) for each in (few, arrays)] == [
        {row: number for row, number in enumerate(few.pods(9).tolist()) if number}
    ] * 2
    (few_weights, few_pods), (weights, pods) = few.by_slot(slots), arrays.by_slot(slots)
    assert (few_weights.tolist(), few_pods) == (weights.tolist(), pods)


def zones(count: int = 4) -> Cache:
    return Cache([make_node(f"n{i}", labels={ZONE: f"z{i % 2}", HOSTNAME: f"n{i}"}) for i in range(count)])


def spreading(app: str, **fields: Any) -> Pod:
    wanted = [spread(ZONE, {"matchLabels": {"app": app}}, hard=False)]
    return make_pod(app, labels={"app": app}, topology_spread_constraints=wanted, **fields)


def test_templates_with_the_same_topology_keys_share_their_arrays_until_a_node_changes() -> None:
    cache = zones()
    counts = IncrementalCounts(cache.snapshot())

    def cells(app: str) -> Cells | None:
        pod = spreading(app)
        soft = constraints(pod, SCHEDULE_ANYWAY, (), counts.snapshot.objects)
        scores = IncrementalSpreadScores(counts, pod, soft, needs_all_keys=True)
        scores.of(Nodes(counts.snapshot))
        return scores._cells

    first = cells("a")
    assert first is not None
    assert cells("b") is first
    cache.put(make_node("n0", labels={ZONE: "z9"}))
    cache.snapshot()
    counts.catch_up()
    assert cells("c") is not first


def test_results_by_row_are_kept_for_the_most_recently_used_templates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(incremental, "_MAX_RESULT_CELLS", 0)
    monkeypatch.setattr(incremental, "_MIN_RESULTS", 3)
    nodes = Nodes(zones().snapshot())
    plugin: Any = default_registry().make("PodTopologySpread", PodTopologySpreadArgs(), Handle())
    kept: list[Any] = []
    for app in "abcde":
        cycle = CycleState()
        cycle.equivalence_class = EquivalenceClass(spreading(app), is_named=False)
        assert plugin.pre_score(cycle, spreading(app), nodes) is None
        kept.append(cycle.equivalence_class.read(plugin._kept))
    assert [memory._spread_scores is not None for memory in kept] == [False, False, True, True, True]
