"""Schedules of cron jobs: when they are due, and errors with the messages of Kubernetes' parser.

The notation is the one of robfig/cron, which Kubernetes uses. No library on PyPI has all of it (`?`, `5/15`,
`@every 90m`, a restricted day of the month *or* of the week), so it is read here.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NamedTuple, Protocol

import msgspec

from moorage.api.text_cache import cached_by_text

_MINUTE: Final = timedelta(minutes=1)
_SECOND: Final = timedelta(seconds=1)
_MAX_SEARCH: Final = timedelta(days=5 * 366)
_SEARCH_STEPS: Final = (timedelta(days=1), timedelta(days=32), _MAX_SEARCH)
_ALIASES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = "@every "
_MAX_INTERVAL_SECONDS: Final = (1 << 63) / 1e9
_UNIT_SECONDS: Final = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0,
}  # fmt: skip
_DURATION_PART: Final = r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)"
_DURATION_RE: Final = re.compile(rf"[-+]?(?:{_DURATION_PART})+")
_DURATION_PART_RE: Final = re.compile(_DURATION_PART)
_INTEGER_RE: Final = re.compile(r"[-+]?\d+", re.ASCII)
_MAX_INTEGER_LENGTH: Final = 19
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


class ScheduleError(ValueError):
    """An invalid schedule."""


class Schedule(Protocol):
    """An endless sequence of times."""

    def next(self, after: datetime) -> datetime | None:
        """The first time after another; None if there is none within five years."""

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        """The last time that is after one moment and not after another, if any."""


class _Bounds(NamedTuple):
    lowest: int
    highest: int
    names: dict[str, int]


_FIELDS: Final = (
    _Bounds(0, 59, {}),
    _Bounds(0, 23, {}),
    _Bounds(1, 31, {}),
    _Bounds(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Bounds(0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


class _Field(NamedTuple):
    """The values of one field, and whether it is `*` or `?`."""

    values: frozenset[int]
    is_any: bool


class Calendar(NamedTuple):
    """Minutes of the local time of a zone: five fields, as in `*/5 8-17 * * mon-fri`."""

    minute: _Field
    hour: _Field
    day: _Field
    month: _Field
    weekday: _Field
    zone: tzinfo

    def next(self, after: datetime) -> datetime | None:
        """The first minute after a moment; hours that clocks skip are left out, repeated ones occur twice."""
        moment = after.astimezone(UTC).replace(second=0, microsecond=0) + _MINUTE
        end = moment + _MAX_SEARCH
        while moment <= end:
            local = moment.astimezone(self.zone)
            if local.month not in self.month.values:
                following = local.replace(day=28) + timedelta(days=4)
                moment = self._midnight(following.replace(day=1))
            elif not self._is_on(local):
                moment = self._midnight(local + timedelta(days=1))
            elif local.hour not in self.hour.values:
                moment += (60 - local.minute) * _MINUTE
            elif local.minute not in self.minute.values:
                moment += _MINUTE
            else:
                return moment
        return None

    def _is_on(self, local: datetime) -> bool:
        """Whether a day matches; where days of month and week are both restricted, one of them is enough."""
        day, weekday = local.day in self.day.values, local.isoweekday() % 7 in self.weekday.values
        return (day and weekday) if self.day.is_any or self.weekday.is_any else (day or weekday)

    def _midnight(self, local: datetime) -> datetime:
        start = datetime(local.year, local.month, local.day, tzinfo=self.zone)
        return start.astimezone(UTC)

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        """The last minute in a span; searched near its end first, for spans of any length."""
        for step in _SEARCH_STEPS:
            found, at = None, self.next(max(after, until - step))
            while at is not None and at <= until:
                found, at = at, self.next(at)
            if found is not None or until - step <= after:
                return found
        return None


class Interval(NamedTuple):
    """Times at a constant interval: `@every 90m`."""

    length: timedelta

    def next(self, after: datetime) -> datetime:
        """One interval later, at a whole second."""
        return after.replace(microsecond=0) + self.length

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        """The end of the last whole interval, counted from one moment, that is not after another."""
        start = after.replace(microsecond=0)
        count = (until - start) // self.length
        return start + count * self.length if count > 0 else None


@cached_by_text(count=1024)
def parse_schedule(text: str, zone: tzinfo = UTC) -> Schedule:
    """A schedule such as `*/5 * * * *` in the local time of a zone, or ScheduleError."""
    if not text:
        raise ScheduleError("empty spec string")
    if text.startswith(("TZ=", "CRON_TZ=")):
        # Kubernetes rejects all schedules with a zone of their own.
        text = text.partition(" ")[2].strip()
    if text.startswith(_EVERY):
        return Interval(_interval(text))
    if text.startswith("@"):
        if text not in _ALIASES:
            raise ScheduleError(f"unrecognized descriptor: {text}")
        text = _ALIASES[text]
    fields = text.split()
    if len(fields) != len(_FIELDS):
        shown = " ".join(fields)
        raise ScheduleError(f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{shown}]")
    minute, hour, day, month, weekday = map(_field, fields, _FIELDS)
    return Calendar(minute, hour, day, month, weekday, zone)


def _interval(text: str) -> timedelta:
    """The whole seconds of a duration, at least one."""
    duration = text.removeprefix(_EVERY)
    parts = _DURATION_PART_RE.findall(duration)
    seconds = sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)
    is_duration = duration == "0" or _DURATION_RE.fullmatch(duration) is not None
    if not is_duration or seconds > _MAX_INTERVAL_SECONDS:
        why = f"time: invalid duration {_quoted(duration)}"
        raise ScheduleError(f"failed to parse duration {text}: {why}")
    return _SECOND if duration.startswith("-") else max(timedelta(seconds=int(seconds)), _SECOND)


def _field(text: str, bounds: _Bounds) -> _Field:
    ranges = [_range(part, bounds) for part in text.split(",") if part]
    return _Field(frozenset().union(*(each.values for each in ranges)), any(each.is_any for each in ranges))


def _range(text: str, bounds: _Bounds) -> _Field:
    span, *steps = text.split("/")
    ends = span.split("-")
    is_any = ends[0] in ("*", "?")
    if is_any:
        start, end = bounds.lowest, bounds.highest
    else:
        if len(ends) > 2:
            raise ScheduleError(f"too many hyphens: {text}")
        start = _number(ends[0], bounds)
        end = _number(ends[-1], bounds)
    step = 1
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {text}")
    if steps:
        step = _integer(steps[0])
        if len(ends) == 1:
            end = bounds.highest
    if start < bounds.lowest:
        raise ScheduleError(f"beginning of range ({start}) below minimum ({bounds.lowest}): {text}")
    if end > bounds.highest:
        raise ScheduleError(f"end of range ({end}) above maximum ({bounds.highest}): {text}")
    if start > end:
        raise ScheduleError(f"beginning of range ({start}) beyond end of range ({end}): {text}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {text}")
    return _Field(frozenset(range(start, end + 1, step)), is_any and step == 1)


def _number(text: str, bounds: _Bounds) -> int:
    named = bounds.names.get(text.lower())
    return _integer(text) if named is None else named


def _integer(text: str) -> int:
    if not _INTEGER_RE.fullmatch(text):
        why = f"strconv.Atoi: parsing {_quoted(text)}: invalid syntax"
        raise ScheduleError(f"failed to parse int from {text}: {why}")
    if len(text) > _MAX_INTEGER_LENGTH:
        why = f"strconv.Atoi: parsing {_quoted(text)}: value out of range"
        raise ScheduleError(f"failed to parse int from {text}: {why}")
    if int(text) < 0:
        raise ScheduleError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
