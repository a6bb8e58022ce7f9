"""Validation of the default plugins' arguments, worded as kube-scheduler's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from moorage.api.base import NodeSelectorTerm
from moorage.api.names import qualified_name_problems
from moorage.api.pod import NodeAffinity, TopologySpreadConstraint
from moorage.api.selectors import SelectorError, node_term
from moorage.config.args import (
    LEAST_ALLOCATED,
    LIST_DEFAULTING,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    SYSTEM_DEFAULTING,
    CoschedulingArgs,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from moorage.config.manifest import encode
from moorage.config.problems import duplicate, forbidden, invalid, required, unsupported
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion

MAX_SHAPE_SCORE = 10
"""Maximum score of a point of a shape."""


def validate_args(path: str, args: PluginArgs, version: KubernetesVersion = DEFAULT_VERSION) -> list[str]:
    """All problems of a default plugin's arguments, located at `path`."""
    return list(_CHECKS[type(args)](path, args, version))


def _coscheduling(path: str, args: CoschedulingArgs, _: KubernetesVersion) -> Iterator[str]:
    seconds, backoff = args.permit_waiting_time_seconds, args.pod_group_backoff_seconds
    if seconds < 0:
        yield invalid(f"{path}.permitWaitingTimeSeconds", seconds, "must be greater than 0")
    if backoff < 0:
        yield invalid(f"{path}.podGroupBackoffSeconds", backoff, "must be greater than 0")
    if not 0 <= args.pod_group_reject_percentage <= 100:
        percentage = args.pod_group_reject_percentage
        yield invalid(f"{path}.podGroupRejectPercentage", percentage, "must be between 0 and 100")


def _default_preemption(path: str, args: DefaultPreemptionArgs, _: KubernetesVersion) -> Iterator[str]:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    percentage_path, absolute_path = (
        f"{path}.minCandidateNodesPercentage",
        f"{path}.minCandidateNodesAbsolute",
    )
    if not 0 <= percentage <= 100:
        yield invalid(percentage_path, percentage, "not in valid range [0, 100]")
    if absolute < 0:
        yield invalid(absolute_path, absolute, "not in valid range [0, inf)")
    if percentage == absolute == 0:
        yield invalid(percentage_path, 0, "cannot be zero at the same time as minCandidateNodesAbsolute")
        yield invalid(absolute_path, 0, "cannot be zero at the same time as minCandidateNodesPercentage")


def _inter_pod_affinity(path: str, args: InterPodAffinityArgs, _: KubernetesVersion) -> Iterator[str]:
    if not 0 <= args.hard_pod_affinity_weight <= 100:
        yield invalid(
            f"{path}.hardPodAffinityWeight", args.hard_pod_affinity_weight, "not in valid range [0, 100]"
        )


def _node_affinity(path: str, args: NodeAffinityArgs, _: KubernetesVersion) -> Iterator[str]:
    affinity = args.added_affinity or NodeAffinity()
    required_path = f"{path}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    selector = affinity.required_during_scheduling_ignored_during_execution
    for index, term in enumerate(selector.node_selector_terms if selector else ()):
        yield from _node_selector_term(f"{required_path}.nodeSelectorTerms[{index}]", term)
    preferred_path = f"{path}.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
    for index, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        if preferred.weight:
            yield from _node_selector_term(f"{preferred_path}[{index}]", preferred.preference)


def _node_selector_term(path: str, term: NodeSelectorTerm) -> Iterator[str]:
    try:
        node_term(term, path)
    except SelectorError as error:
        yield str(error)


def _balanced_allocation(
    path: str, args: NodeResourcesBalancedAllocationArgs, _: KubernetesVersion
) -> Iterator[str]:
    seen = set()
    for index, resource in enumerate(args.resources):
        resource_path = f"{path}.resources[{index}]"
        if resource.name in seen:
            yield duplicate(f"{resource_path}.name", resource.name, "name every resource once")
        seen.add(resource.name)
        if resource.weight != 1:
            yield invalid(f"{resource_path}.weight", resource.weight, "must be 1")


def _fit(path: str, args: NodeResourcesFitArgs, _: KubernetesVersion) -> Iterator[str]:
    for index, resource in enumerate(args.ignored_resources):
        yield from _label_name(f"{path}.ignoredResources[{index}]", resource)
    for index, group in enumerate(args.ignored_resource_groups):
        group_path = f"{path}.ignoredResourceGroups[{index}]"
        if "/" in group:
            yield invalid(group_path, group, "resource group name can't contain '/'")
        yield from _label_name(group_path, group)
    yield from _scoring_strategy(f"{path}.scoringStrategy", args.scoring_strategy)


def _scoring_strategy(path: str, strategy: ScoringStrategy) -> Iterator[str]:
    supported = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)
    if strategy.type not in supported:
        yield unsupported(f"{path}.type", strategy.type, supported)
    for index, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= 100:
            yield invalid(
                f"{path}.resources[{index}].weight",
                resource.weight,
                f"resource weight of {resource.name} not in valid range (0, 100]",
            )
    ratio, ratio_path = strategy.requested_to_capacity_ratio, f"{path}.requestedToCapacityRatio"
    if strategy.type != REQUESTED_TO_CAPACITY_RATIO:
        if ratio is not None:
            yield forbidden(ratio_path, "must be nil when type is not RequestedToCapacityRatio; remove it")
    elif ratio is None:
        yield required(ratio_path, "must be specified when type is RequestedToCapacityRatio")
    else:
        yield from _shape(f"{ratio_path}.shape", ratio.shape)


