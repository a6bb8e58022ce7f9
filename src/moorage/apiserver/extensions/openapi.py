"""The schemas of custom kinds as they are published at /openapi/v3."""

from __future__ import annotations

from typing import Any, Final

from moorage.api.manifests import Manifest, copy
from moorage.apiserver.extensions.keywords import parts_of

_META: Final = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1"
_API_VERSION: Final = {
    "type": "string",
    "description": "The group and version of the schema that this object follows, such as `example.com/v1`.",
}
_KIND: Final = {
    "type": "string",
    "description": "The kind of this object, in CamelCase. It cannot be changed.",
}
_METADATA: Final = {
    "description": "The object's name, labels and all else that every object has.",
    "allOf": [{"$ref": f"{_META}.ObjectMeta"}],
    "default": {},
}
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]


def openapi_schema(crd: Manifest, version: str) -> dict[str, Any]:
    """The schema of one version of a definition's kind."""
    spec = crd["spec"]
    chosen: Manifest = next((each for each in spec["versions"] if each.get("name") == version), {})
    declared = (chosen.get("schema") or {}).get("openAPIV3Schema")
    schema: dict[str, Any] = {"type": "object"}
    if declared:
        schema = copy(declared)
        _complete(schema)
        schema.setdefault("properties", {}).update(_object_fields())
    schema["x-kubernetes-group-version-kind"] = [_gvk(spec, version, spec["names"]["kind"])]
    selectable = chosen.get("selectableFields")
    if selectable:
        schema["x-kubernetes-selectable-fields"] = [
            {"fieldPath": field.get("jsonPath", "").removeprefix(".")} for field in selectable
        ]
    return schema


def _gvk(spec: Manifest, version: str, kind: str) -> dict[str, str]:
    return {"group": spec["group"], "version": version, "kind": kind}


def _object_fields() -> dict[str, Any]:
    return {"apiVersion": dict(_API_VERSION), "kind": dict(_KIND), "metadata": copy(_METADATA)}


def _complete(schema: dict[str, Any]) -> None:
    """Say in plain OpenAPI what Kubernetes' extensions imply."""
    for part, _ in parts_of(schema, ""):
        if isinstance(part, dict):
            _complete(part)
    if schema.get("x-kubernetes-embedded-resource"):
        schema.setdefault("properties", {}).update(_object_fields())
        needed = schema.setdefault("required", [])
        needed.extend(key for key in ("kind", "apiVersion") if key not in needed)
    if schema.get("x-kubernetes-int-or-string"):
        first: dict[str, Any] = (schema.get("allOf") or [{}])[0]
        if _INT_OR_STRING not in (schema.get("anyOf"), first.get("anyOf")):
            if schema.get("anyOf") is None:
                schema["anyOf"] = copy(_INT_OR_STRING)
            else:
                schema["allOf"] = [{"anyOf": copy(_INT_OR_STRING)}, *(schema.get("allOf") or ())]
