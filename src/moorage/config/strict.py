"""Strict decoding of a plain document to structs: unknown fields are rejected.

API objects are decoded leniently, because servers may be newer; a configuration is written by hand, where an
unknown field is a typing mistake. So one pass compares a document with the types, finds all problems (not
just the first) and names each by its full path.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import math
import types
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import msgspec

from moorage.config.duration import Duration, parse_duration
from moorage.config.problems import child, required, shown

T = TypeVar("T")

_LEAVES: dict[Any, str] = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def decode(raw: Any, kind: type[T], path: str, problems: list[str]) -> T:
    """`raw` as a `kind`; problems are added to `problems`, and the result is then undefined."""
    decoded: T = _decode(raw, kind, path, problems)
    return decoded


def _decode(raw: Any, kind: Any, path: str, problems: list[str]) -> Any:
    if kind is Any:
        return raw
    origin = get_origin(kind)
    if origin is Annotated:
        base, *constraints = get_args(kind)
        return _within(_decode(raw, base, path, problems), constraints, path, problems)
    if origin in (Union, types.UnionType):
        return _decode_optional(raw, kind, path, problems)
    if origin is tuple:
        return _decode_list(raw, get_args(kind)[0], path, problems)
    if origin is dict:
        return _decode_mapping(raw, get_args(kind)[1], path, problems)
    if issubclass(kind, msgspec.Struct):
        return _decode_struct(raw, kind, path, problems)
    if issubclass(kind, StrEnum):
        return _decode_choice(raw, kind, path, problems)
    return _decode_leaf(raw, kind, path, problems)


def _decode_optional(raw: Any, kind: Any, path: str, problems: list[str]) -> Any:
    (inner,) = (each for each in get_args(kind) if each is not type(None))
    return None if raw is None else _decode(raw, inner, path, problems)


def _decode_list(raw: Any, kind: Any, path: str, problems: list[str]) -> tuple[Any, ...]:
    if not isinstance(raw, list | tuple):
        problems.append(_unexpected(path, "a list", raw))
        return ()
    return tuple(_decode(item, kind, f"{path}[{index}]", problems) for index, item in enumerate(raw))


def _decode_mapping(raw: Any, kind: Any, path: str, problems: list[str]) -> dict[str, Any]:
    if not isinstance(raw, Mapping):
        problems.append(_unexpected(path, "an object", raw))
        return {}
    decoded = {}
    for key, item in raw.items():
        if isinstance(key, str):
            decoded[key] = _decode(item, kind, child(path, key), problems)
        else:
            problems.append(_unexpected(path, "keys that are text", key))
    return decoded


def _decode_struct(raw: Any, kind: type[msgspec.Struct], path: str, problems: list[str]) -> Any:
    if not isinstance(raw, Mapping):
        problems.append(_unexpected(path, "an object", raw))
        return None
    fields = {each.encode_name: each for each in msgspec.structs.fields(kind)}
    values = {}
    for key, item in raw.items():
        if key not in fields:
            problems.append(f"{child(path, str(key))}: unknown field{_suggestion(str(key), list(fields))}")
        elif item is not None:
            values[fields[key].name] = _decode(item, fields[key].type, child(path, key), problems)
    missing = [name for name, each in fields.items() if each.required and each.name not in values]
    if missing:
        problems.extend(required(child(path, name)) for name in missing)
        return None
    return kind(**values)


def _decode_leaf(raw: Any, kind: type, path: str, problems: list[str]) -> Any:
    if kind is Duration:
        return _decode_duration(raw, path, problems)
    if kind is bytes:
        return _decode_bytes(raw, path, problems)
    accepted = (int, float) if kind is float else kind
    fits = isinstance(raw, accepted) and (kind is bool or not isinstance(raw, bool))
    if not fits or (kind is float and not math.isfinite(raw)):
        problems.append(_unexpected(path, _LEAVES[kind], raw))
        return kind()
    return kind(raw)


def _decode_choice(raw: Any, kind: type[StrEnum], path: str, problems: list[str]) -> StrEnum:
    choices = list(kind)
    if raw not in choices:
        problems.append(_unexpected(path, f"one of {', '.join(choices)}", raw))
        return choices[0]
    return kind(raw)


def _decode_duration(raw: Any, path: str, problems: list[str]) -> Duration:
    if isinstance(raw, str):
        try:
            return parse_duration(raw)
        except ValueError as error:
            problems.append(f"{path}: {error}")
    else:
        problems.append(_unexpected(path, "a duration (like 15s, 1m30s or 100ms)", raw))
    return Duration(0)


def _decode_bytes(raw: Any, path: str, problems: list[str]) -> bytes:
    if isinstance(raw, str):
        try:
            return base64.b64decode("".join(raw.split()), validate=True)
        except binascii.Error:
            pass
    # The value may be a private key: it is not shown.
    problems.append(f"{path}: expected bytes in base64")
    return b""


def _within(value: Any, constraints: list[Any], path: str, problems: list[str]) -> Any:
    for each in constraints:
        if isinstance(value, int) and not each.ge <= value <= each.le:
            problems.append(f"{path}: expected a whole number from {each.ge} to {each.le}, got {value}")
    return value


def _unexpected(path: str, expected: str, raw: Any) -> str:
    reason = f"expected {expected}, got {_described(raw)}"
    return f"{path}: {reason}" if path else reason


def _described(raw: Any) -> str:
    if raw is None:
        return "nothing"
    if isinstance(raw, Mapping):
        return "an object"
    if isinstance(raw, list | tuple):
        return "a list"
    return shown(raw)


def _suggestion(key: str, known: list[str]) -> str:
    """A suggestion of the field that was probably intended."""
    folded = {name.lower(): name for name in known}
    close = difflib.get_close_matches(key.lower(), folded, n=1, cutoff=0.75)
    return f"; did you mean {folded[close[0]]}?" if close else ""
