"""What counts as a leak: growth in the second half that is neither small nor chance."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from random import Random

import pytest

from moorage_cluster.soak.samples import (
    BLOCKS,
    DESCRIPTORS,
    OBJECTS,
    RESIDENT,
    Latencies,
    Sample,
    percentiles,
)
from moorage_cluster.soak.trends import MIN_SAMPLES, trend, trends
from moorage_cluster.soak.usage import Inside, Usage

PODS = range(0, 30_000, 250)
NOISE = Random(1)

CASES: dict[str, tuple[str, Callable[[int], float], bool]] = {
    "nothing changes": (DESCRIPTORS, lambda pods: 12.0, False),
    "a cache fills in the first half": (RESIDENT, lambda pods: min(300.0, 100.0 + pods / 100), False),
    "a kilobyte for each pod": (RESIDENT, lambda pods: 300.0 + pods / 1024, True),
    "a kilobyte for each pod, with noise": (
        RESIDENT,
        lambda pods: 300.0 + pods / 1024 + NOISE.gauss(0, 2),
        True,
    ),
    "noise alone": (RESIDENT, lambda pods: 300.0 + NOISE.gauss(0, 5), False),
    "histories that fill and are halved": (RESIDENT, lambda pods: 300.0 + pods % 2600 / 20, False),
    "a hundred bytes for each pod": (RESIDENT, lambda pods: 300.0 + pods / 10_240, False),
    "a block for each pod": (BLOCKS, lambda pods: 1e6 + pods, True),
    "a block for each ten pods": (BLOCKS, lambda pods: 1e6 + pods / 10, False),
    "a descriptor for each hundred pods": (DESCRIPTORS, lambda pods: 10 + pods // 100, True),
    "an object for each pod": (f"{OBJECTS}builtins.dict", lambda pods: 5e4 + pods, True),
    "memory shrinks": (RESIDENT, lambda pods: 600.0 - pods / 100, False),
}


@pytest.mark.parametrize("case", CASES)
def test_leaks(case: str) -> None:
    what, value, leaks = CASES[case]
    found = trend(what, [(pods, value(pods)) for pods in PODS])
    assert found.is_leak == leaks, found


def test_without_pods_nothing_can_be_said() -> None:
    found = trend(RESIDENT, [(0, memory) for memory in range(40)])
    assert (found.slope, found.error, found.is_leak) == (0.0, inf, False)


def sample(number: int, objects: dict[str, int]) -> Sample:
    usage = Usage(100.0, 10, number * 1.0, Inside(1000, 20, objects))
    return Sample(number * 60.0, number * 250, number * 250, 0, usage, 4.0, 4.0, Latencies(0, 0, 0))


def test_all_measures_and_all_types_have_a_trend() -> None:
    samples = [sample(number, {"a.B": number * 250} if number > 5 else {}) for number in range(40)]
    found = {each.what: each for each in trends(samples)}
    assert set(found) == {
        "resident memory (MiB)",
        "memory blocks",
        "descriptors",
        "tasks",
        "pods without a node",
        "objects of a.B",
    }
    assert [name for name, each in found.items() if each.is_leak] == ["objects of a.B"]
    assert found["objects of a.B"].slope == pytest.approx(10_000)


def test_too_few_samples_have_no_trends() -> None:
    assert list(trends([sample(number, {}) for number in range(MIN_SAMPLES - 1)])) == []


def test_percentiles() -> None:
    assert percentiles([]) == Latencies(0.0, 0.0, 0.0)
    assert percentiles([3.0]) == Latencies(3.0, 3.0, 3.0)
    assert percentiles([float(each) for each in range(100)]) == Latencies(50.0, 90.0, 99.0)
