"""JSON values in patches: equality, and how Kubernetes' messages print them.

Many patch errors contain values in Go's format, which is reproduced here.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from decimal import Decimal
from typing import Any

import msgspec


def same(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal; to Python, true would also be 1."""
    if left is right:
        return True
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and len(left) == len(right)
            and all(key in right and same(item, right[key]) for key, item in left.items())
        )
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(same, left, right))
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)


def identity(value: Any) -> Hashable:
    """A lookup key of a value: equal for equal values of the same type."""
    if isinstance(value, dict | list):
        return list, msgspec.json.encode(value, order="deterministic")
    return type(value), value


def go_text(value: Any) -> str:
    """A value as Go's `%v` prints it: `map[a:1 b:[x y]]`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_text(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    if isinstance(value, float):
        return _go_float(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)


def _go_float(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    decimal = Decimal(repr(value)).normalize()
    exponent = decimal.adjusted()
    if value and not -4 <= exponent < 6:
        mantissa = decimal.scaleb(-exponent)
        return f"{mantissa:f}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return f"{decimal:f}"


def go_type(value: Any) -> str:
    """The name of a value's type in Go, as `reflect.TypeOf` prints it."""
    if value is None:
        return "%!s(<nil>)"
    return _GO_TYPES[type(value)]


MAP_TYPE = "map[string]interface {}"
LIST_TYPE = "[]interface {}"
_GO_TYPES = {dict: MAP_TYPE, list: LIST_TYPE, str: "string", bool: "bool", int: "int64", float: "float64"}


def json_type(value: Any) -> str:
    """What Go's JSON decoder calls a value that has the wrong type."""
    return _JSON_TYPES.get(type(value), "number")


_JSON_TYPES: Mapping[type, str] = {dict: "object", list: "array", str: "string", bool: "bool"}


def go_json(value: Any) -> str:
    """A value as Go writes JSON: sorted, whole numbers without a point, characters of HTML escaped."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return msgspec.json.encode(value, order="deterministic").decode().translate(_ESCAPES)


_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
