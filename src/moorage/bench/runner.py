"""Runs workloads one after another, each in a cluster of its own."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from msgspec.structs import replace

from moorage.bench.executor import WAIT_SECONDS, Executor
from moorage.bench.results import BenchmarkReport, NotRun, WorkloadResult
from moorage.bench.rounds import merged, round_of
from moorage.bench.scheduler_perf import Measurement, SchedulerPerf
from moorage.bench.target import Target, WorkloadFailed
from moorage.bench.workload_files import PlannedWorkload
from moorage.clock import Clock, LoopClock
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.version import __version__

OpenTarget = Callable[[PlannedWorkload], AbstractAsyncContextManager[Target]]
"""Opens a cluster for a workload, for the duration of the context."""


class Watcher:
    """Callbacks for the progress of a run; by default they do nothing."""

    def begins_elsewhere(self, workload: PlannedWorkload, scheduler: str) -> None:
        """A workload begins with the scheduler that this one is compared with."""

    def begins(self, workload: PlannedWorkload, target: Target) -> None:
        """A workload begins in a cluster."""

    def collecting(self, begins: bool) -> None:
        """Measuring starts or stops."""

    def ends(self, workload: PlannedWorkload) -> None:
        """A workload ends, with either scheduler, successfully or not."""

    def reported(self, report: BenchmarkReport) -> None:
        """A workload was added to the report."""


def new_report(mode: str, reference: str = "") -> BenchmarkReport:
    """A report without results."""
    return BenchmarkReport(
        mode=mode,
        python=platform.python_version(),
        version=__version__,
        workloads=[],
        reference=reference,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """How workloads are run."""

    open_target: OpenTarget
    watchers: Sequence[Watcher] = ()
    clock: Clock = field(default_factory=LoopClock)
    wait_seconds: float = WAIT_SECONDS
    rounds: int = 1
    """How often each workload is run."""
    reference: SchedulerPerf | None = None
    """Another scheduler, which runs every workload in turn with this one."""

    async def run(self, workloads: Iterable[PlannedWorkload], report: BenchmarkReport) -> None:
        """Run workloads and add each to the report: its figures, or why it is unsupported or has failed.

        If the run is cancelled, the report has all rounds that were completed.
        """
        for workload in workloads:
            if workload.refused:
                report.refused.append(NotRun(name=workload.name, reason=workload.refused))
            else:
                await self._workload(workload, report)
            for watcher in self.watchers:
                watcher.reported(report)
            await asyncio.sleep(0)

    async def _workload(self, workload: PlannedWorkload, report: BenchmarkReport) -> None:
        runs: list[list[WorkloadResult]] = []
        try:
            for _ in range(self.rounds):
                runs.append(await self._round(workload))
        except (WorkloadFailed, RequestError, ConnectionFailed) as error:
            report.failed.append(NotRun(name=workload.name, reason=str(error)))
        finally:
            report.workloads += merged(runs)

    async def _round(self, workload: PlannedWorkload) -> list[WorkloadResult]:
        """One run with each scheduler; the results are this scheduler's."""
        others = None if self.reference is None else await self._elsewhere(workload, self.reference)
        results = await self._here(workload)
        if others is None:
            rates: list[float | None] = [None] * len(results)
        elif len(others) == len(results):
            rates = [other.rate(each.pods) for other, each in zip(others, results, strict=True)]
        else:
            raise WorkloadFailed(f"{len(results)} measurements, but {len(others)} of the other scheduler")
        return [
            replace(each, rounds=[round_of(each, rate)]) for each, rate in zip(results, rates, strict=True)
        ]

    async def _here(self, workload: PlannedWorkload) -> list[WorkloadResult]:
        try:
            async with self.open_target(workload) as target:
                for watcher in self.watchers:
                    watcher.begins(workload, target)
                executor = Executor(workload, target, self.clock, self.wait_seconds, self._collecting)
                return await executor.run()
        finally:
            self._ends(workload)

    async def _elsewhere(self, workload: PlannedWorkload, reference: SchedulerPerf) -> list[Measurement]:
        for watcher in self.watchers:
            watcher.begins_elsewhere(workload, reference.name)
        try:
            return await reference.run(workload)
        finally:
            self._ends(workload)

    def _collecting(self, begins: bool) -> None:
        for watcher in self.watchers:
            watcher.collecting(begins)

    def _ends(self, workload: PlannedWorkload) -> None:
        for watcher in self.watchers:
            watcher.ends(workload)
