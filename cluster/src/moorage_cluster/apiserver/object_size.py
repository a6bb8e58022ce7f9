"""The maximum size of an object: that of a request to etcd, 1.5 MiB.

etcd holds built-in kinds as protobuf, which is smaller than JSON, and custom kinds as JSON. An object with
JSON below the limit is stored without measuring; for a larger one the size of its protobuf form is computed
from the numbers and types of its fields. It is accurate to within some ten bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec

from moorage.api.manifests import Manifest
from moorage.apimachinery.errors import ApiError
from moorage.apimachinery.schema.wire import PRIMITIVES, TypeUse, WireField, WireFormat, WireType

MAX_REQUEST_BYTES: Final = 1536 * 1024
"""`--max-request-bytes` of etcd, by default."""
_MAX_MESSAGE_BYTES: Final = 2 * 1024 * 1024
"""Maximum bytes of a request that kube-apiserver's etcd client sends."""
_TRANSACTION_BYTES: Final = 112
"""Bytes of a request to etcd in addition to the object: the key twice, a condition, the kind."""
ALWAYS_STORABLE_BYTES: Final = MAX_REQUEST_BYTES - _TRANSACTION_BYTES
"""Bytes of JSON up to which an object need not be measured."""
_TIME_BYTES: Final = 8


def check_size(obj: Manifest, raw: bytes, types: WireFormat) -> None:
    """ApiError (500, as from a real API server) if an object with the encoded form `raw` is too large."""
    size = _stored_bytes(obj, raw, types) + _TRANSACTION_BYTES
    if size > _MAX_MESSAGE_BYTES:
        why = f"trying to send message larger than max ({size} vs. {_MAX_MESSAGE_BYTES})"
        raise _refusal(f"rpc error: code = ResourceExhausted desc = {why}")
    if size > MAX_REQUEST_BYTES:
        raise _refusal("etcdserver: request is too large")


def _refusal(message: str) -> ApiError:
    return ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "", message)


def _stored_bytes(obj: Manifest, raw: bytes, types: WireFormat) -> int:
    group, _, version = obj["apiVersion"].rpartition("/")
    wire = types.of_kind(group, version, obj["kind"])
    return len(raw) if wire is None else _message_bytes(wire, obj)


def _message_bytes(wire: WireType, value: Any) -> int:
    if wire.untyped or not isinstance(value, Mapping):
        return _json_bytes(value)
    return sum(_field_bytes(field, value.get(field.name)) for field in wire.fields if field.number)


def _field_bytes(field: WireField, value: Any) -> int:
    use, tag = field.type, _number_bytes(field.number[-1] << 3)
    if value is None:
        # Go writes zero values except those of pointers, which are the fields that keep zeros in JSON.
        return tag + 1 if use.word in PRIMITIVES and not field.keeps_zero else 0
    if use.word == "list" and use.items:
        return _items_bytes(use.items, value, tag)
    if use.word == "map" and use.items:
        return _items_bytes(use.items, value.values(), 1) + sum(
            tag + 3 + _delimited(_text_bytes(key)) for key in value
        )
    return tag + _value_bytes(use, value)


def _items_bytes(items: TypeUse, values: Sequence[Any], tag: int) -> int:
    return tag * len(values) + sum(_value_bytes(items, value) for value in values)


def _value_bytes(use: TypeUse, value: Any) -> int:
    """The bytes of a value, with its length where protobuf writes one."""
    if use.word == "struct":
        return _delimited(_message_bytes(use.struct, value))
    if use.word in ("list", "map"):
        return _delimited(_json_bytes(value))
    return _LEAF_BYTES[use.word](value)


def _delimited(length: int) -> int:
    return _number_bytes(length) + length


def _number_bytes(number: int) -> int:
    """The length of a varint; negative ones have all their 64 bits."""
    return max(1, (number.bit_length() + 6) // 7) if number >= 0 else 10


def _text_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _json_bytes(value: Any) -> int:
    return len(msgspec.json.encode(value))


def _int_or_string_bytes(value: int | str) -> int:
    text, number = (value, 0) if isinstance(value, str) else ("", value)
    return _delimited(4 + _number_bytes(number) + _delimited(_text_bytes(text)))


_LEAF_BYTES: Final[dict[str, Callable[[Any], int]]] = {
    "string": lambda text: _delimited(_text_bytes(text)),
    "bytes": lambda text: _delimited(len(text) * 3 // 4),
    "int32": _number_bytes,
    "int64": _number_bytes,
    "bool": lambda _: 1,
    "double": lambda _: 8,
    "Quantity": lambda text: _delimited(1 + _delimited(len(str(text)))),
    "Time": lambda _: _delimited(_TIME_BYTES),
    "MicroTime": lambda _: _delimited(_TIME_BYTES),
    "IntOrString": _int_or_string_bytes,
    "FieldsV1": lambda value: _delimited(1 + _delimited(_json_bytes(value))),
    "RawExtension": lambda value: _delimited(1 + _delimited(_json_bytes(value))),
}
