"""The shape of an object: what is at each place in it, and how patches merge there.

Built-in kinds get their shapes from `schema`, custom ones from their CustomResourceDefinition (`extensions`).
Patches and server-side apply depend on nothing else of a kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto


class Form(Enum):
    """What kind of value is at a place."""

    SCALAR = auto()
    OBJECT = auto()
    """Fields with names of their own."""
    MAP = auto()
    """Any keys, values of one shape."""
    LIST = auto()
    ANY = auto()
    """Any JSON value; merged like a map when it is one (custom resources), owned leaf by leaf."""


@dataclass(slots=True, eq=False)
class Shape:
    """One place in an object.

    Not frozen: a recursive type's shape contains itself.
    """

    form: Form
    fields: Mapping[str, Shape] = field(default_factory=dict)
    """OBJECT: the shapes of its fields."""
    items: Shape | None = None
    """MAP, LIST: the shape of each value."""
    atomic: bool = False
    """Replaced and owned as a whole: a scalar-like struct or map, or a list that is neither set nor map."""
    keys: tuple[str, ...] = ()
    """LIST of list-type map: the fields that together identify an item. Server-side apply merges by them."""
    is_set: bool = False
    """LIST of list-type set: scalars are unique."""
    merge_key: str = ""
    """LIST: the one field by which a strategic merge patch finds an item (patchMergeKey)."""
    merges: bool = False
    """Whether a strategic merge patch merges here (patchStrategy merge) instead of replacing."""
    key_defaults: Mapping[str, object] = field(default_factory=dict)
    """LIST of list-type map: the defaults of key fields that an item omits (a port's protocol)."""


SCALAR = Shape(Form.SCALAR)
ANYTHING = Shape(Form.ANY)
