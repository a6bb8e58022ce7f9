"""What was measured, as it is written and read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from moorage.api.decode import InputError
from moorage.api.files import read_text
from moorage.bench.histograms import Summary


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


class Attempts(Summary, kw_only=True):
    """How long attempts to schedule a pod took, binding included; also by how they ended."""

    results: dict[str, Summary] = {}


class Parts(msgspec.Struct, kw_only=True):
    """Something of each process; None where there is no such process, or it is not known.

    Where the scheduler runs over a store in this process, all is the scheduler's.
    """

    scheduler: float | None = None
    server: float | None = None
    generator: float | None = None


PARTS: Final = ("scheduler", "server", "generator")


class Threshold(msgspec.Struct, kw_only=True):
    """What a figure should be, and whether it is."""

    metric: str
    bucket: str
    value: float
    measured: float | None
    is_met: bool | None
    """None: that figure was not measured."""


class Result(msgspec.Struct, kw_only=True):
    """The figures of one workload."""

    name: str
    pods: int
    """So many were bound while it was measured."""
    nodes: int
    seconds: float
    """From the first creation to the last binding."""
    pods_per_second: Rates
    latency_seconds: Summary | None
    """From when a pod was seen to come to when it was seen on its node."""
    attempt_seconds: Attempts | None
    extension_points: dict[str, Summary]
    """Seconds that all plugins of an extension point took."""
    plugins: dict[str, dict[str, Summary]]
    """Seconds that a plugin took, by extension point; in a tenth of the cycles."""
    cpu_seconds_per_pod: Parts
    peak_memory_bytes: Parts
    threshold: Threshold | None
    notes: list[str]


class NotRun(msgspec.Struct, kw_only=True):
    """A workload of which there are no figures, and why."""

    name: str
    reason: str


class Report(msgspec.Struct, kw_only=True):
    """All that one run measured."""

    mode: str
    python: str
    version: str
    workloads: list[Result]
    refused: list[NotRun] = []
    """Workloads that cannot be run here."""
    failed: list[NotRun] = []
    """Workloads that came to no end."""
    compared: dict[str, dict[str, float | None]] = {}
    """By workload, the ratio of each figure to that of an older report, if there is one to compare with."""


def read_report(path: Path) -> Report:
    """A report that was written before; InputError if it is none."""
    try:
        return msgspec.json.decode(read_text(path), type=Report)
    except msgspec.MsgspecError as error:
        raise InputError(str(path), f"not a report of moorage bench: {error}") from None


def comparison(then: Result, now: Result) -> dict[str, float | None]:
    """The ratio of each figure to the same one before; None where one of them is not known."""
    figures: dict[str, Callable[[Result], float | None]] = {
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
