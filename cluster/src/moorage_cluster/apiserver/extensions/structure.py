"""Whether a definition's schema is structural: every field has one type, outside of `anyOf` and the like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moorage.apimachinery.fields import FieldError, forbidden, invalid, required
from moorage_cluster.apiserver.extensions.keywords import ALTERNATIVES
from moorage_cluster.apiserver.extensions.pattern_syntax import PatternError
from moorage_cluster.apiserver.extensions.patterns import compiled

_ROOT: Final = "at the root"
_ITEM: Final = "for specified array items"
_FIELD: Final = "for specified object fields"
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_FORBIDDEN_INSIDE: Final = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


def structure_problems(schema: Mapping[str, Any], path: str) -> list[FieldError]:
    """The reasons why a schema is not structural, sorted."""
    found = _place_problems(schema, path, _ROOT)
    found += _undeclared(schema, schema, path, path)
    return sorted(found, key=str)


def _place_problems(schema: Mapping[str, Any], path: str, level: str) -> list[FieldError]:
    found: list[FieldError] = []
    type_name = schema.get("type") or ""
    embedded = schema.get("x-kubernetes-embedded-resource") is True
    preserve = schema.get("x-kubernetes-preserve-unknown-fields") is True
    int_or_string = schema.get("x-kubernetes-int-or-string") is True
    properties: Mapping[str, Any] = schema.get("properties") or {}
    items = schema.get("items")
    additional = schema.get("additionalProperties")
    if type_name == "array" and not items:
        found.append(required(f"{path}.items", "must be specified"))
    if isinstance(items, dict):
        found += _place_problems(items, f"{path}.items", _ITEM)
    for key, part in properties.items():
        found += _place_problems(part, f"{path}.properties[{key}]", _FIELD)
    if additional is not None:
        here = f"{path}.additionalProperties"
        if level == _ROOT:
            found.append(forbidden(here, "must not be used at the root"))
        if isinstance(additional, dict):
            found += _place_problems(additional, here, _FIELD)
        if embedded:
            found.append(forbidden(here, "must not be used if x-kubernetes-embedded-resource is set"))
    for keyword, is_set in (
        ("x-kubernetes-preserve-unknown-fields", preserve),
        ("x-kubernetes-embedded-resource", embedded),
    ):
        if int_or_string and is_set:
            detail = "must be false if x-kubernetes-int-or-string is true"
            found.append(invalid(f"{path}.{keyword}", True, detail))
    found += _value_problems(schema, path)
    if embedded and type_name != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        here = f"{path}.type"
        found.append(invalid(here, type_name, detail) if type_name else required(here, detail))
    elif not type_name and not int_or_string and not preserve:
        found.append(required(f"{path}.type", f"must not be empty {level}"))
    if level == _ROOT and type_name not in ("", "object"):
        found.append(invalid(f"{path}.type", type_name, "must be object at the root"))
    if level == _ROOT or embedded:
        found += _meta_problems(properties, path)
    if level == _ROOT and "metadata" in properties and not _is_plain_metadata(properties["metadata"]):
        detail = (
            "must not specify anything other than name and generateName, but metadata is implicitly specified"
        )
        found.append(forbidden(f"{path}.properties[metadata]", detail))
    if embedded and not preserve and not properties:
        detail = (
            "must not be empty if x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields"
        )
        found.append(required(f"{path}.properties", detail))
    return found


def _meta_problems(properties: Mapping[str, Any], path: str) -> list[FieldError]:
    found = []
    for key, expected in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        type_name = properties[key].get("type") or "" if key in properties else expected
        if type_name != expected:
            found.append(invalid(f"{path}.properties[{key}].type", type_name, f"must be {expected}"))
    return found


def _is_plain_metadata(schema: Mapping[str, Any]) -> bool:
    said = {key for key, value in schema.items() if value} - {"type", "default"}
    return not said or (said == {"properties"} and schema["properties"].keys() <= {"name", "generateName"})


def _value_problems(schema: Mapping[str, Any], path: str) -> list[FieldError]:
    """The errors of the restrictions at one place."""
    found: list[FieldError] = []
    for keyword in ALTERNATIVES:
        parts = schema.get(keyword) or []
        if keyword == "anyOf" and parts == _INT_OR_STRING:
            continue
        for index, part in enumerate(parts):
            found += _inner_problems(part, f"{path}.{keyword}[{index}]", keyword == "allOf" and index == 0)
    if schema.get("not"):
        found += _inner_problems(schema["not"], f"{path}.not")
    pattern = schema.get("pattern")
    if pattern:
        try:
            compiled(pattern)
        except PatternError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            found.append(invalid(f"{path}.pattern", pattern, detail))
    return found


def _inner_problems(schema: Mapping[str, Any], path: str, is_first_of_all: bool = False) -> list[FieldError]:
    """The errors of a schema inside `anyOf` and the like; only int-or-string may have types there."""
    if is_first_of_all and schema.get("anyOf") == _INT_OR_STRING:
        schema = {key: value for key, value in schema.items() if key != "anyOf"}
    found = _value_problems(schema, path)
    if isinstance(schema.get("items"), dict):
        found += _inner_problems(schema["items"], f"{path}.items")
    properties: Mapping[str, Any] = schema.get("properties") or {}
    for key, part in properties.items():
        found += _inner_problems(part, f"{path}.properties[{key}]")
    for keyword, detail in _FORBIDDEN_INSIDE.items():
        value = schema.get(keyword)
        if value or (value is not None and keyword in ("additionalProperties", "default")):
            found.append(forbidden(f"{path}.{keyword}", detail))
    if "metadata" in properties:
        found.append(forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context"))
    return found


def _undeclared(
    inner: Mapping[str, Any], outer: Mapping[str, Any], outer_path: str, path: str
) -> list[FieldError]:
    """Fields that are restricted in `anyOf` and the like without being declared outside.

    `outer` is the declaration of the place that `inner` restricts.
    """
    found: list[FieldError] = []
    if inner.get("not"):
        found += _undeclared_inside(inner["not"], outer, outer_path, f"{path}.not")
    for keyword in ALTERNATIVES:
        for index, part in enumerate(inner.get(keyword) or ()):
            found += _undeclared_inside(part, outer, outer_path, f"{path}.{keyword}[{index}]")
    return found


def _undeclared_inside(
    inner: Mapping[str, Any], outer: Mapping[str, Any] | None, outer_path: str, path: str
) -> list[FieldError]:
    if outer is None:
        return [required(outer_path, f"because it is defined in {path}")]
    found = _undeclared(inner, outer, outer_path, path)
    if isinstance(inner.get("items"), dict):
        items = outer.get("items")
        declared = items if isinstance(items, dict) else None
        found += _undeclared_inside(inner["items"], declared, f"{outer_path}.items", f"{path}.items")
    properties: Mapping[str, Any] = outer.get("properties") or {}
    for key, part in (inner.get("properties") or {}).items():
        here = f".properties[{key}]"
        found += _undeclared_inside(part, properties.get(key), f"{outer_path}{here}", f"{path}{here}")
    return found
