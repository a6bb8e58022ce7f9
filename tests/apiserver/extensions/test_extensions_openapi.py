"""The schemas of custom kinds as the OpenAPI documents publish them."""

from __future__ import annotations

from typing import Any

import pytest

from moorage_cluster.apiserver.extensions.openapi import published_schemas
from moorage_cluster.apiserver.openapi.definitions import PublishedSchema
from tests.apiserver.extensions.definitions import INTEGER, STRING, crd, of_spec, version

PRESERVING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True}
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
WIDGET = ("example.com", "v1", "Widget")
WIDGET_LIST = ("example.com", "v1", "WidgetList")


def published(schema: dict[str, Any], **more: Any) -> PublishedSchema:
    return published_schemas(crd(version(schema=schema, **more)), "v1")[WIDGET]


def field(schema: dict[str, Any]) -> dict[str, Any]:
    """The field that `of_spec` puts a schema at."""
    found: dict[str, Any] = schema["properties"]["spec"]["properties"]["x"]
    return found


def test_schema_of_an_object() -> None:
    declared = of_spec({"x-kubernetes-int-or-string": True})
    v3, v2 = published(declared, selectableFields=[{"jsonPath": ".spec.x"}])
    for schema in (v3, v2):
        assert sorted(schema["properties"]) == ["apiVersion", "kind", "metadata", "spec"]
        assert schema["properties"]["apiVersion"]["description"].startswith(
            "APIVersion defines the versioned"
        )
        assert schema["properties"]["metadata"]["description"].startswith("Standard object's metadata.")
        assert schema["x-kubernetes-group-version-kind"] == [
            {"group": "example.com", "version": "v1", "kind": "Widget"}
        ]
        assert schema["x-kubernetes-selectable-fields"] == [{"fieldPath": "spec.x"}]
    assert v3["properties"]["metadata"]["allOf"] == [{"$ref": f"#/components/schemas/{META}.ObjectMeta"}]
    assert v2["properties"]["metadata"]["$ref"] == f"#/definitions/{META}.ObjectMeta"
    assert field(v3)["anyOf"] == [INTEGER, STRING]
    assert "metadata" not in declared["properties"], "the definition stays as it is"


def test_schema_of_a_list() -> None:
    v3, v2 = published_schemas(crd(), "v1")[WIDGET_LIST]
    assert v3["description"] == "WidgetList is a list of Widget"
    assert v3["properties"]["items"]["items"] == {"$ref": "#/components/schemas/com.example.v1.Widget"}
    assert v2["properties"]["items"]["items"] == {"$ref": "#/definitions/com.example.v1.Widget"}
    assert v2["properties"]["metadata"]["$ref"] == f"#/definitions/{META}.ListMeta"
    assert v2["x-kubernetes-group-version-kind"][0]["kind"] == "WidgetList"


def test_embedded_objects_have_a_kind_and_metadata() -> None:
    v3, v2 = published(of_spec(EMBEDDED | PRESERVING))
    assert sorted(field(v3)["properties"]) == ["apiVersion", "kind", "metadata"]
    assert field(v3)["required"] == ["kind", "apiVersion"]
    assert field(v2) == {
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    _, closed = published(of_spec(EMBEDDED | {"properties": {"spec": {"type": "object"}}}))
    assert sorted(field(closed)["properties"]) == ["apiVersion", "kind", "metadata", "spec"]


V2: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "what is preserved has no type": (
        PRESERVING | {"description": "d", "properties": {"a": STRING}},
        {"description": "d", "x-kubernetes-preserve-unknown-fields": True},
    ),
    "what may be null has no type": (INTEGER | {"nullable": True, "minimum": 1}, {"minimum": 1}),
    "an array of what may be null": (
        {"type": "array", "items": STRING | {"nullable": True}},
        {"type": "array", "items": {}},
    ),
    "a null array": ({"type": "array", "nullable": True, "items": STRING}, {}),
    "no defaults": (INTEGER | {"default": 5}, INTEGER),
    "no alternatives": (
        INTEGER | {"anyOf": [{"minimum": 1}], "allOf": [{"minimum": 1}], "not": {"enum": [2]}},
        INTEGER,
    ),
    "fields that may be null are not required": (
        {
            "type": "object",
            "required": ["a", "b"],
            "properties": {"a": STRING | {"nullable": True}, "b": STRING},
        },
        {"type": "object", "required": ["b"], "properties": {"a": {}, "b": STRING}},
    ),
    "none is required": (
        {"type": "object", "required": ["a"], "properties": {"a": STRING | {"nullable": True}}},
        {"type": "object", "properties": {"a": {}}},
    ),
}


@pytest.mark.parametrize(("declared", "expected"), V2.values(), ids=V2)
def test_version_2(declared: dict[str, Any], expected: dict[str, Any]) -> None:
    v3, v2 = published(of_spec(declared))
    assert field(v2) == expected
    assert field(v3) == declared


def test_kinds_that_preserve_everything_are_plain_objects_in_version_2() -> None:
    v3, v2 = published(PRESERVING | {"description": "d", "properties": {"spec": STRING}})
    assert v2.keys() == {"type", "x-kubernetes-group-version-kind"}
    assert v3["properties"]["spec"] == STRING
