"""The schemas of the built-in kinds: decoding what clients send, and the shape that patches merge by."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import msgspec

from moorage.apimachinery.schema import fast
from moorage.apimachinery.schema.base import Decoded
from moorage.apimachinery.schema.careful import WrongTypeError, decode_carefully
from moorage.apimachinery.schema.decoding import cannot_be_handled
from moorage.apimachinery.schema.shape import Shape
from moorage.apimachinery.schema.shapes import shape_of
from moorage.apimachinery.schema.wire import TypeUse, WireFormat, WireType, wire_format


class BuiltinSchema:
    """The schema of one built-in kind."""

    def __init__(self, group: str, version: str, kind: str, wire: WireType) -> None:
        self.group = group
        self.version = version
        self.kind = kind
        self.wire = wire

    @cached_property
    def shape(self) -> Shape:
        """How patches merge."""
        return shape_of(self.wire)

    @cached_property
    def _struct(self) -> type[Any] | None:
        try:
            return fast.struct_of(self.wire)
        except fast.RecursiveTypeError:
            return None

    def decode(self, value: Any) -> Decoded:
        """A JSON value as an object of this kind; ApiError (400) if a value has the wrong type.

        Nulls and unknown fields are dropped, and so are empty values where Kubernetes treats them as
        absent; quantities, times and base64 are in canonical form.
        """
        struct = self._struct
        if struct is None:
            return self._decode_carefully(value)
        try:
            obj = fast.convert(value, struct)
        except (msgspec.ValidationError, RecursionError):
            return self._decode_carefully(value)
        if obj == value:
            return Decoded(obj, [])
        unknown: list[str] = []
        _gather_unknown(self.wire, value, obj, "", unknown)
        return Decoded(obj, unknown)

    def _decode_carefully(self, value: Any) -> Decoded:
        try:
            return decode_carefully(self.wire, value)
        except WrongTypeError as problem:
            raise cannot_be_handled(self.kind, self.version, str(problem)) from None
        except RecursionError:
            raise cannot_be_handled(self.kind, self.version, "exceeded max depth") from None


def _gather_unknown(wire: WireType, value: Any, kept: Any, path: str, unknown: list[str]) -> None:
    """Add the paths of unknown fields, searching only where the decoded value differs."""
    prefix = f"{path}." if path else ""
    known = wire.by_name
    for name, item in value.items():
        field = known.get(name)
        if field is None:
            unknown.append(prefix + name)
        elif type(item) is dict or type(item) is list:
            same = kept.get(name)
            # A known field that is left out was empty.
            if same is not None and same != item:
                _gather_in(field.type, item, same, prefix + name, unknown)


def _gather_in(use: TypeUse, value: Any, kept: Any, path: str, unknown: list[str]) -> None:
    if use.word == "struct":
        wire = use.struct
        if not wire.untyped:
            _gather_unknown(wire, value, kept, path, unknown)
    elif use.word == "list" and use.items:
        for index, (item, same) in enumerate(zip(value, kept, strict=True)):
            if item != same:
                _gather_in(use.items, item, same, f"{path}[{index}]", unknown)
    elif use.word == "map" and use.items:
        for key, item in value.items():
            if item != kept[key]:
                _gather_in(use.items, item, kept[key], f"{path}.{key}", unknown)


@lru_cache(maxsize=1024)  # bounded, as unknown kinds are cached, too
def schema_of(group: str, version: str, kind: str, types: WireFormat | None = None) -> BuiltinSchema | None:
    """The schema of a built-in kind, None if there is none; `types` None: in the default version."""
    wire = (types or wire_format()).of_kind(group, version, kind)
    return BuiltinSchema(group, version, kind, wire) if wire else None


def known_schema(api_version: str, kind: str) -> BuiltinSchema:
    """The schema of a built-in kind that exists."""
    group, _, version = api_version.rpartition("/")
    schema = schema_of(group, version, kind)
    if schema is None:
        raise LookupError(f"{api_version} {kind}")
    return schema
