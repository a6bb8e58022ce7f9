"""Numbers in the rows of traces; BadLineError for what is none."""

from __future__ import annotations

import math
from typing import Any, Final

from moorage.simulation.traces.source import BadLineError

_MAX_SECONDS: Final = 9e9
"""The latest time and the longest run time, in seconds: durations end at about 292 years."""
_MAX_AMOUNT: Final = 1e9
"""The largest amount, in the unit of a trace: more is a mistake."""


def seconds(value: Any, name: str) -> float:
    """A time or a duration."""
    return _bounded(value, name, 0.0, _MAX_SECONDS, "a number of seconds")


def amount(value: Any, name: str) -> float:
    """An amount of a resource."""
    return _bounded(value, name, 0.0, _MAX_AMOUNT, "an amount")


def real(value: Any, name: str) -> float:
    """A number, which may be negative."""
    return _bounded(value, name, -_MAX_AMOUNT, _MAX_AMOUNT, "a number")


def _bounded(value: Any, name: str, least: float, most: float, what: str) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not least <= found <= most:
        raise BadLineError(f"{name}: {value!r} is not {what}")
    return found


def integer(value: Any, name: str) -> int:
    """An integer, also as text or in the form 3.0."""
    try:
        return int(str(value).removesuffix(".0"))
    except ValueError:
        raise BadLineError(f"{name}: {value!r} is not an integer") from None
