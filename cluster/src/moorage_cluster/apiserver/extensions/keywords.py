"""The keywords of schemas in definitions, and the types of their values.

Parts of a schema may be written in two ways (`items`, `additionalProperties`), so a definition's own schema
leaves them open; they are checked here before anything else reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from moorage.apimachinery.fields import FieldError, invalid
from moorage.apimachinery.schema.wire import WireField, wire_format

_TEXT: Final = (str,)
_FLAG: Final = (bool,)
_COUNT: Final = (int,)
_NUMBER: Final = (int, float)
_LIST: Final = (list,)
_SCHEMA: Final = (dict,)
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    **dict.fromkeys(("id", "$schema", "$ref", "description", "type", "format", "title", "pattern"), _TEXT),
    **dict.fromkeys(("x-kubernetes-list-type", "x-kubernetes-map-type"), _TEXT),
    **dict.fromkeys(("nullable", "exclusiveMaximum", "exclusiveMinimum", "uniqueItems"), _FLAG),
    **dict.fromkeys(("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"), _FLAG),
    "x-kubernetes-int-or-string": _FLAG,
    **dict.fromkeys(
        ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), _COUNT
    ),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), _NUMBER),
    **dict.fromkeys(("enum", "required", "allOf", "anyOf", "oneOf"), _LIST),
    **dict.fromkeys(("x-kubernetes-list-map-keys", "x-kubernetes-validations"), _LIST),
    **dict.fromkeys(("not", "properties", "patternProperties", "definitions", "dependencies"), _SCHEMA),
    "items": (dict, list),
    "additionalProperties": (dict, bool),
    "additionalItems": (dict, bool),
}
_NAMES: Final = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
}
_SCHEMA_TYPE: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_LISTS_OF_TEXTS: Final = ("required", "x-kubernetes-list-map-keys")
ALTERNATIVES: Final = ("allOf", "oneOf", "anyOf")


def keyword_problems(schema: Any, path: str) -> list[FieldError]:
    """The keywords, here and below, with values of a wrong type."""
    if not isinstance(schema, dict):
        return [invalid(path, schema, "must be of type object")]
    found: list[FieldError] = []
    for keyword, types in _TYPES.items():
        value = schema.get(keyword)
        if value is not None and type(value) not in types:
            expected = " or ".join(_NAMES[each] for each in types)
            found.append(invalid(f"{path}.{keyword}", value, f"must be of type {expected}"))
    for keyword in _LISTS_OF_TEXTS:
        for text in schema.get(keyword) or () if isinstance(schema.get(keyword), list) else ():
            if not isinstance(text, str):
                found.append(invalid(f"{path}.{keyword}", text, "must be of type string"))
    rules = schema.get("x-kubernetes-validations")
    for index, rule in enumerate(rules if isinstance(rules, list) else ()):
        if not isinstance(rule, dict):
            here = f"{path}.x-kubernetes-validations[{index}]"
            found.append(invalid(here, rule, "must be of type object"))
    for part, here in parts_of(schema, path):
        found += keyword_problems(part, here)
    return found


def drop_meaningless(schema: Any) -> None:
    """Remove keywords without effect from the open parts: unknown, empty or false ones.

    Clients that use protobuf send every keyword.
    """
    for part, _ in parts_of(schema, "") if isinstance(schema, dict) else ():
        if isinstance(part, dict):
            keywords = _keywords()
            for keyword in [key for key in part if _is_meaningless(part[key], keywords.get(key))]:
                del part[keyword]
        drop_meaningless(part)


@cache
def _keywords() -> Mapping[str, WireField]:
    return {field.name: field for field in wire_format().type(_SCHEMA_TYPE).fields}


def _is_meaningless(value: Any, keyword: WireField | None) -> bool:
    if keyword is None:
        return True
    return not keyword.keeps_zero and keyword.type.word != "struct" and value in ("", False, [], {})


def parts_of(schema: Mapping[str, Any], path: str) -> Iterator[tuple[Any, str]]:
    """The schemas inside a schema, with their paths."""
    for keyword in ("items", "not", "additionalProperties"):
        part = schema.get(keyword)
        if isinstance(part, dict):
            yield part, f"{path}.{keyword}"
    items = schema.get("items")
    if isinstance(items, list):
        for index, part in enumerate(items):
            yield part, f"{path}.items[{index}]"
    for keyword in ALTERNATIVES:
        parts = schema.get(keyword)
        for index, part in enumerate(parts if isinstance(parts, list) else ()):
            yield part, f"{path}.{keyword}[{index}]"
    properties = schema.get("properties")
    for key, part in properties.items() if isinstance(properties, dict) else ():
        yield part, f"{path}.properties[{key}]"
