"""CEL's values in Python, their equality, and errors of evaluation.

bool, int, float, str, bytes, list, dict and None are CEL's own; quantities and versions are Kubernetes'. A
value's type is its exact Python type: a Quantity is not an int here, and True is not 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from moorage.api.quantity import Quantity
from moorage.cel.semver import Semver

NO_SUCH_OVERLOAD = "no such overload"


class CelError(Exception):
    """An expression has no value; the message is kube-scheduler's."""


def no_such_overload() -> CelError:
    """A function or operator was given values of types it does not take."""
    return CelError(NO_SUCH_OVERLOAD)


class Uint(int):
    """CEL's unsigned integer."""

    __slots__ = ()


class TypeName(str):
    """A type, as a value."""

    __slots__ = ()


class Optional:
    """A value that may be absent."""

    __slots__ = ("present", "value")

    def __init__(self, value: Any = None, *, present: bool = True) -> None:
        self.value = value
        self.present = present


NONE = Optional(present=False)


class Domains(dict[str, Any]):
    """Attributes or capacities by domain. Looking up a missing domain returns an empty map."""

    def __missing__(self, key: str) -> Mapping[str, Any]:
        return {}


TYPE_NAMES: Mapping[type, str] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
    Domains: "map",
    Quantity: "kubernetes.Quantity",
    Semver: "kubernetes.Semver",
    Optional: "optional_type",
    TypeName: "type",
    datetime: "google.protobuf.Timestamp",
    timedelta: "google.protobuf.Duration",
}

NUMBERS = frozenset((int, Uint, float))
_OPAQUE = frozenset((Quantity, Semver))


def type_name(value: Any) -> str:
    """CEL's name for a value's type."""
    return TYPE_NAMES.get(type(value), type(value).__name__)


def equal(left: Any, right: Any) -> bool:
    """CEL's `==`: numbers by value across types, all else only within a type.

    Comparing Kubernetes' own types with others is an error.
    """
    kind, other = type(left), type(right)
    if left is None or right is None:
        return left is right
    if kind in NUMBERS and other in NUMBERS:
        return bool(left == right)
    if kind in _OPAQUE:
        if kind is not other:
            raise no_such_overload()
        return bool(left == right)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_not_unequal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return len(left) == len(right) and all(
            key in right and _not_unequal(value, right[key]) for key, value in left.items()
        )
    if kind is Optional and other is Optional:
        return bool(left.present == right.present and (not left.present or equal(left.value, right.value)))
    return kind is other and bool(left == right)


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal; false if comparing them is an error."""
    try:
        return equal(left, right)
    except CelError:
        return False


def _not_unequal(left: Any, right: Any) -> bool:
    """As kube-scheduler's CEL compares members of lists and maps: errors count as equal."""
    try:
        return equal(left, right)
    except CelError:
        return True
