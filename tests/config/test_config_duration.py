"""Durations read and print as Go's do."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.config.duration import Duration, parse_duration

NANOSECONDS = st.integers(min_value=-(1 << 63), max_value=(1 << 63) - 1)

READ = {
    "seconds": ("15s", 15_000_000_000, "15s"),
    "minutes and seconds": ("1m30s", 90_000_000_000, "1m30s"),
    "milliseconds": ("100ms", 100_000_000, "100ms"),
    "half hours": ("1.5h", 5_400_000_000_000, "1h30m0s"),
    "zero with a unit": ("0s", 0, "0s"),
    "zero without a unit": ("0", 0, "0s"),
    "negative": ("-2.5s", -2_500_000_000, "-2.5s"),
    "plus sign": ("+5s", 5_000_000_000, "5s"),
    "no whole part": (".5s", 500_000_000, "500ms"),
    "no fraction": ("5.s", 5_000_000_000, "5s"),
    "minutes over an hour": ("600s", 600_000_000_000, "10m0s"),
    "micro in letters": ("12us", 12_000, "12µs"),
    "micro sign": ("12µs", 12_000, "12µs"),
    "greek mu": ("12μs", 12_000, "12µs"),
    "parts of a microsecond": ("1.1us", 1_100, "1.1µs"),
    "units out of order": ("3s1h", 3_603_000_000_000, "1h0m3s"),
    "more digits than nanoseconds": ("0.3333333333333333333h", 1_200_000_000_000, "20m0s"),
    "fraction under a nanosecond": ("1.9999999999s", 1_999_999_999, "1.999999999s"),
    "the longest": ("2562047h47m16.854775807s", (1 << 63) - 1, "2562047h47m16.854775807s"),
    "the shortest": ("-2562047h47m16.854775808s", -(1 << 63), "-2562047h47m16.854775808s"),
}

REFUSED = {
    "empty": ("", 'invalid duration ""'),
    "only a sign": ("-", 'invalid duration "-"'),
    "no unit": ("5", 'missing unit in duration "5"'),
    "unknown unit": ("3d", 'unknown unit "d" in duration "3d"'),
    "no number": ("s", 'invalid duration "s"'),
    "only a dot": (".s", 'invalid duration ".s"'),
    "two dots": ("1..5s", 'missing unit in duration "1..5s"'),
    "space": ("1 s", 'unknown unit " s" in duration "1 s"'),
    "sign inside": ("1m-5s", 'unknown unit "m-" in duration "1m-5s"'),
    "other digits": ("٣s", 'invalid duration "٣s"'),
    "too long": ("2562047h47m16.854775808s", "at most about 292 years"),
}


@pytest.mark.parametrize(("text", "nanoseconds", "printed"), READ.values(), ids=READ.keys())
def test_reads_go_notation(text: str, nanoseconds: int, printed: str) -> None:
    duration = parse_duration(text)
    assert duration.nanoseconds == nanoseconds
    assert duration == nanoseconds / 1e9
    assert str(duration) == printed


@pytest.mark.parametrize(("text", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_refuses_what_go_refuses(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r"duration") as caught:
        parse_duration(text)
    assert reason in str(caught.value)


@given(NANOSECONDS)
def test_what_is_printed_reads_back(nanoseconds: int) -> None:
    duration = Duration.from_nanoseconds(nanoseconds)
    back = parse_duration(str(duration))
    # Fractions are worked out in floating point, as Go does; they are exact to the nanosecond all the same.
    assert back.nanoseconds == nanoseconds


@given(NANOSECONDS)
def test_copies_are_exact(nanoseconds: int) -> None:
    duration = Duration.from_nanoseconds(nanoseconds)
    for other in (copy.copy(duration), copy.deepcopy(duration), pickle.loads(pickle.dumps(duration))):
        assert (type(other), other.nanoseconds) == (Duration, nanoseconds)
    assert Duration(duration).nanoseconds == nanoseconds


def test_is_a_number_of_seconds() -> None:
    assert Duration(90) * 2 == 180.0
    assert f"{Duration(90)}" == "1m30s"
    assert repr(Duration(0.25)) == "Duration('250ms')"


def test_no_longer_than_go() -> None:
    with pytest.raises(ValueError, match="292 years"):
        Duration(1e10)
