"""Custom schedulers: `moorage run` as a program with built-in plugins."""

from __future__ import annotations

import typer

from moorage.cli.kube_flags import KubeFlags
from moorage.cli.run import schedule
from moorage.framework.loading.registry import NamedPlugin


def scheduler_command(*plugins: NamedPlugin) -> typer.Typer:
    """A program with the behaviour and flags of `moorage run`, and additional plugins by name.

    Write `scheduler_command(with_plugin("Reserved", Reserved))()` in the program's main module. A
    configuration enables the plugins, as it does those of installed packages.
    """
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

    def run(ctx: typer.Context) -> None:
        """Schedule the pods of a cluster, as kube-scheduler does, or beside it."""
        schedule(ctx, plugins)

    app.command(cls=KubeFlags)(run)
    return app
