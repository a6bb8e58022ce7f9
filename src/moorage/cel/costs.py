"""The costs of calls when they are evaluated: Kubernetes' and CEL's own rules, by function and overload.

A call whose overload is not known before it is evaluated always costs one, unless Kubernetes has a rule for
the function's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import Any

from moorage.api.quantity import Quantity
from moorage.cel.semver import Semver
from moorage.cel.values import Optional

Cost = Callable[..., int]
"""The cost of a call, as a function of its arguments."""

LIST_COST, MAP_COST = 10, 30
"""The costs of creating a list and a map."""

TRAVERSAL_FACTOR = 0.1
"""The cost of reading a character."""

PATTERN_FACTOR = 0.25
"""The cost of a character of a regular expression."""

_SIZED = frozenset((str, bytes, list, dict))
_TEXTS = frozenset((str, bytes))
_CALL_COST = 1


def size(value: Any) -> int:
    """The size of a value that costs depend on: the number of its members or characters, or one."""
    kind = type(value)
    if kind in _SIZED or isinstance(value, dict):
        return len(value)
    return size(value.value) if kind is Optional and value.present else 1


def _traversal(times: int = 1) -> Cost:
    factor = times * TRAVERSAL_FACTOR
    return lambda value, *rest: ceil(size(value) * factor)


def _smaller(left: Any, right: Any) -> int:
    return ceil(min(size(left), size(right)) * TRAVERSAL_FACTOR)


def _equals(left: Any, right: Any) -> int:
    return 1 if type(left) in (Quantity, Semver) else _smaller(left, right)


def _together(left: Any, right: Any) -> int:
    return ceil((size(left) + size(right)) * TRAVERSAL_FACTOR)


def _matches(text: Any, pattern: Any) -> int:
    return ceil((1.0 + size(text)) * TRAVERSAL_FACTOR) * ceil(size(pattern) * PATTERN_FACTOR)


def _contains(text: Any, part: Any) -> int:
    return ceil(size(text) * TRAVERSAL_FACTOR) * ceil(size(part) * TRAVERSAL_FACTOR)


def _every_member(value: Any, *rest: Any) -> int:
    """The cost of a whole tree of values."""
    kind = type(value)
    if kind in _TEXTS:
        return int(len(value) * TRAVERSAL_FACTOR)
    if kind is list:
        return sum(map(_every_member, value))
    if isinstance(value, dict):
        return sum(_every_member(key) + _every_member(each) for key, each in value.items())
    return 1


def _joined(items: Any, separator: Any = "") -> int:
    if type(items) is not list:
        return 1
    length = sum(map(size, items)) + size(separator) * max(len(items) - 1, 0)
    return ceil(length * 2 * TRAVERSAL_FACTOR)


def _new_list(count: int) -> int:
    return max(count, 0) + _CALL_COST + LIST_COST


def _compared_with_itself(items: Any) -> int:
    if type(items) is not list:
        return 1
    count: int = len(items)
    factor = 2.0 + TRAVERSAL_FACTOR if items and type(items[0]) in _TEXTS else 2.0
    return _new_list(int(count * count * factor))


def _crosswise(times: int) -> Cost:
    return lambda items, others: _CALL_COST + times * size(items) * size(others)


def _sliced(items: Any, start: Any, end: Any) -> int:
    if type(items) is not list or type(start) is not int or type(end) is not int:
        return 1
    return _new_list(min(end, len(items)) - max(start, 0))


def _flattened(items: Any, depth: Any = 1) -> int:
    return _new_list(size(items) * (depth if type(depth) is int else 1))


BY_NAME: Mapping[str, Cost] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _every_member),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _traversal()),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _traversal()),
    **dict.fromkeys(("replace", "split"), _traversal(2)),
    **dict.fromkeys(("format", "strings.quote"), _traversal()),
    **dict.fromkeys(("distinct", "sort"), _compared_with_itself),
    **dict.fromkeys(("sets.contains", "sets.intersects"), _crosswise(1)),
    "sets.equivalent": _crosswise(2),
    "join": _joined,
    "slice": _sliced,
    "flatten": _flattened,
    "reverse": lambda items: _new_list(size(items)),
    "lists.range": lambda count: _new_list(count if type(count) is int else 1),
    "_==_": _equals,
    "_!=_": _smaller,
}

BY_OVERLOAD: Mapping[str, Cost] = {
    **dict.fromkeys(("starts_with_string", "ends_with_string"), _traversal()),
    **dict.fromkeys(("string_to_bytes", "bytes_to_string"), _traversal()),
    **{
        f"{order}_{kind}": _smaller
        for order in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    },
    **dict.fromkeys(("add_string", "add_bytes"), _together),
    **dict.fromkeys(("matches_string", "matches"), _matches),
    "contains_string": _contains,
    "in_list": lambda item, items: size(items),
}


def call_cost(function: str, overloads: tuple[str, ...]) -> Cost | None:
    """The cost of a call; None if it always costs one."""
    if function in BY_NAME:
        return BY_NAME[function]
    return BY_OVERLOAD.get(overloads[0]) if len(overloads) == 1 else None
