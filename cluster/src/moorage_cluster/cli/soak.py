"""`moorage soak`: run, and report."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
import typer

from moorage.api.decode import InputError
from moorage.cli.aligned_table import aligned
from moorage.cli.garbage_collection import collect_in_passing
from moorage.cli.progress_display import ProgressDisplay, time_left
from moorage_cluster.soak.charts import soak_chart
from moorage_cluster.soak.logged_warnings import counted_warnings
from moorage_cluster.soak.run import SoakSettings, run_soak
from moorage_cluster.soak.samples import OBJECTS, Sample
from moorage_cluster.soak.trends import MIN_SAMPLES, Trend, trends

_COMMAND: Final = "moorage soak"
_LEAKS: Final = 1
"""Exit status: something grows."""
_UNUSABLE: Final = 2
"""Exit status: the options do not fit together, or the chart could not be written."""
_INTERRUPTED: Final = 128 + signal.SIGINT
"""Exit status: it was interrupted."""
_ROWS: Final = 12
"""Number of samples in a table."""
_SECONDS_PER_HOUR: Final = 3600.0
_MILLI: Final = 1000.0
_SAMPLES_HEADER: Final = (
    *("HOURS", "PODS", "MIB", "BLOCKS", "FDS", "TASKS", "PENDING", "PODS/S", "CPU MS/POD"),
    *("P50 S", "P90 S", "P99 S"),
)
_TRENDS_HEADER: Final = ("MEASURE", "MEAN", "PER 10,000 PODS", "STANDARD ERROR", "LIMIT", "")


class Report(msgspec.Struct, frozen=True):
    """A soak, as JSON has it."""

    settings: SoakSettings
    samples: list[Sample]
    trends: list[Trend]
    leaks: list[str]
    warnings: dict[str, int]
    """The warnings and errors that were logged in this process, by message, and how often."""


def run(settings: SoakSettings, chart: Path | None, output: str) -> None:
    """Run and report; exits with 1 if something grows, 2 for options of no use, 130 if interrupted."""
    if settings.templates < 2 * settings.live:
        _say(f"--templates: {settings.templates} are too few for {settings.live} pods at a time")
        raise typer.Exit(_UNUSABLE)
    collect_in_passing()
    samples: list[Sample] = []
    is_interrupted = False
    with _Progress(settings.seconds) as progress, counted_warnings() as warnings:

        def taken(sample: Sample) -> None:
            samples.append(sample)
            progress.update(sample)

        try:
            run_soak(settings, taken)
        except KeyboardInterrupt:
            is_interrupted = True
    report = _report(settings, samples, warnings)
    typer.echo(_text(report) if output == "table" else _json(report))
    if chart is not None and samples:
        _draw(chart, samples)
    for each in report.leaks:
        _say(f"leak: {each}")
    if is_interrupted:
        _say("interrupted; the report has what was measured until then")
        raise typer.Exit(_INTERRUPTED)
    if report.leaks:
        raise typer.Exit(_LEAKS)


def _say(line: str) -> None:
    typer.echo(f"{_COMMAND}: {line}", err=True)


def _report(settings: SoakSettings, samples: list[Sample], warnings: Mapping[str, int]) -> Report:
    found = list(trends(samples))
    leaks = [f"{each.what}: {each.slope:+,.1f} for every 10,000 pods" for each in found if each.is_leak]
    return Report(settings, samples, found, leaks, dict(warnings))


def _draw(path: Path, samples: list[Sample]) -> None:
    try:
        path.write_text(soak_chart(samples))
    except OSError as error:
        _say(str(InputError(str(path), f"cannot be written: {error.strerror or error}")))
        raise typer.Exit(_UNUSABLE) from None


def _json(report: Report) -> str:
    return msgspec.json.format(msgspec.json.encode(report)).decode()


def _text(report: Report) -> str:
    """Some of the samples, and how what is measured grows: of objects, the types that grow most."""
    step = max(len(report.samples) // _ROWS, 1)
    parts = [aligned(_SAMPLES_HEADER, [_row(each) for each in report.samples[step - 1 :: step]])]
    if report.warnings:
        rows = [(each, f"{count:,}") for each, count in sorted(report.warnings.items())]
        parts.append(aligned(("LOGGED", "TIMES"), rows))
    if not report.trends:
        parts.append(f"Fewer than {MIN_SAMPLES} samples: whether something grows cannot be said.")
        return "\n\n".join(parts)
    plain = [each for each in report.trends if not each.what.startswith(OBJECTS)]
    objects = [each for each in report.trends if each.what.startswith(OBJECTS)]
    objects.sort(key=lambda each: each.slope, reverse=True)
    shown = plain + [each for at, each in enumerate(objects) if each.is_leak or at < _ROWS // 2]
    parts.append(aligned(_TRENDS_HEADER, [_trend_row(each) for each in shown]))
    return "\n\n".join(parts)


def _row(sample: Sample) -> tuple[str, ...]:
    usage, latencies = sample.usage, sample.latencies
    inside = usage.inside
    return (
        f"{sample.seconds / _SECONDS_PER_HOUR:.2f}",
        f"{sample.created:,}",
        f"{usage.resident_mib:,.0f}",
        "-" if inside is None else f"{inside.blocks:,}",
        str(usage.descriptors),
        "-" if inside is None else str(inside.tasks),
        str(sample.pending),
        f"{sample.pods_per_second:.1f}",
        f"{sample.cpu_milli:.1f}",
        *(f"{each:.3f}" for each in (latencies.p50, latencies.p90, latencies.p99)),
    )


def _trend_row(trend: Trend) -> tuple[str, ...]:
    return (
        trend.what,
        f"{trend.mean:,.1f}",
        f"{trend.slope:+,.1f}",
        f"{trend.error:,.1f}",
        f"{trend.limit:,.0f}",
        "LEAK" if trend.is_leak else "level",
    )


class _Progress(ProgressDisplay):
    """Shows how much time has passed in the cluster."""

    def __init__(self, seconds: float) -> None:
        super().__init__(_COMMAND)
        self._seconds = seconds

    def update(self, sample: Sample) -> None:
        """A sample was taken."""
        if self.is_due():
            share = min(sample.seconds / self._seconds, 1.0)
            hours, all_hours = (each / _SECONDS_PER_HOUR for each in (sample.seconds, self._seconds))
            memory = f"{sample.usage.resident_mib:,.0f} MiB"
            text = f"{hours:.2f} of {all_hours:.2f} hours, {sample.created:,} pods, {memory}"
            self.show(", ".join([text, *time_left(share, self.elapsed_seconds)]), share)
