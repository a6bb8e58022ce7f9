"""Builders of CustomResourceDefinitions, schemas and objects."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from moorage.api.manifests import Manifest

NOW = datetime(2025, 5, 1, 12, 0, tzinfo=UTC)
STRING = {"type": "string"}
INTEGER = {"type": "integer"}


def obj(**properties: Any) -> Manifest:
    """An object schema."""
    return {"type": "object", "properties": properties}


def of_spec(schema: Manifest) -> Manifest:
    """A root schema whose only field is spec.x."""
    return obj(spec=obj(x=schema))


def array(items: Manifest, **more: Any) -> Manifest:
    return {"type": "array", "items": items, **more}


def version(name: str = "v1", schema: Manifest | None = None, **more: Any) -> Manifest:
    chosen = of_spec(STRING) if schema is None else schema
    return {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": chosen}, **more}


def crd(*versions: Manifest, **spec: Any) -> Manifest:
    """A definition of Widgets, with its defaults."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {
                "plural": "widgets",
                "singular": "widget",
                "kind": "Widget",
                "listKind": "WidgetList",
                "shortNames": ["wd"],
                "categories": ["all"],
            },
            "conversion": {"strategy": "None"},
            "versions": list(versions) or [version()],
            **spec,
        },
    }


def widget(**fields: Any) -> Manifest:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, **fields}
