"""What is compared of whole runs: waiting times, nodes, pods that are created again, early ends."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.pod import Pod
from moorage.comparison.attribution import Cause
from moorage.comparison.differences import waiting_changes
from moorage.comparison.event_log import EventLog, FollowedLog
from moorage.comparison.identities import Identities, PodIdentity
from moorage.comparison.node_use import mean_shares
from moorage.comparison.run import Variant, compare_runs
from moorage.comparison.tables import figures_of, pending_of, summary_of, tables_of
from moorage.emulation.kubernetes_version import V1_37
from moorage.simulation.generator import Generator
from moorage.simulation.records import NodeRecord, PodRecord
from moorage.simulation.run import RunningSimulation, run_simulation
from moorage.simulation.scenario import Scenario, ScenarioSource, read_scenario
from moorage.simulation.script import ScriptEvent
from moorage.simulation.shapes import NodeShape, nodes_of
from tests.comparison.comparing import compared, fit, moves, settings
from tests.simulation.simulating import arrivals, manifest, nodes

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SHAPES = [
    NodeShape(name, 1, resources={"cpu": cpu, "memory": "32Gi"})
    for name, cpu in (("large", "16"), ("small", "4"))
]
LARGE_AND_SMALL = [*nodes_of(SHAPES)]
LEAST, MOST = settings(fit("LeastAllocated")), settings(fit("MostAllocated"))


def test_observing_a_run_changes_nothing_of_it() -> None:
    """With preemption, pods that are created again, and pods that wait."""
    generator = Generator(30, 5.0, 120.0, ("1", "2", "4"), ("1Gi",), (0, 0, 1000))
    scenario = Scenario(nodes(3, "6"), generator.arrivals, 30)
    variants = [Variant("a", LEAST, scenario), Variant("b", MOST, scenario)]
    runs = compare_runs(variants, lambda simulation: None).runs
    assert runs["a"].result == run_simulation(scenario, LEAST).result
    assert runs["b"].result == run_simulation(scenario, MOST).result
    assert runs["b"].result.pods["Preempted"] > 0


def test_pods_that_are_created_again_are_known_by_their_origin() -> None:
    def pod(name: str, uid: str, generated_from: str) -> Pod:
        (made,) = (each.pod for each in arrivals(manifest(name)))
        return replace(made, metadata=replace(made.metadata, uid=uid, generate_name=generated_from))

    identities = Identities()
    for made in (pod("a", "1", "a-"), pod("b", "2", "b-"), pod("a-00007", "3", "a-")):
        identities.add(made)
    assert identities.of("3") == PodIdentity("default", "a", 1)
    identities.remove(pod("a", "1", "a-"))
    identities.add(pod("a", "4", "a-"))  # The name is free again.
    records = [PodRecord("default", name, 0.0) for name in ("a", "b", "a-00007", "a", "other")]
    found = [identity for identity, _ in identities.records(records)]
    assert [(each.origin, each.incarnation) for each in found] == [
        ("a", 0),
        ("b", 0),
        ("a", 1),
        ("a", 2),
        ("other", 0),
    ]
    assert (str(found[0]), str(found[2])) == ("default/a", "default/a (created again, 1)")


def test_pods_that_are_created_again_in_both_runs_are_compared_although_their_names_differ() -> None:
    """The second configuration has one more pod on the node that is removed, and generates a name for it."""
    workload = arrivals(
        manifest("a", "1"),
        manifest("low", "12", at="2m"),
        manifest("high", "16", at="5m", duration="5m", priorityClassName="system-node-critical"),
    )
    script = [ScriptEvent(60, "remove", "small-0", "test")]
    runs = compared(LARGE_AND_SMALL, workload, LEAST, MOST, script=script)
    (found,) = runs.comparison.differences
    one, other = (
        [each.name for each in runs.runs[name].result.placements if each.name.startswith("low")]
        for name in "ab"
    )
    assert one[0] == other[0]
    assert one[1] != other[1]
    assert set(moves(found)) == {"a"}
    assert found.unmoved == 4  # `a` and `low` again, and `high`.
    assert [each.pod for each in found.bound_only_here] == ["default/a (created again, 2)"]
    assert found.bound_only_before == []


@given(st.lists(st.tuples(st.integers(0, 50), st.none() | st.integers(0, 50)), min_size=1, max_size=12))
def test_changes_of_waiting_times(waits: list[tuple[int, int | None]]) -> None:
    def pods(seconds: list[int | None]) -> dict[PodIdentity, PodRecord]:
        return {
            PodIdentity("default", f"p{at}"): PodRecord("default", f"p{at}", 10.0, each and 10.0 + each)
            if each != 0
            else PodRecord("default", f"p{at}", 10.0, 10.0)
            for at, each in enumerate(seconds)
        }

    found = waiting_changes(pods([one for one, _ in waits]), pods([other for _, other in waits]), 3)
    changes = sorted(other - one for one, other in waits if other is not None)
    if not changes:
        assert found is None
        return
    assert found is not None
    assert (found.pods, found.longer, found.shorter) == (
        len(changes),
        sum(each > 0 for each in changes),
        sum(each < 0 for each in changes),
    )
    assert found.mean == pytest.approx(sum(changes) / len(changes), abs=1e-6)
    assert found.p50 == changes[len(changes) // 2]
    assert [each.change for each in found.most_longer] == [each for each in changes[::-1] if each > 0][:3]
    assert [each.change for each in found.most_shorter] == [each for each in changes if each < 0][:3]


def test_the_share_of_a_node_is_that_of_the_time_it_was_there() -> None:
    there = [NodeRecord("n", 2000, 0.0, 100.0), NodeRecord("n", 2000, 300.0), NodeRecord("empty", 0, 0.0)]
    pods = [
        PodRecord("default", "a", 0.0, 50.0, 100.0, "n", cpu_milli=1000),
        PodRecord("default", "b", 0.0, 300.0, None, "n", cpu_milli=500),
        PodRecord("default", "c", 0.0),
    ]
    shares = mean_shares(there, pods, 400.0)
    assert shares == {"n": pytest.approx((1000 * 50 + 500 * 100) / (2000 * 200)), "empty": 0.0}


def test_events_are_the_same_up_to_the_first_that_differs() -> None:
    first = EventLog()
    for event in ((0.0, "a", "n1"), (1.0, "b", "n2")):
        first.note(*event)
    followed = FollowedLog(first)
    followed.note(0.0, "a", "n1")
    assert followed.is_same
    followed.note(1.0, "b", "n1")
    assert not followed.is_same
    followed.note(1.0, "b", "n2")
    assert not followed.is_same
    longer = FollowedLog(EventLog())
    longer.note(0.0, "a", "n1")
    assert not longer.is_same


def test_the_run_that_is_interrupted_is_not_compared() -> None:
    scenario = Scenario(nodes(3), Generator(200, 60.0).arrivals, 200)
    runs: list[RunningSimulation] = []

    def interrupt(simulation: RunningSimulation) -> None:
        if simulation not in runs:
            runs.append(simulation)
        if len(runs) == 2 and simulation.arrived == 20:
            signal.raise_signal(signal.SIGINT)

    variants = [Variant(name, LEAST, scenario) for name in "abc"]
    found = compare_runs(variants, interrupt, interruptible=True)
    assert not found.comparison.complete
    assert [(each.name, each.complete) for each in found.comparison.runs] == [("a", True), ("b", False)]
    assert found.comparison.differences == []
    assert figures_of(found.comparison).header == ("FIGURE", "a", "b (interrupted)")


def test_members_of_groups_are_moved_as_a_whole() -> None:
    large = NodeShape("large", 1, resources={"cpu": "64", "memory": "32Gi"})
    source = ScenarioSource(shapes=[large, SHAPES[1]], workload=[EXAMPLES / "groups" / "gang.yaml"])
    version = V1_37.with_gates({"GenericWorkload": True})
    variants = [
        Variant(
            name,
            settings(fit(strategy), version),
            read_scenario(source, version),
        )
        for name, strategy in (("a", "LeastAllocated"), ("b", "MostAllocated"))
    ]
    (found,) = compare_runs(variants, lambda simulation: None).comparison.differences
    assert (found.moved, found.unmoved) == (4, 1)  # The small node has room for four of five.
    assert [(each.cause, each.plugin, each.pods) for each in found.movers] == [(Cause.GROUP, "", 4)]


def test_feature_gates_of_one_configuration_have_no_effect_on_the_other() -> None:
    """The node has room for two pods of a gang that needs three."""
    version = V1_37.with_gates({"GenericWorkload": True})
    source = ScenarioSource(
        shapes=[NodeShape("node", 1, resources={"cpu": "2", "memory": "4Gi"})],
        workload=[EXAMPLES / "groups" / "gang.yaml"],
    )
    scenario = read_scenario(source, version)
    both = settings({}, until_seconds=30.0), settings({}, version, until_seconds=30.0)
    variants = [Variant(name, each, scenario) for name, each in zip("ab", both, strict=True)]
    comparison, runs = compare_runs(variants, lambda simulation: None)
    (found,) = comparison.differences
    assert (len(found.bound_only_before), found.bound_only_here, found.unmoved) == (2, [], 0)
    assert runs["b"].result == run_simulation(scenario, both[1]).result


def test_tables_have_no_more_rows_than_wanted_and_say_how_many_are_left_out() -> None:
    workload = arrivals(
        *(manifest(f"pod-{each}", "1", at=f"{each}s") for each in range(3)), manifest("large", "20")
    )
    runs = compared(LARGE_AND_SMALL, workload, LEAST, MOST, MOST)
    found, again = runs.comparison.differences
    assert found.moves == again.moves
    shown = {each.title: each for each in tables_of(found, 2)}
    moved = shown["pods that moved"]
    assert moved.rows == [
        (f"default/pod-{at}", "large-0", "small-0", "configuration", "NodeResourcesFit") for at in range(2)
    ]
    assert moved.left_out == 1
    assert shown["what moved pods"].rows == [
        ("3", "configuration", "NodeResourcesFit", "scores the nodes differently")
    ]
    assert "pods whose waiting time changed most" not in shown
    assert summary_of(found)[:2] == [
        "b beside a: 3 pods on other nodes, 0 on the same",
        "first difference: default/pod-0 after 0.0 s is on small-0 instead of large-0: "
        "NodeResourcesFit scores the nodes differently",
    ]
    (pending,) = pending_of(runs.comparison).rows
    assert pending[:3] == ("1", "1", "1")
    assert pending[3].startswith("0/2 nodes are available: 2 Insufficient cpu.")
