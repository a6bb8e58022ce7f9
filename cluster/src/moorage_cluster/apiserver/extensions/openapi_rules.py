"""Which parts of OpenAPI v3, and of Kubernetes' extensions to it, a definition's schema may use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from moorage.api.manifests import Manifest
from moorage.apimachinery import errors
from moorage.apimachinery.fields import FieldError, forbidden, invalid, not_supported, required
from moorage.apimachinery.validation.checks import repetitions
from moorage_cluster.apiserver.extensions.formats import is_known
from moorage_cluster.apiserver.extensions.keywords import keyword_problems, parts_of
from moorage_cluster.apiserver.extensions.metadata import META_FIELDS
from moorage_cluster.apiserver.extensions.schema_nodes import SchemaNode, Unknown, pruned
from moorage_cluster.apiserver.extensions.structure import structure_problems
from moorage_cluster.apiserver.extensions.values import ValueCheck, placed

_KNOWN_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_NOT_KNOWN_HERE: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_WITH_STATUS: Final = "at the root of the schema if the status subresource is enabled"
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_BESIDE_STATUS: Final = {
    "description": "Description",
    "type": "Type",
    "format": "Format",
    "title": "Title",
    "maximum": "Maximum",
    "exclusiveMaximum": "ExclusiveMaximum",
    "minimum": "Minimum",
    "exclusiveMinimum": "ExclusiveMinimum",
    "maxLength": "MaxLength",
    "minLength": "MinLength",
    "pattern": "Pattern",
    "maxItems": "MaxItems",
    "minItems": "MinItems",
    "uniqueItems": "UniqueItems",
    "multipleOf": "MultipleOf",
    "required": "Required",
    "items": "Items",
    "properties": "Properties",
    "externalDocs": "ExternalDocs",
    "example": "Example",
    "x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields",
    "x-kubernetes-validations": "XValidations",
}
"""The keywords allowed at a schema's root with a status subresource, as Kubernetes lists them."""


def schema_problems(schema: Any, path: str, has_status: bool) -> list[FieldError]:
    """All errors of a version's schema."""
    try:
        malformed = keyword_problems(schema, path)
        if malformed:
            return malformed
        found = _root_problems(schema, path, has_status)
        unstructured = structure_problems(schema, path)
        found += unstructured or _default_problems(schema, path, is_embedded_meta=False)
        return found + _place_problems(schema, path, is_root=True)
    except (RecursionError, OverflowError):
        return [invalid(path, "", "is nested too deeply or has a number that is too large")]


def unknown_formats(schema: Any) -> Iterator[str]:
    """The formats in a schema that are not validated."""
    if isinstance(schema, dict):
        name = schema.get("format")
        if isinstance(name, str) and name and not is_known(name, schema.get("type") or ""):
            yield name
        for part, _ in parts_of(schema, ""):
            yield from unknown_formats(part)


def _root_problems(schema: Manifest, path: str, has_status: bool) -> list[FieldError]:
    found: list[FieldError] = []
    if has_status:
        type_name = schema.get("type") or ""
        if type_name not in ("", "object"):
            detail = f'only "object" is allowed as the type {_WITH_STATUS}'
            found.append(invalid(f"{path}.type", type_name, detail))
        elif any(value and keyword not in _BESIDE_STATUS for keyword, value in schema.items()):
            allowed = " ".join(_BESIDE_STATUS.values())
            detail = f"only [{allowed}] fields are allowed {_WITH_STATUS}"
            found.append(invalid(path, schema, detail))
    if schema.get("nullable"):
        found.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    return found


def _default_problems(schema: Manifest, path: str, is_embedded_meta: bool) -> list[FieldError]:
    """Defaults that are invalid by the schema itself."""
    found: list[FieldError] = []
    default = schema.get("default")
    if default is not None and not is_embedded_meta:
        here = f"{path}.default"
        unknown = Unknown([], [])
        try:
            pruned(default, SchemaNode(schema), "", unknown)
        except errors.ApiError as error:
            found.append(invalid(here, default, error.message))
        if unknown.in_order():
            found.append(invalid(here, default, "must not have unknown fields"))
        complaints: list[FieldError] = []
        ValueCheck(schema).run(default, "", complaints)
        found += placed(complaints, here)
    if isinstance(schema.get("items"), dict):
        found += _default_problems(schema["items"], f"{path}.items", is_embedded_meta)
    embedded = schema.get("x-kubernetes-embedded-resource") is True
    for key, part in (schema.get("properties") or {}).items():
        is_meta = is_embedded_meta or (embedded and key in META_FIELDS)
        found += _default_problems(part, f"{path}.properties[{key}]", is_meta)
    return found


def _place_problems(
    schema: Manifest, path: str, is_root: bool = False, no_defaults: str = "", is_meta: bool = False
) -> list[FieldError]:
    """`no_defaults` is the reason why defaults are forbidden here; empty: they are allowed."""
    found = _keyword_rules(schema, path, no_defaults, is_meta)
    found += _list_rules(schema, path)
    found += _validation_rules(schema, path)
    in_properties = f"{path}.properties["
    for part, here in parts_of(schema, path):
        key = here.removeprefix(in_properties).removesuffix("]") if here.startswith(in_properties) else ""
        part_is_meta, why = is_meta, no_defaults
        if key in META_FIELDS and (is_root or schema.get("x-kubernetes-embedded-resource")):
            part_is_meta = True
            why = f"in top-level {key}" if is_root else why
        elif is_meta and here == f"{path}.additionalProperties":
            why = "inside additionalProperties applying to object metadata"
        found += _place_problems(part, here, no_defaults=why, is_meta=part_is_meta)
    return found


