"""Fast decoding: a msgspec struct for each type, created when first needed.

A struct's field that was not sent has its zero value and is omitted when encoding, so nulls, unknown fields
and empty values are dropped at no cost. What msgspec rejects is decoded by `careful`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from moorage.apimachinery.schema.careful import read_quantity
from moorage.apimachinery.schema.timestamps import canonical_micro_time, canonical_time
from moorage.apimachinery.schema.wire import TypeUse, WireField, WireType


class _Text(type):
    """The metaclass of types with values that are decoded to plain `str`.

    msgspec lets a hook read types that it does not know, if what the hook returns is an instance. A plain
    text is the fastest thing to write again, so plain texts count as instances.
    """

    def __instancecheck__(cls, value: object) -> bool:
        return type(value) is str


class _Quantity(metaclass=_Text):
    pass


class _Time(metaclass=_Text):
    pass


class _MicroTime(metaclass=_Text):
    pass


_READERS: Final[dict[type, Callable[[Any], str]]] = {
    _Quantity: read_quantity,
    _Time: canonical_time,
    _MicroTime: canonical_micro_time,
}
_Int32 = Annotated[int, Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
_Int64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_TYPES: Final[dict[str, Any]] = {
    "string": str,
    "int32": _Int32,
    "int64": _Int64,
    "double": float,
    "bool": bool,
    "bytes": bytes,
    "Quantity": _Quantity,
    "Time": _Time,
    "MicroTime": _MicroTime,
    "IntOrString": _Int32 | str,
    "FieldsV1": Any,
    "RawExtension": Any,
}
_ZEROS: Final[dict[str, Any]] = {
    "string": "",
    "int32": 0,
    "int64": 0,
    "bool": False,
    "bytes": b"",
    "list": msgspec.field(default_factory=list),
    "map": msgspec.field(default_factory=dict),
}
_made: dict[WireType, type[Any]] = {}
"""By type, for the process, as `wire_format()` is: bounded by the types of the wire format."""


class RecursiveTypeError(Exception):
    """A type that contains itself: only `careful` decodes it."""


def read(wanted: type, value: Any) -> str:
    """The hook that msgspec calls for unknown types."""
    return _READERS[wanted](value)


def convert(value: Any, struct: type[Any]) -> Any:
    """A JSON value put through a struct; msgspec.ValidationError if it does not fit."""
    return msgspec.to_builtins(msgspec.convert(value, struct, dec_hook=read))


@cache
def struct_of(wire: WireType) -> type[Any]:
    """The msgspec struct of a type; RecursiveTypeError if there cannot be one."""
    return _Maker().struct(wire)


class _Maker:
    """Makes a type's struct and those of the types within."""

    def __init__(self) -> None:
        self._begun: list[str] = []

    def struct(self, wire: WireType) -> type[Any]:
        if wire.name in self._begun:
            raise RecursiveTypeError(wire.name)
        made = _made.get(wire)
        if made is not None:
            return made
        self._begun.append(wire.name)
        kept = [known for known in wire.fields if known.name not in wire.dropped]
        fields = [self._field(index, known) for index, known in enumerate(kept)]
        made = msgspec.defstruct(
            wire.short_name,
            fields,
            kw_only=True,
            omit_defaults=True,
            gc=False,
            # JSON names may be Python keywords or no identifiers.
            rename={f"field_{index}": known.name for index, known in enumerate(kept)},
        )
        self._begun.pop()
        _made[wire] = made
        return made

    def _field(self, index: int, known: WireField) -> tuple[str, Any, Any]:
        use = self._type(known.type)
        name = f"field_{index}"
        word = known.type.word
        if known.keeps_zero or word not in _ZEROS:
            return name, use | None, None
        # No null here: msgspec would keep it, as it is not the default. `careful` handles it.
        return name, use, _ZEROS[word]

    def _type(self, use: TypeUse) -> Any:
        if use.word == "list" and use.items:
            return list[self._type(use.items)]  # type: ignore[misc]
        if use.word == "map" and use.items:
            return dict[str, self._type(use.items)]  # type: ignore[misc]
        if use.word != "struct":
            return _TYPES[use.word]
        return Any if use.struct.untyped else self.struct(use.struct)
