"""Custom schedulers: `moorage run` as a program with built-in plugins."""

from __future__ import annotations

import typer

from moorage.cli import run as run_command
from moorage.framework.loading.registry import NamedPlugin


def scheduler_command(*plugins: NamedPlugin) -> typer.Typer:
    """A program with the behaviour and flags of `moorage run`, and additional plugins by name.

    Write `scheduler_command(with_plugin("Reserved", Reserved))()` in the program's main module. A
    configuration enables the plugins, as it does those of installed packages.
    """
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

    def run(ctx: typer.Context) -> None:
        """Schedule the pods of a cluster, as kube-scheduler does, or beside it."""
        run_command.schedule(ctx, plugins)

    app.command(cls=run_command.KubeFlags)(run)
    return app
