"""The default plugins, one file each, and the registry that names them."""

from __future__ import annotations

from moorage.framework.loading.registry import Factory, Registry
from moorage.plugins.default_binder import DefaultBinder
from moorage.plugins.default_preemption import DefaultPreemption
from moorage.plugins.dynamic_resources import DynamicResources
from moorage.plugins.image_locality import ImageLocality
from moorage.plugins.inter_pod_affinity import InterPodAffinity
from moorage.plugins.node_affinity import NodeAffinity
from moorage.plugins.node_declared_features import NodeDeclaredFeatures
from moorage.plugins.node_name import NodeName
from moorage.plugins.node_ports import NodePorts
from moorage.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from moorage.plugins.node_resources_fit import NodeResourcesFit
from moorage.plugins.node_unschedulable import NodeUnschedulable
from moorage.plugins.node_volume_limits import NodeVolumeLimits
from moorage.plugins.pod_topology_spread import PodTopologySpread
from moorage.plugins.priority_sort import PrioritySort
from moorage.plugins.scheduling_gates import SchedulingGates
from moorage.plugins.taint_toleration import TaintToleration
from moorage.plugins.volume_binding import VolumeBinding
from moorage.plugins.volume_restrictions import VolumeRestrictions
from moorage.plugins.volume_zone import VolumeZone

DEFAULT_PLUGINS: tuple[Factory, ...] = (
    SchedulingGates,
    PrioritySort,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    DefaultPreemption,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    DefaultBinder,
    NodeDeclaredFeatures,
)


def default_registry() -> Registry:
    """All plugins that come with moorage, by name; a new registry every time."""
    return Registry({plugin.name: plugin for plugin in DEFAULT_PLUGINS})  # type: ignore[attr-defined]
