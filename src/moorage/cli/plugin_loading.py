"""The plugins that commands load."""

from __future__ import annotations

from pathlib import Path

from moorage.config.types import SchedulerConfiguration
from moorage.framework.loading.plugin_discovery import DiscoveredPlugins, find_plugins
from moorage.plugins import default_registry


def with_plugins(config: SchedulerConfiguration, files: list[Path] | None) -> DiscoveredPlugins:
    """A configuration with the plugins of files, of installed packages, and of the modules it names."""
    return find_plugins(config, default_registry(), files or ())
