from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.quantity import NANO, Quantity, format_quantity, parse_quantity, round_up

INT64_MAX = (1 << 63) - 1


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [
        ("0", 0, 0),
        ("1", 1, 1000),
        ("100m", 1, 100),
        ("1500m", 2, 1500),
        ("0.1", 1, 100),
        (".5", 1, 500),
        ("1.", 1, 1000),
        ("1e3", 1000, 1_000_000),
        ("1E3", 1000, 1_000_000),
        ("1e-3", 1, 1),
        ("12E", 12 * 10**18, 12 * 10**21),
        ("1.5Gi", 1536 * 2**20, 1536 * 2**20 * 1000),
        ("1Ki", 1024, 1024_000),
        ("1k", 1000, 1_000_000),
        ("1n", 1, 1),
        ("0.1n", 1, 1),
        ("1u", 1, 1),
        ("12Ei", INT64_MAX, INT64_MAX * 1000),
        ("+2", 2, 2000),
        ("-1500m", -2, -1500),
        ("000200m", 1, 200),
    ],
)
def test_a_quantity_says_its_amount_rounded_away_from_zero(text: str, value: int, milli: int) -> None:
    quantity = parse_quantity(text)
    assert (quantity.value, quantity.milli_value) == (value, milli)


@pytest.mark.parametrize(
    "text", ["", "abc", "1x", "1 Gi", "Gi", ".", "1e", "--1", "1KI", "1mi", "0x10", "1e9999999", "١"]
)
def test_what_is_no_quantity_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity") as error:
        parse_quantity(text)
    assert "\n" not in str(error.value)


def test_sums_are_exact_and_round_once() -> None:
    half = parse_quantity("0.5m")
    assert Quantity(half + half).milli_value == 1
    assert half.milli_value + half.milli_value == 2


@given(st.integers(-(10**24), 10**24))
def test_the_shortest_text_says_the_same_amount(billionths: int) -> None:
    if abs(billionths) <= INT64_MAX * NANO:
        assert parse_quantity(format_quantity(billionths)) == billionths


@given(st.integers(-(10**12), 10**12), st.integers(1, 10**9))
def test_rounding_goes_away_from_zero(amount: int, unit: int) -> None:
    exact, rounded = Fraction(amount, unit), round_up(amount, unit)
    assert abs(rounded) >= abs(exact)
    assert abs(rounded - exact) < 1


@given(
    st.decimals(min_value=0, max_value=10**6, places=6, allow_nan=False),
    st.sampled_from(["", "k", "M", "Ki", "Mi"]),
)
def test_a_decimal_with_a_suffix_is_multiplied_exactly(number: object, suffix: str) -> None:
    factor = {"": 1, "k": 1000, "M": 10**6, "Ki": 2**10, "Mi": 2**20}[suffix]
    exact = Fraction(str(number)) * factor * NANO
    parsed = parse_quantity(f"{number:f}{suffix}")
    assert 0 <= parsed - exact < 1
