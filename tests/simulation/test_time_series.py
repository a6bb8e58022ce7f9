"""Amounts over time, against plain integration."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.simulation.time_series import TimeSeries

STEPS = st.lists(st.tuples(st.floats(0, 5000), st.integers(0, 1), st.integers(-5, 20)), max_size=40)


@given(STEPS)
def test_means_are_those_of_plain_integration(steps: list[tuple[float, int, int]]) -> None:
    series, now, values, integrals, peaks = TimeSeries(2), 0.0, [0, 0], [0.0, 0.0], [0, 0]
    for passed, index, change in steps:
        integrals = [total + value * passed for total, value in zip(integrals, values, strict=True)]
        now += passed
        values[index] += change
        peaks[index] = max(peaks[index], values[index])
        series.add(now, [(index, change)])
    assert series.seconds == pytest.approx(now)
    buckets = list(series.buckets())
    assert len(buckets) <= 600
    for index in range(2):
        total = sum(each.means[index] * each.seconds for each in buckets)
        assert total == pytest.approx(integrals[index], rel=1e-6, abs=1e-6)
        if now:
            assert series.means()[index] == pytest.approx(integrals[index] / now, rel=1e-6, abs=1e-6)
        assert series.value(index) == values[index]
        assert series.peaks[index] == peaks[index]


def test_buckets_become_longer_with_time() -> None:
    series = TimeSeries(1)
    series.add(0, [(0, 3)])
    series.advance(100_000)
    buckets = list(series.buckets())
    assert buckets[0].seconds == 256
    assert {each.means for each in buckets} == {(3.0,)}
