"""The schemas of custom kinds and of their lists, as the OpenAPI documents publish them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moorage.api.manifests import Manifest, copy
from moorage_cluster.apiserver.extensions.keywords import parts_of
from moorage_cluster.apiserver.openapi.definitions import (
    META,
    REFERENCE,
    REFERENCE_V2,
    Kind,
    PublishedSchema,
    custom_name,
    kind_extension,
)

_Schema = dict[str, Any]

_CONVENTIONS: Final = (
    "More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
)
_TYPE_FIELDS: Final = {
    "apiVersion": "APIVersion defines the versioned schema of this representation of an object. Servers "
    "should convert recognized schemas to the latest internal value, and may reject unrecognized values. "
    f"{_CONVENTIONS}#resources",
    "kind": "Kind is a string value representing the REST resource this object represents. Servers may infer "
    "this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. "
    f"{_CONVENTIONS}#types-kinds",
}
_EMBEDDED_TYPE_FIELDS: Final = {
    "apiVersion": "apiVersion defines the versioned schema of this representation of an object. "
    f"{_CONVENTIONS}#resources",
    "kind": "kind is a string value representing the type of this object. In CamelCase. "
    f"{_CONVENTIONS}#types-kinds",
}
_METADATA: Final = f"Standard object's metadata. {_CONVENTIONS}#metadata"
_LIST_METADATA: Final = f"Standard list metadata. {_CONVENTIONS}#types-kinds"
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_PRESERVES: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_NOT_IN_V2: Final = frozenset(("allOf", "anyOf", "default", "not", "nullable", "oneOf"))
"""Keywords that version 2 does not have, or that its clients do not handle."""


def published_schemas(crd: Manifest, version: str) -> dict[Kind, PublishedSchema]:
    """The schemas of one version of a definition's kind, and of lists of it."""
    spec = crd["spec"]
    chosen: Manifest = next((each for each in spec["versions"] if each.get("name") == version), {})
    declared = (chosen.get("schema") or {}).get("openAPIV3Schema")
    kind = (spec["group"], version, spec["names"]["kind"])
    list_kind = (*kind[:2], spec["names"].get("listKind") or f"{kind[2]}List")
    extensions = _selectable_fields(chosen)
    return {
        each: PublishedSchema(
            *(
                {**schema, "x-kubernetes-group-version-kind": [kind_extension(each)], **extensions}
                for schema in schemas
            )
        )
        for each, schemas in (
            (kind, (_object_schema_v3(declared), _object_schema_v2(declared))),
            (list_kind, tuple(_list_schema(kind, list_kind, spec, is_v2) for is_v2 in (False, True))),
        )
    }


def _selectable_fields(version: Manifest) -> _Schema:
    fields = version.get("selectableFields")
    if not fields:
        return {}
    paths = [{"fieldPath": field.get("jsonPath", "").removeprefix(".")} for field in fields]
    return {"x-kubernetes-selectable-fields": paths}


def _list_schema(kind: Kind, list_kind: Kind, spec: Manifest, is_v2: bool) -> _Schema:
    prefix = REFERENCE_V2 if is_v2 else REFERENCE
    return {
        "description": f"{list_kind[2]} is a list of {kind[2]}",
        "type": "object",
        "required": ["items"],
        "properties": {
            **_type_fields(_TYPE_FIELDS),
            "items": {
                "description": f"List of {spec['names']['plural']}. {_CONVENTIONS}",
                "type": "array",
                "items": {"$ref": prefix + custom_name(kind)},
            },
            "metadata": _reference("ListMeta", _LIST_METADATA, is_v2),
        },
    }


def _type_fields(descriptions: Mapping[str, str]) -> _Schema:
    return {name: {"description": text, "type": "string"} for name, text in descriptions.items()}


def _reference(name: str, description: str, is_v2: bool) -> _Schema:
    """A field of another type; version 3 ignores keywords beside a reference."""
    if is_v2:
        return {"description": description, "$ref": f"{REFERENCE_V2}{META}{name}"}
    return {"description": description, "allOf": [{"$ref": f"{REFERENCE}{META}{name}"}]}


def _with_object_fields(schema: _Schema, descriptions: Mapping[str, str], is_v2: bool) -> _Schema:
    fields = {**_type_fields(descriptions), "metadata": _reference("ObjectMeta", _METADATA, is_v2)}
    return {**schema, "properties": {**schema.get("properties", {}), **fields}}


def _embedded(schema: _Schema, is_v2: bool) -> _Schema:
    """The schema of an object inside an object, which has a kind and metadata as every object has."""
    needed = list(schema.get("required") or ())
    needed += [key for key in ("kind", "apiVersion") if key not in needed]
    return _with_object_fields({**schema, "required": needed}, _EMBEDDED_TYPE_FIELDS, is_v2)


def _object_schema_v3(declared: _Schema | None) -> _Schema:
    if not declared:
        return {"type": "object"}
    schema = copy(declared)
    _complete(schema)
    return _with_object_fields(schema, _TYPE_FIELDS, is_v2=False)


def _complete(schema: _Schema) -> None:
    """Express Kubernetes' extensions in plain OpenAPI."""
    for part, _ in parts_of(schema, ""):
        if isinstance(part, dict):
            _complete(part)
    if schema.get(_EMBEDDED):
        schema.update(_embedded(schema, is_v2=False))
    if schema.get("x-kubernetes-int-or-string"):
        first: _Schema = (schema.get("allOf") or [{}])[0]
        if _INT_OR_STRING not in (schema.get("anyOf"), first.get("anyOf")):
            if schema.get("anyOf") is None:
                schema["anyOf"] = copy(_INT_OR_STRING)
            else:
                schema["allOf"] = [{"anyOf": copy(_INT_OR_STRING)}, *(schema.get("allOf") or ())]


def _object_schema_v2(declared: _Schema | None) -> _Schema:
    """A kind in version 2. With properties, kubectl would reject unknown fields that are preserved."""
    if not declared or declared.get(_PRESERVES):
        return {"type": "object"}
    return _with_object_fields(_as_v2(declared), _TYPE_FIELDS, is_v2=True)


def _as_v2(schema: _Schema) -> _Schema:
    """A schema without the keywords that version 2 lacks; untyped where kubectl would be too strict."""
    is_nullable, preserves = schema.get("nullable"), schema.get(_PRESERVES)
    found = {key: copy(value) for key, value in schema.items() if key not in _NOT_IN_V2}
    if is_nullable or preserves:
        found.pop("items", None)
        found.pop("properties", None)
    is_open = (preserves and found.get("type") == "object") or (
        found.get("type") == "array" and "items" not in found
    )
    if is_nullable or is_open:
        found.pop("type", None)
    _keep_required(found)
    properties: Mapping[str, _Schema] = found.get("properties") or {}
    if properties:
        found["properties"] = {key: _as_v2(part) for key, part in properties.items()}
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), dict):
            found[key] = _as_v2(found[key])
    return _embedded(found, is_v2=True) if found.get(_EMBEDDED) and not preserves else found


def _keep_required(schema: _Schema) -> None:
    """Remove nullable fields from `required`: version 2 has no null."""
    if "required" not in schema:
        return
    properties: Mapping[str, _Schema] = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    needed = [key for key in schema["required"] if not properties.get(key, {}).get("nullable")]
    if isinstance(additional, dict) and additional.get("nullable"):
        needed = []
    if needed:
        schema["required"] = needed
    else:
        del schema["required"]
