"""How patches merge at well-known places."""

from __future__ import annotations

import pytest

from moorage.apimachinery.schema import schema_of
from moorage.apimachinery.schema.shape import Form, Shape


def at(group: str, kind: str, path: str, version: str = "v1") -> Shape:
    known = schema_of(group, version, kind)
    assert known is not None
    shape = known.shape
    for name in path.split("."):
        shape = shape.fields[name]
        while name != path.rpartition(".")[2] and shape.form in (Form.LIST, Form.MAP):
            assert shape.items is not None
            shape = shape.items
    return shape


@pytest.mark.parametrize(
    ("group", "kind", "path", "facts"),
    [
        ("", "Pod", "spec", {"form": Form.OBJECT, "atomic": False}),
        (
            "",
            "Pod",
            "spec.containers",
            {"keys": ("name",), "merge_key": "name", "merges": True, "atomic": False},
        ),
        (
            "",
            "Pod",
            "spec.containers.ports",
            {"keys": ("containerPort", "protocol"), "merge_key": "containerPort"},
        ),
        ("", "Pod", "spec.tolerations", {"atomic": True, "merges": False, "keys": ()}),
        ("", "Pod", "spec.volumes", {"merges": True}),
        ("", "Pod", "spec.containers.args", {"atomic": True, "merges": False}),
        ("", "Pod", "spec.nodeSelector", {"form": Form.MAP, "atomic": True, "merges": True}),
        ("", "Pod", "metadata.labels", {"form": Form.MAP, "atomic": False, "merges": True}),
        ("", "Pod", "metadata.finalizers", {"is_set": True, "merges": True, "atomic": False}),
        ("", "Pod", "metadata.ownerReferences", {"keys": ("uid",), "merge_key": "uid"}),
        ("", "Pod", "metadata.managedFields.fieldsV1", {"form": Form.ANY}),
        ("", "Pod", "spec.containers.resources.limits", {"form": Form.MAP}),
        ("", "Node", "spec.taints", {"atomic": True, "merges": False}),
        ("", "Service", "spec.ports", {"keys": ("port", "protocol"), "merge_key": "port"}),
        ("", "Service", "spec.selector", {"atomic": True}),
        ("apps", "Deployment", "spec.selector", {"form": Form.OBJECT, "atomic": True}),
        ("apps", "Deployment", "spec.strategy", {"form": Form.OBJECT}),
        ("policy", "PodDisruptionBudget", "spec.selector", {"merges": False}),
    ],
)
def test_shapes(group: str, kind: str, path: str, facts: dict[str, object]) -> None:
    shape = at(group, kind, path)
    assert {fact: getattr(shape, fact) for fact in facts} == facts


def test_keys_have_defaults() -> None:
    assert at("", "Pod", "spec.containers.ports").key_defaults == {"containerPort": 0, "protocol": "TCP"}


def test_a_recursive_type_contains_its_own_shape() -> None:
    props = at("apiextensions.k8s.io", "CustomResourceDefinition", "spec.versions.schema.openAPIV3Schema")
    assert props.fields["not"] is props
    properties = props.fields["properties"]
    assert properties.items is props
    assert properties.form is Form.MAP
