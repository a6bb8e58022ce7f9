"""`moorage chaos`: run a campaign or one script, and report."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import typer

from moorage.api.decode import InputError
from moorage.cli.aligned_table import aligned
from moorage_cluster.chaos.campaign import Failure, Tally, run_campaign
from moorage_cluster.chaos.run import run_script
from moorage_cluster.chaos.scenarios import SCENARIOS, summaries
from moorage_cluster.chaos.script import read_script, write_script
from moorage_cluster.cli.campaigns import RunProgress, ended_by_signals

_COMMAND: Final = "moorage chaos"
_FAILED: Final = 1
"""Exit status: something did not hold."""
_UNREADABLE: Final = 2
"""Exit status: the input could not be used."""
_INTERRUPTED: Final = 128 + signal.SIGINT
"""Exit status: it was interrupted."""
_HEADER: Final = ("SCENARIO", "RUNS", "FAULTS", "PODS BOUND", "VIRTUAL HOURS", "FAILED")
_SECONDS_PER_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class ChaosOptions:
    """What is to be run."""

    runs: int
    seed: int
    scenarios: list[str]
    jobs: int | None
    script: Path | None
    failures: Path
    shrinks: bool
    output: str
    lists: bool


def run_chaos(options: ChaosOptions) -> None:
    """Run, and report; exits with 1 if something did not hold, 2 for bad input, 130 if interrupted."""
    if options.lists:
        typer.echo(aligned(("SCENARIO", "WHAT FAILS"), list(summaries())))
        return
    try:
        if options.script is not None:
            _replay(options.script, options.output)
        else:
            _run(options)
    except InputError as error:
        _say(str(error))
        raise typer.Exit(_UNREADABLE) from None


def _say(line: str) -> None:
    typer.echo(f"{_COMMAND}: {line}", err=True)


def _replay(path: Path, output: str) -> None:
    outcome = run_script(read_script(path))
    faults = sum(outcome.injected.values())
    if output == "json":
        typer.echo(msgspec.json.format(msgspec.json.encode(outcome)).decode())
    else:
        for each in outcome.violations or [
            f"everything held; {outcome.bound} pods were bound, {faults} faults injected"
        ]:
            typer.echo(each)
    if not outcome.is_well:
        raise typer.Exit(_FAILED)


def _run(options: ChaosOptions) -> None:
    names = _names(options.scenarios)
    tallies = {name: Tally(name) for name in names}
    is_interrupted = False
    with RunProgress(_COMMAND, len(names) * options.runs) as progress, ended_by_signals():
        try:
            for part in run_campaign(
                names,
                options.seed,
                options.runs,
                options.jobs or os.cpu_count() or 1,
                shrinks=options.shrinks,
            ):
                tallies[part.scenario].merge(part)
                for each in part.failures:
                    _write(each, options.failures)
                progress.update(part.runs, len(part.failures))
        except KeyboardInterrupt:
            is_interrupted = True
    typer.echo(_report(list(tallies.values()), options.output))
    if is_interrupted:
        _say("interrupted; the report has what was run until then")
        raise typer.Exit(_INTERRUPTED)
    if any(each.failures for each in tallies.values()):
        raise typer.Exit(_FAILED)


def _names(wanted: list[str]) -> list[str]:
    """The scenarios to run; InputError if there is none of such a name."""
    for name in wanted:
        if name not in SCENARIOS:
            raise InputError("--scenario", f"there is no {name!r}; there are {', '.join(SCENARIOS)}")
    return wanted or list(SCENARIOS)


def _write(failure: Failure, directory: Path) -> None:
    """Write the script of a failed run, and say what did not hold."""
    path = directory / f"{failure.scenario}-{failure.seed}.json"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        write_script(failure.script, path)
    except OSError as error:
        raise InputError(str(path), f"cannot be written: {error.strerror or error}") from None
    what = failure.violations[0] if failure.violations else "it failed only once"
    _say(f"{what} (moorage chaos --script {path})")


def _report(tallies: list[Tally], output: str) -> str:
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(tallies)).decode()
    rows = [
        (
            each.scenario,
            f"{each.runs:,}",
            f"{sum(each.injected.values()):,}",
            f"{each.bound:,}",
            f"{each.seconds / _SECONDS_PER_HOUR:,.1f}",
            str(len(each.failures)),
        )
        for each in tallies
    ]
    return aligned(_HEADER, rows)
