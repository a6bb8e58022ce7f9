"""Objects of manifest files: created in order, and those that cannot be are named with their file."""

from __future__ import annotations

import asyncio
from typing import Any

from moorage.client.client import Client
from moorage_cluster.manifest_files import FileObject, create_objects
from tests.apiserver.client import Cluster, configmap, pod

FILE = "objects.yaml"


def created(cluster: Cluster, *manifests: dict[str, Any]) -> list[str]:
    client = Client(cluster.server.api, cluster.server.token)
    return asyncio.run(create_objects(client, [FileObject(each, FILE) for each in manifests]))


def an_object(kind: str, metadata: Any, api_version: str = "v1", **more: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def test_refused_objects_are_named_and_the_others_are_created(cluster: Cluster) -> None:
    namespaced = an_object("ConfigMap", {"name": "a", "namespace": "none"})
    assert created(
        cluster,
        an_object("Pod", {"name": "empty"}, spec={}),
        namespaced,
        an_object("Backup", {"name": "b"}, "example.com/v1"),
        an_object("ConfigMap", {"generateName": "x-"}, dta={}),
        an_object("ConfigMap", 5),
        {"kind": "ConfigMap"},
        an_object("Pod", {"name": "p", "namespace": "default"}, spec=pod("p")["spec"]),
    ) == [
        f'Pod empty of {FILE}: Pod "empty" is invalid: spec.containers: Required value',
        f'ConfigMap none/a of {FILE}: namespaces "none" not found',
        f"Backup b of {FILE}: no matches for kind 'Backup' in version 'example.com/v1'",
        f'ConfigMap x-* of {FILE}: ConfigMap in version "v1" cannot be handled as a ConfigMap: strict '
        'decoding error: unknown field "dta"',
        f'ConfigMap * of {FILE}: ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot '
        "unmarshal number into Go struct field ConfigMap.metadata of type v1.ObjectMeta",
        f"ConfigMap * of {FILE}: no matches for kind 'ConfigMap' in version ''",
    ]
    assert [each["metadata"]["name"] for each in cluster.get("/api/v1/pods")["items"]] == ["p"]


def test_what_is_there_already_stays(cluster: Cluster) -> None:
    cluster.create("/api/v1/namespaces/default/configmaps", configmap("a", key="1"))
    assert created(cluster, an_object("ConfigMap", {"name": "a"}, data={"key": "2"})) == []
    assert cluster.get("/api/v1/namespaces/default/configmaps/a")["data"] == {"key": "1"}


def test_every_kind_is_created_that_is_served(cluster: Cluster) -> None:
    names = {"plural": "backups", "kind": "Backup"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "example.com", "names": names, "scope": "Cluster", "versions": [version]}
    refused = created(
        cluster,
        an_object("ResourceQuota", {"name": "q"}, spec={"hard": {"pods": "1"}}),
        an_object(
            "CustomResourceDefinition", {"name": "backups.example.com"}, "apiextensions.k8s.io/v1", spec=spec
        ),
        an_object("Backup", {"name": "b", "namespace": "left-out"}, "example.com/v1"),
    )
    assert refused == []
    assert cluster.get("/api/v1/resourcequotas")["items"]
    assert cluster.get("/apis/example.com/v1/backups/b").code == 200
