"""The values that server-side apply distinguishes: atomic ones, objects, and associative lists."""

from __future__ import annotations

from typing import Any

from moorage.api.manifests import Manifest
from moorage.apimachinery.schema.shape import ANYTHING, Form, Shape


def is_object(value: Any, shape: Shape) -> bool:
    """Whether a value is, or by its shape should be, an object or a map."""
    if shape.form is Form.ANY:
        return value is None or isinstance(value, dict)
    return shape.form in (Form.OBJECT, Form.MAP)


def is_item_list(shape: Shape) -> bool:
    """Whether a place holds an associative list: a set or a list with keys."""
    return shape.form is Form.LIST and not shape.atomic and bool(shape.keys or shape.is_set)


def is_declared(shape: Shape, name: str) -> bool:
    """Whether a field is one of the kind's own, not a key of a map."""
    return shape.form is Form.OBJECT and name in shape.fields


def field_shape(shape: Shape, name: str) -> Shape:
    """The shape of a field of an object."""
    return shape.fields.get(name) or shape.items or ANYTHING


def item_shape(shape: Shape) -> Shape:
    """The shape of a list's items."""
    return shape.items or ANYTHING


def object_of(value: Any) -> Manifest:
    """An object's fields; none if it is something else."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """A list's items; none if it is something else."""
    return value if isinstance(value, list) else []
