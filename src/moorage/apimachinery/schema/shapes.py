"""The shapes of the built-in types: how patches and server-side apply merge at each place."""

from __future__ import annotations

from typing import Final

from moorage.apimachinery.schema.shape import ANYTHING, SCALAR, Form, Shape
from moorage.apimachinery.schema.wire import TypeUse, WireField, WireType

_UNTYPED: Final = Shape(Form.ANY, atomic=True)
_LEAF_SHAPES: Final = {"FieldsV1": ANYTHING, "RawExtension": ANYTHING}
_of_structs: dict[WireType, Shape] = {}
"""By type, for the process, as `wire_format()` is: bounded by the types of the wire format."""


def shape_of(wire: WireType) -> Shape:
    """The shape of a type, without the options of a field."""
    shape = _of_structs.get(wire)
    if shape is None:
        if wire.untyped:
            shape = _UNTYPED
        else:
            shape = Shape(Form.OBJECT, atomic=wire.atomic, merges=True)
        # Registered before its fields: a type may contain itself.
        _of_structs[wire] = shape
        if not wire.untyped:
            shape.fields = {known.name: _field_shape(known) for known in wire.fields}
    return shape


def _use_shape(use: TypeUse) -> Shape:
    match use.word:
        case "struct":
            return shape_of(use.struct)
        case "list" if use.items:
            return Shape(Form.LIST, items=_use_shape(use.items), atomic=True)
        case "map" if use.items:
            return Shape(Form.MAP, items=_use_shape(use.items), merges=True)
    return _LEAF_SHAPES.get(use.word, SCALAR)


def _field_shape(known: WireField) -> Shape:
    if known.type.word == "list":
        return _list_shape(known)
    plain = _use_shape(known.type)
    if known.type.word not in ("struct", "map") or not (known.map_type or known.patch):
        return plain
    shape = Shape(
        plain.form,
        items=plain.items,
        atomic=plain.atomic or known.map_type == "atomic",
        merges="replace" not in known.patch,
    )
    # Shared, not copied: the fields of a recursive type may be incomplete yet.
    shape.fields = plain.fields
    return shape


def _list_shape(known: WireField) -> Shape:
    items = known.type.items
    assert items is not None
    key_defaults: dict[str, object] = {}
    if items.word == "struct" and known.list_keys:
        by_name = items.struct.by_name
        key_defaults = {
            key: by_name[key].default
            for key in known.list_keys
            if key in by_name and by_name[key].has_default
        }
    return Shape(
        Form.LIST,
        items=_use_shape(items),
        atomic=known.list_type not in ("map", "set"),
        keys=known.list_keys if known.list_type == "map" else (),
        is_set=known.list_type == "set",
        merge_key=known.merge_key,
        merges="merge" in known.patch,
        key_defaults=key_defaults,
    )
