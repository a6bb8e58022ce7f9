"""Simulations step by step: by the scheduler, and by policies that decide in its place."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from moorage import Cluster, Generator, InputError, PlacementError
from moorage.research.own_thread import LoopThread
from moorage.research.results import SimulatedWorkload
from moorage.research.stepping import SteppedSimulation
from tests.builders import node
from tests.research.making import pod

TWO_NODES = [node("big"), node("small", allocatable={"cpu": "1", "memory": "1Gi", "pods": "3"})]


def simulation(*pods: dict[str, Any], nodes: Iterable[dict[str, Any]] = TWO_NODES, **given: Any) -> Any:
    return Cluster.from_yaml(list(nodes)).simulation(list(pods), **given)


def arriving(name: str, at: str, cpu: str = "100m", **fields: Any) -> dict[str, Any]:
    made = pod(name, cpu, **fields)
    made["metadata"]["annotations"] = {"moorage.io/arrival": at}
    return made


def nodes_of(result: SimulatedWorkload) -> dict[str, str]:
    return {each.name: each.node for each in result.placements}


def test_a_policy_places_the_pods_that_the_queue_pops() -> None:
    with simulation(pod("one"), pod("two", "2"), arriving("three", "10s")) as stepped:
        assert stepped.step().name == "one"
        assert (stepped.feasible(), stepped.now, stepped.attempts) == (["big", "small"], 0.0, 1)
        assert [each.name for each in stepped.pending] == ["one", "two"]
        stepped.place("small")
        assert {each.name: each.pods for each in stepped.nodes} == {"big": (), "small": ("default/one",)}
        assert [each.name for each in stepped.pending] == ["two"]
        assert stepped.step().name == "two"
        with pytest.raises(PlacementError) as refused:
            stepped.place("small")
        assert str(refused.value) == (
            "pod default/two: does not fit on small: NodeResourcesFit: Insufficient cpu"
        )
        with pytest.raises(PlacementError, match="there is no such node"):
            stepped.place("none")
        stepped.place("big")
        assert (stepped.step().name, stepped.now) == ("three", 10.0)
        assert stepped.decide().node == "big"
        stepped.place("small")
        assert stepped.step() is None
        assert stepped.is_over
    assert nodes_of(stepped.result()) == {"one": "small", "two": "big", "three": "small"}


def test_declined_pods_come_again_after_their_backoff() -> None:
    with simulation(pod("one")) as stepped:
        stepped.step()
        stepped.decline()
        assert ([each.name for each in stepped.pending], stepped.now) == (["one"], 0.0)
        assert (stepped.step().name, stepped.attempts) == ("one", 2)
        assert stepped.now >= 1.0
        assert stepped.waited_seconds == stepped.now
        assert stepped.waiting_pod_seconds == pytest.approx(stepped.now)
        stepped.place("big")
    [record] = stepped.result().placements
    assert (record.attempts, record.node, record.message) == (2, "big", "")


def test_pods_that_fit_nowhere_wait_for_what_helps_them() -> None:
    leaving = {**pod("first", "4")}
    leaving["metadata"]["annotations"] = {"moorage.io/duration": "50s"}
    with simulation(leaving, arriving("second", "1s", "2")) as stepped:
        stepped.step()
        stepped.place("big")
        stepped.step()
        assert stepped.feasible() == []
        stepped.decline()
        assert (stepped.step().name, stepped.now >= 50.0) == ("second", True)


def test_pending_pods_may_be_placed_out_of_turn() -> None:
    with simulation(pod("one"), pod("two"), arriving("later", "1h")) as stepped:
        stepped.step()
        stepped.place("big", "two")
        assert stepped.pod.name == "one"
        with pytest.raises(InputError, match="no pod default/two waits for a node"):
            stepped.place("big", "two")
        with pytest.raises(InputError, match="no pod default/later waits for a node"):
            stepped.decline("later")
        stepped.decline()
        with pytest.raises(InputError, match="no pod is at hand"):
            stepped.place("small")
        stepped.place("small", "default/one")
        assert (stepped.pending, stepped.step().name) == ([], "later")


def test_what_is_not_decided_is_left_to_the_scheduler() -> None:
    with simulation(pod("one", "2"), pod("two"), pod("three")) as stepped:
        stepped.step()
        expected = stepped.decide()
        stepped.step()
        stepped.place("small")
        result = stepped.run()
    assert nodes_of(result) == {"one": expected.node, "two": "small", "three": "big"}
    assert result.complete


def test_it_runs_to_a_time_and_goes_on() -> None:
    with simulation(pod("one"), arriving("two", "20s"), until="1m") as stepped:
        result = stepped.run("10s")
        assert (result.seconds, result.complete, nodes_of(result)) == (10.0, False, {"one": "big"})
        assert stepped.run(20.5).pods["Running"] == 2
        assert stepped.step() is None
        assert (stepped.now, stepped.result().complete) == (60.0, True)


@pytest.mark.parametrize("restarts_pods", [True, False])
def test_stepping_and_running_have_the_results_of_a_simulation(restarts_pods: bool) -> None:
    cluster = Cluster.from_shapes("count=3,cpu=4,memory=32Gi")
    workload = Generator(40, 1.0, 20.0, priorities=(0, 0, 1000))
    options: Any = {
        "seed": 3,
        "restarts_pods": restarts_pods,
        "script": [{"at": "20s", "drain": "node-1"}, {"at": "40s", "recover": "node-1"}],
    }
    expected = cluster.simulate(workload, **options)
    assert min(expected.pods["Preempted"], expected.pods["Evicted"]) > 0
    with cluster.simulation(workload, **options) as ran, cluster.simulation(workload, **options) as stepped:
        assert msgspec.json.encode(ran.run()) == msgspec.json.encode(expected)
        while stepped.step() is not None:
            pass
        assert msgspec.json.encode(stepped.result()) == msgspec.json.encode(expected)


def random_policy(stepped: SteppedSimulation, random: Random) -> None:
    """Do anything that is possible, and some that is not."""
    while (asked := stepped.step()) is not None and stepped.attempts < 4:
        choice = random.random()
        others = stepped.pending
        chosen = random.choice(others) if choice < 0.3 else asked
        if choice < 0.1:
            stepped.decline(chosen)
        elif choice < 0.9:
            name = random.choice([each.name for each in stepped.nodes])
            if name in stepped.feasible(chosen):
                stepped.place(name, chosen)
            else:
                with pytest.raises(PlacementError):
                    stepped.place(name, chosen)
        check(stepped)


def check(stepped: SteppedSimulation) -> None:
    """Nothing is over its capacity, and what passes the filters is what has room."""
    for state in stepped.nodes:
        assert all(state.free(resource) >= 0 for resource in ("cpu", "memory")), state
        assert len(state.pods) <= 4
    keys = [each.key for each in stepped.pending]
    placed = [key for state in stepped.nodes for key in state.pods]
    assert len({*keys, *placed}) == len(keys) + len(placed)
    for each in stepped.pending[:3]:
        amounts = each.spec.containers[0].resources.requests
        room = [
            state.name
            for state in stepped.nodes
            if len(state.pods) < 4
            and state.free("cpu") * 10**6 >= amounts["cpu"]
            and state.free("memory") * 10**9 >= amounts["memory"]
        ]
        assert sorted(stepped.feasible(each)) == sorted(room)


@hypothesis_settings(max_examples=20)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 15), interval=st.sampled_from((0.0, 1.0, 30.0)))
def test_policies_never_break_what_holds_in_production(seed: int, count: int, interval: float) -> None:
    cluster = Cluster.from_shapes(
        "name=a,count=2,cpu=4,memory=4Gi,pods=4", "name=b,count=1,cpu=2,memory=16Gi,pods=4"
    )
    results = []
    for _ in range(2):
        with cluster.simulation(Generator(count, interval, 20.0), seed=seed) as stepped:
            random_policy(stepped, Random(seed))
            stepped._scheduler.queue.validate()
            stepped._scheduler.cache.validate()
            results.append(stepped.result())
    assert msgspec.json.encode(results[0]) == msgspec.json.encode(results[1])


def test_gated_pods_are_not_decided_about() -> None:
    gated = pod("gated", scheduling_gates=[{"name": "later"}])
    with simulation(gated, pod("one")) as stepped:
        stepped.step()
        assert [each.name for each in stepped.pending] == ["one", "gated"]
        with pytest.raises(PlacementError, match="pod default/gated: a plugin keeps it from the queue"):
            stepped.place("big", "gated")


def test_plugins_may_reject_a_pod_when_it_is_to_be_bound() -> None:
    class Unreserved:
        name = "Unreserved"

        def reserve(self, cycle: Any, pod: Any, node_name: str) -> Any:
            from moorage import unschedulable

            return unschedulable("not here") if node_name == "small" else None

        def unreserve(self, cycle: Any, pod: Any, node_name: str) -> None:
            return None

    with Cluster.from_yaml(TWO_NODES, plugins=[Unreserved]).simulation(pod("one")) as stepped:
        stepped.step()
        with pytest.raises(PlacementError, match="was rejected on small when it was to be bound there"):
            stepped.place("small")
        stepped.place("big", "one")
    assert nodes_of(stepped.result()) == {"one": "big"}


def test_errors_end_a_simulation(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("arrival,cpu\n0,1\n5,much\n")
    stepped = Cluster.from_yaml(TWO_NODES).simulation(trace)
    stepped.step()
    with pytest.raises(InputError, match=r"trace.csv: line 3: cpu: "):
        stepped.step()
    assert stepped.is_over
    with pytest.raises(InputError, match="the simulation is over"):
        stepped.feasible("pod-2")


def test_closed_and_forgotten_simulations_leave_no_thread() -> None:
    before = threading.active_count()
    first, second = simulation(pod("one")), simulation(pod("one"))
    first.step()
    first.close()
    first.close()
    assert first.result().pods["Created"] == 1
    second.step()
    threads = {each for each in threading.enumerate() if each.name.startswith("moorage-research")}
    del second
    gc.collect()
    for each in threads:
        each.join(60)
    assert threading.active_count() == before


def test_an_interrupted_call_is_cancelled() -> None:
    ended, main = [], threading.get_ident()

    async def work() -> None:
        signal.pthread_kill(main, signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    # Shells let processes in the background ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with LoopThread() as thread, pytest.raises(KeyboardInterrupt):
            thread.run(work())
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended == [True]
