"""Defaults and merging, against kube-scheduler."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from moorage.config.args import (
    ARGS_BY_PLUGIN,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from moorage.config.defaults import default_plugins, merge_plugin_set, merge_plugins
from moorage.config.duration import Duration
from moorage.config.load import default_config, parse_config, parse_profiles
from moorage.config.types import API_VERSION, KIND, PluginRef, Plugins, PluginSet
from moorage.emulation.kubernetes_version import V1_36, V1_37, KubernetesVersion
from moorage.plugins import default_registry

CPU_AND_MEMORY = (ResourceSpec(name="cpu", weight=1), ResourceSpec(name="memory", weight=1))

UPSTREAM_PLUGINS = (
    "SchedulingGates PrioritySort NodeUnschedulable NodeName TaintToleration:3 NodeAffinity:2 NodePorts "
    "NodeResourcesFit:1 VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread:2 "
    "InterPodAffinity:2 DynamicResources:2 DefaultPreemption NodeResourcesBalancedAllocation:1 "
    "ImageLocality:1 DefaultBinder NodeDeclaredFeatures"
)


WITHOUT_DECLARED_FEATURES = dict.fromkeys(
    (
        "NodeDeclaredFeatures",
        "ExtendWebSocketsToKubelet",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingInitContainers",
        "RestartAllContainersOnContainerExits",
        "UserNamespacesHostNetworkSupport",
    ),
    False,
)


def refs(text: str) -> tuple[PluginRef, ...]:
    """`A B:2` as plugins, B with weight 2."""
    found = []
    for word in text.split():
        name, _, weight = word.partition(":")
        found.append(PluginRef(name=name, weight=int(weight) if weight else None))
    return tuple(found)


def plugin_set(enabled: str = "", disabled: str = "") -> PluginSet:
    return PluginSet(enabled=refs(enabled), disabled=refs(disabled))


def test_default_plugins_in_order() -> None:
    assert default_plugins(V1_36) == Plugins(multi_point=plugin_set(UPSTREAM_PLUGINS))


WORKLOADS = {"GenericWorkload": True}
GATES: dict[str, tuple[KubernetesVersion, str]] = {
    "no declared features": (V1_36.with_gates(WITHOUT_DECLARED_FEATURES), "DefaultBinder"),
    "gangs of another form": (
        V1_36.with_gates({**WORKLOADS, "GangScheduling": True}),
        "DefaultBinder NodeDeclaredFeatures",
    ),
    "gangs are part of workloads": (
        V1_37.with_gates(WORKLOADS),
        "DefaultBinder NodeDeclaredFeatures GangScheduling",
    ),
    "topology": (
        V1_37.with_gates({**WORKLOADS, "TopologyAwareWorkloadScheduling": True}),
        "DefaultBinder NodeDeclaredFeatures GangScheduling TopologyPlacementGenerator PodGroupPodsCount:1",
    ),
}


@pytest.mark.parametrize(("version", "end"), GATES.values(), ids=GATES.keys())
def test_feature_gates_change_the_end_of_the_list(version: KubernetesVersion, end: str) -> None:
    enabled = default_plugins(version).multi_point.enabled
    assert enabled[-len(refs(end)) :] == refs(end)
    assert len(enabled) == len(refs(UPSTREAM_PLUGINS)) - 2 + len(refs(end))
    assert {ref.name for ref in enabled} <= set(default_registry())


def test_default_values() -> None:
    config = default_config()
    election, client = config.leader_election, config.client_connection
    assert (config.parallelism, config.percentage_of_nodes_to_score) == (16, 0)
    assert (config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds) == (1, 10)
    assert (config.enable_profiling, config.enable_contention_profiling) == (True, True)
    assert config.delay_cache_until_active is False
    assert config.extenders == ()
    assert election.leader_elect is True
    assert (election.lease_duration, election.renew_deadline, election.retry_period) == (15, 10, 2)
    assert election.resource_lock == "leases"
    assert (election.resource_namespace, election.resource_name) == ("kube-system", "kube-scheduler")
    assert client.content_type == "application/vnd.kubernetes.protobuf"
    assert (client.qps, client.burst, client.kubeconfig) == (50.0, 100, "")
    (profile,) = config.profiles
    assert (profile.scheduler_name, profile.percentage_of_nodes_to_score) == ("default-scheduler", None)


def test_every_plugin_that_takes_arguments_gets_its_default_ones() -> None:
    (profile,) = default_config(V1_36).profiles
    assert [(each.name, each.args) for each in profile.plugin_config] == [
        (
            "DefaultPreemption",
            DefaultPreemptionArgs(min_candidate_nodes_percentage=10, min_candidate_nodes_absolute=100),
        ),
        (
            "DynamicResources",
            DynamicResourcesArgs(filter_timeout=Duration(10), binding_timeout=Duration(600)),
        ),
        (
            "InterPodAffinity",
            InterPodAffinityArgs(hard_pod_affinity_weight=1, ignore_preferred_terms_of_existing_pods=False),
        ),
        ("NodeAffinity", NodeAffinityArgs(added_affinity=None)),
        ("NodeResourcesBalancedAllocation", NodeResourcesBalancedAllocationArgs(resources=CPU_AND_MEMORY)),
        (
            "NodeResourcesFit",
            NodeResourcesFitArgs(
                scoring_strategy=ScoringStrategy(type="LeastAllocated", resources=CPU_AND_MEMORY)
            ),
        ),
        ("PodTopologySpread", PodTopologySpreadArgs(default_constraints=(), defaulting_type="System")),
        ("VolumeBinding", VolumeBindingArgs(bind_timeout_seconds=600, shape=())),
    ]


def test_arguments_types_are_named_after_their_plugins() -> None:
    assert {name: kind.__name__ for name, kind in ARGS_BY_PLUGIN.items()} == {
        name: f"{name}Args" for name in ARGS_BY_PLUGIN
    }


def test_the_default_config_is_that_of_an_empty_document() -> None:
    assert parse_config({"apiVersion": API_VERSION, "kind": KIND}) == default_config()
    assert parse_config({"apiVersion": API_VERSION, "kind": KIND, "profiles": []}) == default_config()


def test_empty_values_count_as_absent() -> None:
    empty = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "parallelism": None,
        "leaderElection": {
            "leaseDuration": "0s",
            "resourceLock": "",
            "resourceName": "",
            "retryPeriod": None,
        },
        "clientConnection": {"qps": 0, "burst": 0, "contentType": ""},
        "profiles": [{"schedulerName": None, "plugins": None, "pluginConfig": None}],
    }
    assert parse_config(empty) == default_config()


PROFILING = {
    "both by default": ({}, (True, True)),
    "contention follows": ({"enableProfiling": False}, (False, False)),
    "contention off": ({"enableContentionProfiling": False}, (True, False)),
    "contention without profiling": (
        {"enableProfiling": False, "enableContentionProfiling": True},
        (False, True),
    ),
}


@pytest.mark.parametrize(("fields", "expected"), PROFILING.values(), ids=PROFILING.keys())
def test_contention_profiling_follows_profiling(fields: dict[str, bool], expected: tuple[bool, bool]) -> None:
    config = parse_config({"apiVersion": API_VERSION, "kind": KIND, **fields})
    assert (config.enable_profiling, config.enable_contention_profiling) == expected


def test_given_arguments_come_first_and_are_completed() -> None:
    config = parse_profiles(
        [
            {
                "pluginConfig": [
                    {"name": "Mine", "args": {"colour": "blue", "nothing": None}},
                    {"name": "Bare"},
                    {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 0}},
                    {
                        "name": "NodeResourcesBalancedAllocation",
                        "args": {"resources": [{"name": "cpu", "weight": 0}, {"name": "example.com/gpu"}]},
                    },
                    {
                        "name": "NodeResourcesFit",
                        "args": {"scoringStrategy": {"type": "MostAllocated"}},
                    },
                    {"name": "InterPodAffinity", "args": None},
                ]
            }
        ],
        version=V1_36,
    )
    (profile,) = config.profiles
    assert [each.name for each in profile.plugin_config] == [
        "Mine",
        "Bare",
        "VolumeBinding",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "InterPodAffinity",
        "DefaultPreemption",
        "DynamicResources",
        "NodeAffinity",
        "PodTopologySpread",
    ]
    assert profile.args("Mine") == {"colour": "blue", "nothing": None}
    assert profile.args("Bare") is None
    assert profile.args("Unheard") is None
    assert profile.args("VolumeBinding") == VolumeBindingArgs(bind_timeout_seconds=0)
    assert profile.args("NodeResourcesBalancedAllocation").resources == (
        ResourceSpec(name="cpu", weight=1),
        ResourceSpec(name="example.com/gpu", weight=1),
    )
    assert profile.args("NodeResourcesFit").scoring_strategy == ScoringStrategy(
        type="MostAllocated", resources=CPU_AND_MEMORY
    )
    assert profile.args("InterPodAffinity") == InterPodAffinityArgs()


def test_plugins_that_are_not_enabled_get_no_arguments() -> None:
    config = parse_profiles(
        [
            {
                "plugins": {
                    "multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": "PrioritySort"}]},
                    "score": {"enabled": [{"name": "NodeResourcesFit"}]},
                }
            }
        ]
    )
    assert [each.name for each in config.profiles[0].plugin_config] == ["NodeResourcesFit"]


def test_arguments_follow_feature_gates() -> None:
    gates = {
        "DRASchedulerFilterTimeout": False,
        "DRADeviceBindingConditions": False,
        "DRAResourceClaimDeviceStatus": False,
        "DRAResourceClaimGranularStatusAuthorization": False,
        "StorageCapacityScoring": True,
    }
    (profile,) = default_config(V1_36.with_gates(gates)).profiles
    assert profile.args("DynamicResources") == DynamicResourcesArgs(filter_timeout=None, binding_timeout=None)
    assert profile.args("VolumeBinding").shape == (
        UtilizationShapePoint(utilization=0, score=10),
        UtilizationShapePoint(utilization=100, score=0),
    )


MERGES = {
    "custom comes last": (plugin_set("D1 D2"), plugin_set("C"), plugin_set("D1 D2 C")),
    "disable and enable moves behind": (
        plugin_set("D1 D2"),
        plugin_set("C D2", "D2"),
        plugin_set("D1 C D2", "D2"),
    ),
    "star leaves only custom": (plugin_set("D1 D2"), plugin_set("C D1 D2", "*"), plugin_set("C D1 D2", "*")),
    "star reorders": (plugin_set("D1 D2"), plugin_set("D2 D1", "*"), plugin_set("D2 D1", "*")),
    "nothing custom": (plugin_set("D1 D2"), plugin_set(), plugin_set("D1 D2")),
    "new weights stay in place": (
        plugin_set("P1 P2 P3"),
        plugin_set("P1:2 P3:3"),
        plugin_set("P1:2 P2 P3:3"),
    ),
    "order of the defaults wins": (
        plugin_set("P1 P2 P3"),
        plugin_set("P2:2 P1:1"),
        plugin_set("P1:1 P2:2 P3"),
    ),
    "the last mention replaces": (
        plugin_set("P1 P2 P3"),
        plugin_set("P1 P2:2 P3 P2:4"),
        plugin_set("P1 P2:4 P3 P2:2"),
    ),
    "defaults may be disabled": (
        plugin_set("D1", "D2"),
        plugin_set("C"),
        plugin_set("D1 C", "D2"),
    ),
    "custom disabled come first": (plugin_set("", "D"), plugin_set("", "C"), plugin_set("", "C D")),
    "only disabled": (plugin_set("D"), plugin_set("", "D"), plugin_set("", "D")),
    "disabled lose their weights": (plugin_set("D:1"), plugin_set("", "D:5"), plugin_set("", "D")),
    "star among others": (plugin_set("D1 D2"), plugin_set("C", "D1 *"), plugin_set("C", "D1 *")),
    "unknown disabled stay": (plugin_set("D"), plugin_set("", "X"), plugin_set("D", "X")),
}


@pytest.mark.parametrize(("default", "custom", "merged"), MERGES.values(), ids=MERGES.keys())
def test_merging(default: PluginSet, custom: PluginSet, merged: PluginSet) -> None:
    assert merge_plugin_set(default, custom) == merged


@pytest.mark.parametrize("point", Plugins.__struct_fields__)
def test_every_point_is_merged(point: str) -> None:
    default = replace(Plugins(), **{point: plugin_set("D1 D2", "X")})
    custom = replace(Plugins(), **{point: plugin_set("C", "D1")})
    assert merge_plugins(default, custom) == replace(Plugins(), **{point: plugin_set("D2 C", "D1 X")})
