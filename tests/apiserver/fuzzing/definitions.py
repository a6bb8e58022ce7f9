"""CustomResourceDefinitions: sound ones with schemas of every sort, and ones that are not so sound."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.apiserver.fuzzing.values import chance, strange

Manifest = dict[str, Any]
_TYPES = ("string", "integer", "number", "boolean", "array", "object")
_FORMATS = ("date-time", "byte", "int32", "int64", "uuid", "ipv4", "cidr", "email", "duration", "bogus")
_PATTERNS = ("^[a-z]+$", "(a+)+$", "[", "\\d{1,5}", "(?i)x", "\\p{Greek}", "^$", "a{1,99999}", "(?P<n>x)")
_RULES = (
    "self == self",
    "self.x > 0",
    "self.size() < 3",
    "oldSelf == self",
    "1 +",
    "has(self.x)",
    "self.all(i, i)",
    "x" * 50,
)
PLURALS = ("widgets", "gadgets", "gizmos")


def definition(random: Random) -> Manifest:
    """A definition."""
    plural = random.choice(PLURALS)
    group = random.choice(("example.com", "example.com", "fuzz.example.org"))
    kind = plural[:-1].capitalize()
    versions = [_version(random, name) for name in random.choice((["v1"], ["v1", "v1beta1"], ["v2", "v1"]))]
    for index, version in enumerate(versions):
        version["storage"] = index == 0
    names: dict[str, Any] = {
        "plural": plural,
        "singular": plural[:-1],
        "kind": kind,
        "listKind": f"{kind}List",
    }
    if chance(random, 4):
        names |= {"shortNames": [plural[:2]], "categories": ["all"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": random.choice(("Namespaced", "Namespaced", "Cluster")),
            "names": names,
            "versions": versions,
        },
    }


def _version(random: Random, name: str) -> Manifest:
    root = _struct(random, 0)
    if not chance(random, 3):
        root.setdefault("properties", {})["spec"] = _struct(random, 1)
        root["properties"]["status"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: Manifest = {"name": name, "served": not chance(random, 8), "schema": {"openAPIV3Schema": root}}
    if chance(random, 2):
        scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
        if chance(random, 2):
            scale["labelSelectorPath"] = random.choice((".status.selector", ".spec.x", ".x[0]"))
        version["subresources"] = {"status": {}, "scale": scale}
    if chance(random, 3):
        path = random.choice(
            (".spec.x", ".metadata.name", ".spec['x']", ".spec.a[0]", ".spec.a[*].x", "{", "..x")
        )
        column = {"name": "X", "type": random.choice((*_TYPES, "date")), "jsonPath": path}
        version["additionalPrinterColumns"] = [column]
    if chance(random, 4):
        version["selectableFields"] = [{"jsonPath": random.choice((".spec.x", ".spec.replicas", ".x"))}]
    return version


def _struct(random: Random, depth: int) -> Manifest:
    schema: Manifest = {"type": "object"}
    properties = {
        name: _schema(random, depth + 1) for name in ("x", "a", "replicas", "name") if random.random() < 0.5
    }
    if properties:
        schema["properties"] = properties
    if chance(random, 3):
        schema["x-kubernetes-preserve-unknown-fields"] = True
    if properties and chance(random, 3):
        schema["required"] = [random.choice(list(properties))]
    return schema


def _schema(random: Random, depth: int) -> Manifest:
    """A schema of any type; most are structural."""
    kind = random.choice(_TYPES[:4] if depth > 4 else _TYPES)
    schema: Manifest = {"type": kind}
    if kind == "object":
        if chance(random, 3):
            schema["additionalProperties"] = _schema(random, depth + 1)
        else:
            schema = _struct(random, depth)
    elif kind == "array":
        schema["items"] = _schema(random, depth + 1)
        if chance(random, 3):
            schema["x-kubernetes-list-type"] = random.choice(("set", "atomic", "map"))
        if schema.get("x-kubernetes-list-type") == "map":
            schema["items"] = {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}},
            }
            schema["x-kubernetes-list-map-keys"] = ["name"]
    if kind == "string" and chance(random, 3):
        schema |= random.choice(({"format": random.choice(_FORMATS)}, {"pattern": random.choice(_PATTERNS)}))
    if chance(random, 12):
        schema["x-kubernetes-validations"] = [{"rule": random.choice(_RULES), "message": "no"}]
    for name, value in (
        ("default", strange(random)),
        ("nullable", True),
        ("enum", [strange(random), "x"]),
        ("minimum", random.choice((0, 1.5, -1))),
        ("maximum", random.choice((5, 1e300))),
        ("exclusiveMaximum", True),
        ("multipleOf", random.choice((2, 0.1, 1e-300, 0))),
        ("minLength", random.choice((0, 2))),
        ("maxLength", random.choice((0, 5, -1))),
        ("uniqueItems", random.choice((False, True))),
        ("maxItems", random.choice((0, 2, 2**62))),
        ("minProperties", 1),
        ("x-kubernetes-int-or-string", True),
        ("x-kubernetes-embedded-resource", True),
        ("not", {"enum": ["x"]}),
        ("anyOf", [{"minimum": 1}, {"pattern": "^a"}]),
        ("allOf", [{"required": ["x"]}]),
        ("oneOf", [{"type": "string"}, {"minLength": 1}]),
    ):
        if chance(random, 45):
            schema[name] = value
    return schema


def value_of(schema: Any, random: Random, depth: int = 0) -> Any:
    """A value that may fit a schema."""
    if not isinstance(schema, dict) or depth > 6 or chance(random, 12):
        return strange(random)
    match schema.get("type"):
        case "object":
            properties = schema.get("properties")
            if isinstance(properties, dict) and properties:
                return {
                    name: value_of(one, random, depth + 1)
                    for name, one in properties.items()
                    if chance(random, 2)
                }
            inside = schema.get("additionalProperties")
            return {name: value_of(inside, random, depth + 1) for name in ("x", "y") if chance(random, 2)}
        case "array":
            return [value_of(schema.get("items"), random, depth + 1) for _ in range(random.randrange(3))]
        case "integer":
            return random.choice((0, 1, 3, -1, 2**31, 1.0))
        case "number":
            return random.choice((0, 1.5, 1e300, 2**60, -0.0))
        case "boolean":
            return chance(random, 2)
        case "string":
            return random.choice(
                ("", "x", "abc", "2026-03-01T12:00:00Z", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "10.0.0.1")
            )
    return strange(random)
