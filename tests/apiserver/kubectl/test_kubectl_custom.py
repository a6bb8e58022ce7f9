from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.apiserver.running import Kubectl

SCHEMA = {
    "type": "object",
    "description": "A boat on the sea.",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["oars"],
            "properties": {
                "oars": {"type": "integer", "minimum": 0, "maximum": 10, "description": "How many oars."},
                "colour": {"type": "string", "enum": ["white", "blue"], "default": "white"},
            },
        },
        "status": {"type": "object", "properties": {"oars": {"type": "integer"}, "crew": {"type": "string"}}},
    },
}
BOATS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "boats.sea.example"},
    "spec": {
        "group": "sea.example",
        "scope": "Namespaced",
        "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "shortNames": ["bo"],
                  "categories": ["all"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.oars", "statusReplicasPath": ".status.oars",
                              "labelSelectorPath": ".status.crew"},
                },
                "additionalPrinterColumns": [
                    {"name": "Oars", "type": "integer", "jsonPath": ".spec.oars"},
                    {"name": "Colour", "type": "string", "jsonPath": ".spec.colour", "priority": 1},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
            }
        ],
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def defined(anywhere: Kubectl) -> Iterator[None]:
    """A definition that is in use while the tests of this module run, and then goes with its objects."""
    anywhere.create(BOATS)
    crd = "customresourcedefinition.apiextensions.k8s.io/boats.sea.example"
    assert anywhere("wait", "--for=condition=Established", "crd/boats.sea.example", "--timeout=20s") == (
        f"{crd} condition met\n"
    )
    yield
    assert anywhere("delete", "crd", "boats.sea.example", "--timeout=20s").endswith(" deleted\n")
    assert "boats" not in anywhere("api-resources", "-o", "name")
    gone = anywhere("get", "--raw", "/apis/sea.example/v1/boats", ok=False)
    assert "the server could not find the requested resource" in gone


def boat(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "sea.example/v1", "kind": "Boat", "metadata": {"name": name}, "spec": spec}


@pytest.mark.usefixtures("defined")
def test_objects_of_a_definition(kubectl: Kubectl) -> None:
    applied = json.dumps(boat("argo", oars=4))
    assert kubectl("apply", "-f", "-", input=applied) == "boat.sea.example/argo created\n"
    assert kubectl("apply", "-f", "-", input=applied) == "boat.sea.example/argo unchanged\n"
    header, row = (line.split() for line in kubectl("get", "boats").splitlines())
    assert (header, row[:2]) == (["NAME", "OARS", "AGE"], ["argo", "4"])
    header, row = (line.split() for line in kubectl("get", "bo", "-o", "wide").splitlines())
    assert (header, row[:3]) == (["NAME", "OARS", "COLOUR", "AGE"], ["argo", "4", "white"])
    assert kubectl("get", "all", "-o", "name") == "boat.sea.example/argo\n"
    described = kubectl("describe", "boat", "argo")
    assert "Spec:\n  Colour:  white\n  Oars:    4\n" in described
    changed = json.dumps(boat("argo", oars=6))
    refused = kubectl("apply", "--server-side", "--field-manager=x", "-f", "-", input=changed, ok=False)
    assert ".spec.oars" in refused
    assert kubectl("delete", "boat", "argo").startswith('boat.sea.example "argo" deleted')


@pytest.mark.usefixtures("defined")
def test_status_and_scale(kubectl: Kubectl) -> None:
    kubectl.create(boat("argo", oars=4))
    merge = ("patch", "boat", "argo", "--type=merge", "-p")
    assert "(no change)" in kubectl(*merge, '{"status":{"oars":9}}')
    kubectl(*merge, '{"status":{"oars":3},"spec":{"oars":9}}', "--subresource=status")
    assert kubectl("scale", "boat", "argo", "--replicas=8") == "boat.sea.example/argo scaled\n"
    argo = kubectl.json("get", "boat", "argo")
    assert argo["status"] == {"oars": 3}
    assert argo["spec"] == {"oars": 8, "colour": "white"}
    assert argo["metadata"]["generation"] == 2
    scale = kubectl.json("get", "boat", "argo", "--subresource=scale")
    assert (scale["kind"], scale["spec"], scale["status"]) == ("Scale", {"replicas": 8}, {"replicas": 3})
    strategic = kubectl("patch", "boat", "argo", "-p", '{"spec":{"oars":2}}', ok=False)
    assert "application/strategic-merge-patch+json is not supported" in strategic


BAD_BOATS: dict[str, tuple[dict[str, Any], str]] = {
    "missing": ({}, 'The Boat "bad" is invalid: spec.oars: Required value'),
    "too many": (
        {"oars": 40},
        "spec.oars: Invalid value: 40: spec.oars in body should be less than or equal to 10",
    ),
    "enum": (
        {"oars": 4, "colour": "red"},
        'spec.colour: Unsupported value: "red": supported values: "white", "blue"',
    ),
    "type": (
        {"oars": "4"},
        'spec.oars: Invalid value: "string": spec.oars in body must be of type integer: "string"',
    ),
    "unknown field": ({"oars": 4, "sail": 1}, 'strict decoding error: unknown field "spec.sail"'),
}


@pytest.mark.usefixtures("defined")
def test_bad_objects(kubectl: Kubectl) -> None:
    for spec, message in BAD_BOATS.values():
        assert message in kubectl("create", "-f", "-", input=json.dumps(boat("bad", **spec)), ok=False)
    assert kubectl("get", "boats", "-o", "name") == ""


@pytest.mark.usefixtures("defined")
def test_a_definition_is_explained(anywhere: Kubectl) -> None:
    output = anywhere("explain", "boat", "--recursive")
    assert "GROUP:      sea.example\nKIND:       Boat\nVERSION:    v1\n" in output
    assert "A boat on the sea." in output
    assert "oars\t<integer> -required-" in output
    assert "How many oars." in anywhere("explain", "boats.spec.oars")


def test_a_bad_definition(anywhere: Kubectl) -> None:
    wrong = json.loads(json.dumps(BOATS))
    wrong["metadata"]["name"] = "ships.sea.example"
    refused = anywhere("create", "-f", "-", input=json.dumps(wrong), ok=False)
    assert (
        'metadata.name: Invalid value: "ships.sea.example": must be spec.names.plural+"."+spec.group'
        in refused
    )
