"""`moorage`: all commands, and what they share."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from moorage.cli import bench, cluster_commands, config, decide, extender, manifests, plugin, replay
from moorage.cli import run as run_command
from moorage.version import __version__

CANNOT_WRITE = 3
"""Exit status: the output could not be written."""

app = typer.Typer(
    name="moorage",
    cls=cluster_commands.Commands,
    help="A Kubernetes scheduler in Python: kube-scheduler's decisions, explained.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(config.app)
app.add_typer(plugin.app)
cluster_commands.add_placeholder(app, "apiserver")
app.command()(bench.bench)
app.command()(decide.decide)
app.command()(extender.extender)
app.command()(manifests.manifests)
app.command()(replay.replay)
app.command(cls=run_command.KubeFlags)(run_command.run)
cluster_commands.add_placeholder(app, "up")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"moorage {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A Kubernetes scheduler in Python."""


def run() -> None:
    """The `moorage` command; output that cannot be written ends it with a line, not a traceback."""
    try:
        app()
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        typer.echo(f"moorage: {where}{error.strerror or error}", err=True)
        sys.exit(CANNOT_WRITE)
