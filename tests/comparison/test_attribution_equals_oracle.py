"""What moved each pod, beside two decisions in a cluster that is built anew for each pod."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.comparison.attribution import Cause
from moorage.comparison.results import RunDifference
from moorage.engine.decision import Decision
from moorage.framework.interface.cycle_state import CycleState
from moorage.sim.cluster import SimulatedCluster
from moorage.simulation.run import run_simulation
from moorage.simulation.scenario import Scenario
from moorage.simulation.settings import Settings
from moorage.simulation.workload import Arrival
from tests.comparison import comparing
from tests.comparison.comparing import compared, fit, moves
from tests.simulation.simulating import arrivals, manifest, nodes

CLUSTER = [*nodes(2, "16", "large"), *nodes(3, "4", "small")]


def filterless(strategy: str) -> dict[str, Any]:
    profile = fit(strategy)
    profile["plugins"]["filter"] = {"disabled": [{"name": "NodeAffinity"}]}
    return profile


PROFILES = st.sampled_from(
    [
        {},
        fit("LeastAllocated"),
        fit("MostAllocated"),
        filterless("LeastAllocated"),
        filterless("MostAllocated"),
    ]
)
SELECTED = st.sampled_from([{}, {"nodeSelector": {"node.kubernetes.io/instance-type": "small"}}])
PODS = st.lists(st.tuples(st.sampled_from(["500m", "1", "3"]), SELECTED), min_size=2, max_size=6)


def workload_of(pods: list[tuple[str, dict[str, Any]]]) -> list[Arrival]:
    return arrivals(*(manifest(f"pod-{at}", cpu, at=f"{at}s", **spec) for at, (cpu, spec) in enumerate(pods)))


@given(PODS, PROFILES, PROFILES)
@settings(max_examples=15)
def test_attributions(
    pods: list[tuple[str, dict[str, Any]]], former: dict[str, Any], profile: dict[str, Any]
) -> None:
    """Pods run until the end: when one is decided, those before it are on their nodes."""
    one, other = comparing.settings(former), comparing.settings(profile)
    workload = workload_of(pods)
    results = compared(CLUSTER, workload, one, other)
    (found,) = results.comparison.differences
    assert run_simulation(_scenario(workload), other).result == results.runs["b"].result
    there: list[Object] = list(CLUSTER)
    before = {each.name: each.node for each in results.runs["a"].result.placements}
    for arrival, record in zip(workload, results.runs["b"].result.placements, strict=True):
        if record.node and before[record.name] and record.node != before[record.name]:
            _check(found, record.name, _decided(one, there, arrival.pod), _decided(other, there, arrival.pod))
        if record.node:
            there.append(_bound(arrival.pod, record.node))


def _scenario(workload: list[Arrival]) -> Scenario:
    return Scenario(CLUSTER, lambda seed: workload)


def _check(found: RunDifference, pod: str, former: Decision, here: Decision) -> None:
    move = moves(found)[pod]
    was_accepted = {name: name in former.best() for name in (move.former_node, move.node)}
    is_content = move.former_node in here.best()
    assert move.node in here.best()
    if was_accepted[move.node] and was_accepted[move.former_node]:
        assert move.by.cause is (Cause.TIE if is_content else Cause.CONFIGURATION)
    else:
        assert move.by.cause is (Cause.CLUSTER if was_accepted[move.node] else Cause.CONFIGURATION)
    if move.by.cause is not Cause.CONFIGURATION or not move.by.scores:
        return
    assert move.by.instead in former.best()
    assert move.by.instead == move.former_node or not was_accepted[move.former_node]
    changes = {
        plugin: _lead(here, plugin, move.node, move.by.instead)
        - _lead(former, plugin, move.node, move.by.instead)
        for plugin in {*here.scores_of(move.node), *former.scores_of(move.node)}
    }
    assert changes[move.by.plugin] == max(changes.values()) > 0


def _lead(decision: Decision, plugin: str, node: str, other: str) -> int:
    return decision.scores_of(node).get(plugin, 0) - decision.scores_of(other).get(plugin, 0)


def _decided(settings: Settings, objects: list[Object], pod: Pod) -> Decision:
    cluster = SimulatedCluster(objects, settings.config, settings.registry)
    return cluster.decide(_named(pod), CycleState())


def _named(pod: Pod) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, uid=pod.name))


def _bound(pod: Pod, node: str) -> Pod:
    named = _named(pod)
    return replace(named, spec=replace(named.spec, node_name=node))
