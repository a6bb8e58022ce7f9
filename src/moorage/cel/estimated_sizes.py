"""The sizes of values in an expression: by their type, or by their path from the variable `device`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from moorage.cel.ranges import ONE, UNKNOWN, Range
from moorage.cel.tree import Node, Type

_DOMAIN_SIZE, _NAME_SIZE, _DRIVER_SIZE, _VALUE_SIZE, _MAP_SIZE = 63, 32, 63, 64, 32
"""Characters of names and values, and entries of a map, in a device's description at most."""


class ElementSizes(NamedTuple):
    """The sizes of a list's or map's members."""

    is_list: bool
    key: Range
    value: Range


@dataclass(frozen=True, slots=True)
class Estimate:
    """A node's cost and size. `size` and `entry` are None, and `path` is empty, where they are unknown."""

    node: Node
    cost: Range
    size: Range | None = None
    entry: ElementSizes | None = None
    path: tuple[str, ...] = ()

    @property
    def extent(self) -> Range:
        """The size, or the range of all sizes if it is unknown."""
        return UNKNOWN if self.size is None else self.size


def type_size(kind: Type) -> Range | None:
    """The size of any value of a type; None if they differ."""
    if kind.kind in ("bool", "double", "duration", "int", "timestamp", "uint"):
        return ONE
    if kind.kind == "opaque" and kind.name == "optional_type" and kind.parameters:
        return type_size(kind.parameters[0])
    return None


def path_size(path: tuple[str, ...]) -> Range | None:
    """The size of a part of a device; None for a path to anything else."""
    high = _LIMITS.get(path)
    if high is None and path[:2] == ("device", "attributes") and len(path) == 4 and path[2] == "@values":
        high = _VALUE_SIZE
    return None if high is None else Range(0, high)


_LIMITS: Final[Mapping[tuple[str, ...], int]] = {
    ("device", "driver"): _DRIVER_SIZE,
    ("device", "allowMultipleAllocations"): 1,
    **{
        ("device", part, *steps): high
        for part in ("attributes", "capacity")
        for steps, high in (
            ((), _MAP_SIZE),
            (("@keys",), _DOMAIN_SIZE),
            (("@values",), _MAP_SIZE),
            (("@values", "@keys"), _NAME_SIZE),
        )
    },
}
