"""Custom kinds over time: versions that are deprecated, scales that cannot be, definitions that end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.client import Cluster

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BOATS = "/apis/example.com/v1/namespaces/default/boats"
SCHEMA = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}


def version(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "served": True, "storage": False, "schema": SCHEMA, **more}


def definition(*versions: dict[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": "boats.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "boats", "kind": "Boat"},
            "versions": list(versions),
        },
    }


def boat(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "ark", **metadata}}


def test_requests_to_a_deprecated_version_get_a_warning(cluster: Cluster) -> None:
    cluster.create(DEFINITIONS, definition(version("v1", storage=True), version("v1beta1", deprecated=True)))
    old = cluster.get(BOATS.replace("v1", "v1beta1"))
    assert old.headers["Warning"] == (
        '299 - "example.com/v1beta1 Boat is deprecated; use example.com/v1 Boat"'
    )
    assert "Warning" not in cluster.get(BOATS).headers


def test_a_definition_says_that_it_waits_for_its_objects(cluster: Cluster) -> None:
    cluster.create(DEFINITIONS, definition(version("v1", storage=True)))
    cluster.create(BOATS, boat(finalizers=["example.com/anchor"]))
    address = f"{DEFINITIONS}/boats.example.com"
    cluster.delete(address)
    conditions = {one["type"]: one["reason"] for one in cluster.get(address)["status"]["conditions"]}
    assert conditions["Terminating"] == "InstanceDeletionInProgress"
    cluster.patch(f"{BOATS}/ark", "merge", {"metadata": {"finalizers": None}})
    assert cluster.get(address).code == 404


@pytest.mark.parametrize("subresource", ["", "/status"])
def test_a_definition_without_finalizers_takes_its_objects_with_it(
    cluster: Cluster, subresource: str
) -> None:
    cluster.create(DEFINITIONS, definition(version("v1", storage=True)))
    cluster.create(BOATS, boat())
    address = f"{DEFINITIONS}/boats.example.com"
    assert "finalizers" not in cluster.get(address)["metadata"]
    cluster.patch(f"{address}{subresource}", "merge", {"metadata": {"finalizers": None}})
    answer = cluster.delete(address)
    assert answer["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert answer["metadata"]["generation"] == 1
    assert answer["status"]["conditions"][-1]["reason"] == "InstanceDeletionPending"
    assert cluster.get(address).code == 404
    cluster.create(DEFINITIONS, definition(version("v1", storage=True)))
    assert cluster.get(BOATS)["items"] == []


def test_a_definition_that_serves_no_version_takes_its_objects_with_it(cluster: Cluster) -> None:
    cluster.create(DEFINITIONS, definition(version("v1", storage=True)))
    cluster.create(BOATS, boat())
    address = f"{DEFINITIONS}/boats.example.com"
    cluster.patch(address, "json", [{"op": "replace", "path": "/spec/versions/0/served", "value": False}])
    assert cluster.get(BOATS).code == 404
    cluster.delete(address)
    assert cluster.get(address).code == 404
    cluster.create(DEFINITIONS, definition(version("v1", storage=True)))
    assert cluster.get(BOATS)["items"] == []


def test_fewer_than_no_replicas_are_refused_as_a_scale(cluster: Cluster) -> None:
    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}]},
    }
    spec = {"selector": {"matchLabels": labels}, "template": template}
    cluster.create(
        "/apis/apps/v1/namespaces/default/deployments", {"metadata": {"name": "web"}, "spec": spec}
    )
    answer = cluster.patch(
        "/apis/apps/v1/namespaces/default/deployments/web/scale", "merge", {"spec": {"replicas": -1}}
    )
    assert answer.code == 422
    assert answer.message == (
        'Scale.autoscaling "web" is invalid: spec.replicas: Invalid value: -1: '
        "must be greater than or equal to 0"
    )
