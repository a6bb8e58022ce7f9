"""Decoding one value at a time: slower than `fast`, but with complete error messages.

This is the reference: it decides what a null in a list means, finds unknown fields, and reports type errors
as Kubernetes does, with the Go struct, the path of JSON names and the Go type. Where `fast` succeeds, it must
agree with this.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Final, NamedTuple, NoReturn

from moorage.api.manifests import copy
from moorage.api.text import path_key
from moorage.apimachinery.schema.base import Decoded
from moorage.apimachinery.schema.quantities import WRONG_FORMAT, canonical_quantity
from moorage.apimachinery.schema.timestamps import canonical_micro_time, canonical_time
from moorage.apimachinery.schema.wire import ZERO_VALUES, TypeUse, WireType

_INT_BITS: Final = {"int32": 31, "int64": 63}

_NOT_BASE64: Final = re.compile(r"[^A-Za-z0-9+/\r\n]")
_ZERO_ITEMS: Final[dict[str, Any]] = {**ZERO_VALUES, "Quantity": "0", "IntOrString": 0}
_NOTHING: Final = object()
"""What a value of the wrong type is decoded to."""


class WrongTypeError(Exception):
    """A value of the wrong type; the message is Go's."""


class _Place(NamedTuple):
    """The location of a value, as in Go's messages."""

    struct: str
    fields: tuple[str, ...]

    def mismatch(self, found: str, go_type: str) -> str:
        """The error for a value of the wrong type."""
        if not self.struct:
            return f"json: cannot unmarshal {found} into Go value of type {go_type}"
        path = ".".join((self.struct, *self.fields))
        return f"json: cannot unmarshal {found} into Go struct field {path} of type {go_type}"


def decode_carefully(wire: WireType, value: Any) -> Decoded:
    """A JSON value as an object of a type; WrongTypeError if it cannot be one."""
    decoder = _Decoder()
    use = TypeUse("struct", None, wire.name, wire.types)
    obj = decoder.value(use, use.go, value, _Place("", ()), "")
    if decoder.first_problem:
        raise WrongTypeError(decoder.first_problem)
    return Decoded(obj, decoder.unknown)


class _Decoder:
    """One decoding.

    Go records the first value of a wrong type and continues, but stops at once where a type with a JSON form
    of its own (a time, a quantity) fails: that is the problem it then reports.
    """

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self.first_problem = ""

    def value(self, use: TypeUse, go_type: str, value: Any, place: _Place, path: str) -> Any:
        match use.word:
            case "struct":
                return self._struct(use, value, place, path)
            case "list" if use.items:
                if isinstance(value, list):
                    inner = go_type[2:] if go_type.startswith("[]") else use.items.go
                    return self._list(use.items, inner, value, place, path)
            case "map" if use.items:
                if isinstance(value, dict):
                    inner = go_type.partition("]")[2] or use.items.go
                    return self._map(use.items, inner, value, place, path)
            case "Quantity" | "IntOrString" | "Time" | "MicroTime" | "FieldsV1" | "RawExtension":
                return _leaf(use.word, value, place)
            case "bytes" if isinstance(value, str):
                return self._bytes(value)
            case word if _fits(word, value):
                return value
        found = _json_word(value)
        if found == "number" and use.word in ("int32", "int64", "double"):
            found = f"number {_number_text(value)}"
        return self._wrong(place.mismatch(found, go_type))

    def _wrong(self, problem: str) -> Any:
        self.first_problem = self.first_problem or problem
        return _NOTHING

    def _struct(self, use: TypeUse, value: Any, place: _Place, path: str) -> Any:
        wire = use.struct
        if wire.untyped:
            return copy(value)
        if not isinstance(value, dict):
            return self._wrong(place.mismatch(_json_word(value), use.go))
        prefix = f"{path}." if path else ""
        found = {}
        for name, item in value.items():
            known = wire.by_name.get(name)
            if known is None:
                self.unknown.append(prefix + name)
                continue
            if item is None or name in wire.dropped:
                continue
            inside = _Place(wire.short_name, (*place.fields, *known.embedded, name))
            decoded = self.value(known.type, known.go_type, item, inside, prefix + name)
            if decoded is _NOTHING:
                continue
            if known.keeps_zero or decoded != ZERO_VALUES.get(known.type.word, _NOTHING):
                found[name] = decoded
        return found

    def _list(self, items: TypeUse, go_type: str, values: list[Any], place: _Place, path: str) -> list[Any]:
        return [
            _zero(items) if value is None else self.value(items, go_type, value, place, f"{path}[{index}]")
            for index, value in enumerate(values)
        ]

    def _map(
        self, items: TypeUse, go_type: str, values: dict[str, Any], place: _Place, path: str
    ) -> dict[str, Any]:
        return {
            key: _zero(items)
            if value is None
            else self.value(items, go_type, value, place, f"{path}.{path_key(key)}")
            for key, value in values.items()
        }

    def _bytes(self, text: str) -> Any:
        try:
            return base64.b64encode(base64.b64decode(re.sub(r"[\r\n]", "", text), validate=True)).decode()
        except (binascii.Error, ValueError):
            return self._wrong(f"illegal base64 data at input byte {_first_bad_byte(text)}")


def _zero(use: TypeUse) -> Any:
    """What a null is in a list or map."""
    if use.word == "struct":
        return None if use.struct.untyped else {}
    return _ZERO_ITEMS.get(use.word)


def _fits(word: str, value: Any) -> bool:
    if word == "string":
        return isinstance(value, str)
    if word == "bool":
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if word == "double":
        return isinstance(value, int | float)
    if word in _INT_BITS and isinstance(value, int):
        bits = _INT_BITS[word]
        return -(1 << bits) <= value < 1 << bits
    return False


def _leaf(word: str, value: Any, place: _Place) -> Any:
    """A value with a JSON form of its own."""
    try:
        match word:
            case "Quantity":
                return read_quantity(value)
            case "Time" | "MicroTime":
                if not isinstance(value, str):
                    raise WrongTypeError(place.mismatch(_json_word(value), "string"))
                return canonical_time(value) if word == "Time" else canonical_micro_time(value)
            case "IntOrString":
                if not isinstance(value, str) and not _fits("int32", value):
                    _not_an_integer(value, place)
        return copy(value)
    except ValueError as problem:
        raise WrongTypeError(str(problem)) from None


def _not_an_integer(value: Any, place: _Place) -> NoReturn:
    found = _json_word(value)
    raise WrongTypeError(
        place.mismatch(f"number {_number_text(value)}" if found == "number" else found, "int32")
    )


def read_quantity(value: Any) -> str:
    """A quantity given as text or as a number, in canonical form; ValueError if it is none."""
    if isinstance(value, str):
        return canonical_quantity(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return canonical_quantity(_number_text(value))
    raise ValueError(WRONG_FORMAT)


def _number_text(value: Any) -> str:
    return repr(value)


def _json_word(value: Any) -> str:
    """What Go calls a JSON value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, dict):
        return "object"
    if isinstance(value, list):
        return "array"
    return "string" if isinstance(value, str) else "number"


def _first_bad_byte(text: str) -> int:
    """The offset at which Go's base64 decoder fails."""
    match = _NOT_BASE64.search(text)
    if match is not None and match[0] != "=":
        return match.start()
    whole = text.rstrip("=\r\n")
    misplaced = _NOT_BASE64.search(whole)
    if misplaced is not None:
        return misplaced.start()
    if len(text) != len(whole):
        return len(text)
    return len(whole) - len(whole) % 4
