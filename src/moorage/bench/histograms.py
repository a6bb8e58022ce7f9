"""Distributions as Prometheus keeps them: counts in buckets, compared between two moments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]
PERCENTILES: Final = (50, 90, 95, 99)


class HistogramSummary(msgspec.Struct, kw_only=True):
    """The number of values, their average and percentiles."""

    count: int
    average: float
    p50: float
    p90: float
    p95: float
    p99: float

    def bucket(self, name: str) -> float | None:
        """A figure by scheduler_perf's name for it: Average, Perc99."""
        value = getattr(self, name.lower().replace("perc", "p"), None)
        return None if value is None else float(value)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts up to each bound, the last bound being infinite, and the sum of all values."""

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    """Number of values that are at most the bound, for each bound."""
    total: float

    @property
    def count(self) -> int:
        """Number of values."""
        return int(self.counts[-1]) if self.counts else 0

    def minus(self, earlier: Histogram | None) -> Histogram:
        """The values that were added since an earlier moment."""
        if earlier is None:
            return self
        counts = (now - before for now, before in zip(self.counts, earlier.counts, strict=True))
        return Histogram(self.bounds, tuple(counts), self.total - earlier.total)

    def plus(self, other: Histogram) -> Histogram:
        """Both together."""
        counts = (one + another for one, another in zip(self.counts, other.counts, strict=True))
        return Histogram(self.bounds, tuple(counts), self.total + other.total)

    def quantile(self, share: float) -> float:
        """The quantile of a share of all values, interpolated linearly within a bucket."""
        rank = share * self.count
        for index, (bound, count) in enumerate(zip(self.bounds, self.counts, strict=True)):
            if count < rank:
                continue
            below = self.bounds[index - 1] if index else 0.0
            if math.isinf(bound):
                return below
            smaller = self.counts[index - 1] if index else 0.0
            return (
                below + (bound - below) * (rank - smaller) / (count - smaller) if count > smaller else below
            )
        return math.nan

    def summary(self) -> HistogramSummary:
        """Count, average and percentiles."""
        values = {f"p{each}": self.quantile(each / 100) for each in PERCENTILES}
        return HistogramSummary(count=self.count, average=self.total / self.count, **values)


def read_histograms(text: str, names: Iterable[str]) -> dict[tuple[str, Labels], Histogram]:
    """The histograms of some names in a text of metrics, by name and labels."""
    wanted = set(names)
    buckets: dict[tuple[str, Labels], dict[float, float]] = {}
    totals: dict[tuple[str, Labels], float] = {}
    for family in text_string_to_metric_families(text):
        if family.name not in wanted:
            continue
        for sample in family.samples:
            labels = frozenset((key, value) for key, value in sample.labels.items() if key != "le")
            if sample.name.endswith("_bucket"):
                bound = float(sample.labels["le"])
                buckets.setdefault((family.name, labels), {})[bound] = sample.value
            elif sample.name.endswith("_sum"):
                totals[family.name, labels] = sample.value
    return {
        key: Histogram(tuple(sorted(counts)), tuple(counts[each] for each in sorted(counts)), totals[key])
        for key, counts in buckets.items()
    }


def by_labels(
    histograms: Mapping[tuple[str, Labels], Histogram], name: str, *labels: str
) -> dict[tuple[str, ...], Histogram]:
    """The histograms of a name that are not empty, added up to one for each combination of these labels."""
    found: dict[tuple[str, ...], Histogram] = {}
    for (each, all_labels), histogram in histograms.items():
        if each != name or not histogram.count:
            continue
        values = dict(all_labels)
        key = tuple(values.get(label, "") for label in labels)
        found[key] = found[key].plus(histogram) if key in found else histogram
    return found


def summarize(values: Sequence[float]) -> HistogramSummary:
    """Count, average and percentiles of single values; there must be some."""
    ordered = sorted(values)
    found = {f"p{each}": ordered[math.ceil(len(ordered) * each / 100) - 1] for each in PERCENTILES}
    return HistogramSummary(count=len(ordered), average=math.fsum(ordered) / len(ordered), **found)
