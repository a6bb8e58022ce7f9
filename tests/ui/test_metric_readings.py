"""What the page reads from a scheduler's metrics."""

from __future__ import annotations

from bisect import bisect_left
from math import ceil, inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.services.metrics import Metrics
from moorage.ui.metric_readings import (
    ATTEMPT_DURATION,
    ATTEMPTS,
    PENDING_PODS,
    Reading,
    percentile,
    read_metrics,
)

BOUNDS = (0.001, 0.01, 0.1, 1.0, inf)


def reading(scheduled: float, unschedulable: float = 0.0, pending: float = 0.0) -> Reading:
    return read_metrics(
        f'{ATTEMPTS}{{result="scheduled",profile="a"}} {scheduled}\n'
        f'{ATTEMPTS}{{result="scheduled",profile="b"}} 1\n'
        f'{ATTEMPTS}{{result="unschedulable",profile="a"}} {unschedulable}\n'
        f'{PENDING_PODS}{{queue="active"}} {pending}\n'
    )


def buckets(values: list[float]) -> list[tuple[float, float]]:
    return [(bound, float(sum(value <= bound for value in values))) for bound in BOUNDS]


def test_what_a_scheduler_serves_is_read() -> None:
    metrics = Metrics()
    metrics.schedule_attempts.labels("scheduled", "default-scheduler").inc(3)
    metrics.scheduling_attempt_duration.labels("scheduled", "default-scheduler").observe(0.004)
    metrics.pending_pods.labels("backoff").set(7)

    found = read_metrics(metrics.text().decode())

    assert found.by_label(ATTEMPTS, "result") == {"scheduled": 3.0}
    assert found.by_label(PENDING_PODS, "queue")["backoff"] == 7.0
    known = found.buckets(ATTEMPT_DURATION)
    assert known[-1] == (inf, 1.0)
    assert [count for bound, count in known if bound < 0.004 <= 2 * bound] == [0.0]


def test_values_of_a_label_are_added_up() -> None:
    assert reading(4, 2).by_label(ATTEMPTS, "result") == {"scheduled": 5.0, "unschedulable": 2.0}


def test_counters_are_compared_and_gauges_are_not() -> None:
    increase = reading(10, 3, pending=2).since(reading(4, 3, pending=9))
    assert increase.by_label(ATTEMPTS, "result") == {"scheduled": 6.0, "unschedulable": 0.0}
    assert increase.by_label(PENDING_PODS, "queue") == {"active": 2.0}


def test_after_a_reset_all_counters_count_from_zero() -> None:
    # Those of b and of unschedulable pods are as great as before, or greater.
    increase = reading(2, 9).since(reading(100, 5))
    assert increase.by_label(ATTEMPTS, "result") == {"scheduled": 3.0, "unschedulable": 9.0}


def test_a_counter_that_is_new_counts_from_zero() -> None:
    assert reading(2).since(Reading({})).by_label(ATTEMPTS, "result")["scheduled"] == 3.0


@pytest.mark.parametrize("text", [f"{ATTEMPTS}{{result=", f"{ATTEMPTS} many", f"{ATTEMPTS}"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 -- the parser has many words for it
        read_metrics(text)


@given(st.lists(st.floats(0.0001, 5.0), min_size=1, max_size=50), st.floats(0.01, 1.0))
def test_a_percentile_is_in_the_bucket_of_the_observation(values: list[float], share: float) -> None:
    exact = sorted(values)[max(ceil(share * len(values) - 1e-9), 1) - 1]
    place = bisect_left(BOUNDS, exact)
    found = percentile(buckets(values), share)
    assert found is not None
    lower = BOUNDS[place - 1] if place else 0.0
    upper = lower if BOUNDS[place] == inf else BOUNDS[place]
    assert lower - 1e-9 <= found <= upper + 1e-9


@given(st.lists(st.floats(0.0001, 5.0), min_size=1, max_size=50))
def test_percentiles_are_in_order(values: list[float]) -> None:
    known = [percentile(buckets(values), share) for share in (0.5, 0.9, 0.99)]
    assert known == sorted(known, key=lambda value: -1.0 if value is None else value)


def test_nothing_has_no_percentiles() -> None:
    assert percentile(buckets([]), 0.5) is None
    assert percentile([], 0.5) is None


def test_a_percentile_within_a_bucket_is_interpolated() -> None:
    assert percentile([(1.0, 0.0), (2.0, 10.0), (inf, 10.0)], 0.5) == 1.5
