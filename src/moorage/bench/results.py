"""The format of reports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from moorage.api.decode import InputError
from moorage.api.files import read_text
from moorage.bench.histograms import HistogramSummary


class Rates(msgspec.Struct, kw_only=True):
    """Pods a second.

    The average is that from the first creation to the last binding; the others are those of windows of one
    second, or the average where the run was too short for one.
    """

    average: float
    sampled_average: float
    p50: float
    p90: float
    p95: float
    p99: float


class Attempts(HistogramSummary, kw_only=True):
    """Durations of scheduling attempts, binding included; also by result."""

    results: dict[str, HistogramSummary] = {}


class Parts(msgspec.Struct, kw_only=True):
    """A value for each process; None if there is no such process, or the value is unknown.

    If the scheduler runs over a store in this process, all usage counts as the scheduler's.
    """

    scheduler: float | None = None
    server: float | None = None
    generator: float | None = None


PARTS: Final = ("scheduler", "server", "generator")


class ResultThreshold(msgspec.Struct, kw_only=True):
    """A figure's threshold, and whether it is met."""

    metric: str
    bucket: str
    value: float
    measured: float | None
    is_met: bool | None
    """None if the figure was not measured."""


class Round(msgspec.Struct, kw_only=True):
    """The figures of one of several runs of a workload."""

    pods_per_second: float
    """The average from the first creation to the last binding."""
    sampled_pods_per_second: float
    """The average of windows of one second, as scheduler_perf counts."""
    cpu_seconds_per_pod: Parts
    reference_pods_per_second: float | None = None
    """The figure of the scheduler that this one is compared with, as scheduler_perf counts."""

    @property
    def ratio(self) -> float | None:
        """This scheduler's throughput divided by the other's, both as scheduler_perf counts."""
        other = self.reference_pods_per_second
        return self.sampled_pods_per_second / other if other else None


class WorkloadResult(msgspec.Struct, kw_only=True):
    """The figures of one workload: those of the median round if it was run several times."""

    name: str
    pods: int
    """Number of pods bound during the measurement."""
    nodes: int
    seconds: float
    """Time from the first creation to the last binding."""
    pods_per_second: Rates
    latency_seconds: HistogramSummary | None
    """Time from a pod's creation until it was seen bound."""
    attempt_seconds: Attempts | None
    extension_points: dict[str, HistogramSummary]
    """Durations of extension points, all plugins together, in seconds."""
    plugins: dict[str, dict[str, HistogramSummary]]
    """Durations of plugins by extension point, in seconds; sampled in a tenth of the cycles."""
    cpu_seconds_per_pod: Parts
    peak_memory_bytes: Parts
    threshold: ResultThreshold | None
    notes: list[str]
    rounds: list[Round] = []
    """The figures of every round, in order; one at least in a report of this version."""

    @property
    def ratios(self) -> list[float]:
        """The ratio to the other scheduler's throughput in each round; empty without a comparison."""
        return [ratio for each in self.rounds if (ratio := each.ratio) is not None]


class NotRun(msgspec.Struct, kw_only=True):
    """A workload without figures, and the reason."""

    name: str
    reason: str


class BenchmarkReport(msgspec.Struct, kw_only=True):
    """All measurements of one run."""

    mode: str
    python: str
    version: str
    workloads: list[WorkloadResult]
    refused: list[NotRun] = []
    """Unsupported workloads."""
    failed: list[NotRun] = []
    """Workloads that failed."""
    compared: dict[str, dict[str, float | None]] = {}
    """By workload, the ratio of each figure to that of an older report, if one was given."""
    reference: str = ""
    """The name of the scheduler that every workload is compared with; empty if there is none."""


def read_report(path: Path) -> BenchmarkReport:
    """A report from a file; InputError if it is not a report."""
    try:
        return msgspec.json.decode(read_text(path), type=BenchmarkReport)
    except msgspec.MsgspecError as error:
        raise InputError(str(path), f"not a report of moorage bench: {error}") from None


def write_report(path: Path, report: BenchmarkReport) -> None:
    """Write a report to a file, which is complete at all times; InputError if it cannot be written."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        unfinished.write_bytes(report_json(report))
        unfinished.replace(path)
    except OSError as error:
        raise InputError(str(path), error.strerror or str(error)) from None


def report_json(report: BenchmarkReport) -> bytes:
    """A report as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(report)) + b"\n"


def comparisons(old: BenchmarkReport, new: BenchmarkReport) -> dict[str, dict[str, float | None]]:
    """The ratios of all workloads that both reports have, by name."""
    before = {result.name: result for result in old.workloads}
    return {now.name: comparison(before[now.name], now) for now in new.workloads if now.name in before}


def comparison(then: WorkloadResult, now: WorkloadResult) -> dict[str, float | None]:
    """The ratio of each figure to the older one; None if either is unknown."""
    figures: dict[str, Callable[[WorkloadResult], float | None]] = {
        "pods_per_second": lambda each: each.pods_per_second.average,
        "attempt_p50": lambda each: each.attempt_seconds.p50 if each.attempt_seconds else None,
        "attempt_p99": lambda each: each.attempt_seconds.p99 if each.attempt_seconds else None,
        "cpu_seconds_per_pod": lambda each: _total(each.cpu_seconds_per_pod),
        "peak_memory_bytes": lambda each: _total(each.peak_memory_bytes),
    }
    ratios: dict[str, float | None] = {}
    for name, figure in figures.items():
        old, new = figure(then), figure(now)
        ratios[name] = new / old if old and new else None
    return ratios


def _total(parts: Parts) -> float | None:
    known = [value for name in PARTS if (value := getattr(parts, name)) is not None]
    return sum(known) if known else None
