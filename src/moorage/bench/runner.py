"""Runs workloads one after another, each in a cluster of its own."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager

from moorage.bench.executor import WAIT_SECONDS, Executor
from moorage.bench.plan import PlannedWorkload
from moorage.bench.results import NotRun, Report
from moorage.bench.target import Target, WorkloadFailed
from moorage.clock import Clock, LoopClock
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.version import __version__

OpenTarget = Callable[[PlannedWorkload], AbstractAsyncContextManager[Target]]
"""Opens a cluster for a workload, for the duration of the context."""


class Watcher:
    """Callbacks for the progress of a run; by default they do nothing."""

    def begins(self, workload: PlannedWorkload, target: Target) -> None:
        """A workload begins in a cluster."""

    def collecting(self, begins: bool) -> None:
        """Measuring starts or stops."""

    def ended(self, workload: PlannedWorkload) -> None:
        """A workload has ended, successfully or not."""


async def run_all(
    workloads: Iterable[PlannedWorkload],
    mode: str,
    open_target: OpenTarget,
    watcher: Watcher | None = None,
    clock: Clock | None = None,
    wait_seconds: float = WAIT_SECONDS,
) -> Report:
    """Run workloads; reports the reason for each that is unsupported or fails, and continues."""
    watcher, clock = watcher or Watcher(), clock or LoopClock()
    report = Report(mode=mode, python=platform.python_version(), version=__version__, workloads=[])
    for workload in workloads:
        if workload.refused:
            report.refused.append(NotRun(name=workload.name, reason=workload.refused))
            continue
        try:
            async with open_target(workload) as target:
                watcher.begins(workload, target)
                executor = Executor(workload, target, clock, wait_seconds, watcher.collecting)
                report.workloads += await executor.run()
        except (WorkloadFailed, RequestError, ConnectionFailed) as error:
            report.failed.append(NotRun(name=workload.name, reason=str(error)))
        finally:
            watcher.ended(workload)
        await asyncio.sleep(0)
    return report
