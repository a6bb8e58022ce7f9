"""Units of pods that are put back for as long as a group still fits: in waves as well as one by one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.config.load import default_config
from moorage.config.types import SchedulerConfiguration
from moorage.engine.assigned_members import AssignedMembers
from moorage.engine.assumed_members import AssumedMembers
from moorage.engine.group_dry_run import DryRun
from moorage.engine.run_without_suspending import run_without_suspending
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.filter_result import FilterResult, refuse_where
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.pod_groups import Assignment, GroupSchedule
from moorage.framework.loading.plugin_discovery import enabled_everywhere
from moorage.plugins import default_registry
from moorage.sim.cluster import SimulatedCluster
from tests.builders import HOSTNAME, ZONE, container, make_node, make_pod, pod_term, port
from tests.engine.test_alike_members import VERSION, configured, copies
from tests.strategies import Case, examples, mixed_cases

Units = Sequence[Sequence[Pod]]


class RoomScene:
    """A cluster without some of its pods, and members of a group that got nodes then."""

    def __init__(
        self,
        objects: Sequence[Object],
        members: Sequence[Pod],
        units: Units,
        config: SchedulerConfiguration | None = None,
        plugins: Sequence[type] = (),
    ) -> None:
        config, registry = config or default_config(VERSION), default_registry()
        for plugin in plugins:
            registry.register(plugin.name, plugin)  # type: ignore[attr-defined]
            config = enabled_everywhere(config, plugin)
        self.cluster = SimulatedCluster(objects, config, registry, version=VERSION)
        self.cache, self.units = self.cluster.cache, units
        self.framework = self.cluster.framework_of(members[0])
        self.assigned = partial(AssignedMembers, self.cluster.engine, self.framework, self.cache)
        self.before = self.state()
        self.dry_run = DryRun(self.cache, _never, self.assigned)
        for unit in units:
            self.dry_run.remove(unit)
        self.assignments = self._assign(members)

    def _assign(self, members: Sequence[Pod]) -> list[Assignment]:
        assumed, assignments = AssumedMembers(self.framework, self.cache), []
        for pod in members:
            cycle, snapshot = CycleState(), self.cache.snapshot()
            decision = run_without_suspending(
                self.cluster.engine.decide_async(self.framework, pod, snapshot, cycle, Nodes(snapshot))
            )
            if decision.node is not None:
                assignments.append(Assignment(pod, decision.node, cycle))
                assumed.add(assignments[-1])
        assumed.forget_from(0)
        return assignments

    def is_by_node(self) -> bool:
        infos = [self.dry_run._set_aside.info(pod) for unit in self.units for pod in unit]
        return self.assigned(self.assignments).is_by_node(infos)

    def reprieve(self) -> list[bool]:
        return self.dry_run.reprieve(self.units, self.assignments)

    def reprieve_one_by_one(self) -> list[bool]:
        is_back = []
        for unit in self.units:
            self.dry_run.put_back(unit)
            is_back.append(self.dry_run.fits(self.assignments))
            if not is_back[-1]:
                self.dry_run.remove(unit)
        return is_back

    def end(self) -> None:
        self.dry_run.end()
        assert self.state() == self.before, "a dry run leaves nothing behind"

    def state(self) -> object:
        self.cache.validate()
        snapshot = self.cache.snapshot()
        return {name: list(snapshot.pods_of(row)) for name, row in snapshot.row_of.items()}


async def _never() -> GroupSchedule:
    raise AssertionError("the group is not scheduled again")


@examples(100)
@given(
    case=mixed_cases(most_subjects=3, nodes_at_least=2),
    count=st.integers(1, 5),
    numbered=st.booleans(),
    data=st.data(),
)
def test_as_many_units_are_back_as_one_by_one(case: Case, count: int, numbered: bool, data: Any) -> None:
    members = copies(case.pod, count, numbered=numbered)
    known = {each.name for each in case.objects if not isinstance(each, Pod)}
    pods = [each for each in case.objects if isinstance(each, Pod) and each.spec.node_name in known]
    units = data.draw(divisions([pod for pod in pods if not pod.finished]))
    check_equal(*(RoomScene(case.objects, members, units, configured(case)) for _ in range(2)))


@st.composite
def divisions(draw: Any, pods: Sequence[Pod]) -> list[list[Pod]]:
    """Pods divided into units, in any order."""
    left, units = draw(st.permutations(pods)), []
    while left:
        size = draw(st.integers(1, 3))
        units.append(left[:size])
        left = left[size:]
    return units


def check_equal(at_once: RoomScene, one_by_one: RoomScene) -> None:
    is_by_node, expected = at_once.is_by_node(), one_by_one.reprieve_one_by_one()
    event(f"by node: {is_by_node}, all are back: {all(expected)}")
    assert at_once.reprieve() == expected
    at_once.end()
    one_by_one.end()


def nodes(count: int) -> list[Object]:
    return [
        make_node(
            f"n{i}",
            labels={HOSTNAME: f"n{i}", ZONE: f"z{i % 2}"},
            allocatable={"cpu": "4", "pods": "110"},
        )
        for i in range(count)
    ]


def small_pods(on_each: int, count: int, **fields: Any) -> list[Pod]:
    return [
        make_pod(f"low{i}-{j}", uid=f"low{i}-{j}", on=f"n{i}", requests={"cpu": "1"}, **fields)
        for j in range(on_each)
        for i in range(count)
    ]


def large_members(count: int, **fields: Any) -> list[Pod]:
    """Members that leave room for one small pod on a node."""
    return [make_pod(f"m{i}", uid=f"m{i}", requests={"cpu": "3"}, **fields) for i in range(count)]


def required(kind: str, key: str, selector: dict[str, Any] | None = None) -> dict[str, Any]:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [pod_term(key, selector or {})]}}


def spread_over(key: str) -> list[dict[str, Any]]:
    constraint = {"maxSkew": 9, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return [{**constraint, "labelSelector": {"matchLabels": {"app": "low"}}}]


PORTS = [container(requests={"cpu": "1"}, ports=[port(80)])]


TERMS = [
    {},
    {"affinity": required("podAntiAffinity", HOSTNAME)},
    {"affinity": required("podAntiAffinity", ZONE, {"matchLabels": {"app": "low"}})},
    {"affinity": required("podAffinity", HOSTNAME, {"matchLabels": {"app": "low"}})},
    {"affinity": required("podAffinity", ZONE, {"matchLabels": {"app": "low"}})},
    {"topology_spread_constraints": spread_over(HOSTNAME)},
]


@examples(200)
@given(
    member=st.sampled_from([*[{}] * 4, *TERMS]),
    low=st.lists(
        st.tuples(
            st.integers(0, 3),
            st.integers(1, 2),
            st.sampled_from(["low", "other"]),
            st.sampled_from([{}, {}, {}, TERMS[1]]),
        ),
        min_size=3,
        max_size=12,
    ),
    cpu=st.integers(1, 3),
    data=st.data(),
)
def test_a_full_cluster_is_filled_again_as_one_by_one(
    member: dict[str, Any], low: list[tuple[int, int, str, dict[str, Any]]], cpu: int, data: Any
) -> None:
    pods = [
        make_pod(f"p{i}", uid=f"p{i}", on=f"n{on}", requests={"cpu": str(size)}, labels={"app": app}, **terms)
        for i, (on, size, app, terms) in enumerate(low)
    ]
    anchors = [make_pod(f"a{i}", uid=f"a{i}", on=f"n{i}", labels={"app": "low"}) for i in range(4)]
    members = [make_pod(f"m{i}", uid=f"m{i}", requests={"cpu": str(cpu)}, **member) for i in range(5)]
    units = data.draw(divisions(pods))
    check_equal(*(RoomScene([*nodes(4), *anchors, *pods], members, units) for _ in range(2)))


@pytest.mark.parametrize(
    ("expected", "member", "low"),
    [
        pytest.param(True, {}, {}, id="resources"),
        pytest.param(True, {}, {"containers": PORTS}, id="ports"),
        pytest.param(True, {"affinity": required("podAntiAffinity", HOSTNAME)}, {}, id="one on each node"),
        pytest.param(
            True, {}, {"affinity": required("podAntiAffinity", HOSTNAME)}, id="pods that want a node alone"
        ),
        pytest.param(
            False, {}, {"affinity": required("podAntiAffinity", ZONE)}, id="pods that want a zone alone"
        ),
        pytest.param(False, {"affinity": required("podAffinity", ZONE)}, {}, id="beside each other"),
        pytest.param(
            False,
            {"affinity": required("podAntiAffinity", ZONE, {"matchLabels": {"app": "low"}})},
            {"labels": {"app": "low"}},
            id="in a zone without them",
        ),
        pytest.param(
            True,
            {"affinity": required("podAntiAffinity", ZONE, {"matchLabels": {"app": "other"}})},
            {"labels": {"app": "low"}},
            id="in a zone without others",
        ),
        pytest.param(
            False,
            {"topology_spread_constraints": spread_over(ZONE)},
            {"labels": {"app": "low"}},
            id="spread with them",
        ),
        pytest.param(True, {"topology_spread_constraints": spread_over(ZONE)}, {}, id="spread with others"),
    ],
)
def test_whether_nodes_depend_on_each_other(
    expected: bool, member: dict[str, Any], low: dict[str, Any]
) -> None:
    pods = small_pods(1, 4, **low)
    scene = RoomScene([*nodes(4), *pods], large_members(2, **member), [[pod] for pod in pods])
    assert len(scene.assignments) == 2 or not expected
    assert scene.is_by_node() is expected


class Quiet:
    """A plugin from outside that wants at most one pod in the cluster."""

    name = "Quiet"

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        is_loud = sum(len(nodes.snapshot.pods_of(row)) for row in range(len(nodes.snapshot))) > 1
        return refuse_where(np.full(len(nodes), is_loud), "too loud")


def test_a_plugin_that_declares_nothing_may_look_anywhere() -> None:
    pods = small_pods(1, 3)
    scene = RoomScene([*nodes(3), *pods], large_members(1), [[pod] for pod in pods], plugins=[Quiet])
    assert not scene.is_by_node()
    assert scene.reprieve() == [True, False, False]
    scene.end()


def test_one_pod_of_each_node_is_back_first(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = small_pods(3, 6)
    scene = RoomScene([*nodes(6), *pods], large_members(6), [[pod] for pod in pods])
    checked: list[int] = []
    refused = AssignedMembers.refused

    def counting(self: AssignedMembers, names: Any) -> set[str]:
        checked.append(len(names))
        return refused(self, names)

    monkeypatch.setattr(AssignedMembers, "refused", counting)
    assert scene.reprieve() == [True] * 6 + [False] * 12
    assert checked == [6, 6, 6, 6], "as they are, and with one more pod on each node"
    scene.end()


def test_a_group_is_back_as_a_whole_or_not_at_all() -> None:
    first, second, third = (small_pods(3, 3)[i : i + 3] for i in (0, 3, 6))
    # The second fits on one of its nodes only; so there is room for a pod of the third.
    units = [first[:2], second[1:], third[2:]]
    scene = RoomScene([*nodes(3), *first, *second, *third], large_members(3), units)
    expected = RoomScene([*nodes(3), *first, *second, *third], large_members(3), units)
    assert scene.is_by_node()
    assert scene.reprieve() == expected.reprieve_one_by_one()


def test_members_on_one_node_are_checked_in_turn() -> None:
    pods = small_pods(3, 1)
    two = [make_pod(f"m{i}", uid=f"m{i}", requests={"cpu": "1"}) for i in range(2)]
    scene = RoomScene([*nodes(1), *pods], two, [[pod] for pod in pods])
    assert scene.reprieve() == [True, True, False]
    scene.end()
