"""CEL's checked syntax tree, decoded from the compiler's output.

The output is the protocol buffer `cel.expr.CheckedExpr` in an `Any`. The messages are few and fixed by CEL's
specification, so they are decoded here directly; names resolved by the checker become plain variables, and
every node has the type that the checker inferred for it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from moorage.cel.values import Uint

MAX_DEPTH: Final = 160
"""Maximum depth of a tree: each level becomes up to three nested Python calls.

The parser allows 32 levels of source text, of which macros make at most four levels each.
"""

_VARINT, _FIXED64, _BYTES = 0, 1, 2


class Type(NamedTuple):
    """A value's type according to the checker; lists, maps and optionals also have their members' types."""

    kind: str
    parameters: tuple[Type, ...] = ()
    name: str = ""

    def __str__(self) -> str:
        name = "google.protobuf.Any" if self.kind == "any" else self.name or self.kind
        return f"{name}({', '.join(map(str, self.parameters))})" if self.parameters else name


DYN: Final = Type("dyn")

_TYPE_OF_TARGET: Final = frozenset(("distinct", "reverse", "slice"))
"""Functions with a result of their target's type, which cannot be declared to the checker."""


@dataclass(frozen=True, slots=True)
class Const:
    """A literal."""

    value: Any
    type: Type = DYN


