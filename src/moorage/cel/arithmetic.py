"""Arithmetic operators: numbers, strings and lists here, timestamps and durations by the CEL library."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from math import copysign, inf, nan
from typing import Any

from moorage.cel.functions import in_range
from moorage.cel.plain import plain_function
from moorage.cel.values import CelError, Uint

_JOINED = frozenset((str, bytes, list))


def _arithmetic(name: str) -> Callable[[Any, Any], Any]:
    exact, inexact = _EXACT[name], _INEXACT.get(name)

    def operate(left: Any, right: Any) -> Any:
        kind = type(left)
        if kind is type(right):
            if kind is int or kind is Uint:
                return in_range(exact(int(left), int(right)), kind)
            if name == "_+_" and kind in _JOINED:
                return left + right
            if kind is float and inexact is not None:
                return inexact(left, right)
        return plain_function(name, 2, False)(left, right)

    return operate


def _divided(left: int, right: int) -> int:
    """The quotient, rounded towards zero."""
    if not right:
        raise CelError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    """The remainder, with the sign of the dividend."""
    if not right:
        raise CelError("modulus by zero")
    return left - right * _divided(left, right)


def _float_divided(left: float, right: float) -> float:
    try:
        return left / right
    except ZeroDivisionError:
        return nan if left == 0 or left != left else copysign(inf, left) * copysign(1, right)


_EXACT: dict[str, Callable[[int, int], int]] = {
    "_+_": operator.add,
    "_-_": operator.sub,
    "_*_": operator.mul,
    "_/_": _divided,
    "_%_": _remainder,
}
_INEXACT: dict[str, Callable[[float, float], float]] = {
    "_+_": operator.add,
    "_-_": operator.sub,
    "_*_": operator.mul,
    "_/_": _float_divided,
}

ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {name: _arithmetic(name) for name in _EXACT}
"""The operators by name."""
