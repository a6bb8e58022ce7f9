"""Shows the progress of a run on standard error: a bar on a terminal, lines in a log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, NamedTuple, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from moorage.bench.ops import CreatePods
from moorage.bench.runner import Watcher
from moorage.bench.target import Target
from moorage.bench.workload_files import PlannedWorkload
from moorage.clock import Clock, Timer

_BAR_SECONDS: Final = 0.5
"""Update interval of a progress bar, in seconds."""
_LOG_SECONDS: Final = 10.0
"""Interval between the lines of one workload in a log, in seconds."""


class Standing(NamedTuple):
    """How far a workload is."""

    name: str
    pods: int
    total: int
    """Number of pods that operations create; 0 if it is unknown."""
    pods_per_second: float
    """Pods scheduled per second since the last time."""
    seconds: float
    """How long it has taken so far."""


class Progress(Watcher):
    """Follows a run: which workload it is at, and how many of its pods are scheduled."""

    def __init__(
        self, workloads: Sequence[PlannedWorkload], rounds: int, clock: Clock, interval_seconds: float
    ) -> None:
        self._order = [each.name for each in workloads if not each.refused]
        self._rounds = rounds
        self._clock = clock
        self._interval_seconds = interval_seconds
        self._runs_begun: dict[tuple[str, str], int] = {}
        self._timer: Timer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The run has ended."""

    def begins_elsewhere(self, workload: PlannedWorkload, scheduler: str) -> None:
        """A workload begins with the scheduler that this one is compared with: its pods are not seen."""
        self._begin(self._name(workload, scheduler), 0, lambda: 0)

    def begins(self, workload: PlannedWorkload, target: Target) -> None:
        """A workload begins in a cluster."""
        total = sum(op.count for op in workload.ops if isinstance(op, CreatePods))
        self._begin(self._name(workload, ""), total, lambda: target.pods.bound)

    def ends(self, workload: PlannedWorkload) -> None:
        """A workload ends."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def show(self, standing: Standing) -> None:
        """Show how far the current workload is; to be overridden."""

    def _name(self, workload: PlannedWorkload, scheduler: str) -> str:
        """The workload's name, and its place among all: `workload 2 of 9, round 1 of 3: Name (scheduler)`."""
        key = (workload.name, scheduler)
        self._runs_begun[key] = run = self._runs_begun.get(key, 0) + 1
        place = f"workload {self._order.index(workload.name) + 1} of {len(self._order)}"
        turn = f", round {run} of {self._rounds}" if self._rounds > 1 else ""
        return f"{place}{turn}: {workload.name}" + (f" ({scheduler})" if scheduler else "")

    def _begin(self, name: str, total: int, bound: Callable[[], int]) -> None:
        self.show(Standing(name, 0, total, 0.0, 0.0))
        begun_at = seen_at = self._clock.now()
        seen = 0

        def look() -> None:
            nonlocal seen_at, seen
            now, pods = self._clock.now(), bound()
            rate = (pods - seen) / (now - seen_at) if now > seen_at else 0.0
            seen_at, seen = now, pods
            self.show(Standing(name, pods, total, rate, now - begun_at))
            self._timer = self._clock.call_later(self._interval_seconds, look)

        self._timer = self._clock.call_later(self._interval_seconds, look)


class TerminalProgress(Progress):
    """A bar for the pods of the current workload, which is gone at its end."""

    def __init__(
        self, workloads: Sequence[PlannedWorkload], rounds: int, clock: Clock, console: Console
    ) -> None:
        super().__init__(workloads, rounds, clock, _BAR_SECONDS)
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            console=console,
            auto_refresh=False,
            transient=True,
        )
        self._bar: TaskID | None = None

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def show(self, standing: Standing) -> None:
        """Update the bar of the current workload."""
        total = standing.total or None
        if self._bar is None:
            self._bar = self._bars.add_task(standing.name, total=total, rate="")
        rate = f"{standing.pods_per_second:,.0f} pods/s" if standing.total else ""
        self._bars.update(self._bar, completed=standing.pods, rate=rate, refresh=True)

    def ends(self, workload: PlannedWorkload) -> None:
        """Remove the bar of the current workload."""
        super().ends(workload)
        if self._bar is not None:
            self._bars.remove_task(self._bar)
            self._bar = None


class LogProgress(Progress):
    """A line when a run of a workload begins, and every ten seconds while it lasts."""

    def __init__(
        self, workloads: Sequence[PlannedWorkload], rounds: int, clock: Clock, write: Callable[[str], None]
    ) -> None:
        super().__init__(workloads, rounds, clock, _LOG_SECONDS)
        self._write = write

    def show(self, standing: Standing) -> None:
        """Write a line."""
        words = [standing.name]
        if standing.seconds:
            words.append(f"{standing.seconds:,.0f} s")
        if standing.pods:
            pods = f"{standing.pods:,} of {standing.total:,} pods are scheduled"
            words.append(f"{pods}, {standing.pods_per_second:,.0f} pods/s")
        self._write(": ".join(words))
