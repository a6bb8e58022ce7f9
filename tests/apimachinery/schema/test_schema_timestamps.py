"""Times come back in UTC, and what is no time is refused in Go's words."""

from __future__ import annotations

import pytest

from moorage.apimachinery.schema.timestamps import canonical_micro_time, canonical_time

LAYOUT = "2006-01-02T15:04:05Z07:00"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("2026-02-03T04:05:06Z", "2026-02-03T04:05:06Z"),
        ("2026-02-03T04:05:06.789Z", "2026-02-03T04:05:06Z"),
        ("2026-02-03T04:05:06.123456789Z", "2026-02-03T04:05:06Z"),
        ("2026-02-03T04:05:06+02:00", "2026-02-03T02:05:06Z"),
        ("2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00Z"),
        ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"),
    ],
)
def test_time_in_seconds(text: str, canonical: str) -> None:
    assert canonical_time(text) == canonical


def test_time_in_microseconds() -> None:
    assert canonical_micro_time("2026-02-03T04:05:06.000007Z") == "2026-02-03T04:05:06.000007Z"
    assert canonical_micro_time("2026-02-03T04:05:06.500000-01:00") == "2026-02-03T05:05:06.500000Z"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("foo", f'parsing time "foo" as "{LAYOUT}": cannot parse "foo" as "2006"'),
        ("", f'parsing time "" as "{LAYOUT}": cannot parse "" as "2006"'),
        ("2026-02-03", f'parsing time "2026-02-03" as "{LAYOUT}": cannot parse "" as "T"'),
        (
            "2026-02-03T04:05:06",
            f'parsing time "2026-02-03T04:05:06" as "{LAYOUT}": cannot parse "" as "Z07:00"',
        ),
        ("2026-13-03T04:05:06Z", 'parsing time "2026-13-03T04:05:06Z": month out of range'),
        ("2026-02-30T04:05:06Z", 'parsing time "2026-02-30T04:05:06Z": day out of range'),
        ("2026-02-03T25:05:06Z", 'parsing time "2026-02-03T25:05:06Z": hour out of range'),
        ("2026-02-03T04:05:06Zx", 'parsing time "2026-02-03T04:05:06Zx": extra text: "x"'),
    ],
)
def test_what_is_no_time(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match="parsing time") as caught:
        canonical_time(text)
    assert str(caught.value) == problem


def test_six_digits_are_demanded() -> None:
    with pytest.raises(ValueError, match=r'cannot parse "Z" as "\.000000"'):
        canonical_micro_time("2026-02-03T04:05:06Z")
