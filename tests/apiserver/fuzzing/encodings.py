"""From a JSON value to a request's body: JSON, YAML, or Kubernetes' protobuf."""

from __future__ import annotations

import base64
import json
import struct
from datetime import datetime
from random import Random
from typing import Any

from moorage.apimachinery.protobuf import MAGIC
from moorage.apimachinery.schema.wire import TypeUse
from tests.apiserver.client import GROUPS_SERVED
from tests.apiserver.fuzzing.protobuf_mutations import varint
from tests.apiserver.fuzzing.values import chance

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"


_BOTTOMLESS = "[" * 3000 + "]" * 3000


def _dumped(value: Any) -> str:
    try:
        return json.dumps(value)
    except RecursionError:
        return _BOTTOMLESS


def to_json(value: Any, random: Random) -> bytes:
    """JSON text; lone surrogates are escaped, since bytes cannot say them."""
    try:
        return json.dumps(value, ensure_ascii=chance(random, 2)).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()
    except RecursionError:
        return _BOTTOMLESS.encode()


def to_yaml(value: Any, random: Random) -> bytes:
    """YAML text: JSON is YAML too; now and then with some that is not."""
    body = to_json(value, random)
    if chance(random, 2):
        return body
    return b"# a comment\n" + "\n".join(_yaml_lines(value, "")).encode("utf-8", "replace") + b"\n"


def _yaml_lines(value: Any, indent: str) -> list[str]:
    if isinstance(value, dict) and value and len(indent) < 60:
        lines = []
        for key, item in value.items():
            inside = _yaml_lines(item, indent + "  ")
            lines += [f"{indent}{json.dumps(key)}:", *inside]
        return lines
    if isinstance(value, list) and value and len(indent) < 60:
        lines = []
        for item in value:
            lines += [f"{indent}-", *_yaml_lines(item, indent + "  ")]
        return lines
    plain = isinstance(value, str) and value.isalnum()
    return [f"{indent}{value}" if plain else f"{indent}{_dumped(value)[:2000]}"]


def to_protobuf(value: Any) -> bytes:
    """A built-in object as Go's clients send it; what does not fit its type is left out."""
    try:
        return _unknown(value)
    except RecursionError:
        return MAGIC + b"\x0a" * 3000


def _unknown(value: Any) -> bytes:
    api_version, kind = str(value.get("apiVersion", "")), str(value.get("kind", ""))
    group, _, version = api_version.rpartition("/")
    wire = GROUPS_SERVED.types.of_kind(group, version, kind)
    raw = _message(wire.name, value) if wire else b""
    meta = _field(1, _text(api_version)) + _field(2, _text(kind))
    return MAGIC + _field(1, meta) + _field(2, raw)


def _text(value: str) -> bytes:
    return value.encode("utf-8", "replace")


def _field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def _message(name: str, value: Any) -> bytes:
    if not isinstance(value, dict):
        return b""
    out: list[bytes] = []
    for known in GROUPS_SERVED.types.type(name).fields:
        item = value.get(known.name)
        if item is None or not known.number:
            continue
        if known.type.word == "list" and known.type.items:
            found = (
                [_value(known.number[-1], known.type.items, one) for one in item]
                if isinstance(item, list)
                else []
            )
        elif known.type.word == "map" and known.type.items:
            entries = item.items() if isinstance(item, dict) else ()
            found = [
                _field(known.number[-1], _field(1, _text(key)) + _value(2, known.type.items, one))
                for key, one in entries
            ]
        else:
            found = [_value(known.number[-1], known.type, item)]
        for number in reversed(known.number[:-1]):
            found = [_field(number, one) for one in found]
        out += found
    return b"".join(out)


def _value(number: int, use: TypeUse, value: Any) -> bytes:
    match use.word:
        case "string":
            return _field(number, _text(str(value)))
        case "int32" | "int64" | "bool":
            return varint(number << 3) + varint(int(value)) if isinstance(value, int) else b""
        case "double":
            return varint(number << 3 | 1) + struct.pack("<d", value) if isinstance(value, float) else b""
        case "struct":
            return _field(number, _message(use.name, value))
        case "bytes":
            return _field(number, _decoded(str(value)))
        case "Quantity":
            return _field(number, _field(1, _text(str(value))))
        case "IntOrString" if isinstance(value, int):
            return _field(number, varint(2 << 3) + varint(value))
        case "IntOrString":
            return _field(number, varint(1 << 3) + varint(1) + _field(3, _text(str(value))))
        case "Time" | "MicroTime":
            return _field(number, varint(1 << 3) + varint(_seconds(value)))
        case "FieldsV1" | "RawExtension":
            return _field(number, _field(1, _dumped(value).encode()))
    return b""


def _decoded(value: str) -> bytes:
    try:
        return base64.b64decode(_text(value))
    except ValueError:
        return _text(value)


def _seconds(value: Any) -> int:
    try:
        return int(datetime.fromisoformat(str(value)).timestamp())
    except (ValueError, OverflowError):
        return 2**62
