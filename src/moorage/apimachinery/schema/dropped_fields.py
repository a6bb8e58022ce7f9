"""Fields that decoding drops because their feature gates are off, in objects that had them before."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from moorage.api.manifests import Manifest
from moorage.apimachinery.schema.base import KindSchema
from moorage.apimachinery.schema.builtin import BuiltinSchema
from moorage.apimachinery.schema.wire import WireType


def keep_dropped_fields(schema: KindSchema, obj: Manifest, old: Manifest) -> None:
    """Let an update keep such fields of the object that it updates; those of items of lists are dropped."""
    if not isinstance(schema, BuiltinSchema):
        return
    for *way, name in _dropped(schema.wire):
        new, before = obj, old
        for step in way:
            new, before = new.get(step) or {}, before.get(step) or {}
        if name in before and new:
            new[name] = before[name]


@cache
def _dropped(wire: WireType) -> tuple[tuple[str, ...], ...]:
    return tuple(_paths(wire, ()))


def _paths(wire: WireType, above: tuple[WireType, ...]) -> Iterator[tuple[str, ...]]:
    """The paths of the dropped fields of a type that are not in lists or maps."""
    if wire in above:
        return
    for field in wire.fields:
        if field.name in wire.dropped:
            yield (field.name,)
        elif field.type.word == "struct":
            for rest in _paths(field.type.struct, (*above, wire)):
                yield (field.name, *rest)
