"""The contract of plugins: one table of extension points, and every default plugin keeps to it.

The tuples below are checked by mypy: each class has the methods of a protocol, with its types. The tests see
to it that no default plugin is missing in them.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from moorage.config.types import EXTENSION_POINTS, UNNAMED_POINTS, WIRE_NAMES
from moorage.framework.interface.extension_points import (
    METHODS,
    POINTS,
    PROTOCOLS,
    BindPlugin,
    CatchUpPlugin,
    DependsOnPlugin,
    EventsPlugin,
    FilterNodePlugin,
    FilterPlugin,
    FiltersByNodePlugin,
    NormalizePlacementScorePlugin,
    NormalizeScorePlugin,
    PermitPlugin,
    PlacementFeasiblePlugin,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    PodChangePlugin,
    PodGroupPostFilterPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreBindPreFlightPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScoreNodePlugin,
    ScorePlugin,
    SkipsPodPlugin,
    SubQueuesPlugin,
    methods_of,
)
from moorage.plugins import DEFAULT_PLUGINS, GROUP_PLUGINS
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

CATCH_UP: tuple[type[CatchUpPlugin], ...] = (DynamicResources,)
EVENTS: tuple[type[EventsPlugin], ...] = (
    SchedulingGates,
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
    NodeDeclaredFeatures,
    GangScheduling,
)
DEPENDS_ON: tuple[type[DependsOnPlugin], ...] = (
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
    DynamicResources,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    NodeDeclaredFeatures,
)
PRE_ENQUEUE: tuple[type[PreEnqueuePlugin], ...] = (
    SchedulingGates,
    DynamicResources,
    DefaultPreemption,
    GangScheduling,
)
QUEUE_SORT: tuple[type[QueueSortPlugin], ...] = (PrioritySort,)
SUB_QUEUES: tuple[type[SubQueuesPlugin], ...] = ()
PRE_FILTER: tuple[type[PreFilterPlugin], ...] = (
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
    NodeDeclaredFeatures,
)
POD_CHANGE: tuple[type[PodChangePlugin], ...] = ()
SKIPS_POD: tuple[type[SkipsPodPlugin], ...] = (
    PodTopologySpread,
    InterPodAffinity,
)
FILTERS_BY_NODE: tuple[type[FiltersByNodePlugin], ...] = (
    PodTopologySpread,
    InterPodAffinity,
)
FILTER: tuple[type[FilterPlugin], ...] = (
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
    NodeDeclaredFeatures,
)
FILTER_NODE: tuple[type[FilterNodePlugin], ...] = (
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
)
POST_FILTER: tuple[type[PostFilterPlugin], ...] = (
    DynamicResources,
    DefaultPreemption,
)
PRE_SCORE: tuple[type[PreScorePlugin], ...] = (
    NodeAffinity,
    NodeResourcesFit,
    VolumeBinding,
    PodTopologySpread,
    InterPodAffinity,
    NodeResourcesBalancedAllocation,
)
SCORE: tuple[type[ScorePlugin], ...] = (
    TaintToleration,
    NodeAffinity,
    NodeResourcesFit,
    VolumeBinding,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    NodeResourcesBalancedAllocation,
    ImageLocality,
)
SCORE_NODE: tuple[type[ScoreNodePlugin], ...] = (
    NodeResourcesFit,
    NodeResourcesBalancedAllocation,
)
NORMALIZE_SCORE: tuple[type[NormalizeScorePlugin], ...] = (
    TaintToleration,
    NodeAffinity,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
)
RESERVE: tuple[type[ReservePlugin], ...] = (
    VolumeBinding,
    DynamicResources,
)
PLACEMENT_GENERATE: tuple[type[PlacementGeneratePlugin], ...] = (TopologyPlacementGenerator,)
PLACEMENT_FEASIBLE: tuple[type[PlacementFeasiblePlugin], ...] = (GangScheduling,)
PLACEMENT_SCORE: tuple[type[PlacementScorePlugin], ...] = (
    NodeResourcesFit,
    PodGroupPodsCount,
)
NORMALIZE_PLACEMENT_SCORE: tuple[type[NormalizePlacementScorePlugin], ...] = (PodGroupPodsCount,)
POD_GROUP_POST_FILTER: tuple[type[PodGroupPostFilterPlugin], ...] = (
    DynamicResources,
    DefaultPreemption,
)
PERMIT: tuple[type[PermitPlugin], ...] = (GangScheduling,)
PRE_BIND: tuple[type[PreBindPlugin], ...] = (
    VolumeBinding,
    DynamicResources,
)
PRE_BIND_PRE_FLIGHT: tuple[type[PreBindPreFlightPlugin], ...] = (
    VolumeBinding,
    DynamicResources,
)
BIND: tuple[type[BindPlugin], ...] = (DefaultBinder,)
POST_BIND: tuple[type[PostBindPlugin], ...] = ()

IMPLEMENTATIONS: dict[type[Any], tuple[type[Any], ...]] = {
    EventsPlugin: EVENTS,
    CatchUpPlugin: CATCH_UP,
    DependsOnPlugin: DEPENDS_ON,
    PreEnqueuePlugin: PRE_ENQUEUE,
    QueueSortPlugin: QUEUE_SORT,
    SubQueuesPlugin: SUB_QUEUES,
    PreFilterPlugin: PRE_FILTER,
    PodChangePlugin: POD_CHANGE,
    SkipsPodPlugin: SKIPS_POD,
    FilterPlugin: FILTER,
    FilterNodePlugin: FILTER_NODE,
    FiltersByNodePlugin: FILTERS_BY_NODE,
    PostFilterPlugin: POST_FILTER,
    PreScorePlugin: PRE_SCORE,
    ScorePlugin: SCORE,
    ScoreNodePlugin: SCORE_NODE,
    NormalizeScorePlugin: NORMALIZE_SCORE,
    PlacementGeneratePlugin: PLACEMENT_GENERATE,
    PlacementFeasiblePlugin: PLACEMENT_FEASIBLE,
    PlacementScorePlugin: PLACEMENT_SCORE,
    NormalizePlacementScorePlugin: NORMALIZE_PLACEMENT_SCORE,
    PodGroupPostFilterPlugin: POD_GROUP_POST_FILTER,
    ReservePlugin: RESERVE,
    PermitPlugin: PERMIT,
    PreBindPlugin: PRE_BIND,
    PreBindPreFlightPlugin: PRE_BIND_PRE_FLIGHT,
    BindPlugin: BIND,
    PostBindPlugin: POST_BIND,
}


PLUGINS = (*DEFAULT_PLUGINS, *GROUP_PLUGINS)


def has_methods(plugin: Any, protocol: type[Any]) -> bool:
    return any(hasattr(plugin, method) for method in methods_of(protocol))


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.__name__)
def test_every_default_plugin_is_held_to_each_protocol_that_it_has_a_method_of(protocol: type[Any]) -> None:
    assert set(IMPLEMENTATIONS[protocol]) == {each for each in PLUGINS if has_methods(each, protocol)}


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: str(plugin.name))
def test_methods_of_default_plugins_have_the_parameters_of_the_contract(plugin: Any) -> None:
    for method, parameters in METHODS.items():
        if hasattr(plugin, method):
            assert tuple(inspect.signature(getattr(plugin, method)).parameters) == ("self", *parameters), (
                method
            )


def test_the_table_names_the_extension_points_as_configuration_does() -> None:
    of_groups = {name for name, point in POINTS.items() if point.of_groups}
    assert {*POINTS} == {*EXTENSION_POINTS, *UNNAMED_POINTS}
    assert of_groups == {"placement_generate", "placement_score", "pod_group_post_filter", *UNNAMED_POINTS}
    assert [name for name in POINTS if name not in of_groups] == [
        name for name in EXTENSION_POINTS if name not in of_groups
    ]
    for name in EXTENSION_POINTS:
        metric_name = POINTS[name].metric_name
        assert WIRE_NAMES[name] == metric_name[0].lower() + metric_name[1:]


def test_each_method_is_in_one_protocol_only() -> None:
    methods = [method for protocol in PROTOCOLS for method in methods_of(protocol)]
    assert sorted(methods) == sorted(METHODS)
