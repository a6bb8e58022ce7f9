"""Which scheduler decides: configuration, plugins and version, as they are given in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

from moorage.api.decode import InputError
from moorage.api.files import load_documents
from moorage.config.duration import parse_duration
from moorage.config.load import default_config, load_config, parse_config
from moorage.config.types import SchedulerConfiguration
from moorage.emulation.kubernetes_version import (
    DEFAULT_VERSION,
    KubernetesVersion,
    VersionError,
    parse_version,
)
from moorage.framework.loading.plugin_discovery import find_plugins
from moorage.research.sources import is_text
from moorage.sim.deciding import with_classes
from moorage.simulation.settings import Settings

Config: TypeAlias = SchedulerConfiguration | str | Path | Mapping[str, Any] | None
"""A configuration: decoded, as text, a file, or plain values. None: the default one."""


class SimulationOptions(TypedDict, total=False):
    """The options of simulations.

    seed: for the workload, and for what is left to chance; by default the cluster's.
    config: another configuration than the cluster's.
    until: when it ends, in seconds or such as `24h`; by default when nothing is going to change any more.
    script: what happens to nodes: a file, or events such as `{"at": "2h", "drain": "node-3"}`.
    restarts_pods: whether pods that are evicted are created again, which is the default.
    """

    seed: int
    config: Config
    until: float | str | None
    script: str | Path | Sequence[Mapping[str, str]]
    restarts_pods: bool


class SchedulerOptions(TypedDict, total=False):
    """The options of clusters.

    config: the scheduler's configuration.
    plugins: classes, and files with classes, enabled besides the default plugins.
    version: the version of Kubernetes to emulate, such as `1.36`.
    seed: for what is left to chance, such as the choice among equally good nodes.
    """

    config: Config
    plugins: Sequence[type[Any] | str | Path]
    version: KubernetesVersion | str | None
    seed: int


def settings_of(options: SchedulerOptions, server: KubernetesVersion | None = None) -> Settings:
    """How decisions are made; InputError if that cannot be.

    server: the version of the cluster's API server, which is emulated unless another one is wanted.
    """
    version = _version_of(options.get("version")) or server or DEFAULT_VERSION
    config = _config_of(options.get("config"), version)
    if config.extenders:
        raise InputError("config", "extenders are not called; remove them")
    plugins = options.get("plugins", ())
    classes = [each for each in plugins if isinstance(each, type)]
    files = [Path(each) for each in plugins if not isinstance(each, type)]
    found = find_plugins(*with_classes(config, classes), files)
    return Settings(found.config, found.registry, version, options.get("seed", 0))


def settings_of_simulation(settings: Settings, options: SimulationOptions) -> Settings:
    """How a simulation is run; the configuration is that of the settings."""
    return replace(
        settings,
        seed=options.get("seed", settings.seed),
        until_seconds=seconds_of(options.get("until")),
        restarts_pods=options.get("restarts_pods", True),
    )


def seconds_of(time: float | str | None) -> float | None:
    """A time in seconds, or as text such as `24h`; InputError if it is none."""
    try:
        seconds = float(parse_duration(time)) if isinstance(time, str) else time
    except ValueError as error:
        raise InputError("until", str(error)) from None
    if seconds is not None and seconds < 0:
        raise InputError("until", f"{time} is negative")
    return seconds


def _version_of(version: KubernetesVersion | str | None) -> KubernetesVersion | None:
    if not isinstance(version, str):
        return version
    try:
        return parse_version((version,))
    except VersionError as error:
        raise InputError("version", str(error)) from None


def _config_of(config: Config, version: KubernetesVersion) -> SchedulerConfiguration:
    if config is None:
        return default_config(version)
    if isinstance(config, SchedulerConfiguration):
        return config
    if isinstance(config, Mapping):
        return parse_config(config, "config", version)
    if not is_text(config):
        return load_config(Path(config), version)
    documents = load_documents(str(config), "config")
    return parse_config(documents[0] if documents else None, "config", version)
