"""`moorage sweep`: which configuration is best for these workloads?"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Output(StrEnum):
    """The forms of results."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def sweep(
    study: Annotated[
        Path,
        typer.Argument(
            metavar="STUDY.yaml",
            help="What is to be simulated: configurations, scenarios, seeds, objectives.",
        ),
    ],
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes on this machine.  [default: one for each core]")
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="dask://HOST:PORT",
            help="Run on the workers of this Dask scheduler. They need moorage, and no files.",
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.jsonl",
            help="Where results are kept as they come; what is there is not run again.  "
            "[default: STUDY.results.jsonl, beside the study]",
        ),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Drop the results that are there.")] = False,
    output: Annotated[Output, typer.Option("--output", "-o", help="The form of the output.")] = Output.TABLE,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html", help="Write a page with plots, which needs nothing from elsewhere."
        ),
    ] = None,
) -> None:
    """Simulate many configurations with many workloads, on all cores or a Dask cluster, and compare them.

    Shows means over seeds with 95 % confidence intervals, and marks what is best: the Pareto front of the
    first two objectives. The same command goes on where it was interrupted.
    For example: moorage sweep examples/study.yaml --jobs 2
    """
    from moorage.cli.sweep import SweepOptions, show_sweep

    show_sweep(SweepOptions(study, jobs, on, results, fresh, output.value, report))
