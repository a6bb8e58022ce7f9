"""How a simulation is run: the scheduler's configuration, plugins and version, the seed, and the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from moorage.api.decode import InputError
from moorage.config.load import default_config, load_config
from moorage.config.types import SchedulerConfiguration
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from moorage.framework.loading.plugin_discovery import find_plugins
from moorage.framework.loading.registry import Registry
from moorage.plugins import default_registry


@dataclass(frozen=True, slots=True)
class Settings:
    """How a simulation is run."""

    config: SchedulerConfiguration
    registry: Registry
    version: KubernetesVersion = DEFAULT_VERSION
    seed: int = 0
    until_seconds: float | None = None
    """When it ends; None: when nothing is going to change any more."""
    restarts_pods: bool = True
    """Whether pods that are preempted, drained or lost with their node are created again."""


def load_settings(
    config: Path | None = None,
    plugins: Sequence[Path] = (),
    version: KubernetesVersion = DEFAULT_VERSION,
    *,
    seed: int = 0,
    until_seconds: float | None = None,
    restarts_pods: bool = True,
) -> Settings:
    """Settings with a configuration file, or the default configuration; InputError if it cannot be used.

    plugins: files with plugins of one's own.
    """
    loaded = default_config(version) if config is None else load_config(config, version)
    if loaded.extenders:
        raise InputError(str(config), "extenders are not called in a simulation; remove them")
    found = find_plugins(loaded, default_registry(), plugins)
    return Settings(found.config, found.registry, version, seed, until_seconds, restarts_pods)
