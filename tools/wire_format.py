"""Write `src/moorage/apimachinery/schema/wire.txt` from checkouts of Kubernetes, one of each version.

    python tools/wire_format.py v1.36.4=~/kubernetes-1.36 v1.37.0-rc.1=~/kubernetes-1.37

Run it for each new version of Kubernetes, then read the diff: it shows what changed in the API.
Facts come from three places: the published OpenAPI documents (fields, lists, patches), the tags of Go structs
(names of types, numbers in protobuf) and the generated OpenAPI definitions (enums, which the published
documents leave out).
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from moorage.apimachinery.schema.wire import (
    LEAVES,
    ZERO_VALUES,
    TypeUse,
    WireField,
    WireType,
    merge_versions,
    render,
)

SERVED = (
    "/v1",
    "apps/v1",
    "batch/v1",
    "policy/v1",
    "autoscaling/v1",
    "autoscaling/v2",
    "certificates.k8s.io/v1",
    "networking.k8s.io/v1",
    "discovery.k8s.io/v1",
    "scheduling.k8s.io/v1",
    "scheduling.k8s.io/v1alpha2",
    "scheduling.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1beta1",
    "node.k8s.io/v1",
    "storage.k8s.io/v1",
    "coordination.k8s.io/v1",
    "events.k8s.io/v1",
    "resource.k8s.io/v1",
    "rbac.authorization.k8s.io/v1",
    "apiextensions.k8s.io/v1",
    "admissionregistration.k8s.io/v1",
    "apiregistration.k8s.io/v1",
    "authentication.k8s.io/v1",
    "authorization.k8s.io/v1",
)
NOT_SERVED = frozenset(("ClusterTrustBundle", "PodCertificateRequest"))
"""Kinds of these versions that the embedded server does not have."""
GATED = frozenset(
    (
        "AtomicWriteVolumeUserFields",
        "CSIVolumeHealth",
        "DRADerivedAttributes",
        "DRADeviceCompatibilityGroups",
        "DRANodeAllocatableResources",
        "DRAOptionalNodeOperations",
        "DRAPartitionableDevicesType",
        "EmptyDirVolumeMode",
        "EvictionRequestAPI",
        "GRPCContainerProbeTLS",
        "GenericWorkload",
        "H2CContainerProbe",
        "InPlacePodVerticalScalingSchedulerPreemption",
        "VolumeBindMountOptions",
        "WorkloadWithJob",
    )
)
"""Gates that are off by default since v1.37, and whose fields a server drops without more ado."""
TARGET = Path(__file__).parents[1] / "src/moorage/apimachinery/schema/wire.txt"

_LEAF_WORDS = {name: word for word, name in LEAVES.items()}
_REF = "#/components/schemas/"
_GO_PRIMITIVES = frozenset(("string", "int", "int32", "int64", "float64", "bool", "byte", "uint8"))
_V1_ALIASES = frozenset(("metav1", "corev1", "apiv1"))
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_GO_FIELD = re.compile(r"((?:^\t//.*\n)*)^\t(?:(\w+)[ \t]+)?([*\[\]\w.]+)[ \t]+`([^`]*)`", re.MULTILINE)
_GATE = re.compile(r"^\t// \+featureGate=(\w+)$", re.MULTILINE)
_ENUMS = re.compile(
    r'^func schema_(\w+)\(ref|^\t{5}"([^"]+)": \{\n|^\t+Enum: +\[\]interface\{\}\{(.*)\},', re.MULTILINE
)


@dataclass(frozen=True)
class GoField:
    """A field as a Go struct declares it."""

    go_name: str
    go_type: str
    json_name: str
    inline: bool
    omits_zero: bool
    number: int | None
    gate: str


class GoFacts(NamedTuple):
    """Facts about a field that only Go's sources contain."""

    number: tuple[int, ...]
    embedded: tuple[str, ...]
    go_type: str
    omits_zero: bool
    gate: str = ""


