"""The functions that Kubernetes adds to CEL: quantities, versions, sets and lists; and optionals.

A function is found by name and checks the types of its arguments itself, since the types of attributes are
only known during evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import cmp_to_key
from itertools import pairwise
from math import inf
from typing import Any

from moorage.api.quantity import NANO, Quantity, parse_quantity
from moorage.cel.semver import Semver, parse_semver, parse_semver_leniently
from moorage.cel.values import (
    NONE,
    NUMBERS,
    CelError,
    Domains,
    Optional,
    TypeName,
    Uint,
    no_such_overload,
    same,
    type_name,
)

Function = Callable[..., Any]

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1


def want(value: Any, *kinds: type) -> Any:
    """The value, if it is of one of these types; otherwise an error: no such overload."""
    if type(value) not in kinds:
        raise no_such_overload()
    return value


def compare(left: Any, right: Any) -> int:
    """-1, 0 or 1 for numbers, strings, bytes, booleans and timestamps; others have no order."""
    kind, other = type(left), type(right)
    if kind is not other and not (kind in NUMBERS and other in NUMBERS):
        raise no_such_overload()
    if kind in (list, dict, Domains, Optional, Quantity, Semver, TypeName, type(None)):
        raise no_such_overload()
    return int(left > right) - int(left < right)


# Quantities


def _quantity(text: Any) -> Quantity:
    try:
        return parse_quantity(want(text, str))
    except ValueError as error:
        raise CelError(str(error)) from None


def _is_quantity(text: Any) -> bool:
    try:
        _quantity(want(text, str))
    except CelError:
        return False
    return True


def _amount(value: Any) -> int:
    return int(value) if type(value) is Quantity else int(want(value, int)) * NANO


def _is_integer(value: Any) -> bool:
    amount = int(want(value, Quantity))
    return amount % NANO == 0 and INT64_MIN <= amount // NANO <= INT64_MAX


def _as_integer(value: Any) -> int:
    if not _is_integer(value):
        raise CelError("cannot convert value to integer")
    return int(value) // NANO


def _as_float(value: Any) -> float:
    amount = int(want(value, Quantity))
    try:
        return amount / NANO
    except OverflowError:
        return inf if amount > 0 else -inf


def _sign(value: Any) -> int:
    amount = int(want(value, Quantity))
    return (amount > 0) - (amount < 0)


# Versions


def _semver(text: Any, lenient: Any = False) -> Semver:
    parse = parse_semver_leniently if want(lenient, bool) else parse_semver
    try:
        return parse(want(text, str))
    except ValueError as error:
        raise CelError(str(error)) from None


def _is_semver(text: Any, lenient: Any = False) -> bool:
    try:
        _semver(want(text, str), lenient)
    except CelError:
        return False
    return True


def _compare_to(left: Any, right: Any) -> int:
    if type(left) is Quantity:
        want(right, Quantity)
        return int(int(left) > int(right)) - int(int(left) < int(right))
    return int(want(left, Semver).compare(want(right, Semver)))


# Lists and sets


class Members:
    """The members of a list, for lookups: scalars are found by hash, others by comparing."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self._scalars: set[Any] = set()
        self._others: list[Any] = []
        for item in items:
            self.add(item)

    def add(self, item: Any) -> bool:
        """Add an item; returns whether it is new."""
        if item in self:
            return False
        key = _scalar_key(item)
        if key is None:
            self._others.append(item)
        else:
            self._scalars.add(key)
        return True

    def __contains__(self, item: Any) -> bool:
        key = _scalar_key(item)
        return any(same(item, other) for other in self._others) if key is None else key in self._scalars


def _scalar_key(value: Any) -> Hashable | None:
    """A key that is the same for equal values, numbers across types; None for values without one."""
    kind = type(value)
    if kind in NUMBERS:
        return (0, value) if value == value else None
    return (kind, value) if kind in _SCALARS else None


_SCALARS = frozenset((bool, str, bytes, TypeName, Quantity, Semver, type(None), datetime, timedelta))


def contained(wanted: Any, container: Any) -> bool:
    """CEL's `in`."""
    if isinstance(container, dict):
        try:
            return wanted in container
        except TypeError:
            raise no_such_overload() from None
    return any(same(wanted, item) for item in want(container, list))


def _subset(items: Any, others: Any) -> bool:
    there = Members(want(items, list))
    return all(other in there for other in want(others, list))


def _intersects(items: Any, others: Any) -> bool:
    there = Members(want(items, list))
    return any(other in there for other in want(others, list))


def _is_sorted(items: Any) -> bool:
    return all(_order(a, b) <= 0 for a, b in pairwise(want(items, list)))


def _order(left: Any, right: Any) -> int:
    """As `compare`, for list functions, which order Kubernetes' types as well."""
    return _compare_to(left, right) if type(left) in (Quantity, Semver) else compare(left, right)


