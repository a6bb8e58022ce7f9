"""Fragmentation, followed change by change, against a plain calculation over all nodes."""

from __future__ import annotations

from collections import Counter
from statistics import median_low

from hypothesis import given
from hypothesis import strategies as st

from moorage.simulation.fragmentation import MAX_SAMPLE_PODS, Fragmentation, Sample
from moorage.simulation.records import Outcome
from moorage.simulation.results import result_of
from moorage.simulation.shapes import NodeShape, nodes_of
from tests.simulation.simulating import arrivals, by_name, manifest, nodes, simulated

RESOURCES = ("cpu", "memory", "nvidia.com/gpu")
AMOUNTS = st.fixed_dictionaries(
    {"cpu": st.integers(0, 8), "memory": st.integers(0, 8)}
) | st.fixed_dictionaries({name: st.integers(1, 4) for name in RESOURCES})
STEPS = st.lists(
    st.tuples(st.just("arrives"), st.just(0), AMOUNTS)
    | st.tuples(st.just("node"), st.integers(0, 3), AMOUNTS | st.just({}))
    | st.tuples(st.just("bound"), st.integers(0, 3), AMOUNTS),
    max_size=30,
)


def typical(arrived: list[dict[str, int]], resource: str) -> dict[str, int]:
    """The medians of pods, when their number was last a power of two."""
    size = 1 << (len(arrived).bit_length() - 1) if arrived else 0
    asking = [each for each in arrived[:size] if each.get(resource)]
    found = {name: median_low([each.get(name, 0) for each in asking]) for name in RESOURCES if asking}
    return {name: amount for name, amount in found.items() if amount}


@given(STEPS)
def test_what_is_of_no_use_is_that_of_nodes_where_the_typical_pod_does_not_fit(
    steps: list[tuple[str, int, dict[str, int]]],
) -> None:
    followed, total = Fragmentation(), Counter[str]()
    for name in RESOURCES:
        followed.follow(name)
    arrived: list[dict[str, int]] = []
    allocatable: dict[int, dict[str, int]] = {}
    used: dict[int, Counter[str]] = {number: Counter() for number in range(4)}
    for what, number, amounts in steps:
        if what == "arrives":
            arrived.append(amounts)
            changes = followed.pod_arrived(amounts)
        elif what == "node":
            allocatable[number] = amounts
            changes = followed.node_changed(f"n{number}", amounts)
        else:
            used[number].update(amounts)
            changes = followed.pod_changed(f"n{number}", amounts, -1)
        for name, change in changes:
            total[name] += change
        for name in RESOURCES:
            needed, unusable = typical(arrived, name), 0
            for node, has in allocatable.items():
                free = {each: has.get(each, 0) - used[node][each] for each in RESOURCES}
                if any(free[each] < amount for each, amount in needed.items()):
                    unusable += max(free[name], 0)
            assert total[name] == unusable


def test_a_sample_stays_small_and_covers_all_pods() -> None:
    sample, taken = Sample(), 0
    for number in range(20 * MAX_SAMPLE_PODS):
        taken += sample.add({"cpu": 1 + number})
    assert taken < 24
    middle = sample.typical("cpu")["cpu"]
    assert abs(middle - 10 * MAX_SAMPLE_PODS) < 2 * MAX_SAMPLE_PODS


def test_the_results_have_it_for_every_resource() -> None:
    gpus = nodes_of([NodeShape("gpu", 1, resources={"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "4"})])
    training = manifest("training", "2", duration="100s")
    devices = {"nvidia.com/gpu": "1"}
    training["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2", **devices}, "limits": devices}
    ended = simulated(
        [*nodes(1, "4"), *gpus],
        arrivals(training, manifest("filler", "3500m", duration="100s", nodeName="node-0")),
        until_seconds=100.0,
    )
    assert {each.outcome for each in by_name(ended).values()} <= {Outcome.RUNNING, Outcome.COMPLETED}
    result = result_of(ended.records, 0, is_complete=True)
    assert result.utilisation["nvidia.com/gpu"].mean == 0.25
    # The typical pod requests 2 cpu: it fits where 2 are free beside 3 GPUs, not where 500m are.
    assert result.fragmentation["cpu"].typical_pod == {"cpu": "2000m"}
    assert result.fragmentation["cpu"].mean == 0.2
    assert result.fragmentation["nvidia.com/gpu"].mean == 0
    assert result.fragmentation["nvidia.com/gpu"].typical_pod == {"cpu": "2000m", "nvidia.com/gpu": "1"}
    assert result.course[0].extended == {"nvidia.com/gpu": 0.25}
    assert result.course[0].fragmentation["cpu"] == 0.2