class GoSources:
    """The structs of Go's packages."""

    def __init__(self, upstream: Path) -> None:
        self.staging = upstream / "staging/src/k8s.io"
        self.structs = cache(self._structs)

    def _structs(self, package: str) -> dict[str, tuple[GoField, ...]]:
        folder = self.staging / package.removeprefix("io.k8s.").replace(".", "/")
        structs = {}
        for file in sorted(folder.glob("*.go")):
            if file.name.startswith(("zz_", "generated")) or file.name.endswith("_test.go"):
                continue
            text = file.read_text()
            for name, body in _STRUCT.findall(text):
                structs[name] = tuple(_go_fields(body))
        return structs

    def fields(self, name: str) -> dict[str, GoFacts]:
        """Go's facts about each field of a struct, by its JSON name."""
        package, _, short = name.rpartition(".")
        version = package.rpartition(".")[2]
        found: dict[str, GoFacts] = {}
        for known in self.structs(package).get(short, ()):
            number = () if known.number is None else (known.number,)
            if not known.inline:
                go_type = _qualified(known.go_type, version)
                found[known.json_name] = GoFacts(number, (), go_type, known.omits_zero, known.gate)
            elif not known.go_type.endswith("TypeMeta"):
                inner = self.fields(f"{package}.{known.go_type.lstrip('*')}")
                for json_name, facts in inner.items():
                    found[json_name] = facts._replace(
                        number=number + facts.number, embedded=(known.go_name, *facts.embedded)
                    )
        return found


def _go_fields(body: str) -> Iterator[GoField]:
    for comment, go_name, go_type, tags in _GO_FIELD.findall(body):
        json_tag = re.search(r'json:"([^"]*)"', tags)
        if json_tag is None:
            continue
        name, *options = json_tag[1].split(",")
        if name == "-":
            continue
        number = re.search(r'protobuf:"\w+,(\d+)', tags)
        yield GoField(
            go_name or go_type.lstrip("*").rpartition(".")[2],
            go_type,
            name,
            "inline" in options or not name,
            not go_type.startswith("*") and ("omitempty" in options or "omitzero" in options),
            int(number[1]) if number else None,
            next((gate for gate in _GATE.findall(comment) if gate in GATED), ""),
        )


def _qualified(go_type: str, version: str) -> str:
    """A type as Go prints it: with the name of its package, without a leading pointer."""
    text = go_type.lstrip("*")

    def name(match: re.Match[str]) -> str:
        word = match[0]
        if "." in word:
            package, _, rest = word.partition(".")
            return f"{'v1' if package in _V1_ALIASES else package}.{rest}"
        if word == "byte":
            return "uint8"
        return word if word in _GO_PRIMITIVES or word == "map" else f"{version}.{word}"

    return re.sub(r"[\w.]+", name, text)


def enums(upstream: Path) -> dict[str, dict[str, tuple[str, ...]]]:
    """The values of each enum field, by type and field."""
    text = (upstream / "pkg/generated/openapi/zz_generated.openapi.go").read_text()
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    type_name = field_name = ""
    for function, prop, values in _ENUMS.findall(text):
        if function:
            type_name = function.replace("k8sio_", "io.k8s.", 1).replace("_", ".")
        elif prop:
            field_name = prop
        else:
            found.setdefault(type_name, {})[field_name] = tuple(json.loads(f"[{values}]"))
    return found


