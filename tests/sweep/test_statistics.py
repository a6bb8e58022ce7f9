"""Means with their intervals, and Pareto fronts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.sweep.estimates import estimate, t_quantile
from moorage.sweep.pareto import Point, pareto_front


def share_below(quantile: float, freedom: int) -> float:
    """The t distribution's share below a value: its density added up by Simpson's rule."""
    steps = 2000
    width = quantile / steps
    norm = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)

    def density(t: float) -> float:
        return norm * (1 + t * t / freedom) ** (-(freedom + 1) / 2)

    inner = sum((4 if at % 2 else 2) * density(at * width) for at in range(1, steps))
    return 0.5 + (density(0) + inner + density(quantile)) * width / 3


@pytest.mark.parametrize("freedom", [*range(1, 41), 60, 120, 1000])
def test_quantiles_are_those_of_the_t_distribution(freedom: int) -> None:
    assert share_below(t_quantile(freedom), freedom) == pytest.approx(0.975, abs=4e-6)


def test_an_interval_is_the_one_of_textbooks() -> None:
    found = estimate([9.0, 10.0, 11.0, 12.0, 13.0])
    assert found.mean == 11
    assert found.half_width == pytest.approx(2.7764 * math.sqrt(2.5 / 5), abs=1e-6)
    assert (found.low, found.high) == (11 - 1.963211, 11 + 1.963211)


def test_equal_values_have_no_width_and_a_single_one_no_interval() -> None:
    assert estimate([2.0, 2.0, 2.0]).half_width == 0
    alone = estimate([2.0])
    assert (alone.half_width, alone.low, alone.high) == (None, 2, 2)


VALUES = st.integers(-4, 4).map(float) | st.floats(-5, 5)


@given(st.lists(st.tuples(VALUES, VALUES), max_size=30))
def test_the_front_is_what_nothing_dominates(points: list[Point]) -> None:
    def dominates(one: Point, other: Point) -> bool:
        return one != other and one[0] <= other[0] and one[1] <= other[1]

    expected = {at for at, point in enumerate(points) if not any(dominates(other, point) for other in points)}
    assert pareto_front(points) == expected
