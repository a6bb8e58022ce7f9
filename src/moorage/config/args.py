"""The arguments of the plugins that come with moorage, with the defaults of v1.36."""

from __future__ import annotations

from typing import Self

import msgspec

from moorage.api.base import Struct
from moorage.api.pod import NodeAffinity, TopologySpreadConstraint
from moorage.config.duration import Duration
from moorage.config.types import Int32, Int64
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion

LEAST_ALLOCATED = "LeastAllocated"
MOST_ALLOCATED = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"

SYSTEM_DEFAULTING = "System"
LIST_DEFAULTING = "List"


class PluginArgs(Struct):
    """The base of all default plugins' arguments."""

    def defaulted(self, version: KubernetesVersion = DEFAULT_VERSION) -> Self:
        """These arguments with the defaults that field defaults cannot express."""
        return self


class ResourceSpec(Struct):
    """A resource and its weight."""

    name: str = ""
    weight: Int64 = 1


DEFAULT_RESOURCES = (ResourceSpec(name="cpu"), ResourceSpec(name="memory"))


def _defaulted_resources(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    """No resources default to cpu and memory, and a weight of zero to one."""
    return tuple(
        msgspec.structs.replace(each, weight=each.weight or 1) for each in resources or DEFAULT_RESOURCES
    )


class UtilizationShapePoint(Struct):
    """One point of a scoring function: utilization from 0 to 100, score from 0 to 10."""

    utilization: Int32 = 0
    score: Int32 = 0


class RequestedToCapacityRatioParam(Struct):
    """The scoring function of the strategy RequestedToCapacityRatio."""

    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(Struct):
    """How NodeResourcesFit scores, and by which resources."""

    type: str = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


class CoschedulingArgs(PluginArgs):
    """How long pods of a group wait for each other.

    The other two have no effect: a group is one attempt, with the backoff of attempts.
    """

    permit_waiting_time_seconds: Int64 = 60
    """For groups without spec.scheduleTimeoutSeconds."""
    pod_group_backoff_seconds: Int64 = 0
    pod_group_reject_percentage: Int32 = 10


class DefaultPreemptionArgs(PluginArgs):
    """The number of candidate nodes that preemption evaluates."""

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100

    def check(self) -> None:
        """ValueError if they are wrong, in the words of plugins that are derived from DefaultPreemption."""
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        if not 0 <= percentage <= 100:
            raise ValueError(f"minCandidateNodesPercentage: {percentage} is not in the range [0, 100]")
        if absolute < 0:
            raise ValueError(f"minCandidateNodesAbsolute: {absolute} is negative")
        if percentage == absolute == 0:
            raise ValueError("minCandidateNodesPercentage and minCandidateNodesAbsolute: both are 0")


class DynamicResourcesArgs(PluginArgs):
    """Time limits of device allocation; None where the gate is off."""

    filter_timeout: Duration | None = None
    """For one node; zero: no limit."""
    binding_timeout: Duration | None = None

    def defaulted(self, version: KubernetesVersion = DEFAULT_VERSION) -> Self:
        """Ten seconds to filter a node and ten minutes to bind, where the gates are enabled."""
        filtering, binding = self.filter_timeout, self.binding_timeout
        if filtering is None and version.features.dra_scheduler_filter_timeout:
            filtering = Duration(10)
        if binding is None and version.features.device_binding:
            binding = Duration(600)
        return msgspec.structs.replace(self, filter_timeout=filtering, binding_timeout=binding)


class InterPodAffinityArgs(PluginArgs):
    """The weight of running pods' required affinity in scoring."""

    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(PluginArgs):
    """Node affinity that is added to that of every pod of the profile."""

    added_affinity: NodeAffinity | None = None


class NodeResourcesBalancedAllocationArgs(PluginArgs):
    """The resources whose use is balanced."""

    resources: tuple[ResourceSpec, ...] = ()

    def defaulted(self, version: KubernetesVersion = DEFAULT_VERSION) -> Self:
        """Default: cpu and memory."""
        return msgspec.structs.replace(self, resources=_defaulted_resources(self.resources))


class NodeResourcesFitArgs(PluginArgs):
    """Resources that filtering ignores, and the scoring strategy."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(type=LEAST_ALLOCATED)

    def defaulted(self, version: KubernetesVersion = DEFAULT_VERSION) -> Self:
        """Default resources of the strategy: cpu and memory. A given strategy must have a type."""
        strategy = self.scoring_strategy
        strategy = msgspec.structs.replace(strategy, resources=_defaulted_resources(strategy.resources))
        return msgspec.structs.replace(self, scoring_strategy=strategy)


class PodTopologySpreadArgs(PluginArgs):
    """The default constraints for pods without topology spread constraints."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = SYSTEM_DEFAULTING

    def defaulted(self, version: KubernetesVersion = DEFAULT_VERSION) -> Self:
        """An empty type defaults to the system's constraints."""
        return msgspec.structs.replace(self, defaulting_type=self.defaulting_type or SYSTEM_DEFAULTING)


class VolumeBindingArgs(PluginArgs):
    """The time limit of volume binding, and the scoring of free capacity where the gate is enabled."""

    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] = ()

    def defaulted(self, version: KubernetesVersion = DEFAULT_VERSION) -> Self:
        """With StorageCapacityScoring, more free capacity scores higher."""
        if self.shape or not version.features.storage_capacity_scoring:
            return self
        points = (UtilizationShapePoint(utilization=0, score=10), UtilizationShapePoint(utilization=100))
        return msgspec.structs.replace(self, shape=points)


ARGS_BY_PLUGIN: dict[str, type[PluginArgs]] = {
    "Coscheduling": CoschedulingArgs,
    "DefaultPreemption": DefaultPreemptionArgs,
    "DynamicResources": DynamicResourcesArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
}
"""The plugins with arguments, and their types."""
