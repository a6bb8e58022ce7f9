"""Generated workloads: arrival processes, run times, weights, devices and gangs."""

from __future__ import annotations

import hashlib
from collections import Counter
from itertools import pairwise
from statistics import fmean, median

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.decode import InputError
from moorage.cli.scenario_options import GeneratedPods
from moorage.emulation.kubernetes_version import V1_37
from moorage.scheduler.encoding import plain
from moorage.simulation.generator import Generator
from moorage.simulation.random_times import Arrivals, Durations
from moorage.simulation.records import Outcome
from moorage.simulation.run import run_simulation
from moorage.simulation.scenario import ScenarioSource, read_scenario
from moorage.simulation.settings import load_settings
from moorage.simulation.shapes import NodeShape
from moorage.simulation.weighted import Weighted, parse_choices


def times(process: Arrivals, count: int = 2000, interval: float = 2.0, **given: int) -> list[float]:
    generator = Generator(count, interval, arrival_process=process, **given)  # type: ignore[arg-type]
    return [each.at_seconds for each in generator.arrivals(5)]


@pytest.mark.parametrize("process", list(Arrivals))
def test_arrivals_are_in_order_and_have_their_mean(process: Arrivals) -> None:
    found = times(process, 4000, 100.0)  # More than four days.
    assert found[0] == 0
    assert found == sorted(found)
    assert found[-1] / 4000 == pytest.approx(100, rel=0.1)
    assert times(process, 5, 0.0) == [0.0] * 5


def test_steady_arrivals_have_equal_pauses() -> None:
    assert times(Arrivals.STEADY, 4) == [0, 2, 4, 6]


def test_bursts_arrive_at_once() -> None:
    assert set(Counter(times(Arrivals.BURSTS, 100, burst_size=5)).values()) == {5}


def test_diurnal_arrivals_are_most_at_noon() -> None:
    hours = Counter(int(at % 86_400 / 3600) for at in times(Arrivals.DIURNAL, 8640, 10.0))
    assert sum(hours[each] for each in (11, 12)) > 5 * sum(hours[each] for each in (0, 23))


def test_run_times_have_their_distribution() -> None:
    def seconds(durations: Durations) -> list[float]:
        generator = Generator(4000, 1.0, 300.0, durations=durations)
        return [each.duration_seconds or 0.0 for each in generator.arrivals(3)]

    assert set(seconds(Durations.FIXED)) == {300.0}
    for durations, middle in ((Durations.EXPONENTIAL, 208), (Durations.LOGNORMAL, 182)):
        found = seconds(durations)
        assert fmean(found) == pytest.approx(300, rel=0.08)
        assert median(found) == pytest.approx(middle, rel=0.08)


def test_what_is_generated_by_default_stays_the_same() -> None:
    pods = [(each.at_seconds, plain(each.pod), each.duration_seconds) for each in Generator(100).arrivals(7)]
    assert hashlib.sha256(msgspec.json.encode(pods)).hexdigest()[:16] == "0dca1220c3f6ad92"


def test_weights_say_how_often_a_value_is_chosen() -> None:
    given = GeneratedPods(
        3000, 1.0, 60.0, "100m:6,2:3,4:1", "1Gi", "0:9,100", resources=["nvidia.com/gpu=0:3,1:1"]
    )
    generator = given.generator()
    assert generator is not None
    requests = [each.pod.spec.containers[0].resources.requests for each in generator.arrivals(1)]
    cpu = Counter(each["cpu"].milli_value for each in requests)
    shares = [cpu[amount] / 3000 for amount in (100, 2000, 4000)]
    assert shares == pytest.approx([0.6, 0.3, 0.1], abs=0.03)
    devices = Counter(each["nvidia.com/gpu"].value if "nvidia.com/gpu" in each else 0 for each in requests)
    assert devices[0] / 3000 == pytest.approx(0.75, abs=0.03)
    assert set(devices) == {0, 1}
    priorities = Counter(each.pod.spec.priority for each in generator.arrivals(1))
    assert priorities[100] / 3000 == pytest.approx(0.1, abs=0.02)


