"""A plugin's arguments: decoding from the configuration to the type that the plugin declares.

The type is that of the parameter `args` of the plugin's factory: a dataclass or a msgspec Struct. Errors name
every invalid field.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, get_type_hints

import msgspec

from moorage.api.decode import decode_hook
from moorage.api.quantity import Quantity
from moorage.config.duration import Duration, parse_duration
from moorage.config.problems import required, shown

_TYPE_META: Final = frozenset(("apiVersion", "kind"))
"""Type metadata that arguments may contain, as those of kube-scheduler's plugins do."""
_PLACE: Final = re.compile(r"^(?P<text>.*?)(?: - at `(?P<place>[^`]*)`)?$", re.DOTALL)
_WORDS: Final = {
    "`str`": "text",
    "`int`": "a whole number",
    "`float`": "a number",
    "`bool`": "true or false",
    "`null`": "nothing",
    "`array`": "a list",
    "`object`": "an object",
}


class ArgumentsError(ValueError):
    """Invalid arguments of a plugin; the message names every invalid field."""


class _Field(NamedTuple):
    """One argument: its type, and whether it must be given."""

    type: Any
    is_required: bool


def typed_arguments(args: Any, wanted: Any) -> Any:
    """Arguments as the type that a plugin declares; unchanged if it declares none."""
    if not _has_fields(wanted) or isinstance(args, wanted):
        return args
    given = {} if args is None else args
    if not isinstance(given, Mapping):
        raise ArgumentsError("args: expected an object with the plugin's arguments")
    try:
        fields = _fields(wanted)
        given = {key: value for key, value in given.items() if key in fields or key not in _TYPE_META}
        problems = list(_problems(given, fields))
        if not problems:
            return msgspec.convert(given, wanted, dec_hook=_read)
    except msgspec.ValidationError as error:
        problems = [
            _error_text(error, "args", given)
        ]  # Raised by the type's own validation, when all fields are there.
    except (NameError, TypeError) as error:
        raise ArgumentsError(f"the type of its args cannot be used: {error}") from None
    raise ArgumentsError("; ".join(problems))


def _has_fields(wanted: Any) -> bool:
    return isinstance(wanted, type) and (
        issubclass(wanted, msgspec.Struct) or dataclasses.is_dataclass(wanted)
    )


def _fields(wanted: Any) -> dict[str, _Field]:
    """The arguments, by their names in a configuration."""
    if issubclass(wanted, msgspec.Struct):
        return {each.encode_name: _Field(each.type, each.required) for each in msgspec.structs.fields(wanted)}
    types, missing = get_type_hints(wanted, include_extras=True), dataclasses.MISSING
    return {
        each.name: _Field(types[each.name], each.default is missing and each.default_factory is missing)
        for each in dataclasses.fields(wanted)
        if each.init
    }


def _problems(given: Mapping[str, Any], fields: Mapping[str, _Field]) -> Iterator[str]:
    for key, value in given.items():
        if key not in fields:
            yield f"args.{key}: unknown field{_suggestion(str(key), fields)}"
            continue
        try:
            msgspec.convert(value, fields[key].type, dec_hook=_read)
        except msgspec.ValidationError as error:
            yield _error_text(error, f"args.{key}", value)
    yield from (
        required(f"args.{key}") for key, each in fields.items() if each.is_required and key not in given
    )


def _read(kind: type, value: Any) -> Any:
    """Types that are not JSON's: durations, written as `1m30s`, and quantities, as `1.5Gi`."""
    if kind is Duration and isinstance(value, str):
        return parse_duration(value)
    if kind is Duration:
        raise ValueError(f"expected a duration (like 15s, 1m30s or 100ms), got {shown(value)}")
    if kind is Quantity:
        return decode_hook(kind, value)
    raise TypeError(f"{kind.__name__} cannot be read from a configuration")


def _error_text(error: msgspec.ValidationError, root: str, value: Any) -> str:
    """The error, in the wording of all validation errors of the configuration."""
    found = _PLACE.fullmatch(str(error))
    assert found is not None
    text, place = found["text"], (found["place"] or "$").removeprefix("$")
    for word, meaning in _WORDS.items():
        text = text.replace(word, meaning)
    if not place and not isinstance(value, list | Mapping) and text.startswith("Expected"):
        text = f"{text.partition(', got ')[0]}, got {shown(value)}"
    return f"{root}{place}: {text[:1].lower()}{text[1:]}"


def _suggestion(key: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(key, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""
