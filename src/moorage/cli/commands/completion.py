"""`moorage completion`: what a shell needs to complete commands."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Shell(StrEnum):
    """The shells that can complete commands."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="The shell that is to complete.", show_default=False)],
) -> None:
    """Print a script with which a shell completes commands, options, files and names in the cluster.

    In bash: source <(moorage completion bash)

    In zsh: source <(moorage completion zsh)

    In fish: moorage completion fish | source
    """
    from moorage.cli.completion import script

    typer.echo(script(shell), nl=False)
