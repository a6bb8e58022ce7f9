"""Converting old versions: realistic files, each rule, and what cannot be converted."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from moorage.config.convert import convert_config
from moorage.config.load import ConfigError, parse_config, read_document
from moorage.config.types import API_VERSION, KIND, Profile

DATA = Path(__file__).parent / "data"
GROUP = "kubescheduler.config.k8s.io"


def convert_file(name: str) -> tuple[dict[str, Any], list[str]]:
    return convert_config(read_document(DATA / name), name)


def refs(*names: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for each in names:
        name, _, weight = each.partition(":")
        found.append({"name": name, **({"weight": int(weight)} if weight else {})})
    return found


def mentions(notes: list[str], *words: str) -> bool:
    return any(all(word in note for word in words) for note in notes)


def test_the_sample_of_the_guides() -> None:
    converted, notes = convert_file("sample-v1alpha1.yaml")
    assert converted == {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "leaderElection": {
            "leaderElect": True,
            "resourceName": "sample-scheduler",
            "resourceNamespace": "kube-system",
        },
        "profiles": [
            {
                "schedulerName": "sample-scheduler",
                "plugins": {
                    point: {"enabled": refs("sample-plugin")} for point in ("preFilter", "filter", "preBind")
                },
                "pluginConfig": [
                    {
                        "name": "sample-plugin",
                        "args": {"favorite_color": "#326CE5", "favorite_number": 7, "thanks_to": "thockin"},
                    }
                ],
            }
        ],
    }
    assert notes == [
        "leaderElection.lockObjectName: now written resourceName",
        "leaderElection.lockObjectNamespace: now written resourceNamespace",
        "schedulerName, plugins and pluginConfig moved into profiles[0]",
        "default weights have changed since v1alpha1: TaintToleration 1 to 3, NodeAffinity 1 to 2, "
        "InterPodAffinity 1 to 2; to keep the old ones, list these plugins with weight 1 under "
        "plugins.score.enabled",
    ]


def test_v1alpha1_with_all_old_fields() -> None:
    converted, notes = convert_file("full-v1alpha1.yaml")
    assert converted == {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "percentageOfNodesToScore": 20,
        "enableProfiling": False,
        "leaderElection": {"leaderElect": True, "resourceLock": "leases"},
        "profiles": [
            {
                "schedulerName": "packer",
                "plugins": {
                    "preScore": {"enabled": refs("warm-up")},
                    "reserve": {"enabled": refs("licences", "quota")},
                    "multiPoint": {"disabled": refs("DefaultPreemption")},
                },
                "pluginConfig": [
                    {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}},
                    {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 300}},
                    {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 5}},
                ],
            }
        ],
    }
    for words in (
        ("healthzBindAddress", "dropped"),
        ("metricsBindAddress", "dropped"),
        ("resourceLock", "endpointsleases", "leases"),
        ("algorithmSource.provider", "ClusterAutoscalerProvider"),
        ("ClusterAutoscalerProvider", "MostAllocated"),
        ("postFilter", "preScore"),
        ("unreserve", "licences", "reserve"),
        ("unreserve", "quota", "reserve"),
        ("disablePreemption", "DefaultPreemption"),
        ("bindTimeoutSeconds", "VolumeBinding"),
        ("hardPodAffinitySymmetricWeight", "InterPodAffinity"),
    ):
        assert mentions(notes, *words), words


def test_v1alpha2() -> None:
    converted, notes = convert_file("v1alpha2.yaml")
    binding = {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 120}}
    assert converted == {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "podInitialBackoffSeconds": 2,
        "profiles": [
            {"schedulerName": "default-scheduler", "pluginConfig": [binding]},
            {
                "schedulerName": "no-spreading",
                "plugins": {"score": {"disabled": refs("NodeResourcesFit")}},
                "pluginConfig": [{"name": "PodTopologySpread", "args": {"defaultingType": "List"}}, binding],
            },
        ],
        "extenders": [
            {
                "urlPrefix": "https://extender.example.com/v1",
                "filterVerb": "filter",
                "prioritizeVerb": "prioritize",
                "weight": 2,
                "enableHTTPS": True,
                "httpTimeout": "100ms",
                "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
            }
        ],
    }
    assert mentions(notes, "profiles[1]", "DefaultPodTopologySpread", "PodTopologySpread", "switched off")
    assert mentions(notes, "profiles[1]", "NodeResourcesLeastAllocated", "NodeResourcesFit", "disabled")
    assert mentions(notes, "extenders[0].enableHttps", "enableHTTPS")
    assert mentions(notes, "extenders[0].httpTimeout", "100ms")


def test_v1beta1() -> None:
    converted, notes = convert_file("v1beta1.yaml")
    (profile,) = converted["profiles"]
    assert converted["clientConnection"] == {"kubeconfig": "/etc/srv/kubernetes/kube-scheduler/kubeconfig"}
    assert profile["plugins"] == {"score": {"enabled": refs("NodeResourcesFit:7", "PodTopologySpread:4")}}
    assert {each["name"]: each["args"] for each in profile["pluginConfig"]} == {
        "NodeResourcesFit": {
            "scoringStrategy": {
                "type": "RequestedToCapacityRatio",
                "resources": [{"name": "example.com/gpu", "weight": 5}, {"name": "cpu", "weight": 1}],
                "requestedToCapacityRatio": {
                    "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
                },
            }
        },
        "NodeAffinity": {
            "addedAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "region", "operator": "Exists"},
                                {"key": "retiring", "operator": "DoesNotExist"},
                            ]
                        }
                    ]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": {"matchExpressions": [{"key": "ssd", "operator": "Exists"}]}}
                ],
            }
        },
        "InterPodAffinity": {
            "apiVersion": API_VERSION,
            "kind": "InterPodAffinityArgs",
            "hardPodAffinityWeight": 10,
        },
        "PodTopologySpread": {
            "defaultConstraints": [
                {
                    "maxSkew": 2,
                    "topologyKey": "topology.kubernetes.io/zone",
                    "whenUnsatisfiable": "ScheduleAnyway",
                }
            ],
            "defaultingType": "List",
        },
    }
    for words in (
        ("EBSLimits", "NodeVolumeLimits"),
        ("RequestedToCapacityRatio", "NodeResourcesFit"),
        ("NodeLabel", "NodeAffinity"),
        ("SelectorSpread", "PodTopologySpread"),
        ("ServiceAffinity", "dropped", "inter-pod affinity"),
        ("NodePreferAvoidPods", "dropped", "taints"),
        ("InterPodAffinity", API_VERSION),
        ("defaultingType List",),
        ("default weights", "v1beta1"),
    ):
        assert mentions(notes, *words), words


def test_v1beta2() -> None:
    converted, notes = convert_file("v1beta2.yaml")
    assert converted == {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "parallelism": 8,
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {"score": {"enabled": refs("NodeResourcesFit:5"), "disabled": refs("*")}},
                "pluginConfig": [
                    {
                        "name": "NodeResourcesFit",
                        "args": {
                            "apiVersion": API_VERSION,
                            "kind": "NodeResourcesFitArgs",
                            "scoringStrategy": {"type": "MostAllocated", "resources": refs("cpu:3")},
                        },
                    },
                    {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 60}},
                ],
            }
        ],
    }
    assert mentions(notes, "VolumeBinding", "shape", "StorageCapacityScoring")
    assert mentions(notes, "healthzBindAddress")


def test_v1beta3() -> None:
    converted, notes = convert_file("v1beta3.yaml")
    (profile,) = converted["profiles"]
    assert profile["plugins"] == {
        "filter": {"enabled": refs("NodeResourcesFit", "NodeVolumeLimits"), "disabled": refs("*")},
        "multiPoint": {"enabled": refs("TargetLoadPacking")},
    }
    assert profile["pluginConfig"] == [
        {
            "name": "TargetLoadPacking",
            "args": {
                "apiVersion": "kubescheduler.config.k8s.io/v1beta3",
                "kind": "TargetLoadPackingArgs",
                "targetUtilization": 40,
            },
        },
        {
            "name": "DefaultPreemption",
            "args": {
                "apiVersion": API_VERSION,
                "kind": "DefaultPreemptionArgs",
                "minCandidateNodesPercentage": 50,
            },
        },
    ]
    for name in ("AzureDiskLimits", "GCEPDLimits", "CinderLimits"):
        assert mentions(notes, name, "NodeVolumeLimits"), name
    assert not mentions(notes, "default weights")


@pytest.mark.parametrize("name", sorted(path.name for path in DATA.iterdir()))
def test_results_load_and_the_input_stays(name: str) -> None:
    document = read_document(DATA / name)
    before = copy.deepcopy(document)
    converted, notes = convert_config(document)
    assert document == before
    assert parse_config(converted).profiles
    assert len(notes) == len(set(notes)), "a note is given once"


def beta1(plugins: dict[str, Any] | None = None, *configs: dict[str, Any]) -> dict[str, Any]:
    profile = {"plugins": plugins or {}, "pluginConfig": list(configs)}
    return {"apiVersion": f"{GROUP}/v1beta1", "kind": KIND, "profiles": [profile]}


def config(name: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args}


def result(document: dict[str, Any]) -> tuple[Profile, list[str]]:
    converted, notes = convert_config(document)
    return parse_config(converted).profiles[0], notes


def test_arguments_of_the_old_default_strategy_are_kept() -> None:
    profile, _ = result(
        beta1(None, config("NodeResourcesLeastAllocated", resources=refs("cpu:3", "memory:0")))
    )
    strategy = profile.args("NodeResourcesFit").scoring_strategy
    assert strategy.type == "LeastAllocated"
    assert [(each.name, each.weight) for each in strategy.resources] == [("cpu", 3)]


def test_arguments_of_a_strategy_that_is_off_are_dropped() -> None:
    profile, notes = result(beta1(None, config("NodeResourcesMostAllocated", resources=refs("cpu:3"))))
    assert profile.args("NodeResourcesFit").scoring_strategy.type == "LeastAllocated"
    assert mentions(notes, "NodeResourcesMostAllocated", "dropped")


def test_of_two_strategies_the_heavier_stays() -> None:
    plugins = {"score": {"enabled": refs("RequestedToCapacityRatio:2", "NodeResourcesMostAllocated:9")}}
    shape = [{"utilization": 0, "score": 5}]
    profile, notes = result(beta1(plugins, config("RequestedToCapacityRatio", shape=shape)))
    assert [(ref.name, ref.weight) for ref in profile.plugins.score.enabled] == [("NodeResourcesFit", 9)]
    assert profile.args("NodeResourcesFit").scoring_strategy.type == "MostAllocated"
    assert mentions(notes, "RequestedToCapacityRatio", "dropped")


def test_the_weight_of_a_strategy_gives_way_to_that_of_the_plugin() -> None:
    plugins = {"score": {"enabled": refs("NodeResourcesFit:5", "NodeResourcesMostAllocated:9")}}
    profile, notes = result(beta1(plugins))
    assert [(ref.name, ref.weight) for ref in profile.plugins.score.enabled] == [("NodeResourcesFit", 5)]
    assert mentions(notes, "weight of NodeResourcesMostAllocated", "dropped")


def test_no_scoring_at_all_stays_so() -> None:
    profile, _ = result(beta1({"score": {"disabled": refs("*", "NodeResourcesLeastAllocated")}}))
    assert profile.plugins.score.disabled_names == {"*"}
    assert profile.plugins.score.enabled == ()


def test_labels_join_an_affinity_that_is_there() -> None:
    own = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": own}
    document = beta1(
        {"filter": {"enabled": refs("NodeLabel")}},
        config("NodeAffinity", addedAffinity=affinity),
        config("NodeLabel", presentLabels=["b"], absentLabelsPreference=["c"]),
    )
    profile, _ = result(document)
    added = profile.args("NodeAffinity").added_affinity
    (term,) = added.required_during_scheduling_ignored_during_execution.node_selector_terms
    assert [each.key for each in term.match_expressions] == ["a", "b"]
    # NodeLabel did not score, so its preferences meant nothing.
    assert added.preferred_during_scheduling_ignored_during_execution == ()


def test_successors_are_enabled_where_all_defaults_are_off() -> None:
    plugins = {
        "filter": {
            "disabled": refs("*"),
            "enabled": refs("NodeLabel", "EBSLimits", "NodeName", "GCEPDLimits"),
        },
        "score": {"disabled": refs("*"), "enabled": refs("SelectorSpread:3")},
    }
    profile, _ = result(beta1(plugins, config("NodeLabel", presentLabels=["a"])))
    assert [ref.name for ref in profile.plugins.filter.enabled] == [
        "NodeAffinity",
        "NodeVolumeLimits",
        "NodeName",
    ]
    assert [(ref.name, ref.weight) for ref in profile.plugins.score.enabled] == [("PodTopologySpread", 3)]
    assert profile.args("PodTopologySpread").defaulting_type == "System"


def test_mentions_of_what_was_off_are_dropped() -> None:
    _, notes = result(beta1({"filter": {"disabled": refs("NodeLabel")}}, config("EBSLimits", a=1)))
    assert mentions(notes, "NodeLabel", "dropped")
    assert mentions(notes, "EBSLimits", "NodeVolumeLimits")


def test_unreserve_may_be_disabled() -> None:
    document = beta1({"unreserve": {"disabled": refs("x")}})
    document["apiVersion"] = f"{GROUP}/v1alpha2"
    _, notes = result(document)
    assert mentions(notes, "unreserve.disabled", "x", "reserve")


def test_policies_are_pointed_at() -> None:
    for policy, place in (
        ({"file": {"path": "/etc/policy.json"}}, "the policy file /etc/policy.json"),
        (
            {"configMap": {"namespace": "kube-system", "name": "p"}},
            "the policy in the config map kube-system/p",
        ),
    ):
        document = {
            "apiVersion": f"{GROUP}/v1alpha1",
            "kind": KIND,
            "algorithmSource": {"policy": policy},
        }
        converted, notes = convert_config(document)
        assert converted == {"apiVersion": API_VERSION, "kind": KIND}
        assert mentions(notes, "algorithmSource.policy", place, "moorage config convert")


def test_a_new_file_stays_as_it_is() -> None:
    document = {"apiVersion": API_VERSION, "kind": KIND, "parallelism": 3}
    assert convert_config(document) == (
        document,
        [f"the file is of {API_VERSION} already; nothing to convert"],
    )


def old(version: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/{version}", "kind": KIND, **fields}


REFUSED: dict[str, tuple[Any, str]] = {
    "list": ([], "f: expected an object with apiVersion and kind"),
    "unknown version": (
        {"apiVersion": "x/v9", "kind": KIND},
        "f: apiVersion x/v9, kind KubeSchedulerConfiguration: ",
    ),
    "unknown field": (old("v1beta1", colour=1), "f: colour: unknown field"),
    "two names of a lock": (
        old("v1alpha1", leaderElection={"lockObjectName": "a", "resourceName": "b"}),
        "f: leaderElection.lockObjectName: differs from resourceName; remove one of them",
    ),
    "plugins that are a list": (old("v1alpha1", plugins=["a"]), "f: plugins: expected an object, got a list"),
    "plugin without a name": (
        old("v1beta1", profiles=[{"plugins": {"filter": {"enabled": [{}]}}}]),
        "f: profiles[0].plugins.filter.enabled[0].name: Required value",
    ),
    "unreserve that is a list": (
        old("v1alpha2", profiles=[{"plugins": {"unreserve": [1]}}]),
        "f: profiles[0].plugins.unreserve: expected an object, got a list",
    ),
    "arguments that are an object": (
        old("v1beta1", profiles=[{"pluginConfig": {"a": 1}}]),
        "f: profiles[0].pluginConfig: expected a list",
    ),
    "arguments given twice": (
        old("v1beta1", profiles=[{"pluginConfig": [{"name": "a"}, {"name": "a"}]}]),
        "f: profiles[0].pluginConfig[1]: the args of a are given twice; keep one",
    ),
    "profiles that are text": (old("v1beta1", profiles="a"), 'f: profiles: expected a list, got "a"'),
    "a profile that is text": (old("v1beta1", profiles=["a"]), 'f: profiles[0]: expected an object, got "a"'),
    "source that is text": (
        old("v1alpha1", algorithmSource="x"),
        'f: algorithmSource: expected an object, got "x"',
    ),
    "truth that is text": (
        old("v1alpha1", disablePreemption="yes"),
        'f: disablePreemption: expected true or false, got "yes"',
    ),
    "election that is text": (
        old("v1beta1", leaderElection="x"),
        'f: leaderElection: expected an object, got "x"',
    ),
    "extenders that are text": (old("v1alpha2", extenders="x"), 'f: extenders: expected a list, got "x"'),
    "extender that is text": (
        old("v1alpha2", extenders=["x"]),
        'f: extenders[0]: expected an object, got "x"',
    ),
    "time-out that is too long": (
        old("v1alpha2", extenders=[{"httpTimeout": 1 << 70}]),
        "f: extenders[0].httpTimeout: expected a duration (like 15s, 1m30s or 100ms), got 11805916207174",
    ),
    "strategy arguments": (
        beta1(
            {"score": {"enabled": refs("NodeResourcesMostAllocated")}},
            {"name": "NodeResourcesMostAllocated", "args": 5},
        ),
        "f: profiles[0].pluginConfig(NodeResourcesMostAllocated).args: expected an object, got 5",
    ),
    "label arguments": (
        beta1({"filter": {"enabled": refs("NodeLabel")}}, config("NodeLabel", presentLabels="region")),
        'f: profiles[0].pluginConfig(NodeLabel).args.presentLabels: expected a list, got "region"',
    ),
    "affinity arguments": (
        beta1(
            {"filter": {"enabled": refs("NodeLabel")}},
            config("NodeLabel", presentLabels=["region"]),
            config("NodeAffinity", addedAffinity=[1]),
        ),
        "f: profiles[0].pluginConfig(NodeAffinity).args.addedAffinity: expected an object, got a list",
    ),
    "arguments of a known plugin": (
        beta1(None, {"name": "VolumeBinding", "args": [1]}),
        "f: profiles[0].pluginConfig: the args of VolumeBinding are not an object",
    ),
    "a value out of range": (
        old("v1alpha1", hardPodAffinitySymmetricWeight=200),
        "f: profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 200: not in valid range",
    ),
}


@pytest.mark.parametrize(("document", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(document: Any, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        convert_config(document, "f")
    (line,) = caught.value.problems
    assert line.startswith(problem)