def _shape(path: str, shape: tuple[UtilizationShapePoint, ...]) -> Iterator[str]:
    if not shape:
        yield required(path, "at least one point must be specified")
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            yield invalid(
                f"{path}[{index}].utilization",
                shape[index].utilization,
                "values must be sorted in increasing order",
            )
            break
    for index, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            yield invalid(f"{path}[{index}].utilization", point.utilization, "not in valid range [0, 100]")
        if not 0 <= point.score <= MAX_SHAPE_SCORE:
            yield invalid(f"{path}[{index}].score", point.score, f"not in valid range [0, {MAX_SHAPE_SCORE}]")


def _topology_spread(path: str, args: PodTopologySpreadArgs, _: KubernetesVersion) -> Iterator[str]:
    type_path = f"{path}.defaultingType"
    if args.defaulting_type not in (SYSTEM_DEFAULTING, LIST_DEFAULTING):
        yield unsupported(type_path, args.defaulting_type, (SYSTEM_DEFAULTING, LIST_DEFAULTING))
    elif args.defaulting_type == SYSTEM_DEFAULTING and args.default_constraints:
        yield invalid(
            type_path, args.defaulting_type, "when .defaultConstraints are not empty; set it to List"
        )
    seen = set()
    for index, constraint in enumerate(args.default_constraints):
        constraint_path = f"{path}.defaultConstraints[{index}]"
        yield from _spread_constraint(constraint_path, constraint)
        identity = (constraint.topology_key, constraint.when_unsatisfiable)
        if identity in seen:
            yield duplicate(constraint_path, f"{{{identity[0]}, {identity[1]}}}")
        seen.add(identity)


def _spread_constraint(path: str, constraint: TopologySpreadConstraint) -> Iterator[str]:
    if constraint.max_skew <= 0:
        yield invalid(f"{path}.maxSkew", constraint.max_skew, "not in valid range (0, inf)")
    if not constraint.topology_key:
        yield required(f"{path}.topologyKey", "can not be empty")
    else:
        yield from _label_name(f"{path}.topologyKey", constraint.topology_key)
    actions = ("DoNotSchedule", "ScheduleAnyway")
    if not constraint.when_unsatisfiable:
        yield required(f"{path}.whenUnsatisfiable", "can not be empty")
    elif constraint.when_unsatisfiable not in actions:
        yield unsupported(f"{path}.whenUnsatisfiable", constraint.when_unsatisfiable, actions)
    if constraint.label_selector is not None:
        yield forbidden(
            f"{path}.labelSelector", "constraint must not define a selector, as they deduced for each pod"
        )


def _volume_binding(path: str, args: VolumeBindingArgs, version: KubernetesVersion) -> Iterator[str]:
    if args.bind_timeout_seconds < 0:
        yield invalid(
            f"{path}.bindTimeoutSeconds",
            args.bind_timeout_seconds,
            "invalid BindTimeoutSeconds, should not be a negative value",
        )
    if version.features.storage_capacity_scoring:
        yield from _shape(f"{path}.shape", args.shape)
    elif args.shape:
        yield invalid(
            f"{path}.shape",
            encode(args.shape),
            "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring",
        )


def _dynamic_resources(path: str, args: DynamicResourcesArgs, version: KubernetesVersion) -> Iterator[str]:
    filtering, binding = args.filter_timeout, args.binding_timeout
    if filtering is not None:
        if not version.features.dra_scheduler_filter_timeout:
            yield forbidden(f"{path}.filterTimeout", "DRASchedulingFilterTimeout feature gate is disabled")
        elif filtering < 0:
            yield invalid(f"{path}.filterTimeout", filtering, "must be zero or positive")
    if binding is not None:
        if not version.features.device_binding:
            yield forbidden(
                f"{path}.bindingTimeout",
                "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled",
            )
        elif binding < 1:
            yield invalid(f"{path}.bindingTimeout", binding, "must be at least 1 second")


def _label_name(path: str, name: str) -> Iterator[str]:
    for problem in qualified_name_problems(name):
        yield invalid(path, name, problem)


_CHECKS: dict[type[PluginArgs], Callable[[str, Any, KubernetesVersion], Iterator[str]]] = {
    CoschedulingArgs: _coscheduling,
    DefaultPreemptionArgs: _default_preemption,
    DynamicResourcesArgs: _dynamic_resources,
    InterPodAffinityArgs: _inter_pod_affinity,
    NodeAffinityArgs: _node_affinity,
    NodeResourcesBalancedAllocationArgs: _balanced_allocation,
    NodeResourcesFitArgs: _fit,
    PodTopologySpreadArgs: _topology_spread,
    VolumeBindingArgs: _volume_binding,
}
