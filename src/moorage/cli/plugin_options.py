"""Options shared by commands that load plugins from files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

PLUGIN_HELP: Final = (
    "A Python file with plugins of your own, which run in every profile, at all extension points they have, "
    "unless the configuration says where; may be repeated."
)

PluginFiles = Annotated[list[Path] | None, typer.Option("--plugin", metavar="FILE.py", help=PLUGIN_HELP)]
"""The option as commands declare it."""
