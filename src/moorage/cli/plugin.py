"""`moorage plugin`: create a plugin, and check any plugin against the rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from moorage.api.decode import InputError
from moorage.api.yaml_reading import YamlError, load_yaml
from moorage.cli.checked_plugins import plugins_at
from moorage.cli.new_plugin import names_from, write_package
from moorage.framework.loading.registry import RegistryError
from moorage.testing.checking import check_plugin
from moorage.testing.plugin_report import Outcome, PluginReport, Result

BROKEN, UNUSABLE = 1, 2
"""Exit statuses: a rule is broken; there is no plugin to check, or the folder cannot be written."""

_STYLES = {Result.PASSED: "green", Result.FAILED: "red", Result.NOT_APPLICABLE: "dim"}


def create_package(name: str) -> None:
    """Write a package, and print its files and how to go on."""
    try:
        written = write_package(names_from(name), Path(name))
    except InputError as error:
        typer.echo(f"moorage plugin new: {error}", err=True)
        raise typer.Exit(UNUSABLE) from None
    for path in written:
        typer.echo(f"wrote {path}")
    typer.echo("Next:")
    typer.echo(f"  pip install --editable './{name}[test]'")
    typer.echo(f"  python -m pytest {name}")
    typer.echo(f"  moorage up --config {name}/scheduler.yaml")


def check_plugins(target: str, args: str) -> None:
    """Check plugins and print what was found; exits with status 1 if one of them breaks a rule."""
    try:
        given = _arguments(args)
        reports = [check_plugin(plugin, args=given) for plugin in plugins_at(target)]
    except (InputError, RegistryError) as error:
        typer.echo(f"moorage plugin check: {error}", err=True)
        raise typer.Exit(UNUSABLE) from None
    for report in reports:
        _print(report)
    raise typer.Exit(0 if all(report.ok for report in reports) else BROKEN)


def _arguments(text: str) -> Any:
    if not text:
        return None
    try:
        given = load_yaml(text)
    except YamlError as error:
        raise InputError("--args", f"is no YAML: {error}") from None
    if not isinstance(given, dict):
        raise InputError("--args", "expected an object, such as '{minimum: 2}'")
    return given


def _print(report: PluginReport) -> None:
    console = Console(markup=False, highlight=False)
    table = Table("rule", "", "what it asks, or what is wrong", title=report.plugin, title_justify="left")
    table.columns[0].no_wrap = True
    for outcome in report.outcomes:
        if outcome.result is not Result.NOT_APPLICABLE:
            table.add_row(
                Text(outcome.check),
                Text(outcome.result.value, style=_STYLES[outcome.result]),
                Text("\n".join(_finding_lines(outcome))),
            )
    console.print(table)
    for note in report.notes:
        console.print(f"note: {note}", soft_wrap=True)
    broken = len(report.failed)
    count = f"{report.cases} pods in small clusters"
    if broken:
        console.print(f"{report.plugin}: {broken} rule{'s' if broken > 1 else ''} broken, with {count}")
    else:
        console.print(f"{report.plugin}: no rule broken, with {count}")


def _finding_lines(outcome: Outcome) -> list[str]:
    return [outcome.sentence] if outcome.result is Result.PASSED else list(outcome.lines())
