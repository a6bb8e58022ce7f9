"""`moorage bench`: how fast is it?"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, NoReturn

import typer
import uvloop
from rich.console import Console

from moorage.api.decode import InputError
from moorage.bench.cluster_target import cluster_target
from moorage.bench.engine_target import engine_target
from moorage.bench.profiling import CpuProfile
from moorage.bench.progress import LogProgress, Progress, TerminalProgress
from moorage.bench.results import BenchmarkReport, comparisons, read_report, report_json, write_report
from moorage.bench.runner import OpenTarget, Runner, Watcher, new_report
from moorage.bench.scheduler_perf import SchedulerPerf
from moorage.bench.served_target import served_target
from moorage.bench.tables import comparison_table, reference_table, report_table, smallest_ratio, time_table
from moorage.bench.target import Target
from moorage.bench.workload_files import PlannedWorkload, read_workloads, workload_files
from moorage.bench.workload_selection import select
from moorage.cli.commands.bench import COMPARED_ROUNDS
from moorage.cli.garbage_collection import long_running
from moorage.cli.plugin_loading import with_plugins
from moorage.cli.version_options import emulated
from moorage.client.connect import connected
from moorage.client.credentials import Access, find_access
from moorage.clock import LoopClock
from moorage.config.duration import Duration
from moorage.config.load import default_config, load_config
from moorage.config.problems import ConfigError
from moorage.config.types import SchedulerConfiguration
from moorage.emulation.kubernetes_version import KubernetesVersion
from moorage.framework.loading.registry import RegistryError
from moorage.http.errors import KubeconfigError
from moorage.laptop_cluster import is_installed, missing

_WRONG: Final = 1
"""Exit status: the input is wrong, or a workload failed."""
_SIGNALLED: Final = 128
"""Exit status of a run that a signal ended, less the signal's number."""
_STOPPING: Final = (signal.SIGINT, signal.SIGTERM)
"""Signals that end the run, which prints what it has."""
_WIDTH: Final = 160
"""Default line width if the terminal's is unknown, in characters."""


def measure(
    files: list[Path],
    *,
    engine: bool,
    http: bool,
    kubeconfig: Path | None,
    emulated_version: str | None,
    feature_gates: list[str] | None,
    only: list[str] | None,
    label: list[str] | None,
    rounds: int | None,
    compare_with: str,
    config: Path | None,
    plugins: list[Path],
    as_json: bool,
    output: Path | None,
    profile: Path | None,
    compare: Path | None,
    timeout: Duration,
) -> None:
    """Run workloads and print their figures; exits with status 1 if one of them failed."""
    long_running("bench")
    try:
        if http and not is_installed():
            _end(missing("moorage bench --http"))
        if kubeconfig is not None and (config is not None or plugins):
            raise InputError("--kubeconfig", "the cluster's scheduler has its own configuration and plugins")
        mode, open_target = _mode(engine, http, kubeconfig, plugins)
        if profile is not None and mode != "engine":
            raise InputError("--profile", "only what runs in this process can be looked at: use --engine")
        looking = None if profile is None else CpuProfile(profile)
        old = None if compare is None else read_report(compare)
        version = emulated(emulated_version, feature_gates)
        configured = _configuration(config, plugins, version)
        if configured is not None and compare_with:
            raise InputError("--compare-with", "the other scheduler cannot have this --config or --plugin")
        planned = [each for file in workload_files(files) for each in read_workloads(file, version)]
        if configured is not None:
            planned = [replace(each, config=each.config or configured) for each in planned]
        chosen = select(planned, only or [], label or [])
        reference = _reference(compare_with, chosen)
        report = new_report(mode, "" if reference is None else reference.name)
        times = rounds or (1 if reference is None else COMPARED_ROUNDS)
        progress = _progress(chosen, times)
        runner = Runner(
            open_target=open_target,
            watchers=_watchers(progress, looking, output),
            wait_seconds=float(timeout),
            rounds=times,
            reference=reference,
        )
        if output is not None:
            write_report(output, report)  # Reports before the run that the file cannot be written.
        stopped_by = uvloop.run(_run(runner, progress, chosen, report))
        if looking is not None and not looking.write():
            typer.echo("moorage bench: nothing was measured, so there is no profile", err=True)
        if old is not None:
            report.compared = comparisons(old, report)
        if output is not None:
            write_report(output, report)
    except (InputError, ConfigError, KubeconfigError, RegistryError) as error:
        _fail(str(error))
    _show(report, old, as_json)
    if stopped_by is not None:
        measured = f"{len(report.workloads)} of {len(chosen)} workloads are measured"
        typer.echo(f"moorage bench: interrupted by {stopped_by.name}: {measured}", err=True)
        raise typer.Exit(_SIGNALLED + stopped_by)
    raise typer.Exit(_WRONG if report.failed else 0)