def _extreme(name: str, sign: int) -> Function:
    def extreme(items: Any) -> Any:
        if not want(items, list):
            raise CelError(f"{name} called on empty list")
        best = items[0]
        for item in items[1:]:
            if _order(item, best) * sign > 0:
                best = item
        return best

    return extreme


def _sum(items: Any) -> Any:
    total: Any = 0
    for index, item in enumerate(want(items, list)):
        if type(item) not in NUMBERS:
            raise no_such_overload()
        total = item if index == 0 else total + item
        if type(total) is int:
            total = in_range(total, type(item) if type(item) is Uint else int)
    return total


def _index_of(items: Any, wanted: Any) -> int:
    return next((i for i, item in enumerate(want(items, list)) if same(item, wanted)), -1)


def _last_index_of(items: Any, wanted: Any) -> int:
    there = _index_of(want(items, list)[::-1], wanted)
    return there if there < 0 else len(items) - 1 - there


def _slice(items: Any, start: Any, end: Any) -> list[Any]:
    if not 0 <= want(start, int) <= want(end, int) <= len(want(items, list)):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return list(items[start:end])


def _flatten(items: Any, depth: Any = 1) -> list[Any]:
    if want(depth, int) < 0:
        raise CelError("level must be non-negative")
    flat: list[Any] = []
    for item in want(items, list):
        if type(item) is not list:
            flat.append(item)
        else:
            flat += item if depth <= 1 else _flatten(item, depth - 1)
    return flat if depth else list(items)


def _distinct(items: Any) -> list[Any]:
    there = Members()
    return [item for item in want(items, list) if there.add(item)]


def _sort(items: Any) -> list[Any]:
    return sorted(want(items, list), key=cmp_to_key(_order))


# Optionals


def _first(items: Any) -> Optional:
    return Optional(items[0]) if want(items, list) else NONE


def _last(items: Any) -> Optional:
    return Optional(items[-1]) if want(items, list) else NONE


def _optional_value(value: Any) -> Any:
    if not want(value, Optional).present:
        raise CelError("optional.none() dereference")
    return value.value


def _non_zero(value: Any) -> Optional:
    empty = value is None or value in (False, 0, "", b"") or (isinstance(value, list | dict) and not value)
    return NONE if empty else Optional(value)


FUNCTIONS: Mapping[str, Function] = {
    "quantity": _quantity,
    "isQuantity": _is_quantity,
    "sign": _sign,
    "asApproximateFloat": _as_float,
    "asInteger": _as_integer,
    "isInteger": _is_integer,
    "add": lambda value, other: Quantity(int(want(value, Quantity)) + _amount(other)),
    "sub": lambda value, other: Quantity(int(want(value, Quantity)) - _amount(other)),
    "semver": _semver,
    "isSemver": _is_semver,
    "major": lambda version: want(version, Semver).major,
    "minor": lambda version: want(version, Semver).minor,
    "patch": lambda version: want(version, Semver).patch,
    "compareTo": _compare_to,
    "isGreaterThan": lambda left, right: _compare_to(left, right) > 0,
    "isLessThan": lambda left, right: _compare_to(left, right) < 0,
    "sets.contains": _subset,
    "sets.equivalent": lambda items, others: _subset(items, others) and _subset(others, items),
    "sets.intersects": _intersects,
    "isSorted": _is_sorted,
    "sum": _sum,
    "min": _extreme("min", -1),
    "max": _extreme("max", 1),
    "slice": _slice,
    "flatten": _flatten,
    "lists.range": lambda count: list(range(want(count, int))),
    "distinct": _distinct,
    "sort": _sort,
    "reverse": lambda items: want(items, list)[::-1],
    "first": _first,
    "last": _last,
    "optional.of": Optional,
    "optional.none": lambda: NONE,
    "optional.ofNonZeroValue": _non_zero,
    "hasValue": lambda value: want(value, Optional).present,
    "value": _optional_value,
    "size": lambda value: len(want(value, str, bytes, list, dict, Domains)),
    "type": lambda value: TypeName(type_name(value)),
    "dyn": lambda value: value,
}
"""Functions by name, for all types of their arguments."""

LIST_FUNCTIONS: Mapping[str, Function] = {"indexOf": _index_of, "lastIndexOf": _last_index_of}
"""Functions of lists that have the same name as functions of strings."""


def in_range(value: int, kind: type) -> Any:
    """An integer result, if it fits into CEL's integer type; otherwise an error."""
    low, high = (0, (1 << 64) - 1) if kind is Uint else (INT64_MIN, INT64_MAX)
    if not low <= value <= high:
        raise CelError("unsigned integer overflow" if kind is Uint else "integer overflow")
    return kind(value)
