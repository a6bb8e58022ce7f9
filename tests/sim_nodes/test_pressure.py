from __future__ import annotations

import pytest

from moorage_cluster.nodes.pressure import Observation, Pressure
from moorage_cluster.nodes.settings import HARD_EVICTION
from moorage_cluster.nodes.thresholds import ThresholdError, parse_thresholds

MIB = 1 << 20
GIB = 1 << 30


def test_the_kubelets_own_thresholds() -> None:
    values = {each.signal: each.value.of(100 * GIB) for each in parse_thresholds(HARD_EVICTION)}
    assert values == {
        "memory.available": 100 * MIB,
        "allocatableMemory.available": 100 * MIB,
        # A tenth in single precision, as the kubelet reckons.
        "nodefs.available": 10737418400,
        "nodefs.inodesFree": 5368709200,
        "imagefs.available": 16106128000,
        "imagefs.inodesFree": 5368709200,
    }


@pytest.mark.parametrize("value", ["0%", "100%"])
def test_some_percentages_switch_a_threshold_off(value: str) -> None:
    assert parse_thresholds(f"nodefs.available<{value}") == ()


@pytest.mark.parametrize(
    ("hard", "soft", "grace", "reclaim", "message"),
    [
        ("cpu.available<1", "", "", "", "unsupported eviction signal cpu.available"),
        ("memory.available<0", "", "", "", "eviction threshold memory.available must be positive: 0"),
        ("memory.available<120%", "", "", "", "must be <= 100%: 120%"),
        ("memory.available<-1%", "", "", "", "must be >= 0%: -1%"),
        ("memory.available=1Gi", "", "", "", "is not of the form SIGNAL<VALUE"),
        ("memory.available<much", "", "", "", "is not a quantity"),
        (
            "",
            "memory.available<1Gi",
            "",
            "",
            "grace period must be specified for the soft eviction threshold",
        ),
        ("", "memory.available<1Gi", "memory.available=-1s", "", "must be a positive value"),
        ("", "", "", "memory.available=0%", "minimum reclaim memory.available must be positive: 0%"),
        ("", "", "", "memory.available=-1Mi", "negative eviction minimum reclaim specified"),
    ],
)
def test_thresholds_that_cannot_be_read(hard: str, soft: str, grace: str, reclaim: str, message: str) -> None:
    with pytest.raises(ThresholdError, match=message):
        parse_thresholds(hard, soft, grace, reclaim)


def _memory(available: int) -> dict[str, Observation]:
    return {"memory.available": Observation(available * MIB, 1024 * MIB)}


def test_a_condition_stays_for_a_while_after_it_was_last_seen() -> None:
    pressure = Pressure(parse_thresholds("memory.available<100Mi"), transition_seconds=300)
    assert [each.signal for each in pressure.observe(0, _memory(99))] == ["memory.available"]
    assert pressure.conditions == ("MemoryPressure",)
    assert pressure.observe(10, _memory(100)) == []
    assert pressure.conditions == ("MemoryPressure",)
    pressure.observe(299.9, _memory(100))
    assert pressure.conditions == ("MemoryPressure",)
    pressure.observe(300, _memory(100))
    assert pressure.conditions == ()
    assert pressure.is_clear


def test_a_soft_threshold_is_acted_on_only_after_its_grace_period() -> None:
    thresholds = parse_thresholds("", "memory.available<200Mi", "memory.available=1m30s")
    pressure = Pressure(thresholds, 300)
    assert pressure.observe(0, _memory(150)) == []
    assert pressure.conditions == ("MemoryPressure",)
    assert pressure.observe(80, _memory(150)) == []
    assert len(pressure.observe(90, _memory(150))) == 1
    assert pressure.observe(100, _memory(250)) == []
    assert pressure.observe(110, _memory(150)) == [], "the grace period begins anew"


def test_a_threshold_that_was_met_wants_more_to_be_reclaimed() -> None:
    thresholds = parse_thresholds("memory.available<100Mi", minimum_reclaim="memory.available=50Mi")
    pressure = Pressure(thresholds, 300)
    assert pressure.observe(0, _memory(120)) == []
    assert len(pressure.observe(10, _memory(90))) == 1
    assert len(pressure.observe(20, _memory(120))) == 1
    assert pressure.observe(30, _memory(150)) == []
    assert pressure.observe(40, _memory(120)) == []


def test_memory_comes_before_everything_else() -> None:
    pressure = Pressure(parse_thresholds("pid.available<10%,nodefs.available<10%,memory.available<10%"), 300)
    short = Observation(1, 100)
    due = pressure.observe(0, {"pid.available": short, "nodefs.available": short, "memory.available": short})
    assert due[0].resource == "memory"
    assert sorted(pressure.conditions) == ["DiskPressure", "MemoryPressure", "PIDPressure"]
