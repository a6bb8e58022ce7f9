"""Validation of values against OpenAPI v3 schemas, with Kubernetes' messages.

A schema is compiled once into a tree of `ValueCheck`s. A check collects errors, and counts matches: when
none of several alternatives is valid, the errors of the one with the most matches are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from moorage.api.text import path_key, quoted
from moorage.apimachinery.fields import FieldError, invalid, not_supported, required, too_long, too_many
from moorage.apimachinery.json_values import go_text, same
from moorage_cluster.apiserver.extensions.formats import conforms, is_known
from moorage_cluster.apiserver.extensions.numbers import MAX_INT64, MIN_INT64, fits, is_whole
from moorage_cluster.apiserver.extensions.patterns import TooMuchWorkError, compiled

ABSENT: Final = object()
"""There is no old value to compare with."""

_TYPE_NAMES: Final = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    dict: "object",
    list: "array",
}
_INFERRED_FORMATS: Final = {"integer": "int64", "number": "float64"}


def placed(errors: Iterable[FieldError], prefix: str = "") -> list[FieldError]:
    """Errors with their places below `prefix`, each once."""
    found: dict[str, FieldError] = {}
    for error in errors:
        name = error.path.removeprefix(".")
        path = f"{prefix}.{name}" if prefix and name else name or prefix or "<nil>"
        error = error._replace(path=path)
        found.setdefault(str(error), error)
    return list(found.values())


def _enum_text(item: Any) -> str:
    return item if isinstance(item, str) else msgspec.json.encode(item).decode()


def _plain(message: str) -> FieldError:
    """An error that Kubernetes reports without a field."""
    return invalid("", "", message)


class ValueCheck:
    """The restrictions of a schema on the values at one place."""

    __slots__ = (
        "_additional",
        "_all_of",
        "_any_of",
        "_closed",
        "_composed",
        "_enum",
        "_format",
        "_item_keys",
        "_items",
        "_least_items",
        "_least_length",
        "_least_properties",
        "_limits",
        "_most_items",
        "_most_length",
        "_most_properties",
        "_not",
        "_nullable",
        "_number",
        "_one_of",
        "_pattern",
        "_properties",
        "_required",
        "_types",
    )

    def __init__(self, schema: Mapping[str, Any]) -> None:
        is_int_or_string = schema.get("x-kubernetes-int-or-string") is True
        name = schema.get("type") or ""
        self._types: tuple[str, ...] = ("integer", "string") if is_int_or_string else (name,) if name else ()
        self._format: str = schema.get("format") or ""
        if self._format and not is_known(self._format, "" if is_int_or_string else name):
            self._format = ""
        self._nullable: bool = schema.get("nullable") is True
        self._enum: list[Any] = schema.get("enum") or []
        self._least_length: int | None = schema.get("minLength")
        self._most_length: int | None = schema.get("maxLength")
        text = schema.get("pattern") or ""
        self._pattern = (text, compiled(text).occurs_in) if text else None
        self._number = name if not is_int_or_string and name in ("integer", "number") else ""
        self._limits = _limits(schema, self._number, self._format)
        self._least_items: int | None = schema.get("minItems")
        self._most_items: int | None = schema.get("maxItems")
        items = schema.get("items")
        self._items = ValueCheck(items) if isinstance(items, Mapping) else None
        keys = schema.get("x-kubernetes-list-map-keys")
        self._item_keys: tuple[str, ...] = tuple(keys) if keys else ()
        self._least_properties: int | None = schema.get("minProperties")
        self._most_properties: int | None = schema.get("maxProperties")
        self._required: list[str] = schema.get("required") or []
        self._properties = {key: ValueCheck(part) for key, part in (schema.get("properties") or {}).items()}
        additional = schema.get("additionalProperties")
        self._closed = additional is False
        self._additional = ValueCheck(additional) if isinstance(additional, Mapping) else None
        self._any_of = [ValueCheck(part) for part in schema.get("anyOf") or []]
        self._one_of = [ValueCheck(part) for part in schema.get("oneOf") or []]
        self._all_of = [ValueCheck(part) for part in schema.get("allOf") or []]
        forbidden = schema.get("not")
        self._not = ValueCheck(forbidden) if isinstance(forbidden, Mapping) else None
        self._composed = bool(self._any_of or self._one_of or self._all_of or self._not)

    def run(self, value: Any, path: str, out: list[FieldError], old: Any = ABSENT) -> int:
        """Add the errors to `out`; returns the number of matches.

        `old` is the previous value: errors that it had already are not reported again.
        """
        if value is None:
            return self._check_null(path, out)
        matches = 4  # checks of every value
        if self._types or self._format:
            matches += 1 + self._check_type(value, path, out)
        if self._composed:
            matches += self._check_composed(value, path, out)
        kind = type(value)
        if kind is str:
            matches += 1
            self._check_text(value, path, out)
        elif kind is dict:
            matches += 1 + self._check_object(value, path, out, old)
        elif kind is list:
            matches += 2 + self._check_list(value, path, out, old)
        elif kind is not bool:
            matches += 2
            self._check_number(value, path, out)
        if self._enum and not any(same(value, allowed) for allowed in self._enum):
            out.append(not_supported(path, value, map(_enum_text, self._enum)))
        return matches

    def _check_null(self, path: str, out: list[FieldError]) -> int:
        wrong = bool(self._types) and not self._nullable
        if wrong:
            out.append(_wrong_type(path, ",".join(self._types), "null"))
        if self._enum:
            out.append(not_supported(path, None, map(_enum_text, self._enum)))
        return not wrong

    def _check_type(self, value: Any, path: str, out: list[FieldError]) -> int:
        name = _TYPE_NAMES[type(value)]
        if name == "integer" and not MIN_INT64 <= value <= MAX_INT64:
            name = "number"
        if name in self._types:
            return 1
        if name == "number" and "integer" in self._types and is_whole(float(value)):
            return 1
        if name == "integer" and "number" in self._types:
            return 1
        if self._format:
            if name not in ("string", "array"):
                out.append(_wrong_type(path, self._format, _INFERRED_FORMATS.get(name, "")))
                return 0
            if "number" not in self._types and "integer" not in self._types:
                return 1
        out.append(_wrong_type(path, ",".join(self._types), name))
        return 0

    def _check_text(self, value: str, path: str, out: list[FieldError]) -> None:
        if self._most_length is not None and len(value) > self._most_length:
            out.append(too_long(path, self._most_length))
        elif self._least_length is not None and len(value) < self._least_length:
            message = f"{path} in body should be at least {self._least_length} chars long"
            out.append(invalid(path, value, message))
        elif self._pattern:
            self._check_pattern(*self._pattern, value, path, out)
        if self._format and not conforms(value, self._format):
            out.append(_wrong_type(path, self._format, value))

    def _check_pattern(
        self, pattern: str, occurs_in: Callable[[str], bool], value: str, path: str, out: list[FieldError]
    ) -> None:
        try:
            matches = occurs_in(value)
        except TooMuchWorkError:
            out.append(invalid(path, value, f"{path} in body takes too long to match '{pattern}'"))
            return
        if not matches:
            out.append(invalid(path, value, f"{path} in body should match '{pattern}'"))

    def _check_number(self, value: float, path: str, out: list[FieldError]) -> None:
        if self._number and not fits(value, self._number, self._format):
            out.append(_out_of_range("Checked", self._number, self._format, path))
        for limit in self._limits:
            limit(value, path, out)

    def _check_list(self, value: list[Any], path: str, out: list[FieldError], old: Any) -> int:
        matches = 0
        if self._items is not None:
            before = _by_keys(old, self._item_keys)
            for index, item in enumerate(value):
                earlier = before.get(_key_of(item, self._item_keys), ABSENT) if before else ABSENT
                matches += self._items.run_unless_same(item, f"{path}[{index}]", out, earlier)
        if self._least_items is not None and len(value) < self._least_items:
            message = f"{path} in body should have at least {self._least_items} items"
            out.append(invalid(path, len(value), message))
        if self._most_items is not None and len(value) > self._most_items:
            out.append(too_many(path, len(value), self._most_items))
        return matches

    def _check_object(self, value: dict[str, Any], path: str, out: list[FieldError], old: Any) -> int:
        if self._least_properties is not None and len(value) < self._least_properties:
            message = f"{path} in body should have at least {self._least_properties} properties"
            out.append(invalid(path, len(value), message))
        if self._most_properties is not None and len(value) > self._most_properties:
            out.append(too_many(path, len(value), self._most_properties))
        before: Mapping[str, Any] = old if isinstance(old, dict) else {}
        matches = 0
        properties = self._properties
        for key, item in value.items():
            check = properties.get(key)
            if check is not None:
                here = f"{path}.{key}" if path else key
                matches += check.run_unless_same(item, here, out, before.get(key, ABSENT))
            elif self._closed:
                out.append(invalid(path, key, f"{path}.{key} in body is a forbidden property"))
            elif self._additional is not None:
                here = f"{path}.{path_key(key)}"
                matches += self._additional.run_unless_same(item, here, out, before.get(key, ABSENT))
        for key in self._required:
            if key not in value:
                out.append(required(f"{path}.{key}"))
        return matches

    def run_unless_same(self, value: Any, path: str, out: list[FieldError], old: Any) -> int:
        """As `run`, but errors of an unchanged value are dropped."""
        said = len(out)
        matches = self.run(value, path, out, old)
        if len(out) > said and old is not ABSENT and same(value, old):
            del out[said:]
        return matches

    def _check_composed(self, value: Any, path: str, out: list[FieldError]) -> int:
        matches = 0
        if self._any_of:
            fitting, best = _closest(self._any_of, value, path, stop_at_first=True)
            if not fitting:
                out.append(_plain(f"{quoted(path)} must validate at least one schema (anyOf)"))
            matches += best[0]
            out.extend(best[1])
        if self._one_of:
            fitting, best = _closest(self._one_of, value, path, stop_at_first=False)
            if fitting == 1:
                matches += best[0]
            else:
                found = f"Found {fitting} valid alternatives" if fitting else "Found none valid"
                out.append(_plain(f"{quoted(path)} must validate one and only one schema (oneOf). {found}"))
                if not fitting:
                    matches += best[0]
                    out.extend(best[1])
        if self._all_of:
            fitting = 0
            for check in self._all_of:
                said = len(out)
                matches += check.run(value, path, out)
                fitting += len(out) == said
            if fitting < len(self._all_of):
                none = "" if fitting else ". None validated"
                out.append(_plain(f"{quoted(path)} must validate all the schemas (allOf){none}"))
        if self._not is not None:
            complaints: list[FieldError] = []
            self._not.run(value, path, complaints)
            if not complaints:
                out.append(_plain(f"{quoted(path)} must not validate the schema (not)"))
        return matches


def _closest(
    checks: list[ValueCheck], value: Any, path: str, stop_at_first: bool
) -> tuple[int, tuple[int, list[FieldError]]]:
    """The number of valid alternatives, and the first of them, or else the one with the most matches."""
    fitting = 0
    best: tuple[int, list[FieldError]] | None = None
    for check in checks:
        complaints: list[FieldError] = []
        matches = check.run(value, path, complaints)
        if not complaints:
            fitting += 1
            if fitting == 1:
                best = matches, complaints
            if stop_at_first:
                break
        elif not fitting and (best is None or matches > best[0]):
            best = matches, complaints
    return fitting, best or (0, [])


def _wrong_type(path: str, expected: str, found: str) -> FieldError:
    return invalid(path, found, f"{path} in body must be of type {expected}: {quoted(found)}")


def _out_of_range(subject: str, type_name: str, number_format: str, path: str) -> FieldError:
    of_format = f"with format {number_format}" if number_format else "(default format)"
    return _plain(f"{subject} value must be of type {type_name} {of_format} in {path}")


def _by_keys(old: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    """The items of an old list of list-type map, to be found by their keys."""
    if not keys or not isinstance(old, list):
        return {}
    return {_key_of(item, keys): item for item in old}


def _key_of(item: Any, keys: tuple[str, ...]) -> str:
    return repr([item.get(key) for key in keys]) if isinstance(item, dict) else ""


_Limit = Callable[[float, str, list[FieldError]], None]


def _limits(schema: Mapping[str, Any], type_name: str, number_format: str) -> list[_Limit]:
    limits: list[_Limit] = []
    for keyword, make in (("multipleOf", _multiple_of), ("minimum", _minimum), ("maximum", _maximum)):
        bound = schema.get(keyword)
        if bound is not None:
            exclusive = schema.get(f"exclusive{keyword.capitalize()}") is True
            limits.append(make(bound, exclusive, type_name, number_format))
    return limits


def _native(bound: float, value: float, sound: bool) -> float:
    """A bound for comparison: an integer for integers, unless it cannot be one."""
    return int(bound) if sound and isinstance(value, int) else float(bound)


def _multiple_of(factor: float, exclusive: bool, type_name: str, number_format: str) -> _Limit:
    sound = fits(factor, type_name, number_format)

    def check(value: float, path: str, out: list[FieldError]) -> None:
        if not sound:
            out.append(_out_of_range("MultipleOf", type_name, number_format, path))
        by = _native(factor, value, sound)
        if by <= 0:
            message = f"factor MultipleOf declared for {path} must be positive: {go_text(by)}"
            out.append(invalid(path, by, message))
        elif isinstance(by, int) and isinstance(value, int):
            if value % by:
                out.append(invalid(path, value, f"{path} in body should be a multiple of {by}"))
        elif not is_whole(1 / by * value if by < 1 else value / by):
            out.append(invalid(path, value, f"{path} in body should be a multiple of {go_text(by)}"))

    return check


def _minimum(bound: float, exclusive: bool, type_name: str, number_format: str) -> _Limit:
    sound = fits(bound, type_name, number_format)
    wording = "greater than" if exclusive else "greater than or equal to"

    def check(value: float, path: str, out: list[FieldError]) -> None:
        if not sound:
            out.append(_out_of_range("Minimum boundary", type_name, number_format, path))
        least = _native(bound, value, sound)
        if value < least or (exclusive and value == least):
            out.append(invalid(path, value, f"{path} in body should be {wording} {go_text(least)}"))

    return check


def _maximum(bound: float, exclusive: bool, type_name: str, number_format: str) -> _Limit:
    sound = fits(bound, type_name, number_format)
    wording = "less than" if exclusive else "less than or equal to"

    def check(value: float, path: str, out: list[FieldError]) -> None:
        if not sound:
            out.append(_out_of_range("Maximum boundary", type_name, number_format, path))
        most = _native(bound, value, sound)
        if value > most or (exclusive and value == most):
            out.append(invalid(path, value, f"{path} in body should be {wording} {go_text(most)}"))

    return check
