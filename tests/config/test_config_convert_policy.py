"""Converting the Policy format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage.config.convert import convert_config
from moorage.config.load import ConfigError, parse_config, read_document
from moorage.config.types import API_VERSION, KIND, Profile

DATA = Path(__file__).parent / "data"


def policy(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Policy", **fields}


def result(document: Any) -> tuple[Profile, list[str]]:
    converted, notes = convert_config(document)
    return parse_config(converted).profiles[0], notes


def plugins(profile: Profile) -> list[str]:
    """All plugins, each with its weight if it has one."""
    return [
        ref.name if ref.weight is None else f"{ref.name}:{ref.weight}"
        for ref in profile.plugins.multi_point.enabled
    ]


def mentions(notes: list[str], *words: str) -> bool:
    return any(all(word in note for word in words) for note in notes)


def test_a_realistic_policy() -> None:
    document = read_document(DATA / "policy.json")
    converted, notes = convert_config(document)
    assert (converted["apiVersion"], converted["kind"]) == (API_VERSION, KIND)
    profile = parse_config(converted).profiles[0]
    assert profile.plugins.multi_point.disabled_names == {"*"}
    assert plugins(profile) == [
        "PrioritySort",
        "NodeUnschedulable",
        "NodeName",
        "NodePorts",
        "NodeAffinity:8",
        "NodeResourcesFit:6",
        "VolumeRestrictions",
        "TaintToleration",
        "NodeVolumeLimits",
        "DefaultPreemption",
        "NodeResourcesBalancedAllocation:2",
        "PodTopologySpread:3",
        "DefaultBinder",
    ]
    only_scoring, only_filtering = {"PodTopologySpread"}, {"TaintToleration"}
    assert profile.plugins.pre_filter.disabled_names == only_scoring
    assert profile.plugins.filter.disabled_names == only_scoring
    assert profile.plugins.pre_score.disabled_names == only_filtering
    assert profile.plugins.score.disabled_names == only_filtering
    assert profile.args("NodeResourcesFit").scoring_strategy.type == "MostAllocated"
    assert profile.args("PodTopologySpread").defaulting_type == "System"
    assert profile.args("InterPodAffinity") is not None
    affinity = profile.args("NodeAffinity").added_affinity
    (term,) = affinity.required_during_scheduling_ignored_during_execution.node_selector_terms
    assert [(each.key, each.operator) for each in term.match_expressions] == [("region", "Exists")]
    assert [
        (each.weight, each.preference.match_expressions[0].key, each.preference.match_expressions[0].operator)
        for each in affinity.preferred_during_scheduling_ignored_during_execution
    ] == [(1, "spot", "DoesNotExist"), (1, "fast", "Exists")]
    assert converted["extenders"] == [
        {
            "urlPrefix": "http://127.0.0.1:12346/scheduler",
            "filterVerb": "filter",
            "bindVerb": "bind",
            "prioritizeVerb": "prioritize",
            "weight": 5,
            "enableHTTPS": True,
            "tlsConfig": {"insecure": True, "caFile": "/etc/ca.pem"},
            "httpTimeout": "5s",
            "nodeCacheCapable": False,
            "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
        }
    ]
    for words in (
        ("predicate PodFitsHostPorts", "NodePorts"),
        ("predicate CheckNodeMemoryPressure", "TaintToleration"),
        ("predicate MaxEBSVolumeCount", "NodeVolumeLimits"),
        ("predicate RegionOnly", "NodeAffinity"),
        ("predicate SameRack", "dropped"),
        ("NodeResourcesMostAllocated", "NodeResourcesFit"),
        ("NodeResourcesLeastAllocated", "dropped"),
        ("priority ServiceSpreadingPriority", "PodTopologySpread"),
        ("priority EqualPriority", "dropped"),
        ("priority NodePreferAvoidPodsPriority", "dropped", "taints"),
        ("priority NoSpot", "NodeAffinity"),
        ("priority Racks", "dropped"),
        ("hardPodAffinitySymmetricWeight", "InterPodAffinity"),
        ("alwaysCheckAllPredicates", "dropped"),
        ("extenders[0].apiVersion", "dropped"),
        ("extenders[0].BindVerb", "bindVerb"),
        ("SchedulingGates", "newer"),
    ):
        assert mentions(notes, *words), words


def test_a_policy_that_says_nothing_means_the_defaults_of_its_time() -> None:
    profile, notes = result(policy())
    assert plugins(profile) == [
        "PrioritySort",
        "NodeUnschedulable",
        "NodeResourcesFit:1",
        "NodeName",
        "NodePorts",
        "NodeAffinity:1",
        "VolumeRestrictions",
        "TaintToleration:1",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread:2",
        "InterPodAffinity:1",
        "DefaultPreemption",
        "NodeResourcesBalancedAllocation:1",
        "ImageLocality:1",
        "DefaultBinder",
    ]
    assert profile.plugins.filter.disabled == ()
    assert profile.plugins.score.disabled_names == {"VolumeBinding"}
    assert profile.args("NodeResourcesFit").scoring_strategy.type == "LeastAllocated"
    assert mentions(notes, "no predicates")
    assert mentions(notes, "no priorities")


def test_empty_lists_mean_nothing_but_what_is_mandatory() -> None:
    profile, _ = result(policy(predicates=[], priorities=[]))
    assert plugins(profile) == [
        "PrioritySort",
        "NodeUnschedulable",
        "TaintToleration",
        "DefaultPreemption",
        "DefaultBinder",
    ]
    assert profile.plugins.score.disabled_names == {"TaintToleration"}


def priorities(*entries: dict[str, Any]) -> dict[str, Any]:
    return policy(predicates=[], priorities=list(entries))


def test_spreading_without_the_systems_constraints() -> None:
    profile, _ = result(priorities({"name": "EvenPodsSpreadPriority", "weight": 2}))
    assert profile.args("PodTopologySpread").defaulting_type == "List"


def test_capacity_ratios_may_have_any_name() -> None:
    ratio = {
        "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}],
        "resources": [{"name": "example.com/gpu", "weight": 4}, {"name": "cpu"}],
    }
    argument = {"requestedToCapacityRatioArguments": ratio}
    profile, _ = result(priorities({"name": "Packing", "weight": 3, "argument": argument}))
    assert "NodeResourcesFit:3" in plugins(profile)
    assert profile.plugins.filter.disabled_names == {"NodeResourcesFit"}
    strategy = profile.args("NodeResourcesFit").scoring_strategy
    assert strategy.type == "RequestedToCapacityRatio"
    assert [(each.name, each.weight) for each in strategy.resources] == [("example.com/gpu", 4), ("cpu", 1)]
    assert [point.score for point in strategy.requested_to_capacity_ratio.shape] == [0, 10]


def test_absent_labels() -> None:
    argument = {"labelsPresence": {"labels": ["retiring"], "presence": False}}
    profile, _ = result(policy(predicates=[{"name": "Stays", "argument": argument}], priorities=[]))
    assert "NodeAffinity" in plugins(profile)
    assert "NodeAffinity" in profile.plugins.score.disabled_names
    affinity = profile.args("NodeAffinity").added_affinity
    (term,) = affinity.required_during_scheduling_ignored_during_execution.node_selector_terms
    assert term.match_expressions[0].operator == "DoesNotExist"


PREDICATES = {
    "GeneralPredicates": "NodeResourcesFit NodeName NodePorts NodeAffinity",
    "PodFitsPorts": "NodePorts",
    "MaxGCEPDVolumeCount": "NodeVolumeLimits",
    "MaxCSIVolumeCountPred": "NodeVolumeLimits",
    "MaxAzureDiskVolumeCount": "NodeVolumeLimits",
    "MaxCinderVolumeCount": "NodeVolumeLimits",
    "CheckVolumeBinding": "VolumeBinding",
    "NoVolumeNodeConflict": "VolumeBinding",
    "NoVolumeZoneConflict": "VolumeZone",
    "EvenPodsSpread": "PodTopologySpread",
    "MatchInterPodAffinity": "InterPodAffinity",
    "CheckNodeCondition": "",
    "CheckNodeDiskPressure": "",
    "CheckNodePIDPressure": "",
}


@pytest.mark.parametrize(("name", "became"), PREDICATES.items())
def test_predicates(name: str, became: str) -> None:
    profile, notes = result(policy(predicates=[{"name": name}], priorities=[]))
    mandatory = {"PrioritySort", "NodeUnschedulable", "TaintToleration", "DefaultPreemption", "DefaultBinder"}
    assert [each for each in plugins(profile) if each not in mandatory] == became.split()
    assert mentions(notes, f"predicate {name}: now ")


PRIORITIES = {
    "InterPodAffinityPriority": "InterPodAffinity",
    "NodeAffinityPriority": "NodeAffinity",
    "TaintTolerationPriority": "TaintToleration",
    "ImageLocalityPriority": "ImageLocality",
    "SelectorSpreadPriority": "PodTopologySpread",
    "LeastRequestedPriority": "NodeResourcesFit",
}


@pytest.mark.parametrize(("name", "became"), PRIORITIES.items())
def test_priorities(name: str, became: str) -> None:
    profile, _ = result(priorities({"name": name, "weight": 7}))
    assert [each for each in plugins(profile) if ":" in each] == [f"{became}:7"]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown predicate": (
        policy(predicates=[{"name": "X"}]),
        'predicates[0]: predicate type not found for "X"',
    ),
    "unknown priority": (
        priorities({"name": "X", "weight": 1}),
        'priorities[0]: priority type not found for "X"',
    ),
    "weight of zero": (
        priorities({"name": "ImageLocalityPriority"}),
        "priorities[0].weight: priority ImageLocalityPriority should have a positive weight applied to it "
        "or it has overflown",
    ),
    "unknown field": (policy(predicate=[]), "predicate: unknown field; did you mean predicates?"),
    "wrong type": (policy(predicates={}), "predicates: expected a list, got an object"),
    "affinity weight": (
        policy(predicates=[], priorities=[], hardPodAffinitySymmetricWeight=101),
        "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 101: "
        "not in valid range [0, 100]",
    ),
}


@pytest.mark.parametrize(("document", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(document: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        convert_config(document)
    assert caught.value.problems == (problem,)