def definitions(upstream: Path) -> dict[str, dict[str, Any]]:
    """All OpenAPI definitions; a type in several documents has the kinds of all of them."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted((upstream / "api/openapi-spec/v3").glob("*_openapi.json")):
        document = json.loads(file.read_text())
        for name, schema in document.get("components", {}).get("schemas", {}).items():
            kinds = found.get(name, {}).get("x-kubernetes-group-version-kind", [])
            more = schema.get("x-kubernetes-group-version-kind", [])
            found[name] = {
                **schema,
                "x-kubernetes-group-version-kind": kinds + [kind for kind in more if kind not in kinds],
            }
    return found


def _use(schema: dict[str, Any]) -> TypeUse:
    for part in (schema, *schema.get("allOf", ())):
        if "$ref" in part:
            name = part["$ref"].removeprefix(_REF)
            return TypeUse(_LEAF_WORDS[name]) if name in _LEAF_WORDS else TypeUse("struct", None, name)
    match schema.get("type"), schema.get("format"):
        case "array", _:
            return TypeUse("list", _use(schema["items"]))
        case "object", _:
            return TypeUse("map", _use(schema["additionalProperties"]))
        case "string", "byte":
            return TypeUse("bytes")
        case "string", None:
            return TypeUse("string")
        case "boolean", _:
            return TypeUse("bool")
        case "integer" | "number", ("int32" | "int64" | "double") as word:
            return TypeUse(word)
    raise SystemExit(f"no notation for {schema}")


def _references(use: TypeUse) -> Iterator[str]:
    if use.items:
        yield from _references(use.items)
    elif use.name:
        yield use.name


def _field(
    name: str, schema: dict[str, Any], required: bool, go: GoFacts, enum: tuple[str, ...]
) -> WireField:
    use = _use(schema)
    patch = schema.get("x-kubernetes-patch-strategy", "")
    facts: dict[str, Any] = {}
    # An empty default only repeats that Go's zero value is sent; for structs it has no meaning.
    if schema.get("default") not in (None, {}):
        facts["default"] = schema["default"]
    return WireField(
        name,
        use,
        number=go.number,
        embedded=go.embedded,
        go="" if go.go_type == use.go else go.go_type,
        keeps_zero=use.word in ZERO_VALUES and not go.omits_zero,
        required=required,
        enum=enum,
        list_type=schema.get("x-kubernetes-list-type", ""),
        list_keys=tuple(schema.get("x-kubernetes-list-map-keys", ())),
        map_type=schema.get("x-kubernetes-map-type", ""),
        patch=tuple(patch.split(",")) if patch else (),
        merge_key=schema.get("x-kubernetes-patch-merge-key", ""),
        gate=go.gate,
        **facts,
    )


def wire_types(upstream: Path) -> Iterable[WireType]:
    """The types of all served kinds, and the types of their fields."""
    known = definitions(upstream)
    values = enums(upstream)
    sources = GoSources(upstream)
    wanted = [
        name
        for name, schema in known.items()
        for kind in schema["x-kubernetes-group-version-kind"]
        if f"{kind['group']}/{kind['version']}" in SERVED
        and kind["kind"].removesuffix("List") not in NOT_SERVED
    ]
    types: dict[str, WireType] = {}
    while wanted:
        name = wanted.pop()
        if name in types or name in _LEAF_WORDS:
            continue
        schema = known[name]
        go = sources.fields(name)
        fields = []
        for field_name, field_schema in schema.get("properties", {}).items():
            fields.append(
                _field(
                    field_name,
                    field_schema,
                    field_name in schema.get("required", ()),
                    go.get(field_name, GoFacts((), (), _use(field_schema).go, True)),
                    values.get(name, {}).get(field_name, ()),
                )
            )
            wanted.extend(_references(fields[-1].type))
        types[name] = WireType(
            name,
            tuple(fields),
            tuple(
                sorted(
                    (kind["group"], kind["version"], kind["kind"])
                    for kind in schema["x-kubernetes-group-version-kind"]
                    if f"{kind['group']}/{kind['version']}" in SERVED
                )
            ),
            atomic=schema.get("x-kubernetes-map-type") == "atomic",
            untyped="type" not in schema,
        )
    return types.values()


def _checkout(text: str) -> tuple[str, Path]:
    version, _, path = text.partition("=")
    return version, Path(path).expanduser()


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "checkouts", type=_checkout, nargs="+", help="VERSION=DIRECTORY of kubernetes/kubernetes"
    )
    texts = {
        ".".join(version.removeprefix("v").split(".")[:2]): render(wire_types(upstream), version)
        for version, upstream in parser.parse_args().checkouts
    }
    TARGET.write_text(merge_versions(texts))


if __name__ == "__main__":
    main()
