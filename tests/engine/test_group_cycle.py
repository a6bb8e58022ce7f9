"""The cycle of a group: enough members get nodes together, or none does."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.base import Object
from moorage.api.decode import convert
from moorage.api.pod import Pod
from moorage.api.pod_groups import CompositePodGroup, Group, PodGroup, key_of
from moorage.config.load import default_config
from moorage.emulation.kubernetes_version import V1_37, KubernetesVersion
from moorage.engine.group_choices import RandomChoices
from moorage.engine.group_cycle import GroupCycle
from moorage.engine.group_result import GroupDecision, member_message
from moorage.engine.run_without_suspending import run_without_suspending
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.effects import EvictPods
from moorage.framework.interface.extension_points import Scores
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.pod_groups import Placement, PlacementAssignments, PodGroupInfo
from moorage.framework.loading.plugin_discovery import enabled_everywhere
from moorage.plugins import default_registry
from moorage.sim.cluster import SimulatedCluster
from tests.builders import make_node, make_pod

GATES = (
    "GenericWorkload",
    "TopologyAwareWorkloadScheduling",
    "PodGroupPreemptionPolicy",
    "CompositePodGroup",
)
ZONE = "topology.kubernetes.io/zone"


def version_with(*gates: str) -> KubernetesVersion:
    return V1_37.with_gates(dict.fromkeys(gates, True))


def gang(name: str, minimum: int, *, topology: str = "", **spec: Any) -> PodGroup:
    policy = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    constraints = {"schedulingConstraints": {"topology": [{"key": topology}]}} if topology else {}
    manifest = {"metadata": {"name": name, "namespace": "default"}}
    return convert({**manifest, "spec": {**policy, **constraints, **spec}}, PodGroup)


def members(group: str, count: int, cpu: str = "1", **fields: Any) -> list[Pod]:
    return [
        make_pod(f"{group}-{i}", requests={"cpu": cpu}, scheduling_group={"podGroupName": group}, **fields)
        for i in range(count)
    ]


def slots(*counts: int, zone: str = "") -> list[Object]:
    """Nodes with room for some pods of one CPU each."""
    labels = {ZONE: zone} if zone else {}
    return [
        make_node(f"n{zone}{i}", labels=labels, allocatable={"cpu": str(count), "pods": "110"})
        for i, count in enumerate(counts)
    ]


class GroupScene:
    """A cluster in which groups are scheduled."""

    def __init__(self, *objects: Object, gates: Sequence[str] = GATES, plugins: Sequence[type] = ()) -> None:
        version, registry = version_with(*gates), default_registry()
        config = default_config(version)
        for plugin in plugins:
            if plugin.name not in registry:  # type: ignore[attr-defined]
                registry.register(plugin.name, plugin)  # type: ignore[attr-defined]
            config = enabled_everywhere(config, plugin)
        self.cluster = SimulatedCluster(objects, config, registry, version=version)
        self.has_placements = version.features.topology_aware_workload_scheduling

    def info(self, group: Group, pods: Sequence[Pod], children: Sequence[PodGroupInfo] = ()) -> PodGroupInfo:
        self.cluster.cache.put(group)
        for pod in pods:
            self.cluster.cache.pod_groups.add(pod)
        return PodGroupInfo(key_of(group), group, tuple(pods), tuple(children))

    def decide(self, info: PodGroupInfo) -> GroupDecision:
        framework = self.cluster.framework_of(next(info.all_pods()))
        cycle = GroupCycle(
            self.cluster.engine,
            framework,
            self.cluster.cache,
            RandomChoices(Random(0)),
            has_placements=self.has_placements,
        )
        before = self.state()
        decision = run_without_suspending(cycle.decide(info))
        assert self.state() == before, "a cycle leaves nothing behind"
        return decision

    def state(self) -> object:
        cache = self.cluster.cache
        cache.validate()
        snapshot = cache.snapshot()
        pods = {name: list(snapshot.pods_of(row)) for name, row in snapshot.row_of.items()}
        return pods, cache.assumed_count, list(snapshot.requested.by_row[: len(snapshot)])

    def bind(self, decision: GroupDecision) -> dict[str, str]:
        bound = {}
        for result in decision.leaves():
            for member in result.members if result.status.is_success else ():
                if member.node_name is not None:
                    self.cluster.bind(member.pod, member.node_name, member.cycle)
                    bound[member.pod.name] = member.node_name
        return bound


@pytest.mark.parametrize("gates", [GATES, GATES[:1]])
def test_four_of_five_run_where_three_are_needed(gates: Sequence[str]) -> None:
    scene = GroupScene(*slots(2, 2), gates=gates)
    decision = scene.decide(scene.info(gang("g", 3), members("g", 5)))
    assert decision.result.status.is_success
    assert len(scene.bind(decision)) == 4
    left = decision.result.members[4]
    assert member_message(decision.result, left) == "0/2 nodes are available: 2 Insufficient cpu."


@pytest.mark.parametrize("gates", [GATES, GATES[:1]])
def test_none_runs_where_there_is_room_for_two_of_three(gates: Sequence[str]) -> None:
    scene = GroupScene(*slots(1, 1), gates=gates)
    decision = scene.decide(scene.info(gang("g", 3), members("g", 5)))
    assert not scene.bind(decision)
    first = "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"
    messages = [member_message(decision.result, member) or "" for member in decision.result.members]
    assert messages[2:] == ["0/2 nodes are available: 2 Insufficient cpu."] * 3
    assert all(first in message for message in messages[:2])


def test_of_two_gangs_of_six_on_eight_slots_one_runs_whole() -> None:
    scene = GroupScene(*slots(4, 4))
    one = scene.decide(scene.info(gang("a", 6), members("a", 6)))
    assert len(scene.bind(one)) == 6
    waiting = scene.info(gang("b", 6), members("b", 6))
    assert not scene.bind(scene.decide(waiting))
    for pod in members("a", 6):
        scene.cluster.remove_pod(pod.key)
    assert len(scene.bind(scene.decide(waiting))) == 6


def test_all_members_run_in_one_domain() -> None:
    scene = GroupScene(*slots(2, 1, zone="a"), *slots(2, 2, zone="b"))
    decision = scene.decide(scene.info(gang("g", 4, topology=ZONE), members("g", 4)))
    assert {node[1] for node in scene.bind(decision).values()} == {"b"}


def test_running_members_pin_the_domain() -> None:
    running = members("g", 1, on="na0")
    scene = GroupScene(*slots(2, zone="a"), *slots(9, zone="b"), *running)
    late = members("g", 3)[1:]
    decision = scene.decide(scene.info(gang("g", 1, topology=ZONE), late))
    assert scene.bind(decision) == {"g-1": "na0"}


def test_a_key_that_no_node_has_gives_no_placement() -> None:
    scene = GroupScene(*slots(4))
    decision = scene.decide(scene.info(gang("g", 1, topology="rack"), members("g", 1)))
    assert decision.result.status.message.startswith("no feasible placements found")


def test_a_group_evicts_what_is_less_important_and_no_more() -> None:
    old = [make_pod(f"old-{i}", on=f"n{i % 2}", requests={"cpu": "1"}, priority=0) for i in range(4)]
    scene = GroupScene(*slots(2, 2), *old)
    group = gang("g", 2, priority=100)
    decision = scene.decide(scene.info(group, members("g", 2, priority=100)))
    assert decision.result.is_waiting_on_preemption
    assert decision.post_filter is not None
    (eviction,) = decision.post_filter.effects
    assert isinstance(eviction, EvictPods)
    assert len(eviction.victims) == 2
    assert set(decision.nominated.values()) <= {"n0", "n1"}
    expected = "pod group preemption: found a placement for podgroup, preempting 2 victims"
    assert decision.result.status.message.endswith(expected)
    decision.post_filter.done()


def test_a_group_that_never_preempts_says_so() -> None:
    scene = GroupScene(*slots(1), make_pod("old", on="n0", requests={"cpu": "1"}, priority=0))
    group = gang("g", 1, priority=100, preemptionPolicy="Never")
    pods = members("g", 1, priority=100, preemption_policy="Never")
    decision = scene.decide(scene.info(group, pods))
    assert decision.result.status.message.endswith("not eligible due to preemptionPolicy=Never.")


def test_a_composite_group_needs_enough_parts() -> None:
    scene = GroupScene(*slots(3))
    policy = {"gang": {"minGroupCount": 2}}
    manifest = {"metadata": {"name": "c", "namespace": "default"}, "spec": {"schedulingPolicy": policy}}
    whole = convert(manifest, CompositePodGroup)
    parts = [
        scene.info(gang(name, 2, parentCompositePodGroupName="c"), members(name, 2)) for name in ("a", "b")
    ]
    assert not scene.bind(scene.decide(scene.info(whole, (), parts)))
    scene.cluster.cache.put(make_node("more", allocatable={"cpu": "1", "pods": "110"}))
    assert len(scene.bind(scene.decide(scene.info(whole, (), parts)))) == 4


class Halves:
    """A plugin from outside: the nodes in two halves, the second of which is preferred."""

    name = "Halves"

    def placement_generate(self, cycle: CycleState, group: PodGroupInfo, nodes: Nodes) -> list[Placement]:
        middle = len(nodes) // 2
        rows = np.arange(len(nodes))
        return [Placement("first", nodes.at(rows[:middle])), Placement("second", nodes.at(rows[middle:]))]

    def placement_score(
        self, cycle: CycleState, group: PodGroupInfo, placements: Sequence[PlacementAssignments]
    ) -> Scores:
        return np.array([100 if each.placement.name == "second" else 0 for each in placements])


def test_a_plugin_generates_and_scores_placements() -> None:
    gates = ("GenericWorkload",)
    scene = GroupScene(*slots(9, 9, 9, 9), gates=gates, plugins=[Halves])
    scene.has_placements = True
    decision = scene.decide(scene.info(gang("g", 4), members("g", 4)))
    assert set(scene.bind(decision).values()) == {"n2", "n3"}


@given(
    rooms=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    count=st.integers(1, 6),
    minimum=st.integers(1, 6),
    used=st.integers(0, 4),
)
def test_as_many_run_as_there_is_room_for_or_none(
    rooms: list[int], count: int, minimum: int, used: int
) -> None:
    old = [make_pod(f"old-{i}", on="n0", requests={"cpu": "1"}) for i in range(min(used, rooms[0]))]
    scene = GroupScene(*slots(*rooms), *old)
    decision = scene.decide(scene.info(gang("g", minimum), members("g", count)))
    room = min(sum(rooms) - len(old), count)
    assert len(scene.bind(decision)) == (room if room >= minimum else 0)
