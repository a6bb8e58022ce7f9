"""`moorage config`: validate a configuration, show the effective one, convert an old one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moorage.cli.plain_help import PlainCommand, PlainGroup
from moorage.cli.plugin_options import PluginFiles
from moorage.cli.version_options import EmulatedVersion, FeatureGateFlags

app = typer.Typer(
    name="config",
    cls=PlainGroup,
    help="Check, show and convert scheduler configurations.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.command(cls=PlainCommand)
def check(
    files: Annotated[
        list[Path], typer.Argument(help="Configuration files (YAML or JSON).", show_default=False)
    ],
    plugin: PluginFiles = None,
    emulated_version: EmulatedVersion = None,
    feature_gates: FeatureGateFlags = None,
) -> None:
    """Check configuration files: say ok and list profiles with their plugins, or name every problem.

    Notes name fields that are accepted and have no effect.
    """
    from moorage.cli.config import check_files

    check_files(files, plugin, emulated_version, feature_gates)


@app.command(cls=PlainCommand)
def defaults(
    config: Annotated[
        Path | None, typer.Option("--config", help="The configuration to complete; without it, an empty one.")
    ] = None,
    emulated_version: EmulatedVersion = None,
    feature_gates: FeatureGateFlags = None,
) -> None:
    """Print the configuration in force: every field, every plugin and every argument, as YAML.

    With --emulated-version also what differs between the versions, as comments.
    """
    from moorage.cli.config import print_effective

    print_effective(config, emulated_version, feature_gates)


@app.command(cls=PlainCommand)
def convert(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A file of an older version, or a Policy.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write; without it, to standard output.")
    ] = None,
) -> None:
    """Convert an old configuration to kubescheduler.config.k8s.io/v1; notes say what has changed."""
    from moorage.cli.config import convert_file

    convert_file(old, output)