def _configuration(
    file: Path | None, plugins: list[Path], version: KubernetesVersion
) -> SchedulerConfiguration | None:
    """The configuration of workloads that bring none, checked with its plugins; None: the default one."""
    if file is None and not plugins:
        return None
    config = default_config(version) if file is None else load_config(file, version)
    with_plugins(config, plugins)
    return config


def _reference(option: str, workloads: list[PlannedWorkload]) -> SchedulerPerf | None:
    """The scheduler to compare with; InputError if it cannot be run."""
    if not option:
        return None
    name, equals, binary = option.partition("=")
    if not (name and equals and binary):
        raise InputError("--compare-with", f"expected NAME=BINARY, not {option!r}")
    reference = SchedulerPerf(name, Path(binary))
    reference.check(workloads)
    return reference


def _progress(workloads: list[PlannedWorkload], rounds: int) -> Progress:
    """Progress on standard error: bars on a terminal, lines otherwise."""
    console = Console(stderr=True)
    if console.is_terminal:
        return TerminalProgress(workloads, rounds, LoopClock(), console)
    return LogProgress(
        workloads, rounds, LoopClock(), lambda line: typer.echo(f"moorage bench: {line}", err=True)
    )


def _fail(message: str) -> NoReturn:
    _end(f"moorage bench: {'; '.join(message.splitlines())}")


def _end(line: str) -> NoReturn:
    typer.echo(line, err=True)
    raise typer.Exit(_WRONG)


def _mode(engine: bool, http: bool, kubeconfig: Path | None, plugins: list[Path]) -> tuple[str, OpenTarget]:
    """The name of the mode, and how to open its clusters."""
    if engine + http + (kubeconfig is not None) > 1:
        raise InputError("", "--engine, --http and --kubeconfig: give one of them")
    if http:
        return "http", lambda workload: served_target(workload.config, LoopClock(), workload.version, plugins)
    if kubeconfig is None:
        return "engine", lambda workload: engine_target(
            workload.config,
            features=workload.declared_features,
            version=workload.version,
            plugins=plugins,
        )
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
    runner: Runner, progress: Progress, workloads: list[PlannedWorkload], report: BenchmarkReport
) -> signal.Signals | None:
    """Run workloads; the signal that ended the run early, if there was one."""
    loop, received = asyncio.get_running_loop(), []
    running = asyncio.create_task(runner.run(workloads, report))

    def stop(number: signal.Signals) -> None:
        received.append(number)
        running.cancel()
        for each in _STOPPING:  # A second signal ends the process at once.
            loop.remove_signal_handler(each)

    for each in _STOPPING:
        loop.add_signal_handler(each, stop, each)
    with progress:
        try:
            await running
        except asyncio.CancelledError:
            if not received:
                raise
    return received[0] if received else None


def _watchers(progress: Progress, profile: CpuProfile | None, output: Path | None) -> list[Watcher]:
    watchers: list[Watcher] = [progress]
    if profile is not None:
        watchers.append(_Profiler(profile))
    if output is not None:
        watchers.append(_Output(output))
    return watchers


class _Profiler(Watcher):
    """Profiles the process while it is measured."""

    def __init__(self, profile: CpuProfile) -> None:
        self._profile = profile

    def collecting(self, begins: bool) -> None:
        """Measuring starts or stops."""
        self._profile.sample(begins)


class _Output(Watcher):
    """Writes the report to a file whenever a workload was added to it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def reported(self, report: BenchmarkReport) -> None:
        """A workload was added to the report."""
        write_report(self._path, report)


def _show(report: BenchmarkReport, old: BenchmarkReport | None, as_json: bool) -> None:
    if as_json:
        typer.echo(report_json(report), nl=False)
    else:
        console = Console(width=None if sys.stdout.isatty() else _WIDTH)
        if report.workloads:
            console.print(report_table(report))
        if report.reference and (smallest := smallest_ratio(report.workloads)):
            console.print(smallest, highlight=False)
            console.print(reference_table(report))
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
