"""Conversion of the Policy format, kube-scheduler's first: predicates and priorities as a v1 profile.

A policy replaces all defaults. So the profile disables every default plugin, enables the successors of the
policy's predicates and priorities, and keeps filters from scoring and scorers from filtering where the policy
has only one of them. PrioritySort, DefaultPreemption and DefaultBinder were never part of a policy: they
always ran.
"""

from __future__ import annotations

from typing import Any

from moorage.api.base import Struct
from moorage.api.pod import DEFAULT_SCHEDULER
from moorage.config.args import LIST_DEFAULTING, SYSTEM_DEFAULTING, ResourceSpec, UtilizationShapePoint
from moorage.config.convert_extenders import convert_extenders
from moorage.config.convert_plugins import REMOVED, prefer_labels, require_labels, set_strategy
from moorage.config.defaults import ALL_PLUGINS
from moorage.config.draft import Draft
from moorage.config.manifest import encode
from moorage.config.strict import decode
from moorage.config.types import PluginRef

_PREDICATES: dict[str, tuple[str, ...]] = {
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "GeneralPredicates": ("NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"),
    "HostName": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "PodFitsPorts": ("NodePorts",),
    "MatchNodeSelector": ("NodeAffinity",),
    "PodFitsResources": ("NodeResourcesFit",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    "MaxEBSVolumeCount": ("NodeVolumeLimits",),
    "MaxGCEPDVolumeCount": ("NodeVolumeLimits",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "MaxAzureDiskVolumeCount": ("NodeVolumeLimits",),
    "MaxCinderVolumeCount": ("NodeVolumeLimits",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "NoVolumeNodeConflict": ("VolumeBinding",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "EvenPodsSpread": ("PodTopologySpread",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
    # Conditions of nodes became taints.
    "CheckNodeCondition": ("TaintToleration",),
    "CheckNodeDiskPressure": ("TaintToleration",),
    "CheckNodeMemoryPressure": ("TaintToleration",),
    "CheckNodePIDPressure": ("TaintToleration",),
}
"""The successors of predicates, in the order in which predicates ran."""

_MANDATORY_PREDICATES = ("CheckNodeUnschedulable", "PodToleratesNodeTaints")
_DEFAULT_PREDICATES = (
    "CheckNodeUnschedulable",
    "CheckVolumeBinding",
    "EvenPodsSpread",
    "GeneralPredicates",
    "MatchInterPodAffinity",
    "MaxAzureDiskVolumeCount",
    "MaxCSIVolumeCountPred",
    "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount",
    "NoDiskConflict",
    "NoVolumeZoneConflict",
    "PodToleratesNodeTaints",
)

_PRIORITIES = {
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "ImageLocalityPriority": "ImageLocality",
    "InterPodAffinityPriority": "InterPodAffinity",
    "NodeAffinityPriority": "NodeAffinity",
    "SelectorSpreadPriority": "PodTopologySpread",
    "ServiceSpreadingPriority": "PodTopologySpread",
    "TaintTolerationPriority": "TaintToleration",
}
_STRATEGY_PRIORITIES = {
    "LeastRequestedPriority": "NodeResourcesLeastAllocated",
    "MostRequestedPriority": "NodeResourcesMostAllocated",
    "RequestedToCapacityRatio": "RequestedToCapacityRatio",
    "RequestedToCapacityRatioPriority": "RequestedToCapacityRatio",
}
_REMOVED_PRIORITIES = {
    "NodePreferAvoidPodsPriority": REMOVED["NodePreferAvoidPods"],
    "ResourceLimitsPriority": REMOVED["NodeResourceLimits"],
    "EqualPriority": "it gave every node the same score",
}
_DEFAULT_PRIORITIES = {
    "BalancedResourceAllocation": 1,
    "EvenPodsSpreadPriority": 2,
    "ImageLocalityPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "NodeAffinityPriority": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "SelectorSpreadPriority": 1,
    "TaintTolerationPriority": 1,
}
_FILTER_AND_SCORE = frozenset(
    (
        "InterPodAffinity",
        "NodeAffinity",
        "NodeResourcesFit",
        "PodTopologySpread",
        "TaintToleration",
        "VolumeBinding",
    )
)


class _Labels(Struct):
    labels: tuple[str, ...] = ()
    presence: bool = False


class _Label(Struct):
    label: str = ""
    presence: bool = False


class _CapacityRatio(Struct):
    shape: tuple[UtilizationShapePoint, ...] = ()
    resources: tuple[ResourceSpec, ...] = ()


class _PredicateArgument(Struct):
    service_affinity: _Labels | None = None
    labels_presence: _Labels | None = None


class _PriorityArgument(Struct):
    service_anti_affinity: _Label | None = None
    label_preference: _Label | None = None
    requested_to_capacity_ratio_arguments: _CapacityRatio | None = None


class _Predicate(Struct):
    name: str = ""
    argument: _PredicateArgument | None = None


class _Priority(Struct):
    name: str = ""
    weight: int = 0
    argument: _PriorityArgument | None = None


class _Policy(Struct):
    predicates: tuple[_Predicate, ...] | None = None
    priorities: tuple[_Priority, ...] | None = None
    hard_pod_affinity_symmetric_weight: int = 0
    always_check_all_predicates: bool = False


def convert_policy(raw: dict[str, Any], notes: list[str], problems: list[str]) -> dict[str, Any]:
    """The body of a v1 document that is equivalent to a policy."""
    extenders = convert_extenders(raw.pop("extenders", None), notes)
    policy = decode(raw, _Policy, "", problems)
    if problems:
        return {}
    draft = Draft(path="", notes=notes, problems=problems)
    filters = _filters(policy, draft)
    scores = _scores(policy, draft)
    if policy.hard_pod_affinity_symmetric_weight:
        weight = policy.hard_pod_affinity_symmetric_weight
        draft.arguments("InterPodAffinity")["hardPodAffinityWeight"] = weight
        draft.note("hardPodAffinitySymmetricWeight is now hardPodAffinityWeight of InterPodAffinity")
    if policy.always_check_all_predicates:
        draft.note("alwaysCheckAllPredicates: dropped; a node is left at the first plugin that refuses it")
    draft.note(
        "only plugins that the policy knew are enabled; SchedulingGates, DynamicResources and "
        "NodeDeclaredFeatures are newer: add them to multiPoint.enabled if pods use what they serve"
    )
    _assemble(draft, filters, scores)
    body: dict[str, Any] = {"profiles": [{"schedulerName": DEFAULT_SCHEDULER, **draft.manifest()}]}
    if extenders:
        body["extenders"] = extenders
    return body


def _filters(policy: _Policy, draft: Draft) -> list[str]:
    """The plugins of all predicates, in the order in which predicates ran."""
    wanted = set(_MANDATORY_PREDICATES)
    label_filters = []
    if policy.predicates is None:
        wanted.update(_DEFAULT_PREDICATES)
        draft.note("the policy names no predicates: those that were the default then are used")
    for index, predicate in enumerate(policy.predicates or ()):
        argument = predicate.argument or _PredicateArgument()
        if predicate.name in _PREDICATES:
            wanted.add(predicate.name)
        elif argument.labels_presence is not None:
            labels = argument.labels_presence.labels
            present = argument.labels_presence.presence
            require_labels(draft, labels if present else (), () if present else labels)
            label_filters = ["NodeAffinity"]
            draft.note(
                f"predicate {predicate.name}: now the addedAffinity of NodeAffinity, "
                "which also heeds the pods' own node selectors"
            )
        elif argument.service_affinity is not None:
            draft.note(f"predicate {predicate.name}: dropped: {REMOVED['ServiceAffinity']}")
        else:
            draft.problems.append(f'predicates[{index}]: predicate type not found for "{predicate.name}"')
    named = {predicate.name for predicate in policy.predicates or ()}
    plugins: list[str] = []
    for name, became in _PREDICATES.items():
        if name in wanted:
            plugins += became
        if name in named:
            draft.note(f"predicate {name}: now {', '.join(became)}")
    return list(dict.fromkeys(plugins + label_filters))


def _scores(policy: _Policy, draft: Draft) -> dict[str, int]:
    """The plugins of all priorities with their weights; the greater weight where two became one plugin."""
    priorities = policy.priorities
    if priorities is None:
        priorities = tuple(
            _Priority(name=name, weight=weight) for name, weight in _DEFAULT_PRIORITIES.items()
        )
        draft.note("the policy names no priorities: those that were the default then are used")
    scores: dict[str, int] = {}
    strategies: dict[str, tuple[int, Any]] = {}
    preferences: list[_Priority] = []

    def score(plugin: str, weight: int) -> None:
        scores[plugin] = max(scores.get(plugin, 0), weight)

    for index, priority in enumerate(priorities):
        argument = priority.argument or _PriorityArgument()
        if priority.name in _REMOVED_PRIORITIES:
            draft.note(f"priority {priority.name}: dropped: {_REMOVED_PRIORITIES[priority.name]}")
            continue
        if priority.weight <= 0:
            draft.problems.append(
                f"priorities[{index}].weight: priority {priority.name} should have a positive weight "
                "applied to it or it has overflown"
            )
        ratio = argument.requested_to_capacity_ratio_arguments
        if ratio is not None:
            strategies["RequestedToCapacityRatio"] = (priority.weight, encode(ratio))
        elif priority.name in _STRATEGY_PRIORITIES:
            strategies[_STRATEGY_PRIORITIES[priority.name]] = (priority.weight, None)
        elif priority.name in _PRIORITIES:
            score(_PRIORITIES[priority.name], priority.weight)
            draft.note(f"priority {priority.name}: now {_PRIORITIES[priority.name]}")
        elif argument.label_preference is not None:
            preferences.append(priority)
        elif argument.service_anti_affinity is not None:
            draft.note(f"priority {priority.name}: dropped: {REMOVED['ServiceAffinity']}")
        else:
            draft.problems.append(f'priorities[{index}]: priority type not found for "{priority.name}"')
    if strategies:
        score("NodeResourcesFit", _strategy(strategies, draft))
    if preferences:
        score("NodeAffinity", _label_preferences(preferences, draft))
    if "PodTopologySpread" in scores:
        names = {priority.name for priority in priorities}
        system = names & {"SelectorSpreadPriority", "ServiceSpreadingPriority"}
        kind = SYSTEM_DEFAULTING if system else LIST_DEFAULTING
        draft.arguments("PodTopologySpread")["defaultingType"] = kind
    return scores


def _strategy(strategies: dict[str, tuple[int, Any]], draft: Draft) -> int:
    """Configure the strategy with the greatest weight; returns that weight."""
    chosen = max(strategies, key=lambda name: strategies[name][0])
    weight, args = strategies[chosen]
    set_strategy(draft, chosen, args)
    for name in strategies:
        if name != chosen:
            draft.note(f"{name} is dropped: NodeResourcesFit has only one scoring strategy at a time")
    return weight


def _label_preferences(preferences: list[_Priority], draft: Draft) -> int:
    """Configure preferred labels; returns their weight: that of one, times their number."""
    for priority in preferences:
        assert priority.argument is not None
        preference = priority.argument.label_preference
        assert preference is not None
        prefer_labels(
            draft,
            (preference.label,) if preference.presence else (),
            () if preference.presence else (preference.label,),
        )
        draft.note(f"priority {priority.name}: now a preference in the addedAffinity of NodeAffinity")
    return max(priority.weight for priority in preferences) * len(preferences)


def _assemble(draft: Draft, filters: list[str], scores: dict[str, int]) -> None:
    draft.disable("multi_point", ALL_PLUGINS)
    only_scoring = [name for name in scores if name not in filters]
    for name in ("PrioritySort", *filters, "DefaultPreemption", *only_scoring, "DefaultBinder"):
        draft.enable("multi_point", PluginRef(name=name, weight=scores.get(name)))
    for name in only_scoring:
        if name in _FILTER_AND_SCORE:
            draft.disable("pre_filter", name)
            draft.disable("filter", name)
    for name in filters:
        if name in _FILTER_AND_SCORE and name not in scores:
            draft.disable("pre_score", name)
            draft.disable("score", name)
