"""`moorage sweep`: which configuration is best for these workloads?"""

from __future__ import annotations

import csv
import io
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import typer

from moorage.api.decode import InputError
from moorage.cli.aligned_table import aligned
from moorage.cli.garbage_collection import collect_in_passing
from moorage.cli.output_files import write_file
from moorage.cli.sweep_progress import SweepProgress
from moorage.sweep.dask_engine import SCHEME, DaskEngine
from moorage.sweep.engine import Engine, EngineError
from moorage.sweep.local_engine import LocalEngine
from moorage.sweep.plan import read_plan
from moorage.sweep.report import html_report
from moorage.sweep.results import SweepResult
from moorage.sweep.store import ResultStore
from moorage.sweep.sweep import run_sweep
from moorage.sweep.tables import csv_header, csv_rows, header, table_rows

_COMMAND: Final = "moorage sweep"
_FAILED: Final = 1
"""Exit status: some simulations have no results."""
_UNREADABLE: Final = 2
"""Exit status: the input could not be used."""
_INTERRUPTED: Final = 128 + signal.SIGINT
"""Exit status: it was interrupted."""


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """What is to be simulated, where, and what is done with the results."""

    study: Path
    jobs: int | None
    on: str | None
    results: Path | None
    is_fresh: bool
    output: str
    report: Path | None

    def engine(self) -> Engine:
        """Where tasks run; InputError if it is no possible place."""
        if self.on is None:
            return LocalEngine(self.jobs or os.cpu_count() or 1, collect_in_passing)
        if self.jobs is not None:
            raise InputError("--jobs", "the processes of --on are those of its workers")
        if not self.on.startswith(SCHEME):
            raise InputError("--on", f"{self.on}: expected {SCHEME}HOST:PORT")
        return DaskEngine(self.on)

    def results_file(self) -> Path:
        """Where results are kept."""
        return self.results or self.study.with_suffix(".results.jsonl")


def show_sweep(options: SweepOptions) -> None:
    """Sweep, and print the results; exits with 1 if one failed, 2 for bad input, 130 if interrupted."""
    try:
        result = _swept(options)
        if options.report is not None:
            write_file(options.report, html_report(result))
    except InputError as error:
        _say(*str(error).splitlines())
        raise typer.Exit(_UNREADABLE) from None
    except KeyboardInterrupt:
        _say("interrupted; nothing was run")
        raise typer.Exit(_INTERRUPTED) from None
    except EngineError as error:
        _say(f"{error}; results so far are in {options.results_file()}")
        raise typer.Exit(_FAILED) from None
    typer.echo(_shown(result, options.output))
    for each in result.failures:
        _say(f"{each.configuration}, {each.scenario}, v{each.kubernetes}, seed {each.seed}: {each.reason}")
    if not result.complete:
        _say(f"interrupted; results so far are in {options.results_file()}, the same command goes on")
        raise typer.Exit(_INTERRUPTED)
    if result.failures:
        raise typer.Exit(_FAILED)


def _say(*lines: str) -> None:
    for line in lines:
        typer.echo(f"{_COMMAND}: {line}", err=True)


def _swept(options: SweepOptions) -> SweepResult:
    engine, plan = options.engine(), read_plan(options.study)
    with ResultStore(options.results_file(), is_fresh=options.is_fresh) as store:
        done = sum(key in store.figures for key in plan.tasks)
        if done:
            _say(f"{done:,} of {len(plan.tasks):,} results are in {options.results_file()}")
        with SweepProgress(_COMMAND, len(plan.tasks), done) as progress:
            return run_sweep(plan, store, engine, progress.update)


def _shown(result: SweepResult, output: str) -> str:
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(result)).decode()
    if output == "csv":
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, csv_header(result), lineterminator="\n")
        writer.writeheader()
        writer.writerows(csv_rows(result))
        return text.getvalue().rstrip("\n")
    return aligned(header(result), list(table_rows(result)))
