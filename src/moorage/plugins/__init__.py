"""The default plugins, and the registry that names them.

A plugin is one file, or a folder of the same name with `plugin.py` and the parts of its rules; the docstring
of a folder lists the forms in which each rule exists. Beside the plugins is what several of them share:

    topology_counts    pods counted by node and topology domain (PodTopologySpread, InterPodAffinity)
    volumes            claims, columns by node and CSI migration (the volume plugins)
    queueing_hints     parts of the hints that plugins give the queue
    utilization_shape  scoring functions that a configuration gives as points

A new plugin is its own file or folder, a test beside it in tests/plugins, and a line in DEFAULT_PLUGINS. One
that kube-scheduler does not have is a folder in `moorage.optional_plugins`, and a line in LOADED_BY_NAME.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Final, Protocol

from moorage.client.kinds import Kind
from moorage.framework.loading.registry import Factory, Registry
from moorage.plugins.coscheduling.plugin import Coscheduling
from moorage.plugins.default_binder import DefaultBinder
from moorage.plugins.default_preemption.plugin import DefaultPreemption
from moorage.plugins.dynamic_resources.plugin import DynamicResources
from moorage.plugins.gang_scheduling import GangScheduling
from moorage.plugins.image_locality import ImageLocality
from moorage.plugins.inter_pod_affinity.plugin import InterPodAffinity
from moorage.plugins.node_affinity import NodeAffinity
from moorage.plugins.node_declared_features import NodeDeclaredFeatures
from moorage.plugins.node_name import NodeName
from moorage.plugins.node_ports import NodePorts
from moorage.plugins.node_resources.balanced_allocation import NodeResourcesBalancedAllocation
from moorage.plugins.node_resources.fit import NodeResourcesFit
from moorage.plugins.node_unschedulable import NodeUnschedulable
from moorage.plugins.node_volume_limits.plugin import NodeVolumeLimits
from moorage.plugins.pod_group_pods_count import PodGroupPodsCount
from moorage.plugins.pod_topology_spread.plugin import PodTopologySpread
from moorage.plugins.priority_sort import PrioritySort
from moorage.plugins.scheduling_gates import SchedulingGates
from moorage.plugins.taint_toleration import TaintToleration
from moorage.plugins.topology_placement_generator import TopologyPlacementGenerator
from moorage.plugins.volume_binding.plugin import VolumeBinding
from moorage.plugins.volume_restrictions import VolumeRestrictions
from moorage.plugins.volume_zone import VolumeZone


class DefaultPlugin(Protocol):
    """What every plugin that comes with moorage declares."""

    name: str
    watched_kinds: tuple[Kind, ...]


DEFAULT_PLUGINS: tuple[type[DefaultPlugin], ...] = (
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

GROUP_PLUGINS: tuple[type[DefaultPlugin], ...] = (
    GangScheduling,
    TopologyPlacementGenerator,
    PodGroupPodsCount,
)
"""Default plugins where the feature gates of groups of pods are on."""


OPTIONAL_PLUGINS: tuple[type[DefaultPlugin], ...] = (Coscheduling,)
"""Plugins that run only where a configuration names them."""


LOADED_BY_NAME: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Capacity": "moorage.optional_plugins.capacity.plugin:Capacity",
        "Consolidation": "moorage.optional_plugins.consolidation.plugin:Consolidation",
        "FairShare": "moorage.optional_plugins.fair_share.plugin:FairShare",
        "GPUFragmentation": "moorage.optional_plugins.gpu_fragmentation.plugin:GPUFragmentation",
        "LoadAware": "moorage.optional_plugins.load_aware.plugin:LoadAware",
        "NodeRequest": "moorage.optional_plugins.node_request.plugin:NodeRequest",
        "NodeResourceTopologyMatch": "moorage.optional_plugins.numa.plugin:NodeResourceTopologyMatch",
        "Numa": "moorage.optional_plugins.numa.plugin:Numa",
        "PreemptionToleration": "moorage.optional_plugins.preemption_toleration.plugin:PreemptionToleration",
        "QOSSort": "moorage.optional_plugins.qos_sort.plugin:QOSSort",
    }
)
"""Optional plugins that are loaded when a configuration names them: name, and where the class is."""


def default_registry() -> Registry:
    """All plugins that come with moorage, by name; a new registry every time."""
    plugins = (*DEFAULT_PLUGINS, *GROUP_PLUGINS, *OPTIONAL_PLUGINS)
    registry = Registry({plugin.name: plugin for plugin in plugins})
    for name, place in LOADED_BY_NAME.items():
        registry.register_later(name, partial(_loaded, place), "moorage itself")
    return registry


def _loaded(place: str) -> Factory:
    """The class at `module:Class`."""
    module, _, name = place.partition(":")
    factory: Factory = getattr(import_module(module), name)
    return factory
