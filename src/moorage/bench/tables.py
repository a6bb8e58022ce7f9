"""Results as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from rich.table import Table

from moorage.bench.results import PARTS, BenchmarkReport, Parts, WorkloadResult, comparison
from moorage.bench.rounds import Spread, spread

_MEBIBYTE: Final = 1024 * 1024
_NAME_WIDTH: Final = 24


def report_table(report: BenchmarkReport) -> Table:
    """The figures of each workload, one per row."""
    table = Table(
        title=f"moorage {report.version}, {report.mode}, Python {report.python}", title_justify="left"
    )
    table.add_column("workload", overflow="fold", min_width=_NAME_WIDTH)
    for name in ("nodes", "pods", "pods/s", "p50, p99", "attempt p50, p90, p99", "CPU a pod", "memory"):
        table.add_column(name, justify="right")
    for result in report.workloads:
        rates, attempts = result.pods_per_second, result.attempt_seconds
        times = [] if attempts is None else [attempts.p50, attempts.p90, attempts.p99]
        table.add_row(
            result.name,
            f"{result.nodes:,}",
            f"{result.pods:,}",
            f"{_rates(result)}{_mark(result)}",
            f"{rates.p50:,.0f}, {rates.p99:,.0f}",
            ", ".join(map(_time, times)),
            _parts(result.cpu_seconds_per_pod, _time),
            _parts(result.peak_memory_bytes, lambda size: f"{size / _MEBIBYTE:,.0f} MiB"),
        )
    return table


def _rates(result: WorkloadResult) -> str:
    """Pods/s, with the spread if there were several rounds."""
    if not result.rounds:
        return f"{result.pods_per_second.average:,.0f}"
    return shown_spread(spread(each.pods_per_second for each in result.rounds), ",.0f")


def _mark(result: WorkloadResult) -> str:
    """A mark for a threshold that is not met."""
    threshold = result.threshold
    return "" if threshold is None or threshold.is_met is not False else f" (threshold {threshold.value:g})"


def _time(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:,.1f} s"
    return f"{seconds * 1e3:,.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:,.0f} µs"


def _parts(parts: Parts, shown: Callable[[float], str]) -> str:
    """One figure, or one for each process."""
    known = [(name, value) for name in PARTS if (value := getattr(parts, name)) is not None]
    if len(known) == 1:
        return shown(known[0][1])
    return "\n".join(f"{name} {shown(value)}" for name, value in known)


def time_table(result: WorkloadResult) -> Table:
    """Average time per call of one workload's extension points and plugins."""
    table = Table(title=result.name, title_justify="left")
    for name in ("extension point", "plugin"):
        table.add_column(name)
    for name in ("calls", "average", "p50", "p90", "p99"):
        table.add_column(name, justify="right")
    for point, total in sorted(
        result.extension_points.items(), key=lambda each: -each[1].average * each[1].count
    ):
        figures = (total.average, total.p50, total.p90, total.p99)
        table.add_row(point, "", f"{total.count:,}", *map(_time, figures))
        for plugin, points in result.plugins.items():
            if point in points:
                some = points[point]
                figures = (some.average, some.p50, some.p90, some.p99)
                table.add_row("", plugin, f"{some.count:,}", *map(_time, figures))
    return table


def comparison_table(old: BenchmarkReport, new: BenchmarkReport) -> Table:
    """The ratio of each figure to that of an older report: above 1 is more."""
    table = Table(title="compared with before (new / old)", title_justify="left")
    table.add_column("workload", overflow="fold", min_width=_NAME_WIDTH)
    for name in ("pods/s before", "pods/s now", "pods/s", "attempt p50", "p99", "CPU a pod", "memory"):
        table.add_column(name, justify="right")
    before = {result.name: result for result in old.workloads}
    for now in new.workloads:
        then = before.get(now.name)
        if then is None:
            continue
        ratios = comparison(then, now)
        table.add_row(
            now.name,
            f"{then.pods_per_second.average:,.0f}",
            f"{now.pods_per_second.average:,.0f}",
            *(_ratio(ratios[name]) for name in ratios),
        )
    return table


def reference_table(report: BenchmarkReport) -> Table:
    """Throughput divided by that of the other scheduler in the same round, the smallest ratio first."""
    title = f"compared with {report.reference}, pods/s as scheduler_perf counts: median (min - max)"
    table = Table(title=title, title_justify="left")
    table.add_column("workload", overflow="fold", min_width=_NAME_WIDTH)
    for name in ("rounds", report.reference, "moorage", "ratio"):
        table.add_column(name, justify="right")
    for result in by_ratio(report.workloads):
        rounds = [each for each in result.rounds if each.reference_pods_per_second]
        others = [each.reference_pods_per_second or 0.0 for each in rounds]
        own = [each.sampled_pods_per_second for each in rounds]
        table.add_row(
            result.name,
            str(len(rounds)),
            shown_spread(spread(others), ",.0f"),
            shown_spread(spread(own), ",.0f"),
            shown_spread(spread(result.ratios), ".1f", "x"),
        )
    return table


def by_ratio(results: Iterable[WorkloadResult]) -> list[WorkloadResult]:
    """The results that were compared with another scheduler, the smallest median ratio first."""
    return sorted((each for each in results if each.ratios), key=lambda each: spread(each.ratios).median)


def smallest_ratio(results: Iterable[WorkloadResult]) -> str:
    """A sentence about the workload with the smallest ratio; empty if nothing was compared."""
    for result in by_ratio(results):
        return f"smallest ratio: {shown_spread(spread(result.ratios), '.1f', 'x')}, {result.name}"
    return ""


def shown_spread(values: Spread, format_spec: str, unit: str = "") -> str:
    """The median, and the least and the greatest value if they differ from it."""
    median, least, most = (format(value, format_spec) for value in values)
    return f"{median}{unit}" if least == most else f"{median}{unit} ({least} - {most})"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}x"
