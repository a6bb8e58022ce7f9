"""Groups of options: a command has them as its own, and gets what they say."""

from __future__ import annotations

from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from moorage.cli.option_groups import takes

Count = Annotated[int, typer.Option(help="How many there are.", rich_help_panel="Size")]


def size(count: Count = 1, unit: str = "m") -> str:
    return f"{count}{unit}"


def run(*words: str) -> str:
    app = typer.Typer(add_completion=False)

    @app.command()
    @takes(length=size)
    def command(name: str, length: str, loud: bool = False) -> None:
        """Shows a length."""
        typer.echo(f"{name} {length} {loud}")

    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("a",), "a 1m False\n"),
        (("a", "--count", "3", "--loud"), "a 3m True\n"),
        (("--unit", "km", "a"), "a 1km False\n"),
    ],
)
def test_a_command_gets_what_the_options_say(words: tuple[str, ...], shown: str) -> None:
    assert run(*words) == shown


def test_the_options_are_in_its_help() -> None:
    shown = run("--help")
    assert "Shows a length." in shown
    assert "How many there are." in shown