def _keyword_rules(schema: Manifest, path: str, no_defaults: str, is_meta: bool) -> list[FieldError]:
    found: list[FieldError] = []
    type_name = schema.get("type") or ""
    if type_name and type_name not in _KNOWN_TYPES:
        found.append(not_supported(f"{path}.type", type_name, _KNOWN_TYPES))
    if schema.get("default") is not None and no_defaults:
        found.append(forbidden(f"{path}.default", f"must not be set {no_defaults}"))
    for keyword in _NOT_KNOWN_HERE:
        if schema.get(keyword):
            found.append(forbidden(f"{path}.{keyword}", f"{keyword} is not supported"))
    if type_name == "null":
        detail = "type cannot be set to null, use nullable as an alternative"
        found.append(forbidden(f"{path}.type", detail))
    if isinstance(schema.get("items"), list):
        found.append(forbidden(f"{path}.items", "items must be a schema object and not an array"))
    if is_meta and schema.get("x-kubernetes-embedded-resource"):
        here = f"{path}.x-kubernetes-embedded-resource"
        found.append(forbidden(here, "must not be used inside of resource meta"))
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.append(forbidden(f"{path}.uniqueItems", detail))
    if schema.get("properties") and schema.get("additionalProperties") not in (None, True):
        detail = "additionalProperties and properties are mutual exclusive"
        found.append(forbidden(f"{path}.additionalProperties", detail))
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        here = f"{path}.x-kubernetes-preserve-unknown-fields"
        found.append(invalid(here, False, "must be true or undefined"))
    map_type = schema.get("x-kubernetes-map-type")
    if map_type is not None:
        found += _type_for(schema, path, "object", "x-kubernetes-map-type")
        if map_type not in ("atomic", "granular"):
            found.append(not_supported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular")))
    return found


def _type_for(schema: Manifest, path: str, expected: str, keyword: str) -> list[FieldError]:
    type_name = schema.get("type") or ""
    detail = f"must be {expected} if {keyword} is specified"
    if type_name == expected:
        return []
    return [invalid(f"{path}.type", type_name, detail) if type_name else required(f"{path}.type", detail)]


def _list_rules(schema: Manifest, path: str) -> list[FieldError]:
    list_type = schema.get("x-kubernetes-list-type")
    keys: list[str] = schema.get("x-kubernetes-list-map-keys") or []
    found: list[FieldError] = []
    here = f"{path}.x-kubernetes-list-type"
    if keys and list_type != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        found.append(required(here, detail) if list_type is None else invalid(here, list_type, detail))
    if list_type is None:
        return found
    found += _type_for(schema, path, "array", "x-kubernetes-list-type")
    items = schema.get("items")
    item: Manifest | None = items if isinstance(items, dict) else None
    if list_type not in ("atomic", "set", "map"):
        found.append(not_supported(here, list_type, ("atomic", "set", "map")))
    if list_type == "set" and item is not None:
        found += _set_rules(item, path)
    if list_type == "map":
        found += _map_rules(schema, keys, item, path)
    if list_type in ("set", "map") and item is not None and item.get("nullable"):
        detail = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        found.append(forbidden(f"{path}.items.nullable", detail))
    return found


def _set_rules(item: Manifest, path: str) -> list[FieldError]:
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    inner = item.get("x-kubernetes-list-type")
    if item.get("type") == "array" and inner not in (None, "atomic"):
        return [invalid(f"{path}.items.x-kubernetes-list-type", inner, detail)]
    if item.get("type") == "object" and item.get("x-kubernetes-map-type") != "atomic":
        return [invalid(f"{path}.items.x-kubernetes-map-type", None, detail)]
    return []


def _map_rules(schema: Manifest, keys: list[str], item: Manifest | None, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    keys_path = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        found.append(required(keys_path, "must not be empty if x-kubernetes-list-type is map"))
    if item is None:
        if schema.get("items") is None:
            found.append(required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map"))
        return found
    type_name = item.get("type") or ""
    if type_name != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        return [*found, invalid(f"{path}.items.type", type_name, detail)]
    properties: Mapping[str, Any] = item.get("properties") or {}
    needed = set(item.get("required") or ())
    repeated = set(repetitions(keys))
    for index, key in enumerate(keys):
        here = f"{path}.items.properties[{key}]"
        part = properties.get(key)
        if index in repeated:
            found.append(invalid(keys_path, keys, "must not contain duplicate entries"))
        if part is None:
            found.append(invalid(keys_path, keys, "entries must all be names of item properties"))
            continue
        if part.get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            found.append(invalid(f"{here}.type", type_name, detail))
        if key not in needed and part.get("default") is None:
            detail = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default "
                "or be a required property"
            )
            found.append(required(f"{here}.default", detail))
        if part.get("nullable"):
            detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            found.append(forbidden(f"{here}.nullable", detail))
    return found


def _validation_rules(schema: Manifest, path: str) -> list[FieldError]:
    """CEL rules are stored but not evaluated; only static errors are reported."""
    found: list[FieldError] = []
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        here = f"{path}.x-kubernetes-validations[{index}]"
        text, message = str(rule.get("rule") or ""), str(rule.get("message") or "")
        if not text.strip():
            found.append(required(f"{here}.rule", "rule is not specified"))
        elif message and not message.strip():
            found.append(invalid(f"{here}.message", message, "must be non-empty if specified"))
        elif "\n" in message.strip() or "\r" in message.strip():
            found.append(invalid(f"{here}.message", message, "must not contain line breaks"))
        elif ("\n" in text.strip() or "\r" in text.strip()) and not message:
            detail = "message must be specified if rule contains line breaks"
            found.append(required(f"{here}.message", detail))
        reason = rule.get("reason")
        if reason is not None and reason not in _REASONS:
            found.append(not_supported(f"{here}.reason", reason, _REASONS))
    return found
