"""Schedules: when they are due, compared with a walk from minute to minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.cron import Calendar, ScheduleError, parse_schedule
from tests.strategies import examples

MINUTE = timedelta(minutes=1)
BERLIN = ZoneInfo("Europe/Berlin")
ZONES = ("UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kolkata", "America/Havana")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


NEXT: dict[str, tuple[str, str, str]] = {
    "the next minute, not this one": ("* * * * *", "2026-03-01T12:00", "2026-03-01T12:01"),
    "seconds do not count": ("* * * * *", "2026-03-01T12:00:59", "2026-03-01T12:01"),
    "steps": ("*/15 * * * *", "2026-03-01T12:16", "2026-03-01T12:30"),
    "steps from a start": ("5/20 * * * *", "2026-03-01T12:26", "2026-03-01T12:45"),
    "steps in a range": ("0 6-16/4 * * *", "2026-03-01T14:00", "2026-03-02T06:00"),
    "lists and names": ("30 8 * JAN,jul mon-Fri", "2026-01-30T09:00", "2026-07-01T08:30"),
    "a question mark is a star": ("0 0 ? * 1", "2026-03-01T12:00", "2026-03-02T00:00"),
    "day of month or of week": ("0 0 13 * 5", "2026-03-01T12:00", "2026-03-06T00:00"),
    "a step of days restricts them": ("0 0 */10 * 1", "2026-03-02T12:00", "2026-03-09T00:00"),
    "the 29th of February": ("0 0 29 2 *", "2026-03-01T00:00", "2028-02-29T00:00"),
    "@yearly": ("@yearly", "2026-03-01T00:00", "2027-01-01T00:00"),
    "@annually": ("@annually", "2026-03-01T00:00", "2027-01-01T00:00"),
    "@monthly": ("@monthly", "2026-03-01T00:00", "2026-04-01T00:00"),
    "@weekly": ("@weekly", "2026-03-01T00:00", "2026-03-08T00:00"),
    "@daily": ("@daily", "2026-03-01T00:00", "2026-03-02T00:00"),
    "@midnight": ("@midnight", "2026-03-01T00:00", "2026-03-02T00:00"),
    "@hourly": ("@hourly", "2026-03-01T00:00", "2026-03-01T01:00"),
    "@every": ("@every 1h30m10s", "2026-03-01T00:00:01", "2026-03-01T01:30:11"),
    "@every less than a second": ("@every 10ms", "2026-03-01T00:00:01", "2026-03-01T00:00:02"),
}


@pytest.mark.parametrize(("schedule", "after", "wanted"), NEXT.values(), ids=NEXT)
def test_the_next_time(schedule: str, after: str, wanted: str) -> None:
    assert parse_schedule(schedule).next(at(after)) == at(wanted)


def test_a_day_that_never_comes_is_no_time() -> None:
    schedule = parse_schedule("59 23 31 2 *")
    assert schedule.next(at("2026-03-01T00:00")) is None
    assert schedule.latest(at("2010-03-01T00:00"), at("2026-03-01T00:00")) is None


def test_an_hour_that_clocks_skip_does_not_come_and_one_that_they_repeat_comes_twice() -> None:
    schedule = parse_schedule("30 2 * * *", BERLIN)
    assert schedule.next(at("2026-03-28T12:00")) == at("2026-03-30T00:30")
    first = schedule.next(at("2026-10-24T12:00"))
    assert first == at("2026-10-25T00:30")
    assert schedule.next(first) == at("2026-10-25T01:30")


def test_the_latest_time_of_a_long_span_is_found() -> None:
    minutely, weekdays = parse_schedule("* * * * *"), parse_schedule("30 6-16/4 * * 1-5")
    assert minutely.latest(at("1990-01-01T00:00"), at("2026-03-01T12:00:30")) == at("2026-03-01T12:00")
    assert weekdays.latest(at("1990-01-01T00:00"), at("2026-03-01T12:00")) == at("2026-02-27T14:30")
    every = parse_schedule("@every 90m")
    assert every.latest(at("2026-03-01T12:00"), at("2026-03-01T16:00")) == at("2026-03-01T15:00")
    assert every.latest(at("2026-03-01T12:00"), at("2026-03-01T13:00")) is None


@pytest.mark.parametrize("duration", ["1", "h", "1x", "", "9999999999h", "1 h"])
def test_durations_that_are_none(duration: str) -> None:
    with pytest.raises(ScheduleError, match=r"^failed to parse duration @every .*: time: invalid duration"):
        parse_schedule(f"@every {duration}")


def a_field(lowest: int, highest: int) -> st.SearchStrategy[str]:
    number = st.integers(lowest, highest)
    span = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    plain = st.one_of(st.just("*"), number.map(str), span)
    stepped = st.tuples(plain, st.integers(1, 9)).map(lambda pair: f"{pair[0]}/{pair[1]}")
    return st.lists(st.one_of(st.just("*"), plain, stepped), min_size=1, max_size=2).map(",".join)


SCHEDULES = st.tuples(a_field(0, 59), a_field(0, 23), a_field(1, 31), a_field(1, 12), a_field(0, 6)).map(
    " ".join
)
DAYS = st.sampled_from(("2026-03-28", "2026-10-24", "2018-11-03", "2018-02-17", "2026-04-04", "2026-11-01"))
"""Days at whose end, or the day after, clocks change in one of the zones."""


@examples(30)
@given(SCHEDULES, st.sampled_from(ZONES), DAYS, st.integers(0, 24 * 60))
def test_a_walk_from_minute_to_minute_finds_the_same(schedule: str, zone: str, day: str, minute: int) -> None:
    found = parse_schedule(schedule, ZoneInfo(zone))
    assert isinstance(found, Calendar)
    after = at(f"{day}T00:00") + minute * MINUTE
    end = after + timedelta(days=2)
    walked = walk(found, after, end)
    reached = found.next(after)
    assert (reached if reached is not None and reached <= end else None) == walked
    assert found.latest(after, end) == walk_back(found, after, end)


def walk(schedule: Calendar, after: datetime, end: datetime) -> datetime | None:
    minutes = (after + count * MINUTE for count in range(1, (end - after) // MINUTE + 1))
    return next((each for each in minutes if is_expected(schedule, each)), None)


def walk_back(schedule: Calendar, after: datetime, end: datetime) -> datetime | None:
    minutes = (end - count * MINUTE for count in range((end - after) // MINUTE))
    return next((each for each in minutes if is_expected(schedule, each)), None)


def is_expected(schedule: Calendar, moment: datetime) -> bool:
    local = moment.astimezone(schedule.zone)
    days = local.day in schedule.day.values, local.isoweekday() % 7 in schedule.weekday.values
    return (
        local.minute in schedule.minute.values
        and local.hour in schedule.hour.values
        and local.month in schedule.month.values
        and (all(days) if schedule.day.is_any or schedule.weekday.is_any else any(days))
    )
