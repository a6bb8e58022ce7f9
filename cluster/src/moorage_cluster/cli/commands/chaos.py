"""`moorage chaos`: campaigns of runs in which everything fails."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from moorage.cli.plain_help import PlainCommand, PlainGroup

app = typer.Typer(cls=PlainGroup, invoke_without_command=True, add_completion=False, rich_markup_mode=None)

_Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", help="Number of processes; as many as cores by default.", min=1),
]
_Output = Annotated[Literal["table", "json"], typer.Option("--output", "-o", help="The form of the report.")]
_Scenarios = Annotated[
    list[str] | None,
    typer.Option(
        "--scenario", metavar="NAME", help="Only this scenario; repeatable. `--list` prints all of them."
    ),
]


@app.callback()
def chaos(
    ctx: typer.Context,
    runs: Annotated[int, typer.Option(help="Number of runs of each scenario.", min=1)] = 100,
    seed: Annotated[
        int, typer.Option(help="The seed of the first run; those of the others follow.", min=0)
    ] = 0,
    scenario: _Scenarios = None,
    jobs: _Jobs = None,
    script: Annotated[
        Path | None, typer.Option(help="Run this script again, as a campaign wrote it, and nothing else.")
    ] = None,
    failures: Annotated[
        Path, typer.Option(help="The directory for the scripts of runs that fail, made as short as possible.")
    ] = Path("chaos-failures"),
    shrink: Annotated[bool, typer.Option(help="Make the scripts of runs that fail shorter.")] = True,
    output: _Output = "table",
    list_scenarios: Annotated[bool, typer.Option("--list", help="Print all scenarios, and end.")] = False,
) -> None:
    """Try to break the scheduler: thousands of short runs in which everything fails.

    A run is an API server, schedulers and users in virtual time; requests, watches, leases, processes,
    clocks, plugins and extenders fail as its seed says. Nothing may be lost, bound twice or over-committed,
    and some time after the last fault all pods that fit must run. A run that fails ends as a short script
    that can be run again.
    """
    if ctx.invoked_subcommand is not None:
        return
    from moorage_cluster.cli.chaos import ChaosOptions, run_chaos

    run_chaos(
        ChaosOptions(
            runs=runs,
            seed=seed,
            scenarios=scenario or [],
            jobs=jobs,
            script=script,
            failures=failures,
            shrinks=shrink,
            output=output,
            lists=list_scenarios,
        )
    )


@app.command(cls=PlainCommand)
def store(
    rounds: Annotated[
        int, typer.Option(help="Number of rounds: all checks, with writes of a seed of their own.", min=1)
    ] = 1,
    seed: Annotated[
        int, typer.Option(help="The seed of the first round; those of the others follow.", min=0)
    ] = 0,
    check: Annotated[
        list[str] | None,
        typer.Option("--check", metavar="NAME", help="Only this check; repeatable. `--list` prints all."),
    ] = None,
    jobs: _Jobs = None,
    output: _Output = "table",
    list_checks: Annotated[bool, typer.Option("--list", help="Print all checks, and end.")] = False,
) -> None:
    """Try to lose what the API server has stored: kills, power failures, full disks, damaged files.

    Every write to a file is a place at which processes are killed and the power fails. No acknowledged write
    may be lost by a kill; after a power failure the last ones may be missing, but nothing between. A server
    does not start with damaged objects.
    """
    from moorage_cluster.cli.chaos_store import StoreOptions, run_chaos_store

    run_chaos_store(
        StoreOptions(
            rounds=rounds, seed=seed, checks=check or [], jobs=jobs, output=output, lists=list_checks
        )
    )


@app.command(cls=PlainCommand)
def processes(
    runs: Annotated[int, typer.Option(help="Number of runs of each scenario.", min=1)] = 1,
    seed: Annotated[
        int, typer.Option(help="The seed of the first run; those of the others follow.", min=0)
    ] = 0,
    scenario: _Scenarios = None,
    seconds: Annotated[
        float, typer.Option(help="How long users work and processes are disturbed in a run.", min=1)
    ] = 30,
    failures: Annotated[Path, typer.Option(help="The directory for the logs of runs that fail.")] = Path(
        "chaos-failures"
    ),
    output: _Output = "table",
    list_scenarios: Annotated[bool, typer.Option("--list", help="Print all scenarios, and end.")] = False,
) -> None:
    """Try to break real processes: an API server and two schedulers with leader election, over HTTPS.

    They are killed, stopped beyond their lease and slowed down, and run out of disk, descriptors and memory,
    while users create and delete pods. No acknowledged write may be lost, no pod bound twice, no node
    over-committed, and a leader whose lease has ended must write nothing. A seed says what happens when; the
    processes' timing differs from run to run.
    """
    from moorage_cluster.cli.chaos_processes import ProcessesOptions, run_chaos_processes

    run_chaos_processes(
        ProcessesOptions(
            runs=runs,
            seed=seed,
            scenarios=scenario or [],
            seconds=seconds,
            failures=failures,
            output=output,
            lists=list_scenarios,
        )
    )
