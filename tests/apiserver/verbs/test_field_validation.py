"""Fields that are unknown or there twice: what clients are told, by how strict they are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.client import Answer, Cluster

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BOATS = "/apis/example.com/v1/boats"
MAPS = "/api/v1/namespaces/default/configmaps"
YAML = {"content-type": "application/yaml"}

TEXT = {"type": "string"}
KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "required": ["name"], "properties": {"name": TEXT}},
}
INSIDE = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "properties": {"metadata": {"type": "object"}, "spec": {"type": "object"}},
}
SCHEMA = {
    "type": "object",
    "properties": {
        "hull": {"type": "object", "properties": {"wood": TEXT}},
        "crew": KEYED,
        "cargo": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"inside": INSIDE, "weight": TEXT},
        },
        "bare": {"type": "object"},
    },
}


@pytest.fixture
def boats(cluster: Cluster) -> Cluster:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}
    names = {"plural": "boats", "kind": "Boat"}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    cluster.create(DEFINITIONS, {"metadata": {"name": "boats.example.com"}, "spec": spec})
    return cluster


def boat(metadata: str = "", **fields: str) -> bytes:
    """A boat as JSON, with the texts of its fields as they are."""
    parts = "".join(f',"{name}":{text}' for name, text in fields.items())
    text = f'{{"apiVersion":"example.com/v1","kind":"Boat","metadata":{{"name":"ark"{metadata}}}{parts}}}'
    return text.encode()


BODIES: dict[str, tuple[bytes, list[str]]] = {
    "unknown and twice": (
        boat(hull='{"wood":"oak","wood":"ash"}', zeal='{"x":1,"x":2}'),
        ['duplicate field "hull.wood"', 'duplicate field "zeal.x"', 'unknown field "zeal"'],
    ),
    "twice where all is preserved": (boat(cargo='{"any":1,"any":2}'), ['duplicate field "cargo.any"']),
    "metadata": (
        boat(
            metadata=',"motto":"x"',
            cargo='{"inside":{"apiVersion":"v1","kind":"A","metadata":{"motto":"y"},"extra":1}}',
        ),
        [
            'unknown field "metadata.motto"',
            'unknown field "cargo.inside.extra"',
            'unknown field "cargo.inside.metadata.motto"',
        ],
    ),
}


@pytest.mark.parametrize(("body", "messages"), BODIES.values(), ids=BODIES)
def test_custom_objects(boats: Cluster, body: bytes, messages: list[str]) -> None:
    strict = boats.request("POST", BOATS, body, fieldValidation="Strict")
    assert (strict.code, strict.message) == (
        400,
        f'Boat in version "v1" cannot be handled as a Boat: strict decoding error: {", ".join(messages)}',
    )
    warned = boats.request("POST", BOATS, body)
    assert warned.code == 201
    for sentence in messages:
        assert sentence.replace('"', '\\"') in warned.headers["Warning"]
    boats.delete(f"{BOATS}/ark")
    assert "Warning" not in boats.request("POST", BOATS, body, fieldValidation="Ignore").headers


def test_built_in_objects_are_warned_of_what_is_there_twice(cluster: Cluster) -> None:
    body = b'{"metadata":{"name":"a","name":"a"},"data":{"k":"1","k":"2"},"more":1}'
    answer = cluster.request("POST", MAPS, body)
    assert answer["data"] == {"k": "2"}
    assert answer.headers["Warning"] == (
        r'299 - "unknown field \"more\"", 299 - "duplicate field \"metadata.name\"", '
        r'299 - "duplicate field \"data.k\""'
    )


def test_keys_that_yaml_has_twice_are_named_by_their_line(cluster: Cluster) -> None:
    body = b"metadata:\n  name: a\ndata:\n  k: x\n  k: z\nmore: 1\n"
    strict = cluster.request("POST", MAPS, body, YAML, fieldValidation="Strict")
    assert strict.message.endswith(
        'strict decoding error: yaml: unmarshal errors:\n  line 5: key "k" already set in map, '
        'unknown field "more"'
    )
    warned = cluster.request("POST", MAPS, body, YAML)
    assert warned.headers["Warning"] == (
        r'299 - "line 5: key \"k\" already set in map", 299 - "unknown field \"more\""'
    )


PATCHED: dict[str, tuple[str, bytes, str, str]] = {
    "merge": (
        "merge",
        b'{"data":{"k":"2","k":"3"},"more":1}',
        '"data":{"k":"3"}',
        'duplicate field "data.k", unknown field "more"',
    ),
    "strategic": (
        "strategic",
        b'{"data":{"k":"2","k":"3"},"more":1}',
        "map[data:map[k:3] more:1]",
        'duplicate field "data.k", unknown field "more"',
    ),
    "json": (
        "json",
        b'[{"op":"add","path":"/more","value":1,"x":1},{"op":"add","path":"/data","path":"/data","value":{}}]',
        '"data":{}',
        'json patch unknown field "[0].x", json patch duplicate field "[1].path", unknown field "more"',
    ),
}


@pytest.mark.parametrize(("kind", "patch", "value", "messages"), PATCHED.values(), ids=PATCHED)
def test_patches(cluster: Cluster, kind: str, patch: bytes, value: str, messages: str) -> None:
    cluster.create(MAPS, {"metadata": {"name": "a"}, "data": {"k": "1"}})
    strict = cluster.patch(f"{MAPS}/a", kind, patch, fieldValidation="Strict")
    assert (strict.code, strict["reason"]) == (422, "Invalid")
    assert strict.message.startswith(' "" is invalid: patch: Invalid value: "')
    assert strict.message.endswith(f'": strict decoding error: {messages}')
    assert value.replace('"', '\\"') in strict.message
    warned = cluster.patch(f"{MAPS}/a", kind, patch).headers["Warning"]
    assert warned.count("299 - ") == messages.count(",") + 1
    assert "Warning" not in cluster.patch(f"{MAPS}/a", kind, patch, fieldValidation="Ignore").headers


UNDECLARED: dict[str, tuple[bytes, str]] = {
    "at the root": (boat(zeal="1"), ".zeal: field not declared in schema"),
    "in an object": (boat(hull='{"wood":"oak","nails":1}'), ".hull.nails: field not declared in schema"),
    "in a list": (
        boat(crew='[{"name":"Noah","age":5}]'),
        '.crew[name="Noah"].age: field not declared in schema',
    ),
    "in metadata": (
        boat(metadata=',"motto":"x"', cargo='{"inside":{"metadata":{"motto":"y"},"extra":1}}'),
        "errors:\n  .metadata.motto: field not declared in schema\n"
        "  .cargo.inside.metadata.motto: field not declared in schema",
    ),
}


@pytest.mark.parametrize("validation", ["Strict", "Warn", "Ignore"])
@pytest.mark.parametrize(("body", "messages"), UNDECLARED.values(), ids=UNDECLARED)
def test_apply_refuses_what_a_kind_does_not_have(
    boats: Cluster, body: bytes, messages: str, validation: str
) -> None:
    answer = boats.patch(f"{BOATS}/ark", "apply", body, fieldManager="m", fieldValidation=validation)
    assert (answer.code, answer.message) == (
        500,
        f"failed to create typed patch object (/ark; example.com/v1, Kind=Boat): {messages}",
    )
    assert "reason" not in answer.json


def test_apply_drops_what_a_bare_object_does_not_have(boats: Cluster) -> None:
    body = boat(bare='{"x":1}', cargo='{"any":1}')
    answer = boats.patch(f"{BOATS}/ark", "apply", body, fieldManager="m", fieldValidation="Strict")
    assert (answer["bare"], answer["cargo"]) == ({}, {"any": 1})


TWICE = {
    "yaml": (b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: x\n  k: z\n", 7),
    "json": (b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"x","k":"z"}}', 1),
}


@pytest.mark.parametrize(("body", "line"), TWICE.values(), ids=TWICE)
def test_apply_reads_every_body_as_yaml(cluster: Cluster, body: bytes, line: int) -> None:
    def applied(validation: str) -> Answer:
        return cluster.patch(f"{MAPS}/a", "apply", body, fieldManager="m", fieldValidation=validation)

    strict = applied("Strict")
    assert (strict.code, strict.message) == (
        400,
        "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n"
        f'  line {line}: key "k" already set in map',
    )
    assert applied("Warn").headers["Warning"] == rf'299 - "line {line}: key \"k\" already set in map"'
    assert "Warning" not in applied("Ignore").headers


def test_schemas_in_two_forms_lose_what_says_nothing(cluster: Cluster) -> None:
    """As clients send them that speak protobuf, which has no way to leave a keyword out."""
    messages: dict[str, Any] = {"type": "string", "description": "d", "default": ""}
    nothing = {"title": "", "nullable": False, "x-kubernetes-int-or-string": False, "enum": [], "unknown": 1}
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": messages | nothing},
            "b": {"type": "object", "additionalProperties": {"type": "array", "items": messages | nothing}},
            "c": {"type": "object", "additionalProperties": False},
        },
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "boats", "kind": "Boat"}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    made = cluster.create(DEFINITIONS, {"metadata": {"name": "boats.example.com"}, "spec": spec})
    fields = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert fields["a"]["items"] == messages
    assert fields["b"]["additionalProperties"]["items"] == messages
    assert fields["c"]["additionalProperties"] is False
