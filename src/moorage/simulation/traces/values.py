"""Numbers in the rows of traces; BadLineError for what is none."""

from __future__ import annotations

from typing import Any, Final

from moorage.simulation.traces.source import BadLineError

_INFINITE: Final = float("inf")


def seconds(value: Any, name: str) -> float:
    """A time or a duration."""
    return _at_least_zero(value, name, "a number of seconds")


def amount(value: Any, name: str) -> float:
    """An amount of a resource."""
    return _at_least_zero(value, name, "a number of at least 0")


def _at_least_zero(value: Any, name: str, what: str) -> float:
    found = _float(value)
    if found is None or not 0 <= found < _INFINITE:
        raise BadLineError(f"{name}: {value!r} is not {what}")
    return found


def real(value: Any, name: str) -> float:
    """A number, which may be negative."""
    found = _float(value)
    if found is None or not -_INFINITE < found < _INFINITE:
        raise BadLineError(f"{name}: {value!r} is not a number")
    return found


def _float(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def integer(value: Any, name: str) -> int:
    """An integer, also as text or in the form 3.0."""
    try:
        return int(str(value).removesuffix(".0"))
    except ValueError:
        raise BadLineError(f"{name}: {value!r} is not an integer") from None
