"""Placements that are compared without the decisions about each member: the result is the same."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.api.pod_groups import PodGroup, key_of
from moorage.config.load import default_config
from moorage.config.types import PluginConfig, SchedulerConfiguration
from moorage.engine.alike_members import AlikeMembers
from moorage.engine.decision import Decision
from moorage.engine.engine import Engine
from moorage.engine.group_choices import RandomChoices
from moorage.engine.group_cycle import GroupCycle
from moorage.engine.group_result import GroupResult, member_message
from moorage.engine.run_without_suspending import run_without_suspending
from moorage.framework.interface.pod_groups import PodGroupInfo
from moorage.plugins import default_registry
from moorage.sim.cluster import SimulatedCluster
from tests.builders import HOSTNAME, ZONE, make_pod, pod_term
from tests.engine.test_group_cycle import gang, members, slots, version_with
from tests.strategies import Case, examples, mixed_cases

VERSION = version_with("GenericWorkload", "TopologyAwareWorkloadScheduling")
LOWEST = -(1 << 31)
"""A priority with which nothing can be preempted."""


class EachAlone(RandomChoices):
    """The same choices, made from the decisions about members: each is decided for in every placement."""

    reads_decisions = True


class OneGroup:
    """A group in a cluster of its own."""

    def __init__(
        self,
        objects: Sequence[Object],
        group: PodGroup,
        pods: Sequence[Pod],
        config: SchedulerConfiguration | None = None,
    ) -> None:
        self.cluster = SimulatedCluster(
            objects, config or default_config(VERSION), default_registry(), version=VERSION
        )
        self.framework = self.cluster.framework_of(pods[0])
        self.replace(group, pods)

    def replace(self, group: PodGroup, pods: Sequence[Pod]) -> None:
        """Another group comes."""
        self.cluster.cache.put(group)
        for pod in pods:
            self.cluster.cache.pod_groups.add(pod)
        self.info = PodGroupInfo(key_of(group), group, tuple(pods))

    def result(self, choices: type[RandomChoices] = RandomChoices) -> GroupResult:
        cycle = GroupCycle(
            self.cluster.engine,
            self.framework,
            self.cluster.cache,
            choices(Random(0)),
            has_placements=True,
        )
        return run_without_suspending(cycle.decide(self.info)).result

    def is_alike(self) -> bool:
        cache = self.cluster.cache
        found = AlikeMembers.of(self.cluster.engine, self.framework, cache.snapshot(), self.info.pods)
        return found is not None


def contents(result: GroupResult) -> Any:
    """Everything that a result says."""
    members = [
        (member.pod.name, member.node_name, member_message(result, member), scores(member.decision))
        for member in result.members
    ]
    placement = None if result.placement is None else result.placement.name
    return result.status.code, result.status.message, placement, result.any_scheduled, members


def scores(decision: Decision | None) -> Any:
    if decision is None or decision.scores is None:
        return None
    return decision.feasible.names, decision.scores.totals.tolist()


def copies(pod: Pod, count: int, *, numbered: bool) -> list[Pod]:
    """Members made from one template; numbered: with a label of their own, as those of an indexed Job."""
    spec = replace(pod.spec, scheduling_group=members("g", 1)[0].spec.scheduling_group, priority=LOWEST)
    return [
        replace(
            pod,
            metadata=replace(
                pod.metadata,
                name=f"m{i}",
                uid=f"m{i}",
                labels={**pod.labels, "index": str(i)} if numbered else pod.labels,
            ),
            spec=spec,
        )
        for i in range(count)
    ]


def configured(case: Case) -> SchedulerConfiguration:
    config = default_config(VERSION)
    (profile,) = config.profiles
    known = {each.name: each for each in profile.plugin_config}
    changed = {name: PluginConfig(name=name, args=case.typed_args[name]) for name in case.args}
    profile = replace(profile, plugin_config=tuple({**known, **changed}.values()))
    return replace(config, profiles=(profile,))


@examples(150)
@given(
    case=mixed_cases(most_subjects=2, nodes_at_least=2),
    count=st.integers(1, 7),
    minimum=st.integers(1, 7),
    key=st.sampled_from([ZONE, HOSTNAME, "rack", "disk"]),
    numbered=st.booleans(),
)
def test_a_group_gets_what_it_gets_if_each_placement_is_tried_alone(
    case: Case, count: int, minimum: int, key: str, numbered: bool
) -> None:
    pods = copies(case.pod, count, numbered=numbered)
    group = gang("g", minimum, topology=key, priority=LOWEST)
    group = replace(group, metadata=replace(group.metadata, namespace=case.pod.namespace))
    config = configured(case)
    together, alone = (OneGroup(case.objects, group, pods, config) for _ in range(2))
    note(f"alike: {together.is_alike()}")
    assert contents(together.result()) == contents(alone.result(EachAlone))
    together.cluster.cache.validate()


def count_decisions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    decided: list[str] = []
    decide = Engine.decide_async

    def counting(self: Engine, framework: Any, pod: Pod, *args: Any) -> Any:
        decided.append(pod.name)
        return decide(self, framework, pod, *args)

    monkeypatch.setattr(Engine, "decide_async", counting)
    return decided


def zones(count: int, *rooms: int) -> list[Object]:
    return [node for zone in range(count) for node in slots(*rooms, zone=f"z{zone}")]


def test_members_are_decided_for_in_one_of_many_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    decided = count_decisions(monkeypatch)
    scene = OneGroup(zones(6, 2, 2), gang("g", 4, topology=ZONE), members("g", 4))
    assert scene.result().status.is_success
    assert decided == ["g-0", "g-1", "g-2", "g-3"]


def test_members_that_fit_nowhere_are_decided_for_in_the_first_domain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decided = count_decisions(monkeypatch)
    scene = OneGroup(zones(6, 2), gang("g", 3, topology=ZONE), members("g", 3))
    result = scene.result()
    assert decided == ["g-0", "g-1", "g-2"]
    assert result.members[2].message == "0/1 nodes are available: 1 Insufficient cpu."
    assert "0/6 placements are available" in result.status.message


APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [pod_term(HOSTNAME, {})]}}


@pytest.mark.parametrize(
    ("expected", "pods"),
    [
        pytest.param(True, members("g", 3), id="from one template"),
        pytest.param(
            True,
            [make_pod(f"p{i}", labels={"index": str(i)}, requests={"cpu": "1"}) for i in range(3)],
            id="numbered",
        ),
        pytest.param(False, [*members("g", 2), make_pod("big", requests={"cpu": "2"})], id="of two sizes"),
        pytest.param(False, members("g", 3, affinity=APART), id="apart from each other"),
        pytest.param(False, members("g", 3, status={"nominatedNodeName": "nz00"}), id="nominated"),
    ],
)
def test_which_members_are_alike(expected: bool, pods: Sequence[Pod]) -> None:
    assert OneGroup(zones(2, 2), gang("g", 1, topology=ZONE), pods).is_alike() is expected


def test_members_that_an_affinity_term_tells_apart_are_not_alike() -> None:
    shy = make_pod(
        "shy",
        on="nz00",
        affinity={
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    pod_term(ZONE, {"matchLabels": {"index": "1"}})
                ]
            }
        },
    )
    pods = [make_pod(f"p{i}", labels={"index": str(i)}) for i in range(3)]
    assert not OneGroup([*zones(2, 2), shy], gang("g", 1, topology=ZONE), pods).is_alike()


def test_nominations_are_seen_by_each_member() -> None:
    scene = OneGroup(zones(2, 2), gang("g", 1, topology=ZONE), members("g", 2))
    scene.cluster.cache.nominations.put(make_pod("other"), "nz00")
    assert not scene.is_alike()


@examples(60)
@given(
    case=mixed_cases(most_subjects=2, nodes_at_least=2),
    counts=st.lists(st.integers(1, 4), min_size=2, max_size=4),
    key=st.sampled_from([ZONE, HOSTNAME, "rack"]),
    data=st.data(),
)
def test_the_next_group_of_a_template_gets_what_it_gets_alone(
    case: Case, counts: list[int], key: str, data: Any
) -> None:
    """The answers for the last group are used again where nodes have not changed since."""
    group = gang("g0", 1, topology=key, priority=LOWEST)
    group = replace(group, metadata=replace(group.metadata, namespace=case.pod.namespace))
    first = copies(case.pod, 1, numbered=False)
    scenes = [OneGroup(case.objects, group, first, configured(case)) for _ in range(2)]
    for number, count in enumerate(counts):
        name = f"g{number}"
        renamed = replace(group, metadata=replace(group.metadata, name=name))
        pods = [
            replace(
                pod,
                metadata=replace(pod.metadata, name=f"{name}-{pod.name}", uid=f"{name}-{pod.name}"),
                spec=replace(pod.spec, scheduling_group=members(name, 1)[0].spec.scheduling_group),
            )
            for pod in copies(case.pod, count, numbered=False)
        ]
        together, alone = scenes
        for scene in scenes:
            scene.replace(renamed, pods)
            scene.cluster.engine._random.seed(number)
        result = together.result()
        assert contents(result) == contents(alone.result(EachAlone))
        leaving = [pod for pod in together.cluster.cache.pods() if data.draw(st.integers(0, 9)) == 0]
        nodes = list(together.cluster.cache.nodes())
        changed = data.draw(st.sampled_from([*[None] * 4, *nodes]))
        for scene in scenes:
            for member in result.members if result.status.is_success else ():
                if member.node_name is not None:
                    scene.cluster.cache.assume_pod(member.pod, member.node_name)
            for pod in leaving:
                scene.cluster.cache.remove_pod(pod)
            if changed is not None:
                cordoned = replace(changed, spec=replace(changed.spec, unschedulable=True))
                scene.cluster.cache.put_node(cordoned)


def test_answers_are_computed_again_for_nodes_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = OneGroup(zones(3, 4, 4), gang("g", 2, topology=ZONE), members("g", 2))
    asked: list[int] = []
    passing = AlikeMembers._passing

    def counting(self: AlikeMembers, rows: Any, count: int) -> Any:
        asked.append(len(rows))
        return passing(self, rows, count)

    monkeypatch.setattr(AlikeMembers, "_passing", counting)
    result = scene.result()
    assert asked == [6, 6], "with no member, and with one"
    for member in result.members:
        assert member.node_name is not None
        scene.cluster.cache.assume_pod(member.pod, member.node_name)
    asked.clear()
    scene.replace(gang("h", 2, topology=ZONE), members("h", 2))
    assert scene.result().status.is_success
    used = {member.node_name for member in result.members}
    assert set(asked) == {len(used)}
