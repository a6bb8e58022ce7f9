"""Several runs of one workload: the median, and the spread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median_low
from typing import NamedTuple

from msgspec.structs import replace

from moorage.bench.results import Round, WorkloadResult


class Spread(NamedTuple):
    """The median, the least and the greatest of some values."""

    median: float
    least: float
    most: float


def spread(values: Iterable[float]) -> Spread:
    """The spread of at least one value; of an even number of values the lower median, which was measured."""
    known = list(values)
    return Spread(median_low(known), min(known), max(known))


def round_of(result: WorkloadResult, reference: float | None = None) -> Round:
    """A result's part in the rounds of its workload."""
    return Round(
        pods_per_second=result.pods_per_second.average,
        sampled_pods_per_second=result.pods_per_second.sampled_average,
        cpu_seconds_per_pod=result.cpu_seconds_per_pod,
        reference_pods_per_second=reference,
    )


def merged(runs: Sequence[Sequence[WorkloadResult]]) -> list[WorkloadResult]:
    """One result for each measurement of a workload: that of the median run, with the figures of all."""
    return [_median_run(measurement) for measurement in zip(*runs, strict=True)]


def _median_run(results: Sequence[WorkloadResult]) -> WorkloadResult:
    middle = median_low(each.pods_per_second.average for each in results)
    chosen = next(each for each in results if each.pods_per_second.average == middle)
    return replace(chosen, rounds=[part for each in results for part in each.rounds])