def test_values_may_have_weights() -> None:
    assert parse_choices("1,2", "--x", int) == [1, 2]
    assert parse_choices("1:0.5,2", "--x", int) == Weighted([1, 2], [0.5, 1.0])


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"cpu": "1:0"}, "--pod-cpu: 1:0: expected a weight above 0 after the colon"),
        ({"cpu": "1:many"}, "--pod-cpu: 1:many: expected a weight above 0 after the colon"),
        ({"memory": "-1Gi"}, "--pod-memory: -1Gi is negative"),
        ({"priorities": "high"}, "--priorities: high: expected integers"),
        ({"resources": ["gpu=1"]}, "--pod-resource: gpu=1: expected NAME=AMOUNTS"),
        ({"resources": ["a.b/gpu=x"]}, "--pod-resource a.b/gpu: "),
    ],
)
def test_bad_options_are_named(changed: dict[str, str], problem: str) -> None:
    given = {"cpu": "1", "memory": "1Gi", "priorities": "0", **changed}
    with pytest.raises(InputError) as error:
        GeneratedPods(1, 1.0, 1.0, **given).generator()  # type: ignore[arg-type]
    assert str(error.value).startswith(problem)


@given(
    count=st.integers(1, 300),
    size=st.integers(2, 9),
    share=st.sampled_from([0.1, 0.5, 1.0]),
    process=st.sampled_from(list(Arrivals)),
)
def test_the_pods_of_a_gang_arrive_together(count: int, size: int, share: float, process: Arrivals) -> None:
    generator = Generator(count, gang_share=share, gang_size=size, arrival_process=process)
    arrivals = list(generator.arrivals(1))
    assert [each.pod.name for each in arrivals] == [f"pod-{number}" for number in range(count)]
    assert all(one.at_seconds <= other.at_seconds for one, other in pairwise(arrivals))
    members: dict[str, list[int]] = {}
    for number, each in enumerate(arrivals):
        group = each.pod.spec.scheduling_group
        if group is not None:
            members.setdefault(group.pod_group_name or "", []).append(number)
    for name, numbers in members.items():
        assert numbers == list(range(numbers[0], numbers[0] + size))
        gang = [arrivals[number] for number in numbers]
        assert len({(each.at_seconds, each.duration_seconds) for each in gang}) == 1
        assert [each.group is not None for each in gang] == [True] + [False] * (size - 1)
        made = gang[0].group
        assert made is not None
        assert (made.name, made.spec.priority) == (name, gang[0].pod.spec.priority)
        assert made.spec.scheduling_policy.gang is not None
        assert made.spec.scheduling_policy.gang.min_count == size
    if share == 1.0:
        assert len(arrivals) - sum(map(len, members.values())) == count % size


def test_gangs_have_their_share_of_the_pods() -> None:
    generator = Generator(8000, gang_share=0.3, gang_size=8)
    in_gangs = sum(each.pod.spec.scheduling_group is not None for each in generator.arrivals(2))
    assert in_gangs / 8000 == pytest.approx(0.3, abs=0.04)


@pytest.mark.parametrize("has_controllers", [False, True])
def test_gangs_get_nodes_at_once(has_controllers: bool) -> None:
    version = V1_37.with_gates({"GenericWorkload": True})
    source = ScenarioSource(
        shapes=[NodeShape("node", 3, resources={"cpu": "4", "memory": "16Gi"})],
        generated=Generator(
            60, 10.0, 60.0, cpu=("1", "2"), memory=("1Gi",), priorities=(0, 5), gang_share=0.6, gang_size=4
        ),
        controllers=has_controllers,
    )
    run = run_simulation(read_scenario(source, version), load_settings(version=version, seed=3))
    placed = run.result.placements
    assert Counter(each.outcome for each in placed)[Outcome.COMPLETED] == 60
    generated = source.generated
    assert generated is not None
    waited = {each.name: each.bound_at for each in placed}
    gangs: dict[str, set[float | None]] = {}
    for each in generated.arrivals(3):
        group = each.pod.spec.scheduling_group
        if group is not None:
            gangs.setdefault(group.pod_group_name or "", set()).add(waited[each.pod.name])
    assert len(gangs) > 5
    assert all(len(times) == 1 for times in gangs.values())


def test_gangs_need_the_feature_gate() -> None:
    source = ScenarioSource(
        shapes=[NodeShape(count=1, resources={"cpu": "1", "memory": "1Gi"})],
        generated=Generator(8, gang_share=1.0),
    )
    with pytest.raises(InputError, match=r"--gangs: needs --emulated-version 1\.37"):
        read_scenario(source)
