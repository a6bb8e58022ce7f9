"""Options shared by commands that load plugins from files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from moorage.config.types import SchedulerConfiguration
from moorage.framework.loading.plugin_discovery import DiscoveredPlugins, find_plugins
from moorage.plugins import default_registry

PLUGIN_HELP: Final = (
    "A Python file with plugins of your own, which run in every profile, at all extension points they have, "
    "unless the configuration says where; may be repeated."
)

PluginFiles = Annotated[list[Path] | None, typer.Option("--plugin", metavar="FILE.py", help=PLUGIN_HELP)]
"""The option as commands declare it."""


def with_plugins(config: SchedulerConfiguration, files: list[Path] | None) -> DiscoveredPlugins:
    """A configuration with the plugins of files, of installed packages, and of the modules it names."""
    return find_plugins(config, default_registry(), files or ())
