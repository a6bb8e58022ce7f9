from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.framework.runtime.go_arithmetic import divide_truncating, proportional, round_half_away


@given(st.lists(st.floats(-1e9, 1e9), min_size=1))
def test_halves_round_away_from_zero(values: list[float]) -> None:
    expected = [
        math.floor(abs(v) + 0.5) * (1 if v >= 0 else -1) if abs(v) % 1 != 0.49999999999999994 else 0
        for v in values
    ]
    rounded = round_half_away(np.array(values)).tolist()
    for value, ours, theirs in zip(values, rounded, expected, strict=True):
        if abs(abs(value) % 1 - 0.5) > 1e-9 or value * 2 == round(value * 2):
            assert ours == theirs, value


def test_the_cases_where_numpy_would_round_to_even() -> None:
    assert round_half_away(np.array([0.5, 1.5, 2.5, -0.5, -2.5, 0.49999999999999994])).tolist() == [
        1,
        2,
        3,
        -1,
        -3,
        0,
    ]


@given(st.integers(-(10**9), 10**9), st.integers(-(10**6), 10**6).filter(bool))
def test_division_goes_towards_zero(dividend: int, divisor: int) -> None:
    assert divide_truncating(dividend, divisor) == math.trunc(dividend / divisor)


def test_scores_are_scaled_to_the_largest() -> None:
    assert proportional(np.array([0, 1, 3])).tolist() == [0, 33, 100]
    assert proportional(np.array([0, 1, 3]), reverse=True).tolist() == [100, 67, 0]
    assert proportional(np.array([0, 0])).tolist() == [0, 0]
    assert proportional(np.array([0, 0]), reverse=True).tolist() == [100, 100]
