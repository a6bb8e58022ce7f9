"""The OpenAPI documents carry what clients look for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.apimachinery.schema.wire import wire_format
from moorage.emulation.kubernetes_version import KUBERNETES_VERSIONS
from moorage_cluster.apiserver.openapi.definitions import (
    PublishedSchema,
    definition,
    descriptions,
    references,
)
from moorage_cluster.apiserver.openapi.documents import (
    openapi_v2,
    openapi_v2_protobuf,
    openapi_v3,
    openapi_v3_index,
)
from moorage_cluster.apiserver.resources import STATUS_VERBS, APIResource, Subresource

STATUS = Subresource("status", "Pod", STATUS_VERBS)
PODS = APIResource(
    "", "v1", "Pod", "pods", True,
    subresources=(
        STATUS,
        Subresource("binding", "Binding", ("create",)),
        Subresource("eviction", "Eviction", ("create",), "policy", "v1"),
    ),
)  # fmt: skip
NODES = APIResource("", "v1", "Node", "nodes", False)
DEPLOYMENTS = APIResource(
    "apps", "v1", "Deployment", "deployments", True,
    subresources=(Subresource("scale", "Scale", STATUS_VERBS, "autoscaling", "v1"),),
)  # fmt: skip
BACKUPS = APIResource("example.com", "v1", "Backup", "backups", True)
RESOURCES = (PODS, NODES, DEPLOYMENTS, BACKUPS)
BACKUP = ("example.com", "v1", "Backup")
BACKUP_LIST = ("example.com", "v1", "BackupList")
BACKUP_SCHEMA = PublishedSchema(
    {"type": "object", "properties": {"size": {"type": "integer", "nullable": True}}},
    {"type": "object", "properties": {"size": {}}},
)
CUSTOM = {BACKUP: BACKUP_SCHEMA, BACKUP_LIST: BACKUP_SCHEMA}
CORE = "io.k8s.api.core.v1."
TYPES = wire_format()


def core() -> dict[str, Any]:
    return openapi_v3("", "v1", RESOURCES, CUSTOM, TYPES)


def test_the_index_points_at_each_group_and_version() -> None:
    paths = openapi_v3_index(RESOURCES, CUSTOM, TYPES)["paths"]
    assert list(paths) == ["api/v1", "apis/apps/v1", "apis/example.com/v1"]
    assert paths["apis/apps/v1"]["serverRelativeURL"].startswith("/openapi/v3/apis/apps/v1?hash=")


def test_the_address_changes_only_with_the_document() -> None:
    def addresses(custom: dict[Any, Any], *resources: APIResource) -> dict[str, Any]:
        found: dict[str, Any] = openapi_v3_index(resources, custom, TYPES)["paths"]
        return found

    before = addresses(CUSTOM, *RESOURCES)
    assert addresses(CUSTOM, *RESOURCES) == before
    changed = addresses({BACKUP: PublishedSchema({}, {})}, *RESOURCES)
    assert changed["apis/example.com/v1"] != before["apis/example.com/v1"]
    assert changed["api/v1"] == before["api/v1"]
    assert addresses(CUSTOM, NODES, DEPLOYMENTS, BACKUPS)["api/v1"] != before["api/v1"]


def test_paths_and_their_operations() -> None:
    paths = core()["paths"]
    assert {path: sorted(item.keys() - {"parameters"}) for path, item in paths.items()} == {
        "/api/v1/namespaces/{namespace}/pods": ["delete", "get", "post"],
        "/api/v1/namespaces/{namespace}/pods/{name}": ["delete", "get", "patch", "put"],
        "/api/v1/namespaces/{namespace}/pods/{name}/binding": ["post"],
        "/api/v1/namespaces/{namespace}/pods/{name}/eviction": ["post"],
        "/api/v1/namespaces/{namespace}/pods/{name}/status": ["get", "patch", "put"],
        "/api/v1/nodes": ["delete", "get", "post"],
        "/api/v1/nodes/{name}": ["delete", "get", "patch", "put"],
        "/api/v1/pods": ["get"],
    }


def test_a_patch_says_its_kind_and_its_parameters() -> None:
    patch = core()["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Pod"}
    assert patch["x-kubernetes-action"] == "patch"
    queries = {parameter["name"] for parameter in patch["parameters"] if parameter["in"] == "query"}
    assert queries == {"dryRun", "fieldManager", "fieldValidation", "force"}
    assert set(patch["requestBody"]["content"]) == {
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    }


def test_custom_kinds_have_no_strategic_patches() -> None:
    paths = openapi_v3("example.com", "v1", RESOURCES, CUSTOM, TYPES)["paths"]
    patch = paths["/apis/example.com/v1/namespaces/{namespace}/backups/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]


def test_subresources_speak_their_own_kinds() -> None:
    eviction = core()["paths"]["/api/v1/namespaces/{namespace}/pods/{name}/eviction"]["post"]
    assert eviction["x-kubernetes-group-version-kind"]["group"] == "policy"
    assert eviction["requestBody"]["content"]["*/*"]["schema"]["$ref"].endswith("policy.v1.Eviction")


@pytest.mark.parametrize(
    ("path", "method", "identity"),
    [
        ("/api/v1/pods", "get", "listCoreV1PodForAllNamespaces"),
        ("/api/v1/namespaces/{namespace}/pods", "post", "createCoreV1NamespacedPod"),
        ("/api/v1/namespaces/{namespace}/pods", "delete", "deleteCoreV1CollectionNamespacedPod"),
        ("/api/v1/nodes/{name}", "get", "readCoreV1Node"),
        ("/api/v1/namespaces/{namespace}/pods/{name}/status", "put", "replaceCoreV1NamespacedPodStatus"),
    ],
)
def test_operation_ids(path: str, method: str, identity: str) -> None:
    assert core()["paths"][path][method]["operationId"] == identity


def test_facts_of_fields() -> None:
    containers = definition(f"{CORE}PodSpec", TYPES)["properties"]["containers"]
    assert containers["items"] == {"$ref": f"#/components/schemas/{CORE}Container"}
    assert containers["x-kubernetes-list-type"] == "map"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-patch-strategy"] == "merge"
    assert definition(f"{CORE}PodSpec", TYPES)["required"] == ["containers"]
    protocol = definition(f"{CORE}ContainerPort", TYPES)["properties"]["protocol"]
    assert (protocol["default"], protocol["enum"]) == ("TCP", ["SCTP", "TCP", "UDP"])
    modes = definition(f"{CORE}PersistentVolumeClaimSpec", TYPES)["properties"]["accessModes"]
    assert "ReadWriteOnce" in modes["items"]["enum"]
    assert "enum" not in modes
    pod = definition(f"{CORE}Pod", TYPES)
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "version": "v1", "kind": "Pod"}]


def test_all_references_lead_somewhere() -> None:
    for group, version in (("", "v1"), ("apps", "v1"), ("example.com", "v1")):
        document = openapi_v3(group, version, RESOURCES, CUSTOM, TYPES)
        assert set(references(document)) <= document["components"]["schemas"].keys()


def test_custom_kinds_join() -> None:
    names = ("com.example.v1.Backup", "com.example.v1.BackupList")
    schemas = openapi_v3("example.com", "v1", RESOURCES, CUSTOM, TYPES)["components"]["schemas"]
    definitions = openapi_v2(RESOURCES, CUSTOM, TYPES)["definitions"]
    assert [schemas[name] for name in names] == [BACKUP_SCHEMA.v3] * 2
    assert [definitions[name] for name in names] == [BACKUP_SCHEMA.v2] * 2


def test_version_2_says_less_but_nothing_wrong() -> None:
    document = openapi_v2(RESOURCES, CUSTOM, TYPES)
    definitions = document["definitions"]
    assert definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"]["type"] == "string"
    assert definitions[f"{CORE}Pod"]["properties"]["spec"]["$ref"] == f"#/definitions/{CORE}PodSpec"
    patch = document["paths"]["/api/v1/nodes/{name}"]["patch"]
    assert {"name": "dryRun", "in": "query", "type": "string", "uniqueItems": True} in patch["parameters"]
    assert patch["parameters"][0]["in"] == "body"
    text = json.dumps(document)
    assert "#/components/" not in text
    assert "oneOf" not in text


def fields_of(data: bytes) -> list[tuple[int, Any]]:
    """The fields of a protobuf message, texts and messages as bytes."""

    def varint(at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            value |= (data[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 0x80:
                return value, at

    found: list[tuple[int, Any]] = []
    at = 0
    while at < len(data):
        key, at = varint(at)
        if key & 7 == 2:
            length, at = varint(at)
            found.append((key >> 3, data[at : at + length]))
            at += length
        elif key & 7 == 1:
            found.append((key >> 3, data[at : at + 8]))
            at += 8
        else:
            value, at = varint(at)
            found.append((key >> 3, value))
    return found


def named(data: bytes, number: int) -> dict[str, dict[int, Any]]:
    """The entries of a message that is a map from names to messages."""
    entries = [dict(fields_of(entry)) for inner, entry in fields_of(data) if inner == number]
    return {entry[1].decode(): dict(fields_of(entry[2])) for entry in entries}


def test_version_2_in_protobuf() -> None:
    document = dict(fields_of(openapi_v2_protobuf(openapi_v2(RESOURCES, CUSTOM, TYPES))))
    assert document[1] == b"2.0"
    definitions = named(document[9], 1)
    assert set(definitions) == openapi_v2(RESOURCES, CUSTOM, TYPES)["definitions"].keys()
    properties = named(definitions[f"{CORE}ContainerPort"][25], 1)
    assert fields_of(properties["containerPort"][22]) == [(1, b"integer")]
    extensions = named(b"".join(part(31, definitions[f"{CORE}Pod"][31])), 31)
    assert json.loads(extensions["x-kubernetes-group-version-kind"][2]) == [
        {"group": "", "version": "v1", "kind": "Pod"}
    ]
    paths = named(document[8], 2)
    assert {2, 3, 5, 8, 9} == paths["/api/v1/nodes/{name}"].keys()


def part(number: int, data: bytes) -> list[bytes]:
    """One field of a message, as bytes again."""
    length = len(data)
    size = bytes([length]) if length < 0x80 else bytes([length & 0x7F | 0x80, length >> 7])
    key = number << 3 | 2
    return [bytes([key & 0x7F | 0x80, key >> 7]) + size + data]


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_every_kind_has_a_description(version: str) -> None:
    kinds = {kind for wire in wire_format(version) for _, _, kind in wire.kinds if not kind.endswith("List")}
    assert {kind for kind in kinds if kind not in descriptions()} == set()


def test_descriptions_are_of_what_there_is() -> None:
    types = [wire for version in KUBERNETES_VERSIONS for wire in wire_format(version)]
    known = {wire.short_name for wire in types}
    leaves = {"Quantity", "IntOrString", "Time", "MicroTime", "FieldsV1", "RawExtension", "Patch"}
    fields = {f"{wire.short_name}.{field.name}" for wire in types for field in wire.fields}
    assert set(descriptions()) <= known | leaves | fields
