"""`moorage bench`: how fast is it?"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, NoReturn

import msgspec
import typer
import uvloop
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from moorage.api.decode import InputError
from moorage.bench.cluster import cluster_target
from moorage.bench.engine import engine_target
from moorage.bench.ops import CreatePods
from moorage.bench.plan import PlannedWorkload, read_workloads, workload_files
from moorage.bench.processes import served_target
from moorage.bench.profiling import Profile
from moorage.bench.results import Report, comparison, read_report
from moorage.bench.runner import OpenTarget, Watcher, run_all
from moorage.bench.selection import select
from moorage.bench.tables import comparison_table, report_table, time_table
from moorage.bench.target import Target
from moorage.cli.process import long_running
from moorage.client.connect import connected
from moorage.client.credentials import Access, find_access
from moorage.clock import LoopClock
from moorage.config.duration import Duration
from moorage.http.errors import KubeconfigError
from moorage.laptop_cluster import is_installed, missing

_WRONG: Final = 1
"""Exit status: the input is wrong, or a workload failed."""
_LOOK_SECONDS: Final = 0.5
"""Update interval of the progress bar, in seconds."""
_WIDTH: Final = 160
"""Default line width if the terminal's is unknown, in characters."""


def measure(
    files: list[Path],
    *,
    engine: bool,
    http: bool,
    kubeconfig: Path | None,
    only: list[str] | None,
    label: list[str] | None,
    as_json: bool,
    profile: Path | None,
    compare: Path | None,
    timeout: Duration,
) -> None:
    """Run workloads and print their figures; exits with status 1 if one of them failed."""
    long_running("bench")
    try:
        if http and not is_installed():
            _end(missing("moorage bench --http"))
        mode, open_target = _mode(engine, http, kubeconfig)
        if profile is not None and mode != "engine":
            raise InputError("--profile", "only what runs in this process can be looked at: use --engine")
        looking = None if profile is None else Profile(profile)
        old = None if compare is None else read_report(compare)
        planned = [each for file in workload_files(files) for each in read_workloads(file)]
        chosen = select(planned, only or [], label or [])
        watcher = _Watcher(chosen, looking, shows=sys.stderr.isatty() and not as_json)
        report = uvloop.run(_run(chosen, mode, open_target, watcher, timeout))
        if looking is not None and not looking.write():
            typer.echo("moorage bench: nothing was measured, so there is no profile", err=True)
    except (InputError, KubeconfigError) as error:
        _fail(str(error))
    if old is not None:
        before = {result.name: result for result in old.workloads}
        report.compared = {
            now.name: comparison(before[now.name], now) for now in report.workloads if now.name in before
        }
    _show(report, old, as_json)
    raise typer.Exit(_WRONG if report.failed else 0)


def _fail(message: str) -> NoReturn:
    _end(f"moorage bench: {'; '.join(message.splitlines())}")


def _end(line: str) -> NoReturn:
    typer.echo(line, err=True)
    raise typer.Exit(_WRONG)


def _mode(engine: bool, http: bool, kubeconfig: Path | None) -> tuple[str, OpenTarget]:
    """The name of the mode, and how to open its clusters."""
    if engine + http + (kubeconfig is not None) > 1:
        raise InputError("", "--engine, --http and --kubeconfig: give one of them")
    if http:
        return "http", lambda workload: served_target(workload.config, LoopClock())
    if kubeconfig is None:
        return "engine", lambda workload: engine_target(workload.config)
    find_access(kubeconfig)  # Reports errors in it before anything is run.

    def opened(workload: PlannedWorkload) -> AbstractAsyncContextManager[Target]:
        return _elsewhere(find_access(kubeconfig), workload)

    return "kubeconfig", opened


@asynccontextmanager
async def _elsewhere(access: Access, workload: PlannedWorkload) -> AsyncIterator[Target]:
    """An existing cluster."""
    clock = LoopClock()
    async with (
        connected(access, user_agent="moorage bench", clock=clock) as client,
        cluster_target(client, clock) as target,
    ):
        if workload.config is not None:
            target.notes.append(
                "the cluster's scheduler has a configuration of its own: schedulerConfigPath is ignored"
            )
        yield target


async def _run(
    workloads: list[PlannedWorkload],
    mode: str,
    open_target: OpenTarget,
    watcher: _Watcher,
    timeout: Duration,
) -> Report:
    with watcher:
        return await run_all(workloads, mode, open_target, watcher, wait_seconds=float(timeout))


class _Watcher(Watcher):
    """Updates a progress bar, and profiles the process while it is measured."""

    def __init__(self, workloads: list[PlannedWorkload], profile: Profile | None, *, shows: bool) -> None:
        self._profile = profile
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            auto_refresh=False,
            transient=True,
            disable=not shows,
        )
        self._all = self._progress.add_task("workloads", total=sum(not each.refused for each in workloads))
        self._one: TaskID | None = None
        self._target: Target | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        self._progress.start()

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def begins(self, workload: PlannedWorkload, target: Target) -> None:
        """A workload begins in a cluster."""
        pods = sum(op.count for op in workload.ops if isinstance(op, CreatePods))
        self._one = self._progress.add_task(workload.name, total=pods)
        self._target = target
        self._look()

    def _look(self) -> None:
        if self._target is None or self._one is None or self._progress.disable:
            return
        self._progress.update(self._one, completed=self._target.pods.bound, refresh=True)
        self._timer = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)

    def collecting(self, begins: bool) -> None:
        """Measuring starts or stops."""
        if self._profile is not None:
            self._profile.look(begins)

    def ended(self, workload: PlannedWorkload) -> None:
        """A workload has ended."""
        if self._timer is not None:
            self._timer.cancel()
        if self._one is not None:
            self._progress.remove_task(self._one)
        self._one = self._target = self._timer = None
        self._progress.advance(self._all)


def _show(report: Report, old: Report | None, as_json: bool) -> None:
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(report)).decode())
    else:
        console = Console(width=None if sys.stdout.isatty() else _WIDTH)
        if report.workloads:
            console.print(report_table(report))
        if len(report.workloads) == 1:
            console.print(time_table(report.workloads[0]))
        if old is not None:
            console.print(comparison_table(old, report))
        notes = Counter(note for result in report.workloads for note in result.notes)
        for note, count in notes.items():
            console.print(f"note: {note}" + (f" ({count} workloads)" if count > 1 else ""), highlight=False)
    for what, some in (("not run", report.refused), ("failed", report.failed)):
        for each in some:
            typer.echo(f"moorage bench: {each.name} {what}: {each.reason}", err=True)
