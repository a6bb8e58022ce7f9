"""`moorage trace`: record the workload of a cluster, and look at a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moorage.cli.durations import duration
from moorage.cli.plain_help import PlainCommand, PlainGroup
from moorage.cli.scenario_flags import SkipBad, TraceFormatFlag, TraceUnit
from moorage.config.duration import Duration
from moorage.simulation.traces.format_names import DEFAULT_TRACE_UNIT

app = typer.Typer(
    name="trace",
    cls=PlainGroup,
    help="Record the pods of a cluster as a trace for simulations; look at a trace.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.command(cls=PlainCommand)
def record(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The trace to write (.jsonl, .csv, either with .gz, or .parquet).",
        ),
    ],
    for_: Annotated[
        Duration | None,
        typer.Option(
            "--for", parser=duration, metavar="DURATION", help="How long to record.  [default: until Ctrl-C]"
        ),
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="The kubeconfig to use; else as kubectl finds it.")
    ] = None,
    context: Annotated[str, typer.Option(help="The context of it to use.")] = "",
) -> None:
    """Record all pods of a cluster: when they arrive, how long they run, what they request.

    Watches until Ctrl-C, SIGTERM, or the end of --for; then the file is written for moorage simulate.
    It needs permission to list and watch pods, and changes nothing.
    For example: moorage trace record --for 1h -o monday.jsonl
    """
    from moorage.cli.trace import record_trace

    record_trace(output, None if for_ is None else float(for_), kubeconfig, context)


@app.command(cls=PlainCommand)
def show(
    file: Annotated[Path, typer.Argument(help="The trace.", show_default=False)],
    trace_format: TraceFormatFlag = None,
    trace_unit: TraceUnit = DEFAULT_TRACE_UNIT,
    skip_bad: SkipBad = False,
) -> None:
    """Show how many pods a trace has, when they arrive, how long they run and what they request.

    Reads all of it, so that a line that moorage simulate cannot read is found, too.
    For example: moorage trace show monday.jsonl
    """
    from moorage.cli.trace import show_trace

    show_trace(file, trace_format, trace_unit, skips_bad=skip_bad)
