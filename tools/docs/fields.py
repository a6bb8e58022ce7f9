"""Configurations and arguments as tables: their fields as files name them, with types and defaults."""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from moorage.api.base import Object
from moorage.config.args import PluginArgs
from moorage.config.duration import Duration
from moorage.config.manifest import encode
from tools.docs.markdown import code, entries, escaped, table
from tools.docs.syntax import field_texts

_PLAIN: Final = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "true or false",
    bytes: "base64",
    Duration: "duration",
    Any: "anything",
    type(None): "nothing",
}
_INT_BITS: Final = {(-(1 << bits - 1), (1 << bits - 1) - 1): bits for bits in (32, 64)}
_REQUIRED: Final = object()


class FieldRow(NamedTuple):
    """A field of a type that is read from files."""

    python_name: str
    name: str
    type: Any
    default: Any
    text: str


def fields_of(kind: type) -> list[FieldRow]:
    """The fields of a struct or a dataclass."""
    texts = entries(kind.__doc__) | {name: text for name, text in field_texts(kind).items() if text}
    if issubclass(kind, msgspec.Struct):
        return [
            FieldRow(each.name, each.encode_name, each.type, _default_of(each), texts.get(each.name, ""))
            for each in msgspec.structs.fields(kind)
        ]
    hints = get_type_hints(kind, include_extras=True)
    return [
        FieldRow(each.name, each.name, hints[each.name], _default_of(each), texts.get(each.name, ""))
        for each in dataclasses.fields(cast(Any, kind))
        if each.init
    ]


def _default_of(each: Any) -> Any:
    missing = (msgspec.NODEFAULT, dataclasses.MISSING)
    if each.default_factory not in missing:
        return each.default_factory()
    return _REQUIRED if each.default in missing else each.default


def has_fields(kind: Any) -> bool:
    """Whether a type has a table of its own."""
    return isinstance(kind, type) and (issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind))


def field_table(kind: type, defaults: Any = None, notes: Mapping[str, str] | None = None) -> str:
    """The table of a type's fields.

    defaults: an instance that has defaults which the fields do not say. notes: what else is said, by name.
    """
    rows = []
    for row in fields_of(kind):
        default = row.default if defaults is None else getattr(defaults, row.python_name)
        text = " ".join(filter(None, (row.text, (notes or {}).get(row.name, ""))))
        rows.append([code(row.name), escaped(type_name(row.type)), _default_text(default), escaped(text)])
    head = ["field", "type", "default", "meaning"]
    keep = [index for index in range(len(head)) if index < 3 or any(row[index] for row in rows)]
    return table([head[index] for index in keep], [[row[index] for index in keep] for row in rows])


def inner_types(kind: type) -> Iterator[type]:
    """The types with tables of their own that a type's fields have, each before those within it."""
    seen: set[type] = {kind}
    waiting = [kind]
    while waiting:
        for row in fields_of(waiting.pop(0)):
            for each in _parts(row.type):
                if has_fields(each) and each not in seen and not issubclass(each, Object):
                    seen.add(each)
                    waiting.append(each)
                    yield each


def _parts(kind: Any) -> Iterator[Any]:
    """A type, and all types in it: those of the items of a list, say."""
    yield kind
    for each in get_args(kind):
        yield from _parts(each)


def type_name(kind: Any) -> str:
    """A type in the words of people who write YAML."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _annotated(inner[0], inner[1:])
    if origin in (Union, types.UnionType):
        return " or ".join(type_name(each) for each in inner if each is not type(None))
    if origin is Literal:
        return " or ".join(f"`{each}`" for each in inner)
    if origin in (tuple, list, frozenset, set) or (
        isinstance(origin, type) and issubclass(origin, AbstractSet | list | tuple)
    ):
        return f"list of {type_name(inner[0])}"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"map of {type_name(inner[0])} to {type_name(inner[1])}"
    return _PLAIN.get(kind) or f"`{kind.__name__}`"


def _annotated(kind: Any, notes: tuple[Any, ...]) -> str:
    for note in notes:
        if isinstance(note, msgspec.Meta) and (note.ge, note.le) in _INT_BITS:
            return f"{type_name(kind)}, {_INT_BITS[int(note.ge or 0), int(note.le or 0)]} bits"
        if isinstance(note, msgspec.Meta):
            return ", ".join(filter(None, (type_name(kind), *_bounds(note))))
    return type_name(kind)


def _bounds(note: msgspec.Meta) -> Iterator[str]:
    words = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    words |= {"min_length": "length at least", "max_length": "length at most"}
    for name, word in words.items():
        if (bound := getattr(note, name)) is not None:
            yield f"{word} {bound}"


def _default_text(value: Any) -> str:
    if value is _REQUIRED:
        return "required"
    plain = encode(value)
    if isinstance(value, PluginArgs):
        plain = {key: each for key, each in plain.items() if key not in ("apiVersion", "kind")}
    if plain in (None, "", [], {}):
        return ""
    return code(plain if isinstance(plain, str) else json.dumps(plain, default=str))
