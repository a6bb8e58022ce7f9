"""Times in JSON, validated and converted to the canonical form that Kubernetes returns."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final, NoReturn

from moorage.api.manifests import micro_timestamp, timestamp
from moorage.api.text import quoted
from moorage.api.text_cache import cached_by_text

SECONDS_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
MICROS_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"

_MICRO_FRACTION: Final = re.compile(r"[.,]\d{6}", re.ASCII)
_ANY_FRACTION: Final = re.compile(r"[.,]\d+", re.ASCII)
_SECONDS: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_MICROS: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_ZONE: Final = re.compile(r"Z|[+-]\d\d:\d\d", re.ASCII)
_PARTS: Final = (
    # name in the layout, pattern, name in a range error, and range
    ("2006", re.compile(r"\d{4}", re.ASCII), "", 0, 9999),
    ("-", re.compile("-"), "", 0, 0),
    ("01", re.compile(r"\d\d", re.ASCII), "month", 1, 12),
    ("-", re.compile("-"), "", 0, 0),
    ("02", re.compile(r"\d\d", re.ASCII), "", 0, 99),
    ("T", re.compile("T"), "", 0, 0),
    ("15", re.compile(r"\d\d?", re.ASCII), "hour", 0, 23),
    (":", re.compile(":"), "", 0, 0),
    ("04", re.compile(r"\d\d", re.ASCII), "minute", 0, 59),
    (":", re.compile(":"), "", 0, 0),
    ("05", re.compile(r"\d\d", re.ASCII), "second", 0, 59),
)


@cached_by_text(count=8192)
def canonical_time(text: str) -> str:
    """A time in whole seconds, UTC; ValueError with Go's message if it is none."""
    return text if _is_canonical(text, _SECONDS) else timestamp(_parsed(text, SECONDS_LAYOUT))


def canonical_micro_time(text: str) -> str:
    """A time in microseconds, UTC; exactly six digits must be given, as Kubernetes demands."""
    return text if _is_canonical(text, _MICROS) else micro_timestamp(_parsed(text, MICROS_LAYOUT))


def _is_canonical(text: str, form: re.Pattern[str]) -> bool:
    """Whether a time is in canonical form already, as nearly all are; a fast check."""
    if form.fullmatch(text) is None:
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _parsed(text: str, layout: str) -> datetime:
    numbers: list[int] = []
    at = 0
    for element, pattern, name, least, most in _PARTS:
        match = pattern.match(text, at)
        if match is None:
            _cannot_parse(text, layout, text[at:], element)
        if element[0] in "012":
            numbers.append(int(match[0]))
            if name and not least <= numbers[-1] <= most:
                raise ValueError(f"parsing time {quoted(text)}: {name} out of range")
        at = match.end()
    micros = 0
    with_micros = layout == MICROS_LAYOUT
    match = (_MICRO_FRACTION if with_micros else _ANY_FRACTION).match(text, at)
    if match is not None:
        micros = int(match[0][1:7].ljust(6, "0"))
        at = match.end()
    elif with_micros:
        _cannot_parse(text, layout, text[at:], ".000000")
    match = _ZONE.match(text, at)
    if match is None:
        _cannot_parse(text, layout, text[at:], "Z07:00")
    if match.end() != len(text):
        rest = quoted(text[match.end() :])
        raise ValueError(f"parsing time {quoted(text)}: extra text: {rest}")
    year, month, day, hour, minute, second = numbers
    normal = (
        f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}"
        f"{'+00:00' if match[0] == 'Z' else match[0]}"
    )
    try:
        return datetime.fromisoformat(normal).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"parsing time {quoted(text)}: day out of range") from None


def _cannot_parse(text: str, layout: str, rest: str, element: str) -> NoReturn:
    raise ValueError(
        f"parsing time {quoted(text)} as {quoted(layout)}: cannot parse {quoted(rest)} as {quoted(element)}"
    )
