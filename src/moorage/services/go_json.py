"""JSON decoding as in Go: case-insensitive names, null as absent, Go's error messages.

Extenders are written in any language, and their responses have only ever been decoded by Go.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

T = TypeVar("T")

_KINDS: Final = {
    ord('"'): "string",
    ord("{"): "object",
    ord("["): "array",
    ord("t"): "bool",
    ord("f"): "bool",
}
_SPACE: Final = b" \t\r\n"
_NULL: Final = b"null"
_BEGINNINGS: Final = b'{["tfn-0123456789'
_INT64: Final = 1 << 63

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_integer = msgspec.json.Decoder(int, strict=True).decode
_text = msgspec.json.Decoder(str).decode
_whole = msgspec.json.Decoder(msgspec.Raw).decode


class GoJsonError(ValueError):
    """Invalid JSON; the message is Go's."""


def whole_value(raw: bytes) -> bytes:
    """The first JSON value of a text; the rest is ignored."""
    if not raw.strip(_SPACE):
        raise GoJsonError("EOF")
    first = raw.lstrip(_SPACE)[0]
    if first not in _BEGINNINGS:
        raise GoJsonError(f"invalid character {chr(first)!r} looking for beginning of value")
    try:
        return bytes(_whole(raw))
    except msgspec.DecodeError:
        pass
    try:
        text = raw.decode().lstrip(_SPACE.decode())
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise GoJsonError(f"invalid JSON: {error}") from None
    return text[:end].encode()


def is_null(raw: bytes | msgspec.Raw) -> bool:
    """Whether a value is null, which Go treats as absent."""
    return bytes(raw).strip(_SPACE) == _NULL


def items(raw: bytes, type_name: str) -> list[bytes]:
    """The elements of a JSON array."""
    value = whole_value(raw)
    if is_null(value):
        return []
    try:
        return [bytes(item) for item in _items(value)]
    except msgspec.ValidationError:
        raise GoJsonError(
            f"json: cannot unmarshal {_kind(value)} into Go value of type {type_name}"
        ) from None


class JsonFields:
    """A JSON object that is decoded into a Go struct of a given name."""

    def __init__(self, raw: bytes | msgspec.Raw, struct: str, where: str = "") -> None:
        self._struct = struct
        self._fields: dict[str, bytes] = {}
        if is_null(raw):
            return
        try:
            found = _fields(raw)
        except msgspec.ValidationError:
            place = where or f"value of type v1.{struct}"
            raise GoJsonError(f"json: cannot unmarshal {_kind(bytes(raw))} into Go {place}") from None
        self._fields = {name.lower(): bytes(value) for name, value in found.items() if not is_null(value)}

    @classmethod
    def of(cls, raw: bytes, struct: str) -> JsonFields:
        """Decode a JSON object."""
        return cls(whole_value(raw), struct)

    def raw(self, name: str) -> bytes | None:
        """The undecoded value of a field; None if absent."""
        return self._fields.get(name.lower())

    def text(self, name: str) -> str:
        """A string; empty if absent."""
        return self._read(name, _text, "string", "")

    def integer(self, name: str) -> int:
        """A 64-bit integer; 0 if absent."""
        value = self._read(name, _integer, "int64", 0)
        if not -_INT64 <= value < _INT64:
            raise self._wrong(name, "int64")
        return value

    def texts(self, name: str) -> list[str] | None:
        """A list of strings; None if absent."""

        def read(raw: bytes) -> list[str]:
            return ["" if is_null(item) else _text(item) for item in _items(raw)]

        return self._read(name, read, "[]string", None)

    def text_map(self, name: str, type_name: str) -> dict[str, str]:
        """A map of strings; empty if absent."""

        def read(raw: bytes) -> dict[str, str]:
            return {key: "" if is_null(value) else _text(value) for key, value in _fields(raw).items()}

        return self._read(name, read, type_name, {})

    def list(self, name: str, type_name: str) -> list[bytes]:
        """The undecoded elements of a list; empty if absent."""
        return [bytes(item) for item in self._read(name, _items, type_name, [])]

    def map(self, name: str, type_name: str) -> dict[str, bytes]:
        """The undecoded values of a map; empty if absent."""
        found: dict[str, msgspec.Raw] = self._read(name, _fields, type_name, {})
        return {key: bytes(value) for key, value in found.items()}

    def object(self, name: str, struct: str) -> JsonFields | None:
        """A nested struct; None if absent."""
        raw = self.raw(name)
        return None if raw is None else JsonFields(raw, struct, self._field(name, f"v1.{struct}"))

    def _read(self, name: str, read: Callable[[bytes], Any], type_name: str, default: T) -> Any | T:
        raw = self.raw(name)
        if raw is None:
            return default
        try:
            return read(raw)
        except msgspec.DecodeError:
            raise self._wrong(name, type_name) from None

    def _wrong(self, name: str, type_name: str) -> GoJsonError:
        raw = self.raw(name) or b""
        return GoJsonError(f"json: cannot unmarshal {_kind(raw)} into Go {self._field(name, type_name)}")

    def _field(self, name: str, type_name: str) -> str:
        return f"struct field {self._struct}.{name} of type {type_name}"


def _kind(raw: bytes) -> str:
    value = raw.strip(_SPACE)
    return _KINDS.get(value[0], f"number {value.decode()}")
