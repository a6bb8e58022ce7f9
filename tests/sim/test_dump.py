"""A cluster brought from a dump: everything is there again, and still belongs together."""

from __future__ import annotations

import asyncio
from typing import Any

from moorage.client.client import Client
from moorage_cluster.dump import ImportResult, import_objects
from tests.apiserver.client import Cluster, node, pod


def brought(cluster: Cluster, documents: list[Any]) -> ImportResult:
    client = Client(cluster.server.api, cluster.server.token)
    return asyncio.run(import_objects(client, documents))


def dump_of(cluster: Cluster, *paths: str) -> list[Any]:
    """What `kubectl get -o yaml` would print."""
    return [{"kind": "List", "apiVersion": "v1", "items": cluster.get(path)["items"]} for path in paths]


def replica_set(name: str, owner: dict[str, Any] | None = None) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod("x")["spec"]}
    meta: dict[str, Any] = {"name": name}
    if owner:
        meta["ownerReferences"] = [owner]
    return {"metadata": meta, "spec": {"selector": {"matchLabels": labels}, "template": template}}


def test_everything_is_there_again_with_its_status_and_its_owners() -> None:
    first, second = Cluster(), Cluster(seed=2)
    first.create("/api/v1/namespaces", {"metadata": {"name": "shop"}})
    first.create("/api/v1/nodes", node("n1", zone="a"))
    owner = first.create("/apis/apps/v1/namespaces/shop/replicasets", replica_set("web"))
    reference = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web",
        "uid": owner["metadata"]["uid"],
    }
    running = pod("web-1", "shop", nodeName="n1")
    running["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    first.create("/api/v1/namespaces/shop/pods", running)
    status = {"status": {"phase": "Running", "podIP": "10.0.0.7"}}
    first.patch("/api/v1/namespaces/shop/pods/web-1/status", "merge", status)

    documents = dump_of(
        first, "/api/v1/pods", "/api/v1/nodes", "/apis/apps/v1/replicasets", "/api/v1/namespaces"
    )
    result = brought(second, documents)

    assert result.refused == []
    assert (result.created, result.there_already) == (4, 4)  # The four namespaces that every cluster has.
    copy = second.get("/api/v1/namespaces/shop/pods/web-1").json
    assert (copy["spec"]["nodeName"], copy["status"]["podIP"]) == ("n1", "10.0.0.7")
    new_owner = second.get("/apis/apps/v1/namespaces/shop/replicasets/web")["metadata"]["uid"]
    assert [one["uid"] for one in copy["metadata"]["ownerReferences"]] == [new_owner]
    assert second.get("/api/v1/nodes/n1")["status"]["capacity"]["cpu"] == "8"
    first.close()
    second.close()


def test_owners_that_are_not_in_the_dump_are_forgotten(cluster: Cluster) -> None:
    orphan = pod("p")
    orphan["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "gone", "uid": "1234"}
    ]
    assert brought(cluster, [orphan]).created == 1
    assert "ownerReferences" not in cluster.get("/api/v1/namespaces/default/pods/p")["metadata"]


def test_claims_belong_to_the_pods_that_own_and_use_them(cluster: Cluster) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "train", "uid": "old", "controller": True}
    meta = {"name": "train-gpu", "namespace": "default", "uid": "claim", "ownerReferences": [owner]}
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    device = {"device": "gpu-0", "driver": "gpu.example.com", "pool": "n1", "request": "gpu"}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": meta,
        "spec": {"devices": {"requests": requests}},
        "status": {
            "allocation": {"devices": {"results": [device]}},
            "reservedFor": [{"resource": "pods", "name": name, "uid": name} for name in ("old", "gone")],
        },
    }
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "train-scratch", "namespace": "default", "ownerReferences": [owner]},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    train = pod("train")
    train["metadata"]["uid"] = "old"
    result = brought(cluster, [claim, volume, train])
    assert (result.refused, result.created) == ([], 3)
    uid = cluster.get("/api/v1/namespaces/default/pods/train")["metadata"]["uid"]
    stored = cluster.get("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/train-gpu")
    assert [each["uid"] for each in stored["metadata"]["ownerReferences"]] == [uid]
    assert [each["uid"] for each in stored["status"]["reservedFor"]] == [uid]
    scratch = cluster.get("/api/v1/namespaces/default/persistentvolumeclaims/train-scratch")
    assert [each["uid"] for each in scratch["metadata"]["ownerReferences"]] == [uid]


def test_custom_kinds_come_with_their_definition(cluster: Cluster) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "boats", "kind": "Boat"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    boat = {
        "apiVersion": "example.com/v1",
        "kind": "Boat",
        "metadata": {"name": "ark"},
        "spec": {"berths": 2},
    }
    result = brought(cluster, [boat, definition])
    assert (result.created, result.refused) == (2, [])
    assert cluster.get("/apis/example.com/v1/namespaces/default/boats/ark")["spec"] == {"berths": 2}


def test_what_cannot_be_brought_is_reported(cluster: Cluster) -> None:
    unknown = {"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": "x"}}
    nameless = pod("")
    result = brought(cluster, [unknown, nameless])
    assert result.created == 0
    assert result.unknown_kinds == {"example.com/v1 Ship"}
    assert ["name or generateName is required" in line for line in result.refused] == [True]
