"""Validation of a configuration, worded as kube-scheduler's; plugin arguments are in `validate_args`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moorage.api.names import is_extended_resource, qualified_name_problems
from moorage.config.args import ARGS_BY_PLUGIN
from moorage.config.manifest import encode
from moorage.config.problems import duplicate, invalid, required
from moorage.config.types import (
    API_VERSION,
    WIRE_NAMES,
    ClientConnection,
    Extender,
    LeaderElection,
    Plugins,
    PluginSet,
    Profile,
    SchedulerConfiguration,
)
from moorage.config.validate_args import validate_args
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion

REMOVED_PLUGINS = {
    "AzureDiskLimits": "NodeVolumeLimits",
    "CinderLimits": "NodeVolumeLimits",
    "EBSLimits": "NodeVolumeLimits",
    "GCEPDLimits": "NodeVolumeLimits",
}
"""Plugins that v1 rejects by name, and their successors."""


def validate(config: SchedulerConfiguration, version: KubernetesVersion = DEFAULT_VERSION) -> list[str]:
    """All problems of a defaulted configuration; empty if it is valid."""
    return list(_problems(config, version))


def _problems(config: SchedulerConfiguration, version: KubernetesVersion) -> Iterator[str]:
    yield from _client_connection(config.client_connection)
    yield from _leader_election(config.leader_election)
    if config.parallelism <= 0:
        yield invalid("parallelism", config.parallelism, "should be an integer value greater than zero")
    yield from _profiles(config.profiles, version)
    yield from _percentage("percentageOfNodesToScore", config.percentage_of_nodes_to_score)
    if config.pod_initial_backoff_seconds <= 0:
        yield invalid(
            "podInitialBackoffSeconds", config.pod_initial_backoff_seconds, "must be greater than 0"
        )
    if config.pod_max_backoff_seconds < config.pod_initial_backoff_seconds:
        yield invalid(
            "podMaxBackoffSeconds",
            config.pod_max_backoff_seconds,
            "must be greater than or equal to PodInitialBackoffSeconds",
        )
    yield from _extenders(config.extenders)


def _client_connection(connection: ClientConnection) -> Iterator[str]:
    if connection.burst < 0:
        yield invalid("clientConnection.burst", connection.burst, "must be non-negative")


def _leader_election(election: LeaderElection) -> Iterator[str]:
    if not election.leader_elect:
        return
    durations = {
        "leaseDuration": election.lease_duration,
        "renewDeadline": election.renew_deadline,
        "retryPeriod": election.retry_period,
    }
    for name, duration in durations.items():
        if duration <= 0:
            yield invalid(f"leaderElection.{name}", duration, "must be greater than zero")
    if election.lease_duration <= election.renew_deadline:
        # The value shown is the other field's, as upstream shows it.
        yield invalid(
            "leaderElection.leaseDuration", election.renew_deadline, "must be greater than `RenewDeadline`"
        )
    texts = {
        "resourceLock": election.resource_lock,
        "resourceNamespace": election.resource_namespace,
        "resourceName": election.resource_name,
    }
    for name, text in texts.items():
        if not text:
            yield required(f"leaderElection.{name}")
    if election.resource_lock != "leases":
        yield invalid(
            "leaderElection.resourceLock", election.resource_lock, 'resourceLock value must be "leases"'
        )


def _percentage(path: str, percentage: int | None) -> Iterator[str]:
    if percentage is not None and not 0 <= percentage <= 100:
        yield invalid(path, percentage, "not in valid range [0-100]")


def _profiles(profiles: tuple[Profile, ...], version: KubernetesVersion) -> Iterator[str]:
    if not profiles:
        yield required("profiles", "at least one profile is needed")
        return
    seen: dict[str, int] = {}
    for index, profile in enumerate(profiles):
        path = f"profiles[{index}]"
        yield from _profile(path, profile, version)
        name = profile.scheduler_name
        if name in seen:
            yield duplicate(
                f"{path}.schedulerName",
                name,
                f"already the name of profiles[{seen[name]}]; every profile needs a name of its own",
            )
        seen[name] = index
    yield from _common_queue_sort(profiles)


def _profile(path: str, profile: Profile, version: KubernetesVersion) -> Iterator[str]:
    if not profile.scheduler_name:
        yield required(f"{path}.schedulerName", "a profile that is not alone needs a name")
    yield from _percentage(f"{path}.percentageOfNodesToScore", profile.percentage_of_nodes_to_score)
    yield from _removed_plugins(f"{path}.plugins", profile.plugins)
    seen = set()
    for index, config in enumerate(profile.plugin_config):
        config_path = f"{path}.pluginConfig[{index}]"
        if config.name in seen:
            yield duplicate(config_path, config.name, "a plugin's arguments are given once")
        seen.add(config.name)
        if config.name in REMOVED_PLUGINS:
            yield _removed(config_path, config.name)
        elif config.name in ARGS_BY_PLUGIN:
            yield from _args(f"{config_path}.args", config.name, config.args, version)


def _args(path: str, name: str, args: Any, version: KubernetesVersion) -> Iterator[str]:
    if not isinstance(args, ARGS_BY_PLUGIN[name]):
        yield invalid(
            path, encode(args), f"has to match plugin args; expected {ARGS_BY_PLUGIN[name].__name__}"
        )
    else:
        yield from validate_args(path, args, version)


def _removed_plugins(path: str, plugins: Plugins) -> Iterator[str]:
    for point, each in plugins.items():
        for index, ref in enumerate(each.enabled):
            if ref.name in REMOVED_PLUGINS:
                yield _removed(f"{path}.{WIRE_NAMES[point]}.enabled[{index}]", ref.name)


def _removed(path: str, name: str) -> str:
    reason = f'was invalid in version "{API_VERSION}" (KubeSchedulerConfiguration is version "{API_VERSION}")'
    return invalid(path, name, f"{reason}; use {REMOVED_PLUGINS[name]}")


def _common_queue_sort(profiles: tuple[Profile, ...]) -> Iterator[str]:
    """All profiles share one queue, so they must have the same queue sort plugin."""
    first = profiles[0].plugins.queue_sort
    if len(first.enabled) > 1:
        yield invalid(
            "profiles[0].plugins.queueSort.Enabled",
            len(first.enabled),
            "only one queue sort plugin can be enabled",
        )
    name = first.enabled[0].name if first.enabled else None
    args = profiles[0].args(name) if name else None
    for index, profile in enumerate(profiles[1:], start=1):
        if not _same_sets(profile.plugins.queue_sort, first):
            yield invalid(
                f"profiles[{index}].plugins.queueSort",
                encode(profile.plugins.queue_sort),
                "must be the same for all profiles",
            )
        for config in profile.plugin_config:
            if config.name == name and config.args != args:
                yield invalid(
                    f"profiles[{index}].pluginConfig.args",
                    encode(config.args),
                    "queueSort must be the same for all profiles",
                )


def _same_sets(one: PluginSet, other: PluginSet) -> bool:
    """Equal sets; a weight of zero is none."""

    def plain(plugins: PluginSet) -> list[list[tuple[str, int]]]:
        return [[(ref.name, ref.weight or 0) for ref in refs] for refs in (plugins.enabled, plugins.disabled)]

    return plain(one) == plain(other)


def _extenders(extenders: tuple[Extender, ...]) -> Iterator[str]:
    managed = set()
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        if extender.prioritize_verb and extender.weight <= 0:
            yield invalid(f"{path}.weight", extender.weight, "must have a positive weight applied to it")
        for number, resource in enumerate(extender.managed_resources):
            name_path = f"{path}.managedResources[{number}].name"
            yield from _extended_resource(name_path, resource.name)
            if resource.name in managed:
                yield invalid(name_path, resource.name, "duplicate extender managed resource name")
            managed.add(resource.name)
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        yield invalid(
            "extenders",
            f"found {binders} extenders implementing bind",
            "only one extender can implement bind",
        )


def _extended_resource(path: str, name: str) -> Iterator[str]:
    problems = qualified_name_problems(name)
    for problem in problems:
        yield invalid(path, name, problem)
    if not problems and not is_extended_resource(name):
        yield invalid(
            path, name, "is an invalid extended resource name; it needs a domain, like example.com/gpu"
        )
