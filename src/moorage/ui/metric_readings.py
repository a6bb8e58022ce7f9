"""What a scheduler's `/metrics` says at one moment, and what has happened between two of them."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

ATTEMPTS: Final = "scheduler_schedule_attempts_total"
ATTEMPT_DURATION: Final = "scheduler_scheduling_attempt_duration_seconds"
EXTENSION_POINT_DURATION: Final = "scheduler_framework_extension_point_duration_seconds"
PENDING_PODS: Final = "scheduler_pending_pods"
REQUEST_DURATION: Final = "rest_client_request_duration_seconds"
_METRICS: Final = (ATTEMPTS, ATTEMPT_DURATION, EXTENSION_POINT_DURATION, PENDING_PODS, REQUEST_DURATION)
"""The metrics that are kept; to parse all would take ten times as long."""
_GAUGES: Final = frozenset((PENDING_PODS,))

Key = tuple[str, frozenset[tuple[str, str]]]
"""A sample's name and its labels."""


class Reading:
    """The values of samples."""

    def __init__(self, values: Mapping[Key, float]) -> None:
        self._values = values

    def by_label(self, name: str, label: str) -> dict[str, float]:
        """The sums of a sample's values by the value of one label."""
        sums: defaultdict[str, float] = defaultdict(float)
        for (sample, labels), value in self._values.items():
            if sample == name:
                sums[dict(labels)[label]] += value
        return dict(sums)

    def buckets(self, histogram: str) -> list[tuple[float, float]]:
        """The buckets of a histogram over all its labels: upper bounds and cumulative counts."""
        counts = self.by_label(f"{histogram}_bucket", "le")
        return sorted((float(bound), count) for bound, count in counts.items())

    def since(self, before: Reading) -> Reading:
        """The increase of all counters since an earlier reading; gauges as they are.

        Where any counter is smaller than before, the scheduler was started again or its metrics were reset:
        all counters then count from zero, also those that are greater by now.
        """
        known = before._values
        is_reset = any(
            value < known.get(key, 0.0) for key, value in self._values.items() if key[0] not in _GAUGES
        )
        if is_reset:
            known = {}
        return Reading(
            {
                key: value if key[0] in _GAUGES else value - known.get(key, 0.0)
                for key, value in self._values.items()
            }
        )


def read_metrics(text: str) -> Reading:
    """The values in Prometheus' text format; ValueError if it is not that."""
    return Reading(dict(_samples(text)))


def _samples(text: str) -> Iterator[tuple[Key, float]]:
    wanted = "".join(f"{line}\n" for line in text.splitlines() if line.startswith(_METRICS))
    for family in text_string_to_metric_families(wanted):
        for sample in family.samples:
            yield (sample.name, frozenset(sample.labels.items())), sample.value


def percentile(buckets: Sequence[tuple[float, float]], share: float) -> float | None:
    """The value below which a share of observations is, from cumulative buckets; None without observations.

    Interpolated within the bucket, as PromQL's histogram_quantile does; the last bound where the value is
    above it.
    """
    counts = [0.0, *(count for _, count in buckets)]
    if counts[-1] <= 0:
        return None
    rank = share * counts[-1]
    place = max(bisect_left(counts, rank), 1)
    bounds = [0.0, *(bound for bound, _ in buckets)]
    lower, upper = list(pairwise(bounds))[place - 1]
    if upper == float("inf"):
        return lower
    return lower + (upper - lower) * (rank - counts[place - 1]) / (counts[place] - counts[place - 1])
