"""Collection of a workload's metrics, from the first measured pod to the result."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, Final

from moorage.bench.histograms import (
    PERCENTILES,
    Histogram,
    HistogramSummary,
    Labels,
    by_labels,
    read_histograms,
    summarize,
)
from moorage.bench.ops import ThresholdMetricSelector
from moorage.bench.pod_watch import PodSelection
from moorage.bench.process_usage import ProcessUsage
from moorage.bench.results import Attempts, Parts, Rates, ResultThreshold, WorkloadResult
from moorage.bench.target import Target
from moorage.bench.throughput import windows

_ATTEMPTS: Final = "scheduler_scheduling_attempt_duration_seconds"
_POINTS: Final = "scheduler_framework_extension_point_duration_seconds"
_PLUGINS: Final = "scheduler_plugin_execution_duration_seconds"
_THROUGHPUT: Final = "SchedulingThroughput"
_MILLISECONDS: Final = 1000.0


class MetricsCollector:
    """The measurements of a group of pods between two moments."""

    def __init__(self, target: Target, group: PodSelection, name: str) -> None:
        self.name = name
        """Its name in the workload file."""
        self._target = target
        self._group = group
        self._created_at: float | None = None

    async def begin(self) -> None:
        """Start measuring."""
        self._metrics_before = await self._target.metrics()
        self._attempts_before = {key: len(some) for key, some in self._target.attempts().items()}
        gc.collect()  # Garbage from before must not be charged to these pods.
        self._usage_before = dict(self._target.usage())
        self._bindings = self._target.pods.start_noting(self._group)
        self._began_at = perf_counter()

    def creating(self) -> None:
        """Pods are about to be created."""
        if self._created_at is None:
            self._created_at = perf_counter()

    async def end(
        self,
        name: str,
        nodes: int,
        notes: Sequence[str],
        threshold: float,
        selector: ThresholdMetricSelector,
    ) -> WorkloadResult:
        """The figures of the measured pods."""
        ended_at, bindings = perf_counter(), self._bindings
        self._target.pods.stop_noting(bindings)
        usage = self._target.usage()
        notes, pods = list(notes), len(bindings.times)
        since = self._began_at if self._created_at is None else self._created_at
        seconds = bindings.times[-1] - since if pods else ended_at - since
        samples = windows(bindings.times, self._began_at, ended_at)
        if not samples:
            notes.append("too short for a window of one second: percentiles of pods/s are the average")
        text = await self._target.metrics()
        if not text:
            notes.append("the scheduler's metrics cannot be read: no times of attempts and plugins")
        histograms = self._since_then(text)
        result = WorkloadResult(
            name=name,
            pods=pods,
            nodes=nodes,
            seconds=seconds,
            pods_per_second=_rates(pods / seconds if seconds > 0 else 0.0, samples),
            latency_seconds=summarize(bindings.latencies) if bindings.latencies else None,
            attempt_seconds=self._attempts(histograms),
            extension_points={
                point: each.summary()
                for (point,), each in sorted(by_labels(histograms, _POINTS, "extension_point").items())
            },
            plugins=_plugins(histograms),
            cpu_seconds_per_pod=_per_pod(self._usage_before, usage, pods),
            peak_memory_bytes=Parts(**{part: each.peak_bytes for part, each in usage.items()}),
            threshold=None,
            notes=notes,
        )
        if threshold:
            result.threshold = _threshold(threshold, selector, result, histograms)
        return result

    def _since_then(self, text: str) -> dict[tuple[str, Labels], Histogram]:
        names = (_ATTEMPTS, _POINTS, _PLUGINS)
        before = read_histograms(self._metrics_before, names)
        return {key: each.minus(before.get(key)) for key, each in read_histograms(text, names).items()}

    def _attempts(self, histograms: Mapping[tuple[str, Labels], Histogram]) -> Attempts | None:
        exact = {
            result: some[self._attempts_before.get(result, 0) :]
            for result, some in self._target.attempts().items()
        }
        exact = {result: some for result, some in exact.items() if some}
        if exact:
            results = {result: summarize(some) for result, some in sorted(exact.items())}
            return _all_attempts(summarize([each for some in exact.values() for each in some]), results)
        found = by_labels(histograms, _ATTEMPTS, "result")
        if not found:
            return None
        everything = by_labels(histograms, _ATTEMPTS)[()]
        return _all_attempts(
            everything.summary(), {result: each.summary() for (result,), each in sorted(found.items())}
        )


def _all_attempts(summary: HistogramSummary, results: dict[str, HistogramSummary]) -> Attempts:
    fields: dict[str, Any] = {name: getattr(summary, name) for name in HistogramSummary.__struct_fields__}
    return Attempts(**fields, results=results)


def _rates(average: float, samples: Sequence[float]) -> Rates:
    sampled = summarize(samples or [average])
    percentiles = {f"p{each}": getattr(sampled, f"p{each}") for each in PERCENTILES}
    return Rates(average=average, sampled_average=sampled.average, **percentiles)


def _plugins(histograms: Mapping[tuple[str, Labels], Histogram]) -> dict[str, dict[str, HistogramSummary]]:
    found: dict[str, dict[str, HistogramSummary]] = {}
    for (plugin, point), each in sorted(by_labels(histograms, _PLUGINS, "plugin", "extension_point").items()):
        found.setdefault(plugin, {})[point] = each.summary()
    return found


def _per_pod(before: Mapping[str, ProcessUsage], after: Mapping[str, ProcessUsage], pods: int) -> Parts:
    parts: dict[str, float | None] = {}
    for part, usage in after.items():
        earlier = before[part].cpu_seconds if part in before else None
        if usage.cpu_seconds is None or earlier is None or not pods:
            parts[part] = None
        else:
            parts[part] = (usage.cpu_seconds - earlier) / pods
    return Parts(**parts)


def _threshold(
    value: float,
    selector: ThresholdMetricSelector,
    result: WorkloadResult,
    histograms: Mapping[tuple[str, Labels], Histogram],
) -> ResultThreshold:
    """Whether a figure meets its threshold; scheduler_perf gives times in milliseconds."""
    measured: float | None
    if selector.name == _THROUGHPUT:
        rates = result.pods_per_second
        name = selector.data_bucket.lower().replace("perc", "p")
        measured = rates.sampled_average if name == "average" else getattr(rates, name, None)
    else:
        wanted = set(selector.labels.items())
        chosen = {key: each for key, each in histograms.items() if wanted <= key[1]}
        found = by_labels(chosen, selector.name).get(())
        seconds = None if found is None else found.summary().bucket(selector.data_bucket)
        measured = None if seconds is None else seconds * _MILLISECONDS
    is_met = None if measured is None else (measured < value) == selector.expect_lower
    return ResultThreshold(
        metric=selector.name, bucket=selector.data_bucket, value=value, measured=measured, is_met=is_met
    )
