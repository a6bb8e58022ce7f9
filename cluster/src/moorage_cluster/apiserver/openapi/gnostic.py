"""OpenAPI v2 documents in protobuf, by the field numbers of gnostic's `openapi.v2.Document`.

kubectl accepts this form only. A message is a table from JSON keys to numbers and writers; keys that
begin with `x-` go to the message's vendor extensions.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

_Writer = Callable[[int, Any], bytes]
_Table = Mapping[str, tuple[int, _Writer]]


def encode_document(document: dict[str, Any]) -> bytes:
    """A whole document."""
    return _encode(document, _DOCUMENT, 16)


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _bytes(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _text(number: int, value: Any) -> bytes:
    return _bytes(number, str(value).encode())


def _texts(number: int, values: Any) -> bytes:
    return b"".join(_text(number, value) for value in values)


def _flag(number: int, value: Any) -> bytes:
    return _varint(number << 3) + _varint(int(bool(value)))


def _integer(number: int, value: Any) -> bytes:
    return _varint(number << 3) + _varint(int(value))


def _double(number: int, value: Any) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", float(value))


def _any(number: int, value: Any) -> bytes:
    """A value of any type, as YAML, of which JSON is a part."""
    return _bytes(number, _text(2, json.dumps(value) + "\n"))


def _anys(number: int, values: Any) -> bytes:
    return b"".join(_any(number, value) for value in values)


def _named(number: int, name: str, value: bytes) -> bytes:
    return _bytes(number, _text(1, name) + value)


def _encode(value: Mapping[str, Any], table: _Table, extensions: int) -> bytes:
    out = []
    for key, item in value.items():
        known = table.get(key)
        if known is not None:
            number, writer = known
            out.append(writer(number, item))
        elif key.startswith("x-"):
            out.append(_named(extensions, key, _any(2, item)))
    return b"".join(out)


def _message(table: _Table, extensions: int) -> _Writer:
    return lambda number, value: _bytes(number, _encode(value, table, extensions))


def _by_name(inner: int, writer: _Writer) -> _Writer:
    """A message that is a map: an entry has the name as 1 and the value as 2."""

    def write(number: int, values: Any) -> bytes:
        entries = (_named(inner, name, writer(2, value)) for name, value in values.items())
        return _bytes(number, b"".join(entries))

    return write


def _schema(number: int, value: Any) -> bytes:
    return _bytes(number, _encode(value, _SCHEMA, 31))


def _additional(number: int, value: Any) -> bytes:
    return _bytes(number, _schema(1, value) if isinstance(value, dict) else _flag(2, value))


def _type(number: int, value: Any) -> bytes:
    return _bytes(number, _texts(1, value if isinstance(value, list) else [value]))


def _items(number: int, value: Any) -> bytes:
    return _bytes(number, _schema(1, value))


_SCHEMA: Final[dict[str, tuple[int, _Writer]]] = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "default": (5, _any),
    "multipleOf": (6, _double),
    "maximum": (7, _double),
    "exclusiveMaximum": (8, _flag),
    "minimum": (9, _double),
    "exclusiveMinimum": (10, _flag),
    "maxLength": (11, _integer),
    "minLength": (12, _integer),
    "pattern": (13, _text),
    "maxItems": (14, _integer),
    "minItems": (15, _integer),
    "uniqueItems": (16, _flag),
    "maxProperties": (17, _integer),
    "minProperties": (18, _integer),
    "required": (19, _texts),
    "enum": (20, _anys),
    "additionalProperties": (21, _additional),
    "type": (22, _type),
    "items": (23, _items),
    "properties": (25, _by_name(1, _schema)),
    "readOnly": (27, _flag),
    "example": (30, _any),
}
_BODY: Final = {
    "description": (1, _text),
    "name": (2, _text),
    "in": (3, _text),
    "required": (4, _flag),
    "schema": (5, _schema),
}
_QUERY: Final = {
    "required": (1, _flag),
    "in": (2, _text),
    "description": (3, _text),
    "name": (4, _text),
    "type": (6, _text),
    "uniqueItems": (20, _flag),
}
_PATH: Final = {
    "required": (1, _flag),
    "in": (2, _text),
    "description": (3, _text),
    "name": (4, _text),
    "type": (5, _text),
    "uniqueItems": (19, _flag),
}


def _parameters(number: int, values: Any) -> bytes:
    """Each is a choice of a choice: parameter, then body or not, then the place."""
    out = []
    for value in values:
        if value["in"] == "body":
            choice = _bytes(1, _encode(value, _BODY, 6))
        elif value["in"] == "path":
            choice = _bytes(2, _bytes(4, _encode(value, _PATH, 22)))
        else:
            choice = _bytes(2, _bytes(3, _encode(value, _QUERY, 23)))
        out.append(_bytes(number, _bytes(1, choice)))
    return b"".join(out)


def _response(number: int, value: Any) -> bytes:
    said = _text(1, value["description"])
    if "schema" in value:
        said += _bytes(2, _schema(1, value["schema"]))
    return _bytes(number, _bytes(1, said))


def _requirements(number: int, values: Any) -> bytes:
    write = _by_name(1, lambda inner, scopes: _bytes(inner, _texts(1, scopes)))
    return b"".join(write(number, value) for value in values)


_OPERATION: Final = {
    "tags": (1, _texts),
    "summary": (2, _text),
    "description": (3, _text),
    "operationId": (5, _text),
    "produces": (6, _texts),
    "consumes": (7, _texts),
    "parameters": (8, _parameters),
    "responses": (9, _by_name(1, _response)),
}
_operation: Final = _message(_OPERATION, 13)
_PATH_ITEM: Final = {
    "get": (2, _operation),
    "put": (3, _operation),
    "post": (4, _operation),
    "delete": (5, _operation),
    "patch": (8, _operation),
    "parameters": (9, _parameters),
}
_API_KEY: Final = {"type": (1, _text), "name": (2, _text), "in": (3, _text), "description": (4, _text)}
_DOCUMENT: Final[dict[str, tuple[int, _Writer]]] = {
    "swagger": (1, _text),
    "info": (2, _message({"title": (1, _text), "version": (2, _text), "description": (3, _text)}, 7)),
    "paths": (8, _by_name(2, _message(_PATH_ITEM, 10))),
    "definitions": (9, _by_name(1, _schema)),
    "security": (12, _requirements),
    "securityDefinitions": (
        13,
        _by_name(1, lambda number, value: _bytes(number, _bytes(2, _encode(value, _API_KEY, 5)))),
    ),
}
