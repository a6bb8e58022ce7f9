"""Schedules of cron jobs: what is wrong with one, said as Kubernetes' own parser says it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from moorage.apiserver.text import quoted

_DESCRIPTORS: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_EVERY = "@every "
_DURATION_RE = re.compile(
    r"[-+]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))*"
)
_INTEGER_RE = re.compile(r"[-+]?\d+", re.ASCII)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


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


class _BadScheduleError(ValueError):
    """A schedule that says nothing."""


@lru_cache(maxsize=1024)
def schedule_problem(schedule: str) -> str:
    """Why a schedule such as `*/5 * * * *` says nothing; empty if it does."""
    try:
        _check(schedule)
    except _BadScheduleError as error:
        return str(error)
    return ""


def _check(schedule: str) -> None:
    if not schedule:
        raise _BadScheduleError("empty spec string")
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        schedule = schedule.partition(" ")[2].strip()
    if schedule.startswith("@"):
        return _check_descriptor(schedule)
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        shown = " ".join(fields)
        raise _BadScheduleError(f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{shown}]")
    for text, bounds in zip(fields, _FIELDS, strict=True):
        for part in text.split(","):
            if part:
                _check_range(part, bounds)


def _check_descriptor(schedule: str) -> None:
    if schedule in _DESCRIPTORS:
        return
    if schedule.startswith(_EVERY):
        duration = schedule.removeprefix(_EVERY)
        if duration != "0" and not _DURATION_RE.fullmatch(duration):
            why = f"time: invalid duration {quoted(duration)}"
            raise _BadScheduleError(f"failed to parse duration {schedule}: {why}")
        return
    raise _BadScheduleError(f"unrecognized descriptor: {schedule}")


def _check_range(text: str, bounds: _Bounds) -> None:
    span, *steps = text.split("/")
    ends = span.split("-")
    if ends[0] in ("*", "?"):
        start, end = bounds.lowest, bounds.highest
    else:
        if len(ends) > 2:
            raise _BadScheduleError(f"too many hyphens: {text}")
        start = _number(ends[0], bounds)
        end = _number(ends[-1], bounds)
    step = 1
    if len(steps) > 1:
        raise _BadScheduleError(f"too many slashes: {text}")
    if steps:
        step = _integer(steps[0])
        if len(ends) == 1:
            end = bounds.highest
    if start < bounds.lowest:
        raise _BadScheduleError(f"beginning of range ({start}) below minimum ({bounds.lowest}): {text}")
    if end > bounds.highest:
        raise _BadScheduleError(f"end of range ({end}) above maximum ({bounds.highest}): {text}")
    if start > end:
        raise _BadScheduleError(f"beginning of range ({start}) beyond end of range ({end}): {text}")
    if step == 0:
        raise _BadScheduleError(f"step of range should be a positive number: {text}")


def _number(text: str, bounds: _Bounds) -> int:
    named = bounds.names.get(text.lower())
    return _integer(text) if named is None else named


def _integer(text: str) -> int:
    if not _INTEGER_RE.fullmatch(text):
        why = f"strconv.Atoi: parsing {quoted(text)}: invalid syntax"
        raise _BadScheduleError(f"failed to parse int from {text}: {why}")
    if int(text) < 0:
        raise _BadScheduleError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)
