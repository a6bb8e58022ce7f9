from __future__ import annotations

import math
import subprocess
import sys

import pytest

from moorage.bench.histograms import Histogram, by_labels, read_histograms, summarize
from moorage.bench.process_usage import own_usage, usage_of
from moorage.bench.throughput import windows


@pytest.mark.parametrize(
    ("bound_at", "ended_at", "rates"),
    [
        ([], 5.0, []),
        ([0.1, 0.2], 0.9, []),
        ([0.1, 0.2], 1.5, []),  # The first window with bindings does not count.
        ([0.5, 1.2, 1.4, 2.5], 3.1, [2.0, 1.0]),
        ([0.5, 3.5, 3.6, 3.7], 4.0, [1.0, 1.0, 1.0]),  # Two empty windows count with the next one.
        ([2.5, 3.5], 4.5, [1.0]),
    ],
)
def test_pods_a_second_are_counted_in_windows(
    bound_at: list[float], ended_at: float, rates: list[float]
) -> None:
    began_at = 100.0
    assert windows([began_at + each for each in bound_at], began_at, began_at + ended_at) == rates


def test_percentiles_of_values() -> None:
    summary = summarize([float(number) for number in range(1, 101)])
    assert (summary.count, summary.average) == (100, 50.5)
    assert (summary.p50, summary.p90, summary.p95, summary.p99) == (50, 90, 95, 99)
    assert summarize([7.0]).p99 == 7.0


HISTOGRAM = Histogram((1.0, 2.0, 4.0, math.inf), (10, 30, 40, 40), 70.0)


@pytest.mark.parametrize(
    ("share", "expected"), [(0.25, 1.0), (0.125, 0.5), (0.5, 1.5), (0.75, 2.0), (0.875, 3.0), (1.0, 4.0)]
)
def test_quantiles_are_interpolated(share: float, expected: float) -> None:
    assert HISTOGRAM.quantile(share) == expected


def test_a_quantile_beyond_all_bounds_is_the_last_bound() -> None:
    assert Histogram((1.0, math.inf), (0, 5), 50.0).quantile(0.5) == 1.0


def test_histograms_are_compared_between_moments_and_added_up() -> None:
    later = Histogram(HISTOGRAM.bounds, (12, 36, 50, 51), 100.0)
    since = later.minus(HISTOGRAM)
    assert (since.counts, since.total, since.count) == ((2, 6, 10, 11), 30.0, 11)
    assert later.minus(None) is later
    assert HISTOGRAM.plus(since) == later


METRICS = """\
# HELP wanted_seconds x
# TYPE wanted_seconds histogram
wanted_seconds_bucket{point="a",status="ok",le="1"} 1.0
wanted_seconds_bucket{point="a",status="ok",le="+Inf"} 2.0
wanted_seconds_count{point="a",status="ok"} 2.0
wanted_seconds_sum{point="a",status="ok"} 3.0
wanted_seconds_bucket{point="a",status="bad",le="1"} 0.0
wanted_seconds_bucket{point="a",status="bad",le="+Inf"} 1.0
wanted_seconds_count{point="a",status="bad"} 1.0
wanted_seconds_sum{point="a",status="bad"} 9.0
wanted_seconds_bucket{point="b",status="ok",le="1"} 0.0
wanted_seconds_bucket{point="b",status="ok",le="+Inf"} 0.0
wanted_seconds_count{point="b",status="ok"} 0.0
wanted_seconds_sum{point="b",status="ok"} 0.0
# TYPE other_seconds histogram
other_seconds_bucket{le="+Inf"} 1.0
other_seconds_sum 1.0
"""


def test_histograms_are_read_from_metrics() -> None:
    found = read_histograms(METRICS, ["wanted_seconds"])
    assert len(found) == 3
    by_point = by_labels(found, "wanted_seconds", "point")
    assert by_point == {("a",): Histogram((1.0, math.inf), (1, 3), 12.0)}
    assert by_labels(found, "wanted_seconds", "point", "status").keys() == {("a", "ok"), ("a", "bad")}
    assert by_point[("a",)].summary().bucket("Average") == 4.0
    assert by_point[("a",)].summary().bucket("Perc50") == by_point[("a",)].quantile(0.5)
    assert by_point[("a",)].summary().bucket("Perc12") is None


def test_processes_are_looked_at() -> None:
    own = own_usage()
    assert own.cpu_seconds is not None
    assert own.cpu_seconds > 0
    assert own.peak_bytes is not None
    assert own.peak_bytes > 1024 * 1024
    if sys.platform == "linux":
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
            other = usage_of(process.pid)
            process.kill()
        assert other.cpu_seconds is not None
        assert other.peak_bytes is not None


def test_of_a_process_that_is_gone_nothing_is_known() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert usage_of(process.pid) == (None, None)
