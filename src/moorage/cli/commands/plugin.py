"""`moorage plugin`: create a plugin, and check any plugin against the rules."""

from __future__ import annotations

from typing import Annotated

import typer

from moorage.cli.plain_help import PlainCommand, PlainGroup

app = typer.Typer(
    name="plugin",
    cls=PlainGroup,
    help="Begin a plugin of your own; check plugins against the rules.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.command(cls=PlainCommand)
def new(
    name: Annotated[str, typer.Argument(help="What the package, its folder and its scheduler are called.")],
) -> None:
    """Write a small package with a plugin, its arguments, tests and a configuration into a folder NAME."""
    from moorage.cli.plugin import create_package

    create_package(name)


@app.command(cls=PlainCommand)
def check(
    target: Annotated[
        str,
        typer.Argument(
            metavar="PATH[:CLASS]", help="A Python file, the folder of a package, or module:Class."
        ),
    ],
    args: Annotated[
        str, typer.Option(help="The plugin's arguments, as pluginConfig has them; YAML or JSON.")
    ] = "",
) -> None:
    """Check plugins against the rules that all plugins have to keep, in small generated clusters."""
    from moorage.cli.plugin import check_plugins

    check_plugins(target, args)
