"""Durations in Go's notation: `15s`, `1m30s`, `100ms`.

Configuration files have durations in Go's notation. They are exact to the nanosecond, as in Go, and numbers
of seconds everywhere else.
"""

from __future__ import annotations

import re

_NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # the micro sign
    "\u03bcs": 1_000,  # the Greek letter mu
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = re.compile(r"(?P<whole>\d*)(?:\.(?P<fraction>\d*))?(?P<unit>[^\d.]*)", re.ASCII)
_MAX_NANOSECONDS = (1 << 63) - 1


class Duration(float):
    """A number of seconds with exact nanoseconds that prints as in Go."""

    __slots__ = ("nanoseconds",)

    nanoseconds: int
    """The exact length, in nanoseconds."""

    def __new__(cls, seconds: float = 0.0) -> Duration:
        """The duration of a number of seconds, rounded to the nanosecond."""
        if isinstance(seconds, Duration):
            return cls.from_nanoseconds(seconds.nanoseconds)
        return cls.from_nanoseconds(round(seconds * 1_000_000_000))

    @classmethod
    def from_nanoseconds(cls, nanoseconds: int) -> Duration:
        """The duration of a number of nanoseconds; at most Go's maximum, about 292 years."""
        if not -_MAX_NANOSECONDS - 1 <= nanoseconds <= _MAX_NANOSECONDS:
            raise ValueError("a duration is at most about 292 years")
        duration = super().__new__(cls, nanoseconds / 1_000_000_000)
        duration.nanoseconds = nanoseconds
        return duration

    def __reduce__(self) -> tuple[object, ...]:
        return Duration.from_nanoseconds, (self.nanoseconds,)

    def __repr__(self) -> str:
        return f"Duration({str(self)!r})"

    def __str__(self) -> str:
        if self.nanoseconds == 0:
            return "0s"
        sign = "-" if self.nanoseconds < 0 else ""
        length = abs(self.nanoseconds)
        for unit in ("ns", "\u00b5s", "ms"):
            if length < 1_000 * _NANOSECONDS[unit]:
                return f"{sign}{_decimal(length, _NANOSECONDS[unit])}{unit}"
        minutes, rest = divmod(length, _NANOSECONDS["m"])
        text = f"{_decimal(rest, _NANOSECONDS['s'])}s"
        if minutes:
            hours, minutes = divmod(minutes, 60)
            text = f"{minutes}m{text}"
            if hours:
                text = f"{hours}h{text}"
        return sign + text


def _decimal(length: int, unit: int) -> str:
    """`length / unit` in decimals, without trailing zeros."""
    whole, rest = divmod(length, unit)
    if not rest:
        return str(whole)
    digits = len(str(unit)) - 1
    return f"{whole}.{rest:0{digits}d}".rstrip("0")


def parse_duration(text: str) -> Duration:
    """Parse a duration in Go's notation; ValueError with Go's message if it is invalid."""
    quoted = f'"{text}"'
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return Duration.from_nanoseconds(0)
    if not rest:
        raise ValueError(f"invalid duration {quoted} (like 15s, 1m30s or 100ms)")
    total = 0
    while rest:
        part = _PART.match(rest)
        assert part is not None
        whole, fraction, unit = part["whole"], part["fraction"] or "", part["unit"]
        if not whole and not fraction:
            raise ValueError(f"invalid duration {quoted} (like 15s, 1m30s or 100ms)")
        if not unit:
            raise ValueError(f"missing unit in duration {quoted} (like 15s, 1m30s or 100ms)")
        if unit not in _NANOSECONDS:
            raise ValueError(f'unknown unit "{unit}" in duration {quoted} (units are ns, us, ms, s, m and h)')
        total += int(whole or "0") * _NANOSECONDS[unit]
        # Go computes fractions in floating point: a third of an hour with nineteen digits is twenty minutes.
        total += int(int(fraction or "0") * (_NANOSECONDS[unit] / 10 ** len(fraction)))
        rest = rest[part.end() :]
    if total > _MAX_NANOSECONDS + (1 if sign < 0 else 0):
        raise ValueError(f"invalid duration {quoted} (at most about 292 years)")
    return Duration.from_nanoseconds(sign * total)
