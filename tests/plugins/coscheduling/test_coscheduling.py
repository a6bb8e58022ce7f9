"""Coscheduling: what differs from GangScheduling, and that the rest does not."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.coscheduling import POD_GROUP_LABEL, CoschedulingPodGroup, with_labelled_group
from moorage.api.decode import convert
from moorage.api.pod import Pod
from moorage.api.pod_groups import PodGroup
from moorage.client.kinds import COSCHEDULING_POD_GROUP
from moorage.client.permissions import Permission
from moorage.clock import VirtualClock
from moorage.cluster.cache import Cache
from moorage.config.args import CoschedulingArgs
from moorage.config.load import ConfigError, parse_config
from moorage.emulation.kubernetes_version import V1_37
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.dependencies import NOT_CONCERNED
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SKIP, Code, Status
from moorage.framework.loading.registry import RegistryError
from moorage.framework.runtime.profiles import Profiles
from moorage.manifests.permissions import cluster_permissions
from moorage.plugins import default_registry
from moorage.plugins.coscheduling.plugin import TWO_KINDS_OF_GROUPS, Coscheduling
from moorage.plugins.gang_scheduling import WAITING_FOR_PODS
from tests.builders import make_node, make_pod

UPSTREAM = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "plugins": {
                "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
                "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
            },
            "pluginConfig": [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 10}}],
        }
    ],
}
"""As the documentation of scheduler-plugins has it."""


def group(minimum: int = 2, **spec: Any) -> PodGroup:
    metadata = {"name": "g", "namespace": "default"}
    made = convert({"metadata": metadata, "spec": {"minMember": minimum, **spec}}, CoschedulingPodGroup)
    return made.as_pod_group()


def member(name: str, **fields: Any) -> Pod:
    return with_labelled_group(make_pod(name, uid=name, labels={POD_GROUP_LABEL: "g"}, **fields))


class Scene:
    def __init__(self, *objects: Any, args: CoschedulingArgs | None = None) -> None:
        node = make_node("n", allocatable={"cpu": "4", "pods": "10"})
        self.cache = Cache([node, *objects])
        self.handle = Handle(clock=VirtualClock(), pod_groups=self.cache.pod_groups)
        self.plugin = Coscheduling(self.handle, args or CoschedulingArgs())

    def pre_filter(self, pod: Pod) -> Status | None:
        return self.plugin.pre_filter(CycleState(), pod, Nodes(self.cache.snapshot()))

    def depends_on(self, pod: Pod) -> Any:
        return self.plugin.depends_on(pod, self.cache.snapshot().objects)


def test_a_member_waits_until_enough_are_there() -> None:
    scene, first = Scene(group(2)), member("a")
    scene.cache.pod_groups.add(first)
    status = scene.plugin.pre_enqueue(first)
    assert status is not None
    assert status.message == WAITING_FOR_PODS
    scene.cache.pod_groups.add(member("b"))
    assert scene.plugin.pre_enqueue(first) is None


PERMITS: dict[str, tuple[dict[str, Any], int, float]] = {
    "by default": ({}, 60, 60),
    "as the arguments say": ({}, 10, 10),
    "as the group says": ({"scheduleTimeoutSeconds": 7}, 60, 7),
    "zero of the group is none": ({"scheduleTimeoutSeconds": 0}, 10, 10),
    "less than zero is none": ({"scheduleTimeoutSeconds": -1}, 10, 10),
    "zero of the arguments is the default": ({}, 0, 60),
}


@pytest.mark.parametrize(("spec", "argument", "seconds"), PERMITS.values(), ids=PERMITS.keys())
def test_a_member_with_a_node_waits_for_the_others(spec: Any, argument: int, seconds: float) -> None:
    args = CoschedulingArgs(permit_waiting_time_seconds=argument)
    scene = Scene(group(2, **spec), args=args)
    assumed = scene.cache.assume_pod(member("a"), "n")
    status = scene.plugin.permit(CycleState(), assumed, "n")
    assert status is not None
    assert (status.code, status.timeout_seconds) == (Code.WAIT, seconds)


def test_minimum_resources_must_be_free_in_the_cluster() -> None:
    gap = "resource gap: map[cpu:{{1000 -3} {<nil>}  DecimalSI}]"
    scene = Scene(group(2, minResources={"cpu": "5"}))
    status = scene.pre_filter(member("a"))
    assert status is not None
    assert (status.code, status.reasons) == (Code.UNRESOLVABLE, (gap,))
    assert Scene(group(2, minResources={"cpu": "4"})).pre_filter(member("a")) is SKIP


def test_members_with_nodes_count_as_free() -> None:
    scene = Scene(group(2, minResources={"cpu": "4"}))
    scene.cache.assume_pod(member("a", requests={"cpu": "3"}), "n")
    assert scene.pre_filter(member("b")) is SKIP


def test_empty_minimum_resources_ask_for_room_for_the_pods() -> None:
    status = Scene(group(11, minResources={})).pre_filter(member("a"))
    assert status is not None
    assert status.message == "resource gap: map[pods:{{1 0} {<nil>}  DecimalSI}]"
    assert Scene(group(11)).pre_filter(member("a")) is SKIP


def test_nothing_is_checked_for_pods_without_such_a_group() -> None:
    scene, alone = Scene(group(2, minResources={"cpu": "5"})), make_pod("alone")
    assert scene.pre_filter(alone) is SKIP
    assert scene.depends_on(alone) is NOT_CONCERNED
    assert scene.depends_on(member("a")) is None
    assert Scene(group(2)).depends_on(member("a")) is not None


def test_the_configuration_of_scheduler_plugins_is_accepted() -> None:
    profiles = Profiles(parse_config(UPSTREAM), default_registry())
    (framework,) = profiles.values()
    assert [call.plugin for call in framework.at("queue_sort")] == ["Coscheduling"]
    assert "Coscheduling" in [call.plugin for call in framework.at("permit")]


def test_a_scheduler_may_read_such_groups_and_no_others() -> None:
    permissions = cluster_permissions(Profiles(parse_config(UPSTREAM), default_registry()).values())
    groups = [each for each in permissions if each.resource.startswith("podgroups")]
    assert groups == list(Permission.on(COSCHEDULING_POD_GROUP, "list", "watch"))


ARGUMENTS = {
    "permitWaitingTimeSeconds": (-1, "must be greater than 0"),
    "podGroupBackoffSeconds": (-1, "must be greater than 0"),
    "podGroupRejectPercentage": (101, "must be between 0 and 100"),
}


@pytest.mark.parametrize("name", ARGUMENTS, ids=str)
def test_wrong_arguments_are_refused(name: str) -> None:
    value, why = ARGUMENTS[name]
    config = {**UPSTREAM, "profiles": [{"pluginConfig": [{"name": "Coscheduling", "args": {name: value}}]}]}
    with pytest.raises(ConfigError, match=rf"args\.{name}: Invalid value: {value}: {why}"):
        parse_config(config)


def test_two_kinds_of_groups_are_refused() -> None:
    version = V1_37.with_gates({"GenericWorkload": True})
    config = parse_config(UPSTREAM, version=version)
    with pytest.raises(RegistryError, match=TWO_KINDS_OF_GROUPS):
        Profiles(config, default_registry(), Handle(version=version))
