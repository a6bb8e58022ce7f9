"""Pods that differ only in their group share an equivalence class, and no answer about the group."""

from __future__ import annotations

import numpy as np

from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.cluster.object_tables import Objects
from moorage.engine.engine import Engine
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.dependencies import NODE, DependsOn
from moorage.framework.interface.filter_result import ALL, FilterResult, refuse_where
from moorage.framework.interface.nodes import Nodes
from tests.builders import make_framework, make_node, make_pod
from tests.framework.cache.test_result_cache import count_calls
from tests.framework.helpers import framework_of


def member_of(group: str) -> Pod:
    return make_pod("p", scheduling_group={"podGroupName": group})


def test_members_of_several_groups_share_the_results_of_plugins() -> None:
    framework, engine, called = make_framework(), Engine(), list[str]()
    snapshot = Cache([make_node("a"), make_node("b")]).snapshot()
    for call in framework.at("filter"):
        count_calls(call, called)
    for group in ("a", "b", "c"):
        assert engine.decide(framework, member_of(group), snapshot).node
    assert called.count("NodeResourcesFit") == 1


class ReadsGroup:
    """A plugin from outside that accepts one group, and declares what its answers depend on."""

    name = "ReadsGroup"

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn | None:
        return NODE

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        group = pod.spec.scheduling_group
        if group is not None and group.pod_group_name == "b":
            return ALL
        return refuse_where(np.ones(len(nodes), bool), "another group")


def test_answers_of_plugins_from_outside_are_not_shared_by_members_of_other_groups() -> None:
    framework, engine = framework_of(ReadsGroup()), Engine()
    snapshot = Cache([make_node("a"), make_node("b")]).snapshot()
    decisions = [engine.decide(framework, member_of(group), snapshot) for group in ("a", "b", "c")]
    assert [decision.node is not None for decision in decisions] == [False, True, False]
