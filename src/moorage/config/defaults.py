"""Defaulting: from a user's configuration to the one in force.

A profile names only its differences: plugins that it adds, disables or weighs differently, and arguments that
it changes. Here they are merged over the default plugins of v1.36, and every plugin with arguments gets its
defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from moorage.api.pod import DEFAULT_SCHEDULER
from moorage.config.args import ARGS_BY_PLUGIN, PluginArgs
from moorage.config.types import (
    ClientConnection,
    LeaderElection,
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
    Profile,
    SchedulerConfiguration,
)
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion

ALL_PLUGINS = "*"
"""In a list of disabled plugins: every default one."""

_FIRST_PLUGINS = (PluginRef(name="SchedulingGates"), PluginRef(name="PrioritySort"))
_DEFAULT_PLUGINS = (
    PluginRef(name="TaintToleration", weight=3),
    PluginRef(name="NodeAffinity", weight=2),
    PluginRef(name="NodePorts"),
    PluginRef(name="NodeResourcesFit", weight=1),
    PluginRef(name="VolumeRestrictions"),
    PluginRef(name="NodeVolumeLimits"),
    PluginRef(name="VolumeBinding"),
    PluginRef(name="VolumeZone"),
    PluginRef(name="PodTopologySpread", weight=2),
    PluginRef(name="InterPodAffinity", weight=2),
    # Before DefaultPreemption: deallocating an unused claim is better than evicting a pod.
    PluginRef(name="DynamicResources", weight=2),
    PluginRef(name="DefaultPreemption"),
    PluginRef(name="NodeResourcesBalancedAllocation", weight=1),
    PluginRef(name="ImageLocality", weight=1),
    PluginRef(name="DefaultBinder"),
)


def default_plugins(version: KubernetesVersion = DEFAULT_VERSION) -> Plugins:
    """The default plugins of a profile."""
    filters = ["NodeUnschedulable", "NodeName"]
    if version.node_name_first:
        filters.reverse()
    enabled = [*_FIRST_PLUGINS, *(PluginRef(name=name) for name in filters), *_DEFAULT_PLUGINS]
    if version.features.node_declared_features:
        enabled.append(PluginRef(name="NodeDeclaredFeatures"))
    if version.features.gang_scheduling:
        enabled.append(PluginRef(name="GangScheduling"))
    if version.features.topology_aware_workload_scheduling:
        enabled.append(PluginRef(name="TopologyPlacementGenerator"))
        enabled.append(PluginRef(name="PodGroupPodsCount", weight=1))
    return Plugins(multi_point=PluginSet(enabled=tuple(enabled)))


def merge_plugin_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """A custom set merged over a default one.

    Default plugins come first and keep their positions, including those that the custom set configures again;
    disabled ones are left out. The custom plugins that replaced no default one follow, in their order. If a
    custom plugin is named twice, its last entry replaces the default one and the others stay, for `expansion`
    to reject.
    """
    disabled = tuple(PluginRef(name=ref.name) for ref in (*custom.disabled, *default.disabled))
    names = {ref.name for ref in disabled}
    last_mention = {ref.name: index for index, ref in enumerate(custom.enabled)}
    enabled = []
    placed = set()
    for ref in default.enabled if ALL_PLUGINS not in names else ():
        if ref.name in names:
            continue
        index = last_mention.get(ref.name)
        if index is not None:
            placed.add(index)
            ref = custom.enabled[index]
        enabled.append(ref)
    enabled += [ref for index, ref in enumerate(custom.enabled) if index not in placed]
    return PluginSet(enabled=tuple(enabled), disabled=disabled)


def merge_plugins(default: Plugins, custom: Plugins) -> Plugins:
    """Custom plugins merged over default ones, for each extension point."""
    return Plugins(
        **{point: merge_plugin_set(plugins, custom.at(point)) for point, plugins in default.items()}
    )


def fill_absent(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document with the defaults that depend on whether a field is present.

    These are the profile of a file without profiles, the name of a single profile, and contention profiling,
    which follows profiling. Values of a wrong type are left for decoding to report.
    """
    filled = dict(document)
    if filled.get("enableProfiling") is False and filled.get("enableContentionProfiling") is None:
        filled["enableContentionProfiling"] = False
    profiles = filled.get("profiles")
    if profiles is None or profiles == []:
        profiles = [{}]
    if isinstance(profiles, list):
        # Validation rejects the empty name: each of several profiles must have its own.
        name = DEFAULT_SCHEDULER if len(profiles) == 1 else ""
        profiles = [
            {**each, "schedulerName": name}
            if isinstance(each, Mapping) and each.get("schedulerName") is None
            else each
            for each in profiles
        ]
    filled["profiles"] = profiles
    return filled


def apply_defaults(
    config: SchedulerConfiguration, version: KubernetesVersion = DEFAULT_VERSION
) -> SchedulerConfiguration:
    """The configuration in force: plugins merged, arguments defaulted, empty values replaced."""
    return replace(
        config,
        leader_election=_leader_election(config.leader_election),
        client_connection=_client_connection(config.client_connection),
        profiles=tuple(default_profile(each, version) for each in config.profiles or (Profile(),)),
    )


def default_profile(profile: Profile, version: KubernetesVersion = DEFAULT_VERSION) -> Profile:
    """A profile with the default plugins, and with arguments for every enabled plugin that has some."""
    plugins = merge_plugins(default_plugins(version), profile.plugins)
    given = [_default_args(each, version) for each in profile.plugin_config]
    known = {each.name for each in given}
    added = [
        PluginConfig(name=name, args=ARGS_BY_PLUGIN[name]().defaulted(version))
        for name in plugins.names()
        if name in ARGS_BY_PLUGIN and name not in known
    ]
    return replace(profile, plugins=plugins, plugin_config=(*given, *added))


def _default_args(config: PluginConfig, version: KubernetesVersion) -> PluginConfig:
    if isinstance(config.args, PluginArgs):
        return replace(config, args=config.args.defaulted(version))
    if config.args is None and config.name in ARGS_BY_PLUGIN:
        return replace(config, args=ARGS_BY_PLUGIN[config.name]().defaulted(version))
    return config


def _leader_election(given: LeaderElection) -> LeaderElection:
    standard = LeaderElection()
    return replace(
        given,
        lease_duration=given.lease_duration or standard.lease_duration,
        renew_deadline=given.renew_deadline or standard.renew_deadline,
        retry_period=given.retry_period or standard.retry_period,
        resource_lock=given.resource_lock or standard.resource_lock,
        resource_name=given.resource_name or standard.resource_name,
        resource_namespace=given.resource_namespace or standard.resource_namespace,
    )


def _client_connection(given: ClientConnection) -> ClientConnection:
    standard = ClientConnection()
    return replace(
        given,
        content_type=given.content_type or standard.content_type,
        qps=given.qps or standard.qps,
        burst=given.burst or standard.burst,
    )
