from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from moorage.api.manifests import micro_timestamp, timestamp

EAST = timezone(timedelta(hours=5, minutes=30))

TIMES: dict[str, tuple[datetime, str]] = {
    "whole seconds": (datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC), "2026-03-04T05:06:07Z"),
    "a fraction is cut off": (datetime(2026, 3, 4, 5, 6, 7, 999_999, tzinfo=UTC), "2026-03-04T05:06:07Z"),
    "elsewhere": (datetime(2026, 3, 4, 5, 6, 7, tzinfo=EAST), "2026-03-03T23:36:07Z"),
    "before 1970": (datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC), "1969-12-31T23:59:59Z"),
    "the first": (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00Z"),
    "the last": (datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), "9999-12-31T23:59:59Z"),
}


@pytest.mark.parametrize("case", TIMES)
def test_a_time_in_seconds(case: str) -> None:
    moment, text = TIMES[case]
    assert timestamp(moment) == text


def test_a_time_in_microseconds() -> None:
    assert micro_timestamp(datetime(2026, 3, 4, 5, 6, 7, 8, tzinfo=EAST)) == "2026-03-03T23:36:07.000008Z"
