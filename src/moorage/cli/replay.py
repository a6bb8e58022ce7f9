"""`moorage replay`: compare our decisions with recorded ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from moorage.api.decode import InputError
from moorage.cli.plugin_loading import with_plugins
from moorage.cli.version_options import chosen_version, given_gates
from moorage.config.load import default_config
from moorage.emulation.feature_gates import GateError
from moorage.framework.loading.registry import RegistryError
from moorage.sim.difference import Difference
from moorage.sim.recording import load_recording
from moorage.sim.replay import ReplayResult

DIFFERENT, UNREADABLE = 1, 2
"""Exit statuses: a decision differs; a file could not be read."""
_ENDINGS: Final = (".json", ".json.gz")


def compare_recordings(
    files: list[Path],
    plugins: list[Path] | None,
    *,
    emulated_version: str | None,
    feature_gates: list[str] | None,
    as_json: bool,
    show: int,
) -> None:
    """Replay recordings and print what differs; exits with status 1 if anything does."""
    result = ReplayResult()
    try:
        registry = with_plugins(default_config(), plugins).registry
        version, gates = chosen_version(emulated_version), given_gates(feature_gates)
        for file in _recordings(files):
            result.add(load_recording(file, version, gates), registry)
    except (InputError, GateError, RegistryError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(UNREADABLE) from None
    if as_json:
        typer.echo(json.dumps(_as_json(result), indent=2))
    else:
        _print(result, show)
    raise typer.Exit(DIFFERENT if result.differences else 0)


def _recordings(paths: list[Path]) -> Iterator[Path]:
    """The files themselves, and all recordings in directories."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = sorted(each for each in path.iterdir() if each.name.endswith(_ENDINGS))
        if not found:
            raise InputError(str(path), "there are no recordings in it")
        yield from found


def _as_json(result: ReplayResult) -> dict[str, Any]:
    return {
        "pods": result.pods,
        "equal": result.equal,
        "families": {name: {"pods": f.pods, "equal": f.equal} for name, f in result.families.items()},
        "differences": [_difference_as_json(each) for each in result.differences],
    }


def _difference_as_json(difference: Difference) -> dict[str, Any]:
    facts = {
        "recording": difference.recording,
        "pod": difference.pod,
        "what": difference.what,
        "node": difference.node or None,
        "plugin": difference.plugin or None,
        "recorded": difference.recorded,
        "ours": difference.ours,
    }
    return {key: value for key, value in facts.items() if value is not None or key in ("recorded", "ours")}


def _print(result: ReplayResult, show: int) -> None:
    console = Console(markup=False, highlight=False)
    table = Table("family", "pods", "equal", "first differences")
    for name, family in result.families.items():
        theirs = [each for each in result.differences if each.family == name]
        shown = [str(each) for each in theirs[:show]]
        if len(theirs) > show:
            shown.append(f"... and {len(theirs) - show} more")
        style = "green" if family.equal == family.pods else "red"
        table.add_row(
            Text(name), str(family.pods), Text(str(family.equal), style=style), Text("\n".join(shown))
        )
    console.print(table)
    console.print(f"{result.equal} of {result.pods} pods equal")
