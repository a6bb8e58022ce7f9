"""Every rule of validation, with kube-scheduler's field paths and words."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from moorage.config.args import DefaultPreemptionArgs, InterPodAffinityArgs
from moorage.config.load import ConfigError, default_config, parse_config
from moorage.config.types import (
    API_VERSION,
    KIND,
    LeaderElection,
    PluginConfig,
    Plugins,
    Profile,
    SchedulerConfiguration,
)
from moorage.config.validation import validate
from moorage.emulation.kubernetes_version import V1_36, V1_37, KubernetesVersion

QUALIFIED = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
REMOVED = (
    'was invalid in version "kubescheduler.config.k8s.io/v1" (KubeSchedulerConfiguration is version '
    '"kubescheduler.config.k8s.io/v1"); use NodeVolumeLimits'
)


def problems(fields: dict[str, Any], version: KubernetesVersion = V1_36) -> list[str]:
    """What loading a document with these fields complains about."""
    try:
        parse_config({"apiVersion": API_VERSION, "kind": KIND, **fields}, version=version)
    except ConfigError as error:
        return list(error.problems)
    return []


def enabled(*names: str) -> dict[str, Any]:
    return {"enabled": [{"name": name} for name in names]}


def profile(**fields: Any) -> dict[str, Any]:
    return {"profiles": [fields]}


def two_profiles(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    return {"profiles": [{"schedulerName": "one", **first}, {"schedulerName": "two", **second}]}


FIELDS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "burst": (
        {"clientConnection": {"burst": -1}},
        ["clientConnection.burst: Invalid value: -1: must be non-negative"],
    ),
    "durations": (
        {"leaderElection": {"leaseDuration": "-1s", "renewDeadline": "-2s", "retryPeriod": "-3s"}},
        [
            'leaderElection.leaseDuration: Invalid value: "-1s": must be greater than zero',
            'leaderElection.renewDeadline: Invalid value: "-2s": must be greater than zero',
            'leaderElection.retryPeriod: Invalid value: "-3s": must be greater than zero',
        ],
    ),
    "deadline after the lease": (
        {"leaderElection": {"leaseDuration": "10s", "renewDeadline": "10s"}},
        ['leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`'],
    ),
    "lock": (
        {"leaderElection": {"resourceLock": "endpoints"}},
        ['leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"'],
    ),
    "no election, no rules": (
        {"leaderElection": {"leaderElect": False, "resourceLock": "x", "leaseDuration": "-1s"}},
        [],
    ),
    "parallelism": (
        {"parallelism": 0},
        ["parallelism: Invalid value: 0: should be an integer value greater than zero"],
    ),
    "percentage too great": (
        {"percentageOfNodesToScore": 101},
        ["percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"],
    ),
    "percentage too small": (
        {"percentageOfNodesToScore": -1},
        ["percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]"],
    ),
    "percentage of a profile": (
        profile(percentageOfNodesToScore=101),
        ["profiles[0].percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"],
    ),
    "bounds of percentages": ({"percentageOfNodesToScore": 100, **profile(percentageOfNodesToScore=0)}, []),
    "initial backoff": (
        {"podInitialBackoffSeconds": 0},
        ["podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"],
    ),
    "max backoff": (
        {"podInitialBackoffSeconds": 5, "podMaxBackoffSeconds": 4},
        ["podMaxBackoffSeconds: Invalid value: 4: must be greater than or equal to PodInitialBackoffSeconds"],
    ),
    "equal backoffs": ({"podInitialBackoffSeconds": 5, "podMaxBackoffSeconds": 5}, []),
    "several profiles need names": (
        {"profiles": [{"schedulerName": "one"}, {}]},
        ["profiles[1].schedulerName: Required value: a profile that is not alone needs a name"],
    ),
    "an empty name is none": (
        profile(schedulerName=""),
        ["profiles[0].schedulerName: Required value: a profile that is not alone needs a name"],
    ),
    "names are unique": (
        {"profiles": [{"schedulerName": "one"}, {"schedulerName": "two"}, {"schedulerName": "one"}]},
        [
            'profiles[2].schedulerName: Duplicate value: "one": already the name of profiles[0]; '
            "every profile needs a name of its own"
        ],
    ),
    "arguments twice": (
        profile(pluginConfig=[{"name": "Mine"}, {"name": "Mine"}]),
        ['profiles[0].pluginConfig[1]: Duplicate value: "Mine": a plugin\'s arguments are given once'],
    ),
    "removed plugins": (
        profile(
            plugins={"filter": enabled("X", "AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")}
        ),
        [
            f'profiles[0].plugins.filter.enabled[{index}]: Invalid value: "{name}": {REMOVED}'
            for index, name in enumerate(
                ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"), start=1
            )
        ],
    ),
    "removed plugin everywhere": (
        profile(plugins={"multiPoint": {"disabled": [{"name": "*"}], **enabled("EBSLimits")}}),
        [f'profiles[0].plugins.multiPoint.enabled[0]: Invalid value: "EBSLimits": {REMOVED}'],
    ),
    "removed plugins may be disabled": (
        profile(plugins={"filter": {"disabled": [{"name": "EBSLimits"}]}}),
        [],
    ),
    "arguments of a removed plugin": (
        profile(pluginConfig=[{"name": "EBSLimits", "args": {"a": 1}}]),
        [f'profiles[0].pluginConfig[0]: Invalid value: "EBSLimits": {REMOVED}'],
    ),
    "two queue sorts": (
        profile(plugins={"queueSort": enabled("A", "B")}),
        [
            "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: "
            "only one queue sort plugin can be enabled"
        ],
    ),
    "different queue sorts": (
        two_profiles({"plugins": {"queueSort": enabled("A")}}, {"plugins": {"queueSort": enabled("B")}}),
        [
            'profiles[1].plugins.queueSort: Invalid value: {"enabled":[{"name":"B"}]}: '
            "must be the same for all profiles"
        ],
    ),
    "one without a queue sort": (
        two_profiles({}, {"plugins": {"queueSort": enabled("B")}}),
        [
            'profiles[1].plugins.queueSort: Invalid value: {"enabled":[{"name":"B"}]}: '
            "must be the same for all profiles"
        ],
    ),
    "same queue sort, weight of zero": (
        two_profiles(
            {"plugins": {"queueSort": enabled("A")}},
            {"plugins": {"queueSort": {"enabled": [{"name": "A", "weight": 0}]}}},
        ),
        [],
    ),
    "different arguments of the queue sort": (
        two_profiles(
            {"plugins": {"queueSort": enabled("A")}, "pluginConfig": [{"name": "A", "args": {"x": 1}}]},
            {"plugins": {"queueSort": enabled("A")}, "pluginConfig": [{"name": "A", "args": {"x": 2}}]},
        ),
        [
            'profiles[1].pluginConfig.args: Invalid value: {"x":2}: '
            "queueSort must be the same for all profiles"
        ],
    ),
    "extender without a weight": (
        {"extenders": [{"prioritizeVerb": "prioritize"}]},
        ["extenders[0].weight: Invalid value: 0: must have a positive weight applied to it"],
    ),
    "extender that does not prioritize": ({"extenders": [{"filterVerb": "filter"}]}, []),
    "two binders": (
        {"extenders": [{"bindVerb": "bind"}, {"bindVerb": "bind"}]},
        [
            'extenders: Invalid value: "found 2 extenders implementing bind": '
            "only one extender can implement bind"
        ],
    ),
    "resources managed twice": (
        {
            "extenders": [
                {"managedResources": [{"name": "example.com/a"}]},
                {"managedResources": [{"name": "example.com/b"}, {"name": "example.com/a"}]},
            ]
        },
        [
            'extenders[1].managedResources[1].name: Invalid value: "example.com/a": '
            "duplicate extender managed resource name"
        ],
    ),
    "managed resource of Kubernetes": (
        {"extenders": [{"managedResources": [{"name": "cpu"}, {"name": "kubernetes.io/foo"}]}]},
        [
            f'extenders[0].managedResources[{index}].name: Invalid value: "{name}": '
            "is an invalid extended resource name; it needs a domain, like example.com/gpu"
            for index, name in enumerate(("cpu", "kubernetes.io/foo"))
        ],
    ),
    "managed resource with a bad name": (
        {"extenders": [{"managedResources": [{"name": "example.com/-"}]}]},
        [f'extenders[0].managedResources[0].name: Invalid value: "example.com/-": {QUALIFIED}'],
    ),
    "all problems at once": (
        {"parallelism": -1, "podInitialBackoffSeconds": -1, **profile(percentageOfNodesToScore=200)},
        [
            "parallelism: Invalid value: -1: should be an integer value greater than zero",
            "profiles[0].percentageOfNodesToScore: Invalid value: 200: not in valid range [0-100]",
            "podInitialBackoffSeconds: Invalid value: -1: must be greater than 0",
        ],
    ),
}


@pytest.mark.parametrize(("fields", "expected"), FIELDS.values(), ids=FIELDS.keys())
def test_fields(fields: dict[str, Any], expected: list[str]) -> None:
    assert problems(fields) == expected


REQUIRED_LABELS = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
PREFERRED_LABELS = "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"


def required_term(**term: Any) -> dict[str, Any]:
    return {
        "addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    }


def preferred_term(weight: int, **term: Any) -> dict[str, Any]:
    terms = [{"weight": weight, "preference": term}]
    return {"addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


def strategy(kind: str = "LeastAllocated", **fields: Any) -> dict[str, Any]:
    return {"scoringStrategy": {"type": kind, **fields}}


def ratio(*points: tuple[int, int]) -> dict[str, Any]:
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    return strategy("RequestedToCapacityRatio", requestedToCapacityRatio={"shape": shape})


def constraint(**fields: Any) -> dict[str, Any]:
    standard = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    return {**standard, **fields}


def spread(*constraints: dict[str, Any]) -> dict[str, Any]:
    return {"defaultingType": "List", "defaultConstraints": list(constraints)}


SHAPE = "scoringStrategy.requestedToCapacityRatio.shape"

ARGS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "candidates in percent": (
        "DefaultPreemption",
        {"minCandidateNodesPercentage": 101},
        ["minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]"],
    ),
    "candidates below zero": (
        "DefaultPreemption",
        {"minCandidateNodesPercentage": -1, "minCandidateNodesAbsolute": -1},
        [
            "minCandidateNodesPercentage: Invalid value: -1: not in valid range [0, 100]",
            "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
        ],
    ),
    "no candidates": (
        "DefaultPreemption",
        {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
        [
            "minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as "
            "minCandidateNodesAbsolute",
            "minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as "
            "minCandidateNodesPercentage",
        ],
    ),
    "one kind of candidates": ("DefaultPreemption", {"minCandidateNodesPercentage": 0}, []),
    "affinity weight": (
        "InterPodAffinity",
        {"hardPodAffinityWeight": 101},
        ["hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"],
    ),
    "affinity weight below zero": (
        "InterPodAffinity",
        {"hardPodAffinityWeight": -1},
        ["hardPodAffinityWeight: Invalid value: -1: not in valid range [0, 100]"],
    ),
    "operator": (
        "NodeAffinity",
        required_term(matchExpressions=[{"key": "a", "operator": "Is", "values": ["b"]}]),
        [
            f'{REQUIRED_LABELS}[0].matchExpressions[0].operator: Unsupported value: "Is": supported values: '
            '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
        ],
    ),
    "field selector": (
        "NodeAffinity",
        required_term(matchFields=[{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]),
        [f'{REQUIRED_LABELS}[0].matchFields[0].values: Invalid value: ["a","b"]: must have one element'],
    ),
    "preferred term": (
        "NodeAffinity",
        preferred_term(1, matchExpressions=[{"key": "a", "operator": "In"}]),
        [
            f"{PREFERRED_LABELS}[0].matchExpressions[0].values: Invalid value: []: "
            "for 'in', 'notin' operators, values set can't be empty"
        ],
    ),
    "preferred term without weight": (
        "NodeAffinity",
        preferred_term(0, matchExpressions=[{"key": "a", "operator": "In"}]),
        [],
    ),
    "good affinity": (
        "NodeAffinity",
        required_term(matchExpressions=[{"key": "a", "operator": "In", "values": ["b"]}]),
        [],
    ),
    "balanced resource twice": (
        "NodeResourcesBalancedAllocation",
        {"resources": [{"name": "cpu"}, {"name": "cpu"}]},
        ['resources[1].name: Duplicate value: "cpu": name every resource once'],
    ),
    "balanced resource with a weight": (
        "NodeResourcesBalancedAllocation",
        {"resources": [{"name": "cpu", "weight": 2}]},
        ["resources[0].weight: Invalid value: 2: must be 1"],
    ),
    "ignored resource": (
        "NodeResourcesFit",
        {"ignoredResources": ["example.com/ok", "-"]},
        [f'ignoredResources[1]: Invalid value: "-": {QUALIFIED}'],
    ),
    "ignored group": (
        "NodeResourcesFit",
        {"ignoredResourceGroups": ["example.com", "example.com/gpu"]},
        [
            'ignoredResourceGroups[1]: Invalid value: "example.com/gpu": '
            "resource group name can't contain '/'"
        ],
    ),
    "strategy": (
        "NodeResourcesFit",
        strategy("Best"),
        [
            'scoringStrategy.type: Unsupported value: "Best": supported values: "LeastAllocated", '
            '"MostAllocated", "RequestedToCapacityRatio"'
        ],
    ),
    "strategy without a type": (
        "NodeResourcesFit",
        {"scoringStrategy": {"resources": [{"name": "cpu"}]}},
        [
            'scoringStrategy.type: Unsupported value: "": supported values: "LeastAllocated", '
            '"MostAllocated", "RequestedToCapacityRatio"'
        ],
    ),
    "resource weights": (
        "NodeResourcesFit",
        strategy(resources=[{"name": "cpu", "weight": -1}, {"name": "memory", "weight": 101}, {"name": "x"}]),
        [
            "scoringStrategy.resources[0].weight: Invalid value: -1: resource weight of cpu not in valid "
            "range (0, 100]",
            "scoringStrategy.resources[1].weight: Invalid value: 101: resource weight of memory not in valid "
            "range (0, 100]",
        ],
    ),
    "ratio without a shape": (
        "NodeResourcesFit",
        strategy("RequestedToCapacityRatio"),
        [
            "scoringStrategy.requestedToCapacityRatio: Required value: must be specified when type is "
            "RequestedToCapacityRatio"
        ],
    ),
    "shape without a ratio": (
        "NodeResourcesFit",
        strategy(requestedToCapacityRatio={"shape": [{"utilization": 0, "score": 1}]}),
        [
            "scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when type is not "
            "RequestedToCapacityRatio; remove it"
        ],
    ),
    "empty shape": (
        "NodeResourcesFit",
        ratio(),
        [f"{SHAPE}: Required value: at least one point must be specified"],
    ),
    "shape out of order": (
        "NodeResourcesFit",
        ratio((10, 1), (10, 2), (5, 3)),
        [f"{SHAPE}[1].utilization: Invalid value: 10: values must be sorted in increasing order"],
    ),
    "shape out of range": (
        "NodeResourcesFit",
        ratio((-1, -1), (101, 11)),
        [
            f"{SHAPE}[0].utilization: Invalid value: -1: not in valid range [0, 100]",
            f"{SHAPE}[0].score: Invalid value: -1: not in valid range [0, 10]",
            f"{SHAPE}[1].utilization: Invalid value: 101: not in valid range [0, 100]",
            f"{SHAPE}[1].score: Invalid value: 11: not in valid range [0, 10]",
        ],
    ),
    "good shape": ("NodeResourcesFit", ratio((0, 10), (100, 0)), []),
    "defaulting type": (
        "PodTopologySpread",
        {"defaultingType": "Own"},
        ['defaultingType: Unsupported value: "Own": supported values: "System", "List"'],
    ),
    "system with constraints": (
        "PodTopologySpread",
        {"defaultConstraints": [constraint()]},
        ['defaultingType: Invalid value: "System": when .defaultConstraints are not empty; set it to List'],
    ),
    "skew": (
        "PodTopologySpread",
        spread(constraint(maxSkew=0)),
        ["defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)"],
    ),
    "no topology key": (
        "PodTopologySpread",
        spread(constraint(topologyKey="")),
        ["defaultConstraints[0].topologyKey: Required value: can not be empty"],
    ),
    "bad topology key": (
        "PodTopologySpread",
        spread(constraint(topologyKey="-")),
        [f'defaultConstraints[0].topologyKey: Invalid value: "-": {QUALIFIED}'],
    ),
    "no action": (
        "PodTopologySpread",
        spread(constraint(whenUnsatisfiable="")),
        ["defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty"],
    ),
    "bad action": (
        "PodTopologySpread",
        spread(constraint(whenUnsatisfiable="Wait")),
        [
            'defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Wait": supported values: '
            '"DoNotSchedule", "ScheduleAnyway"'
        ],
    ),
    "selector": (
        "PodTopologySpread",
        spread(constraint(labelSelector={})),
        [
            "defaultConstraints[0].labelSelector: Forbidden: constraint must not define a selector, as they "
            "deduced for each pod"
        ],
    ),
    "constraint twice": (
        "PodTopologySpread",
        spread(constraint(), constraint(whenUnsatisfiable="DoNotSchedule"), constraint(maxSkew=2)),
        ['defaultConstraints[2]: Duplicate value: "{zone, ScheduleAnyway}"'],
    ),
    "bind time-out": (
        "VolumeBinding",
        {"bindTimeoutSeconds": -1},
        [
            "bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, "
            "should not be a negative value",
        ],
    ),
    "shape without its gate": (
        "VolumeBinding",
        {"shape": [{"utilization": 0, "score": 10}]},
        [
            'shape: Invalid value: [{"utilization":0,"score":10}]: unexpected field `shape`, remove it or '
            "turn on the feature gate StorageCapacityScoring"
        ],
    ),
    "filter time-out": (
        "DynamicResources",
        {"filterTimeout": "-1s"},
        ['filterTimeout: Invalid value: "-1s": must be zero or positive'],
    ),
    "no filter time-out": ("DynamicResources", {"filterTimeout": "0s"}, []),
    "binding time-out": (
        "DynamicResources",
        {"bindingTimeout": "999ms"},
        ['bindingTimeout: Invalid value: "999ms": must be at least 1 second'],
    ),
}


@pytest.mark.parametrize(("plugin", "args", "expected"), ARGS.values(), ids=ARGS.keys())
def test_args(plugin: str, args: dict[str, Any], expected: list[str]) -> None:
    fields = profile(pluginConfig=[{"name": "Mine"}, {"name": plugin, "args": args}])
    assert problems(fields) == [f"profiles[0].pluginConfig[1].args.{problem}" for problem in expected]


GATED: dict[str, tuple[str, dict[str, Any], dict[str, bool], list[str]]] = {
    "shape with its gate": (
        "VolumeBinding",
        {"shape": [{"utilization": 0, "score": 10}]},
        {"StorageCapacityScoring": True},
        [],
    ),
    "bad shape with its gate": (
        "VolumeBinding",
        {"shape": [{"utilization": 0, "score": 11}]},
        {"StorageCapacityScoring": True},
        ["shape[0].score: Invalid value: 11: not in valid range [0, 10]"],
    ),
    "filter time-out": (
        "DynamicResources",
        {"filterTimeout": "5s"},
        {"DRASchedulerFilterTimeout": False},
        ["filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is disabled"],
    ),
    "binding time-out, conditions off": (
        "DynamicResources",
        {"bindingTimeout": "5s"},
        {"DRADeviceBindingConditions": False},
        [
            "bindingTimeout: Forbidden: DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature "
            "gate is disabled"
        ],
    ),
    "binding time-out, status off": (
        "DynamicResources",
        {"bindingTimeout": "5s"},
        {
            "DRADeviceBindingConditions": False,
            "DRAResourceClaimDeviceStatus": False,
            "DRAResourceClaimGranularStatusAuthorization": False,
        },
        [
            "bindingTimeout: Forbidden: DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature "
            "gate is disabled"
        ],
    ),
}


@pytest.mark.parametrize(("plugin", "args", "gates", "expected"), GATED.values(), ids=GATED.keys())
def test_args_behind_gates(
    plugin: str, args: dict[str, Any], gates: dict[str, bool], expected: list[str]
) -> None:
    fields = profile(pluginConfig=[{"name": plugin, "args": args}])
    assert problems(fields, V1_36.with_gates(gates)) == [
        f"profiles[0].pluginConfig[0].args.{each}" for each in expected
    ]


def built(**fields: Any) -> SchedulerConfiguration:
    return replace(default_config(), **fields)


BUILT: dict[str, tuple[SchedulerConfiguration, list[str]]] = {
    "no profiles": (built(profiles=()), ["profiles: Required value: at least one profile is needed"]),
    "no lock": (
        built(leader_election=LeaderElection(resource_lock="", resource_name="", resource_namespace="")),
        [
            "leaderElection.resourceLock: Required value",
            "leaderElection.resourceNamespace: Required value",
            "leaderElection.resourceName: Required value",
            'leaderElection.resourceLock: Invalid value: "": resourceLock value must be "leases"',
        ],
    ),
    "arguments of another plugin": (
        built(
            profiles=(
                Profile(
                    plugins=Plugins(),
                    plugin_config=(PluginConfig(name="DefaultPreemption", args=InterPodAffinityArgs()),),
                ),
            )
        ),
        [
            'profiles[0].pluginConfig[0].args: Invalid value: {"apiVersion":"kubescheduler.config.k8s.io/v1",'
            '"kind":"InterPodAffinityArgs","hardPodAffinityWeight":1,"ignorePreferredTermsOfExistingPods":'
            "false}: has to match plugin args; expected DefaultPreemptionArgs"
        ],
    ),
    "good": (
        built(
            profiles=(
                Profile(
                    plugin_config=(PluginConfig(name="DefaultPreemption", args=DefaultPreemptionArgs()),)
                ),
            )
        ),
        [],
    ),
}


@pytest.mark.parametrize(("config", "expected"), BUILT.values(), ids=BUILT.keys())
def test_configurations_made_in_code(config: SchedulerConfiguration, expected: list[str]) -> None:
    assert validate(config) == expected


def test_groups_have_a_post_filter_since_v1_37() -> None:
    fields = profile(plugins={"podGroupPostFilter": {"enabled": [{"name": "DefaultPreemption"}]}})
    assert problems(fields, V1_37) == []
    unknown = "profiles[0].plugins.podGroupPostFilter: unknown field in v1.36"
    assert problems(fields, V1_36) == [unknown]
