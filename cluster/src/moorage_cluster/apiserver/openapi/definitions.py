"""OpenAPI schemas of types: built-in ones from the wire format, custom ones from their definitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from moorage.apimachinery.schema.wire import LEAVES, TypeUse, WireField, WireFormat, WireType

REFERENCE: Final = "#/components/schemas/"
REFERENCE_V2: Final = "#/definitions/"
META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
PATCH: Final = f"{META}Patch"

Kind = tuple[str, str, str]
"""Group, version and kind."""


class PublishedSchema(NamedTuple):
    """A schema in both versions of OpenAPI."""

    v3: dict[str, Any]
    v2: dict[str, Any]


Custom = Mapping[Kind, PublishedSchema]
"""The schemas of custom kinds and of their lists."""

_PRIMITIVES: Final[dict[str, dict[str, Any]]] = {
    "string": {"type": "string"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
}
_LEAF_SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    LEAVES["Quantity"]: {"oneOf": [{"type": "string"}, {"type": "number"}]},
    LEAVES["IntOrString"]: {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
    LEAVES["Time"]: {"type": "string", "format": "date-time"},
    LEAVES["MicroTime"]: {"type": "string", "format": "date-time"},
    LEAVES["FieldsV1"]: {"type": "object"},
    LEAVES["RawExtension"]: {"type": "object"},
    PATCH: {"type": "object"},
}


@cache
def descriptions() -> dict[str, str]:
    """Descriptions of types (`Pod`) and fields (`PodSpec.nodeName`), in a sentence."""
    found = {}
    for line in Path(__file__).with_name("descriptions.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, sentence = line.partition(": ")
            found[name] = sentence
    return found


def reference(name: str) -> dict[str, str]:
    """A schema that is another one."""
    return {"$ref": REFERENCE + name}


def kind_extension(kind: Kind) -> dict[str, str]:
    """A kind, as in `x-kubernetes-group-version-kind`."""
    return dict(zip(("group", "version", "kind"), kind, strict=True))


def _use_schema(use: TypeUse) -> dict[str, Any]:
    if use.word == "list" and use.items:
        return {"type": "array", "items": _use_schema(use.items)}
    if use.word == "map" and use.items:
        return {"type": "object", "additionalProperties": _use_schema(use.items)}
    if use.word in _PRIMITIVES:
        return dict(_PRIMITIVES[use.word])
    return reference(use.name or LEAVES[use.word])


def _field_schema(wire: WireType, known: WireField) -> dict[str, Any]:
    schema = _use_schema(known.type)
    facts: dict[str, Any] = {}
    description = descriptions().get(f"{wire.short_name}.{known.name}")
    if description:
        facts["description"] = description
    if known.has_default:
        facts["default"] = known.default
    if known.enum:
        one = schema.get("items") or schema.get("additionalProperties") or facts
        one["enum"] = list(known.enum)
    if known.list_type:
        facts["x-kubernetes-list-type"] = known.list_type
    if known.list_keys:
        facts["x-kubernetes-list-map-keys"] = list(known.list_keys)
    if known.map_type:
        facts["x-kubernetes-map-type"] = known.map_type
    if known.patch:
        facts["x-kubernetes-patch-strategy"] = ",".join(known.patch)
    if known.merge_key:
        facts["x-kubernetes-patch-merge-key"] = known.merge_key
    if facts and "$ref" in schema:
        # Keywords beside a reference are ignored, so the reference goes into `allOf`.
        schema = {"allOf": [schema]}
    return {**schema, **facts}


@cache
def definition(name: str, types: WireFormat) -> dict[str, Any]:
    """The schema of a type by its full name; not to be changed."""
    if name in _LEAF_SCHEMAS:
        return _with_description(name.rpartition(".")[2], dict(_LEAF_SCHEMAS[name]))
    wire = types.type(name)
    schema: dict[str, Any] = {}
    if not wire.untyped:
        schema["type"] = "object"
    if wire.fields:
        schema["properties"] = {known.name: _field_schema(wire, known) for known in wire.fields}
    required = [known.name for known in wire.fields if known.required]
    if required:
        schema["required"] = required
    if wire.kinds:
        schema["x-kubernetes-group-version-kind"] = [kind_extension(kind) for kind in wire.kinds]
    if wire.atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    return _with_description(wire.short_name, schema)


def _with_description(short_name: str, schema: dict[str, Any]) -> dict[str, Any]:
    description = descriptions().get(short_name)
    if not description and short_name.endswith("List"):
        description = f"{short_name} is a list of objects of kind {short_name.removesuffix('List')}."
    return {"description": description, **schema} if description else schema


def custom_name(kind: Kind) -> str:
    """The name of a custom kind's schema: its group backwards, as in `com.example.v1.Backup`."""
    group, version, name = kind
    return ".".join((*reversed(group.split(".")), version, name))


def name_of(kind: Kind, custom: Custom, types: WireFormat) -> str | None:
    """The name of a kind's schema; None if it is unknown."""
    if kind in custom:
        return custom_name(kind)
    wire = types.of_kind(*kind)
    return wire.name if wire else None


def references(schema: Any) -> Iterator[str]:
    """The names of the schemas that a part of a document refers to."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):
                yield value.removeprefix(REFERENCE)
            elif isinstance(value, dict | list):
                yield from references(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from references(item)


def reachable(
    roots: set[str], custom: Mapping[str, dict[str, Any]], types: WireFormat
) -> dict[str, dict[str, Any]]:
    """The schemas of some names and of all that these refer to, sorted by name."""
    found: dict[str, dict[str, Any]] = {}
    wanted = list(roots)
    while wanted:
        name = wanted.pop()
        if name in found or not (name in custom or name in _LEAF_SCHEMAS or name in types):
            continue
        found[name] = custom[name] if name in custom else definition(name, types)
        wanted.extend(_references_of(name, types) if name not in custom else references(custom[name]))
    return dict(sorted(found.items()))


@cache
def _references_of(name: str, types: WireFormat) -> frozenset[str]:
    return frozenset(references(definition(name, types)))
