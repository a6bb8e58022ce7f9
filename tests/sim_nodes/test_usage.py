from __future__ import annotations

import pytest

from moorage_cluster.nodes.usage import Curve, usage_model

MIB = 1 << 20
MILLI = 1_000_000


@pytest.mark.parametrize(
    ("text", "seconds", "cpu", "memory"),
    [
        pytest.param("cpu=200m,memory=100Mi", 60, 200 * MILLI, 100 * MIB, id="constant"),
        pytest.param("memory=100Mi+1Mi/s", 60, 10 * MILLI, 160 * MIB, id="grows-by-the-second"),
        pytest.param("memory=100Mi+60Mi/m", 30, 10 * MILLI, 130 * MIB, id="grows-by-the-minute"),
        pytest.param("cpu=200m~100m/60s", 15, 300 * MILLI, 20 * MIB, id="swings-up"),
        pytest.param("cpu=200m~100m/60s", 45, 100 * MILLI, 20 * MIB, id="swings-down"),
        pytest.param("cpu=0.1+10m/s~50m/40s", 10, 250 * MILLI, 20 * MIB, id="grows-and-swings"),
        pytest.param("", 60, 10 * MILLI, 20 * MIB, id="says-nothing-and-requests-nothing"),
    ],
)
def test_usage_over_time(text: str, seconds: float, cpu: int, memory: int) -> None:
    usage = usage_model(text, {}).at(seconds)
    assert (usage.cpu_nano, usage.memory) == (cpu, memory)


def test_what_is_not_given_follows_from_the_requests() -> None:
    model = usage_model("", {"requests": {"cpu": "1", "memory": "100Mi"}}, cpu_share=0.5, memory_share=0.8)
    assert (model.at(0).cpu_nano, model.at(0).memory) == (500 * MILLI, 80 * MIB)


def test_a_default_is_never_above_the_limit() -> None:
    model = usage_model("", {"limits": {"memory": "8Mi"}})
    assert model.at(0).memory == 8 * MIB
    assert model.out_of_memory_seconds is None


def test_cpu_above_the_limit_is_throttled() -> None:
    model = usage_model("cpu=3", {"limits": {"cpu": "500m"}})
    assert model.at(10).cpu_nano == 500 * MILLI


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("memory=100Mi+1Mi/s", 100.0, id="some-time"),
        pytest.param("memory=201Mi", 0.0, id="at-once"),
        pytest.param("memory=200Mi", None, id="never-at-the-limit"),
    ],
)
def test_when_memory_runs_out(text: str, seconds: float | None) -> None:
    assert usage_model(text, {"limits": {"memory": "200Mi"}}).out_of_memory_seconds == seconds


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("gpu=1", "does not say the usage of one of cpu, memory", id="unknown-resource"),
        pytest.param("memory=1Mi~1Mi/1s", "only cpu swings", id="swinging-memory"),
        pytest.param("cpu=much", "is not a quantity", id="no-quantity"),
        pytest.param("memory=100Mi+1Mi/d", "is not a usage", id="unknown-unit-of-time"),
    ],
)
def test_usage_that_cannot_be_read(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        usage_model(text, {})


def test_constant_curves_are_known_as_such() -> None:
    assert Curve(5).is_constant
    assert not Curve(5, per_second=1).is_constant
    assert not Curve(5, swing=1).is_constant
