"""Kubernetes' protobuf bodies, decoded into JSON values.

Go's clients send objects as `k8s`, a zero byte, and a message with the kind and the object's own
message. The fields of that message are found by their numbers in the wire format. The result is passed to the
kind's schema like any JSON body: only what protobuf encodes differently (times, quantities, raw JSON,
embedded structs) is translated here.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

from moorage.api.manifests import Manifest, micro_timestamp, timestamp
from moorage.apimachinery import errors
from moorage.apimachinery.schema.wire import TypeUse, WireField, WireFormat, WireType

MAGIC: Final = b"k8s\x00"

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MASK_64: Final = (1 << 64) - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_WRAPPED_LISTS: Final = ("ExtraValue", "Verbs")
"""Go's named lists that are messages of their own, with the items as field 1."""
_MAX_DEPTH: Final = 100


class _MalformedError(Exception):
    """Malformed bytes."""


def decode_protobuf(body: bytes, types: WireFormat) -> Manifest:
    """The object in a protobuf body, with apiVersion and kind; ApiError (400) if it cannot be read."""
    if not body.startswith(MAGIC):
        raise errors.bad_request(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    try:
        return _unknown(memoryview(body)[len(MAGIC) :], types)
    except _MalformedError as problem:
        raise errors.bad_request(f"the protobuf body cannot be read: {problem}") from None


def _unknown(data: memoryview, types: WireFormat) -> Manifest:
    """What Go calls runtime.Unknown: the kind, and the object as bytes."""
    api_version = kind = ""
    raw = memoryview(b"")
    for number, wire_type, value in _fields(data):
        if wire_type != _BYTES:
            continue
        if number == 1:
            for inner, inner_type, text in _fields(value):
                if inner_type == _BYTES and inner == 1:
                    api_version = _text(text)
                elif inner_type == _BYTES and inner == 2:
                    kind = _text(text)
        elif number == 2:
            raw = value
    group, _, version = api_version.rpartition("/")
    wire = types.of_kind(group, version, kind)
    if wire is None:
        raise errors.bad_request(f'no kind "{kind}" is registered for version "{api_version}"')
    return {"apiVersion": api_version, "kind": kind, **_message(wire, raw, 0)}


def _fields(data: memoryview) -> Iterator[tuple[int, int, Any]]:
    """The fields of a message: number, wire type, and an integer or the bytes."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        number, wire_type = key >> 3, key & 7
        value: Any
        if wire_type == _BYTES:
            length, at = _varint(data, at)
            value, at = data[at : at + length], at + length
        elif wire_type == _VARINT:
            value, at = _varint(data, at)
        elif wire_type == _FIXED64:
            value, at = data[at : at + 8], at + 8
        elif wire_type == _FIXED32:
            value, at = data[at : at + 4], at + 4
        else:
            raise _MalformedError(f"wire type {wire_type} is not supported")
        if at > end or number == 0:
            raise _MalformedError("unexpected end of the message" if number else "a field has number 0")
        yield number, wire_type, value


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise _MalformedError("a number does not end")
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & _MASK_64, at
        shift += 7


def _text(data: memoryview) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        raise _MalformedError("a text is not UTF-8") from None


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


class _Numbers:
    """The fields of a message by number; an embedded message's are one level deeper."""

    def __init__(self) -> None:
        self.fields: dict[int, WireField] = {}
        self.embedded: dict[int, _Numbers] = {}


@cache
def _numbers_of(wire: WireType) -> _Numbers:
    root = _Numbers()
    for known in wire.fields:
        if not known.number:
            continue
        table = root
        for number in known.number[:-1]:
            table = table.embedded.setdefault(number, _Numbers())
        table.fields[known.number[-1]] = known
    return root


def _message(wire: WireType, data: memoryview, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise _MalformedError("messages are nested too deeply")
    if wire.untyped:
        return _untyped(wire, data, depth)
    found: Manifest = {}
    _read_into(found, _numbers_of(wire), data, depth)
    return found


def _read_into(found: Manifest, table: _Numbers, data: memoryview, depth: int) -> None:
    for number, wire_type, value in _fields(data):
        known = table.fields.get(number)
        if known is None:
            inside = table.embedded.get(number)
            if inside is not None and wire_type == _BYTES:
                _read_into(found, inside, value, depth)
            continue
        use = known.type
        if use.word == "list" and use.items:
            items = found.setdefault(known.name, [])
            if known.go.endswith(_WRAPPED_LISTS):
                items.extend(_wrapped_list(wire_type, value))
            else:
                items.extend(_items(use.items, wire_type, value, depth))
        elif use.word == "map" and use.items:
            key, item = _entry(use.items, known, wire_type, value, depth)
            found.setdefault(known.name, {})[key] = item
        else:
            read = _value(use, wire_type, value, depth)
            if read is not None:
                found[known.name] = read


def _wrapped_list(wire_type: int, value: Any) -> list[str]:
    _expect(wire_type, _BYTES)
    return [_text(item) for number, inner_type, item in _fields(value) if (number, inner_type) == (1, _BYTES)]


def _items(items: TypeUse, wire_type: int, value: Any, depth: int) -> Iterator[Any]:
    """One item, or several numbers packed together."""
    if wire_type == _BYTES and items.word in ("int32", "int64", "bool"):
        at = 0
        while at < len(value):
            number, at = _varint(value, at)
            yield _value(items, _VARINT, number, depth)
    elif wire_type == _BYTES and items.word == "double":
        for at in range(0, len(value), 8):
            yield _value(items, _FIXED64, value[at : at + 8], depth)
    else:
        yield _value(items, wire_type, value, depth)


def _entry(items: TypeUse, known: WireField, wire_type: int, value: Any, depth: int) -> tuple[str, Any]:
    _expect(wire_type, _BYTES)
    key, item = "", None
    for number, inner_type, inner in _fields(value):
        if number == 1:
            _expect(inner_type, _BYTES)
            key = _text(inner)
        elif number == 2:
            if known.go.endswith(_WRAPPED_LISTS):
                item = _wrapped_list(inner_type, inner)
            else:
                item = _value(items, inner_type, inner, depth)
    return key, item


def _expect(wire_type: int, wanted: int) -> None:
    if wire_type != wanted:
        raise _MalformedError(f"wire type {wire_type} where {wanted} is expected")


def _value(use: TypeUse, wire_type: int, value: Any, depth: int) -> Any:
    match use.word:
        case "string":
            _expect(wire_type, _BYTES)
            return _text(value)
        case "struct":
            _expect(wire_type, _BYTES)
            return _message(use.struct, value, depth + 1)
        case "int32" | "int64":
            _expect(wire_type, _VARINT)
            return _signed(value)
        case "bool":
            _expect(wire_type, _VARINT)
            return value != 0
        case "bytes":
            _expect(wire_type, _BYTES)
            return base64.b64encode(value).decode()
        case "double":
            _expect(wire_type, _FIXED64)
            if len(value) != 8:
                raise _MalformedError("unexpected end of the message")
            return struct.unpack("<d", value)[0]
        case word if word in _LEAVES:
            _expect(wire_type, _BYTES)
            return _LEAVES[word]({number: (kind, inner) for number, kind, inner in _fields(value)})
    raise _MalformedError(f"no {use.word} is expected in a message")


_Read = dict[int, tuple[int, Any]]


def _bytes_at(read: _Read, number: int) -> memoryview:
    wire_type, value = read.get(number, (_BYTES, memoryview(b"")))
    _expect(wire_type, _BYTES)
    return memoryview(value)


def _integer_at(read: _Read, number: int) -> int:
    wire_type, value = read.get(number, (_VARINT, 0))
    _expect(wire_type, _VARINT)
    return _signed(value)


def _quantity(read: _Read) -> str:
    return _text(_bytes_at(read, 1)) or "0"


def _moment(read: _Read) -> datetime | None:
    if not read:
        return None
    try:
        return _EPOCH + timedelta(seconds=_integer_at(read, 1), microseconds=_integer_at(read, 2) // 1000)
    except OverflowError:
        raise _MalformedError("a time is out of range") from None


def _time(read: _Read) -> str | None:
    moment = _moment(read)
    return timestamp(moment) if moment else None


def _micro_time(read: _Read) -> str | None:
    moment = _moment(read)
    return micro_timestamp(moment) if moment else None


def _int_or_string(read: _Read) -> int | str:
    return _text(_bytes_at(read, 3)) if _integer_at(read, 1) == 1 else _integer_at(read, 2)


def _raw_json(read: _Read) -> Any:
    raw = _bytes_at(read, 1)
    if not raw:
        return None
    try:
        return json.loads(bytes(raw))
    except (ValueError, RecursionError):
        raise _MalformedError("a raw value is not JSON") from None


_LEAVES: Final[dict[str, Callable[[_Read], Any]]] = {
    "Quantity": _quantity,
    "Time": _time,
    "MicroTime": _micro_time,
    "IntOrString": _int_or_string,
    "FieldsV1": _raw_json,
    "RawExtension": _raw_json,
}


def _untyped(wire: WireType, data: memoryview, depth: int) -> Any:
    """A value of a custom resource's schema that may be of several types."""
    schema = TypeUse("struct", None, f"{wire.package}.JSONSchemaProps", wire.types).struct
    fields = list(_fields(data))
    match wire.short_name:
        case "JSON":
            return _raw_json({number: (kind, inner) for number, kind, inner in fields})
        case "JSONSchemaPropsOrBool":
            schemas = [inner for number, kind, inner in fields if (number, kind) == (2, _BYTES)]
            if schemas:
                return _message(schema, schemas[-1], depth + 1)
            return any(inner for number, kind, inner in fields if (number, kind) == (1, _VARINT))
    one = [inner for number, kind, inner in fields if (number, kind) == (1, _BYTES)]
    several = [inner for number, kind, inner in fields if (number, kind) == (2, _BYTES)]
    if one:
        return _message(schema, one[-1], depth + 1)
    if wire.short_name == "JSONSchemaPropsOrArray":
        return [_message(schema, item, depth + 1) for item in several]
    return [_text(item) for item in several]
