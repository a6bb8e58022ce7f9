"""The commands of the laptop cluster: imported when one of them is called, if the package is installed."""

from __future__ import annotations

from typing import Any, Final

import typer
from typer.core import TyperGroup

from moorage.laptop_cluster import is_installed, missing

_NAMES: Final = ("apiserver", "up")
_NOT_INSTALLED: Final = "Part of the laptop cluster, which is not installed."


class Commands(TyperGroup):
    """All commands, of which those of the laptop cluster are imported on demand."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command by its name; None: there is no such command."""
        if cmd_name in _NAMES and is_installed():
            from moorage_cluster.cli.commands import app

            return typer.main.get_group(app).commands[cmd_name]
        return super().get_command(ctx, cmd_name)


def add_placeholder(app: typer.Typer, name: str) -> None:
    """Add a command that says what to install; it is called where the laptop cluster is not installed."""

    def command() -> None:
        typer.echo(missing(f"moorage {name}"), err=True)
        raise typer.Exit(1)

    settings = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(name, help=_NOT_INSTALLED, add_help_option=False, context_settings=settings)(command)
