"""GangScheduling: when a group is tried, when it can run, and when it is bound."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.decode import convert
from moorage.api.pod import Pod
from moorage.api.pod_groups import CompositePodGroup, Group, PodGroup, key_of
from moorage.clock import VirtualClock
from moorage.cluster.cache import Cache
from moorage.emulation.kubernetes_version import V1_37
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.pod_groups import PlacementProgress, PodGroupInfo
from moorage.framework.interface.status import Code
from moorage.plugins.gang_scheduling import WAITING_FOR_NODES, WAITING_FOR_PODS, GangScheduling
from tests.builders import make_node, make_pod


def group(name: str, policy: dict[str, Any], kind: type[Group] = PodGroup, parent: str = "") -> Group:
    spec = {"schedulingPolicy": policy, **({"parentCompositePodGroupName": parent} if parent else {})}
    return convert({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, kind)


def gang(count: int, name: str = "g", parent: str = "") -> Group:
    return group(name, {"gang": {"minCount": count}}, parent=parent)


def member(name: str, of: str = "g") -> Pod:
    return make_pod(name, uid=name, scheduling_group={"podGroupName": of})


class GangScene:
    def __init__(self, *objects: Any, is_nested: bool = False) -> None:
        self.cache = Cache([make_node("n"), *objects])
        gates = {
            "GenericWorkload": True,
            "TopologyAwareWorkloadScheduling": is_nested,
            "CompositePodGroup": is_nested,
        }
        groups, version = self.cache.pod_groups, V1_37.with_gates(gates)
        self.handle = Handle(clock=VirtualClock(), pod_groups=groups, version=version)
        self.plugin = GangScheduling(self.handle)

    def arrive(self, *pods: Pod) -> None:
        for pod in pods:
            self.cache.pod_groups.add(pod)

    def gate(self, pod: Pod) -> str:
        status = self.plugin.pre_enqueue(pod)
        return "" if status is None else status.message


def test_a_member_waits_until_enough_are_there() -> None:
    scene, first = GangScene(gang(2)), member("a")
    scene.arrive(first)
    assert scene.gate(first) == WAITING_FOR_PODS
    scene.arrive(member("b"))
    assert scene.gate(first) == ""


def test_a_member_waits_for_its_group() -> None:
    expected = 'waiting for pods\'s pod group "g" to appear in scheduling queue'
    assert GangScene().gate(member("a")) == expected
    assert GangScene().gate(make_pod("alone")) == ""


def test_a_basic_group_waits_for_nothing() -> None:
    scene = GangScene(group("g", {"basic": {}}))
    assert scene.gate(member("a")) == ""


def test_parts_of_a_composite_group_wait_for_each_other() -> None:
    whole = group("c", {"gang": {"minGroupCount": 2}}, CompositePodGroup)
    scene = GangScene(whole, gang(1, "x", "c"), gang(1, "y", "c"), is_nested=True)
    one, other = member("a", "x"), member("b", "y")
    scene.arrive(one)
    assert scene.gate(one) == 'waiting for composite pod group "c" tree to meet quorum'
    scene.arrive(other)
    assert scene.gate(one) == scene.gate(other) == ""


@pytest.mark.parametrize(
    ("scheduled", "remaining", "code"),
    [(0, 1, Code.UNSCHEDULABLE), (0, 2, Code.WAIT), (1, 1, Code.WAIT), (2, 0, None), (3, 1, None)],
    ids=["too few are left", "all are left", "one is left", "just enough", "more than enough"],
)
def test_a_placement_is_feasible_when_enough_have_nodes(scheduled: int, remaining: int, code: Code) -> None:
    scene, needed = GangScene(), gang(2)
    info = PodGroupInfo(key_of(needed), needed)
    status = scene.plugin.placement_feasible(CycleState(), info, PlacementProgress(scheduled, remaining))
    assert (None if status is None else status.code) is code


def test_the_member_that_completes_a_gang_lets_all_go() -> None:
    scene = GangScene(gang(2))
    pods = [member("a"), member("b")]
    scene.arrive(*pods)
    first = scene.cache.assume_pod(pods[0], "n")
    status = scene.plugin.permit(CycleState(), first, "n")
    assert status is not None
    assert (status.code, status.reasons) == (Code.WAIT, (WAITING_FOR_NODES,))
    held = scene.handle.waiting.hold(first, "n", {scene.plugin.name: 300.0})
    second = scene.cache.assume_pod(pods[1], "n")
    assert scene.plugin.permit(CycleState(), second, "n") is None
    assert held.outcome is not None
    assert held.outcome.code is Code.SUCCESS


def test_hints_are_about_the_group_of_the_waiting_pod() -> None:
    scene = GangScene(gang(2), gang(2, "other"))
    helps = {interest.event.label: interest.helps for interest in scene.plugin.events()}
    waiting = member("a")
    added = next(name for name in helps if "Unsched" in name)
    assert helps[added](waiting, None, member("b"))
    assert not helps[added](waiting, None, member("c", "other"))
    assert not helps[added](make_pod("alone"), None, member("b"))
    changed = next(name for name in helps if "PodGroupUpdate" in name)
    assert helps[changed](waiting, gang(3), gang(2))
    assert not helps[changed](waiting, gang(2), gang(3))
    assert not helps[changed](waiting, gang(3, "other"), gang(2, "other"))


def test_members_of_other_gangs_and_pods_held_by_others_stay_held() -> None:
    scene = GangScene(gang(1), gang(2, "other"))
    mine, late, stranger = member("a"), member("b"), member("c", "other")
    scene.arrive(mine, late, stranger)
    waiting, held = scene.handle.waiting, []
    for pod, plugin in ((mine, "Someone"), (stranger, scene.plugin.name)):
        held.append(waiting.hold(scene.cache.assume_pod(pod, "n"), "n", {plugin: 300.0}))
    assert scene.plugin.permit(CycleState(), scene.cache.assume_pod(late, "n"), "n") is None
    assert [each.outcome for each in held] == [None, None]


def test_a_plugin_holds_a_pod_until_it_allows_it_or_the_wait_ends() -> None:
    scene = GangScene()
    waiting = scene.handle.waiting
    first, second = (waiting.hold(member(name), "n", {"A": 1.0, "B": 5.0}) for name in "ab")
    assert [*waiting.held_by("A")] == [*waiting.held_by("B")] == ["a", "b"]
    first.allow("A")
    assert ([*waiting.held_by("A")], [*waiting.held_by("B")]) == (["b"], ["a", "b"])
    second.reject("A", "no")
    assert ([*waiting.held_by("A")], [*waiting.held_by("B")]) == ([], ["a"])
    again = waiting.hold(member("a"), "n", {"B": 5.0})
    first.reject("B", "late")
    assert waiting.held_by("B") == {"a": again}