@dataclass(frozen=True, slots=True)
class Variable:
    """A name that is bound when the expression is evaluated, or the name of a type."""

    name: str
    type: Type = DYN


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`, or with `test_only` whether there is such a field."""

    operand: Node
    field: str
    test_only: bool
    type: Type = DYN


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator over its arguments; the target of a member call comes first.

    overloads: those that fit the types of the arguments; several where a type is only known when evaluating.
    """

    function: str
    arguments: tuple[Node, ...]
    member: bool
    overloads: tuple[str, ...] = ()
    type: Type = DYN


@dataclass(frozen=True, slots=True)
class MakeList:
    """A list literal; elements at `optional` are left out if they have no value."""

    elements: tuple[Node, ...]
    optional: frozenset[int]
    type: Type = DYN


@dataclass(frozen=True, slots=True)
class MakeMap:
    """A map literal of (key, value, whether the value is optional)."""

    entries: tuple[tuple[Node, Node, bool], ...]
    type: Type = DYN


@dataclass(frozen=True, slots=True)
class Comprehension:
    """A fold, which macros over lists and maps expand to."""

    variable: str
    over: Node
    accumulator: str
    start: Node
    condition: Node
    step: Node
    result: Node
    type: Type = DYN


Node = Const | Variable | Select | Call | MakeList | MakeMap | Comprehension


class TreeError(ValueError):
    """A tree with a construct that device selectors do not support."""


def read_tree(serialized: bytes) -> Node:
    """The tree of a compiled expression."""
    message = _fields(_one(_fields(serialized), 2))
    names: dict[int, str] = {}
    overloads: dict[int, tuple[str, ...]] = {}
    for identity, reference in _entries(message, 2):
        name = _one(reference, 1, b"").decode()
        if name:
            names[identity] = name
        overloads[identity] = tuple(each.decode() for each in reference.get(3, ()))
    types = {identity: _type(each) for identity, each in _entries(message, 3)}
    return _Reader(names, overloads, types).expression(_one(message, 4))


def _entries(message: _Fields, number: int) -> Iterator[tuple[int, _Fields]]:
    """The entries of a map from numbers to messages."""
    for entry in message.get(number, ()):
        parts = _fields(entry)
        yield _one(parts, 1, 0), _fields(_one(parts, 2, b""))


_PRIMITIVES = ("null", "bool", "int", "uint", "double", "string", "bytes")
_WELL_KNOWN = ("dyn", "any", "timestamp", "duration")


def _type(parts: _Fields) -> Type:
    found: tuple[int, Any] = next(((number, values[0]) for number, values in parts.items()), (1, b""))
    number, value = found
    match number:
        case 2:
            return Type("null")
        case 3 | 4:
            return Type(_PRIMITIVES[value])
        case 5:
            return Type(_WELL_KNOWN[value])
        case 6:
            return Type("list", (_type(_fields(_one(_fields(value), 1, b""))),))
        case 7:
            made = _fields(value)
            return Type("map", (_type(_fields(_one(made, 1, b""))), _type(_fields(_one(made, 2, b"")))))
        case 9:
            return Type("struct", name=value.decode())
        case 10:
            return Type("param", name=value.decode())
        case 11:
            return Type("type")
        case 14:
            made = _fields(value)
            parameters = tuple(_type(_fields(each)) for each in made.get(2, ()))
            return Type("opaque", parameters, _one(made, 1, b"").decode())
    return DYN


class _Reader:
    def __init__(
        self, names: dict[int, str], overloads: dict[int, tuple[str, ...]], types: dict[int, Type]
    ) -> None:
        self._names = names
        self._overloads = overloads
        self._types = types
        self._depth = 0

    def expression(self, data: bytes) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TreeError(f"expression recursion limit exceeded: {MAX_DEPTH}")
        node = self._read(_fields(data))
        self._depth -= 1
        return node

    def _read(self, parts: _Fields) -> Node:
        identity = _one(parts, 2, 0)
        kind = self._types.get(identity, DYN)
        select = _fields(_one(parts, 5)) if 5 in parts else None
        if select is not None:
            if identity in self._names and not _one(select, 3, 0):
                return Variable(self._names[identity], kind)
            field = _one(select, 2, b"").decode()
            return Select(self.expression(_one(select, 1)), field, bool(_one(select, 3, 0)), kind)
        if 3 in parts:
            return Const(_constant(_one(parts, 3)), kind)
        if 4 in parts:
            return Variable(self._names.get(identity) or _one(_fields(_one(parts, 4)), 1).decode(), kind)
        if 6 in parts:
            return self._call(_fields(_one(parts, 6)), self._overloads.get(identity, ()), kind)
        if 7 in parts:
            made = _fields(_one(parts, 7))
            optional = frozenset(index for packed in made.get(2, ()) for index in _indices(packed))
            return MakeList(tuple(map(self.expression, made.get(1, ()))), optional, kind)
        if 8 in parts:
            return self._map(_fields(_one(parts, 8)), kind)
        if 9 in parts:
            return self._comprehension(_fields(_one(parts, 9)), kind)
        raise TreeError("unknown kind of expression")

    def _call(self, parts: _Fields, overloads: tuple[str, ...], kind: Type) -> Node:
        arguments = tuple(map(self.expression, parts.get(3, ())))
        if 1 in parts:
            arguments = (self.expression(_one(parts, 1)), *arguments)
        function = _one(parts, 2).decode()
        kind = arguments[0].type if function in _TYPE_OF_TARGET else kind
        return Call(function, arguments, 1 in parts, overloads, kind)

    def _map(self, parts: _Fields, kind: Type) -> Node:
        if 1 in parts:
            raise TreeError("messages cannot be made in device selectors")
        entries = [_fields(entry) for entry in parts.get(2, ())]
        return MakeMap(
            tuple(
                (self.expression(_one(e, 3)), self.expression(_one(e, 4)), bool(_one(e, 5, 0)))
                for e in entries
            ),
            kind,
        )

    def _comprehension(self, parts: _Fields, kind: Type) -> Node:
        return Comprehension(
            _one(parts, 1).decode(),
            self.expression(_one(parts, 2)),
            _one(parts, 3).decode(),
            self.expression(_one(parts, 4)),
            self.expression(_one(parts, 5)),
            self.expression(_one(parts, 6)),
            self.expression(_one(parts, 7)),
            kind,
        )


def _constant(data: bytes) -> Any:
    (number, value), *_ = _walk(data)
    match number:
        case 1:
            return None
        case 2:
            return bool(value)
        case 3:
            return value - (1 << 64) if value >> 63 else value
        case 4:
            return Uint(value)
        case 5:
            return struct.unpack("<d", value)[0]
        case 6:
            return value.decode()
        case 7:
            return bytes(value)
    raise TreeError("unknown kind of literal")


# The wire format of protocol buffers

_Fields = dict[int, list[Any]]


def _fields(data: bytes) -> _Fields:
    fields: _Fields = {}
    for number, value in _walk(data):
        fields.setdefault(number, []).append(value)
    return fields


def _one(fields: _Fields, number: int, default: Any = None) -> Any:
    values = fields.get(number)
    if values is not None:
        return values[-1]
    if default is None:
        raise TreeError(f"field {number} is missing")
    return default


def _walk(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield number, value
        elif kind == _BYTES:
            size, at = _varint(data, at)
            yield number, data[at : at + size]
            at += size
        elif kind == _FIXED64:
            yield number, data[at : at + 8]
            at += 8
        else:
            raise TreeError(f"unknown wire type {kind}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _indices(packed: Any) -> list[int]:
    if isinstance(packed, int):
        return [packed]
    indices, at = [], 0
    while at < len(packed):
        index, at = _varint(packed, at)
        indices.append(index)
    return indices
