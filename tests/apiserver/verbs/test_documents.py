from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.client import Cluster
from tests.apiserver.extensions.definitions import crd

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUPS = {
    "apps", "batch", "policy", "scheduling.k8s.io", "node.k8s.io", "storage.k8s.io", "resource.k8s.io",
    "coordination.k8s.io", "events.k8s.io", "rbac.authorization.k8s.io", "apiextensions.k8s.io",
    "authentication.k8s.io", "authorization.k8s.io", "admissionregistration.k8s.io",
    "apiregistration.k8s.io", "autoscaling", "certificates.k8s.io", "discovery.k8s.io",
    "networking.k8s.io",
}  # fmt: skip


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/ping"])
def test_health(cluster: Cluster, path: str) -> None:
    answer = cluster.get(path)
    assert (answer.code, answer.raw) == (200, b"ok")
    assert b"check passed" in cluster.get(path, verbose="").raw


def test_version(cluster: Cluster) -> None:
    version = cluster.get("/version").json
    assert (version["major"], version["minor"]) == ("1", "37")
    assert version["gitVersion"] == "v1.37.0+moorage"


@pytest.mark.parametrize(
    "path", ["/nothing", "/apis/nothing", "/apis/apps/v2", "/api/v2", "/openapi/v3/apis/x/v1"]
)
def test_unknown_paths(cluster: Cluster, path: str) -> None:
    answer = cluster.get(path)
    assert (answer.code, answer["reason"]) == (404, "NotFound")
    assert answer.message == "the server could not find the requested resource"


def test_documents_are_only_read(cluster: Cluster) -> None:
    assert cluster.post("/version", {}).code == 405
    assert cluster.request("OPTIONS", "/version").code == 405


def test_plain_discovery(cluster: Cluster) -> None:
    assert cluster.get("/api")["versions"] == ["v1"]
    groups = {group["name"]: group for group in cluster.get("/apis")["groups"]}
    assert set(groups) == GROUPS
    scheduling = groups["scheduling.k8s.io"]
    assert [version["version"] for version in scheduling["versions"]] == ["v1"]
    assert scheduling["preferredVersion"] == {"groupVersion": "scheduling.k8s.io/v1", "version": "v1"}
    assert cluster.get("/apis/apps")["kind"] == "APIGroup"
    core = {entry["name"]: entry for entry in cluster.get("/api/v1")["resources"]}
    assert core["pods"] == {
        "name": "pods",
        "singularName": "pod",
        "namespaced": True,
        "kind": "Pod",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "shortNames": ["po"],
        "categories": ["all"],
    }
    assert core["pods/eviction"]["group"] == "policy"
    assert core["nodes"]["namespaced"] is False
    assert core["bindings"]["verbs"] == ["create"]


def test_discovery_is_in_order(cluster: Cluster) -> None:
    """Clients take the first group, and the first version of it, that has what a bare name means."""
    names = [group["name"] for group in cluster.get("/apis")["groups"]]
    assert names.index("apps") < names.index("events.k8s.io") < names.index("policy")
    assert names.index("storage.k8s.io") < names.index("scheduling.k8s.io") < names.index("resource.k8s.io")
    core = [entry["name"] for entry in cluster.get("/api/v1")["resources"]]
    assert core == sorted(core)
    [item] = aggregated(cluster, "/api")["items"]
    listed = [resource["resource"] for resource in item["versions"][0]["resources"]]
    assert listed == sorted(listed)


def test_versions_are_in_order(cluster: Cluster) -> None:
    names = ["foo1", "v1", "v1alpha1", "v1beta1", "v1beta2", "v10", "v11alpha2", "v12alpha1", "v2", "v3beta1"]
    ordered = [
        "v10",
        "v2",
        "v1",
        "v3beta1",
        "v1beta2",
        "v1beta1",
        "v12alpha1",
        "v11alpha2",
        "v1alpha1",
        "foo1",
    ]
    definition = crd()
    [version] = definition["spec"]["versions"]
    definition["spec"]["versions"] = [{**version, "name": name, "storage": name == "v1"} for name in names]
    cluster.create(DEFINITIONS, definition)
    group = cluster.get("/apis/example.com").json
    assert [one["version"] for one in group["versions"]] == ordered
    assert group["preferredVersion"] == {"groupVersion": "example.com/v10", "version": "v10"}
    for form in ("v2", "v2beta1"):
        accept = AGGREGATED.replace("v2", form)
        found = cluster.request("GET", "/apis", headers={"accept": accept}).json
        assert found["apiVersion"] == f"apidiscovery.k8s.io/{form}"
        assert [one["version"] for one in found["items"][-1]["versions"]] == ordered


def aggregated(cluster: Cluster, path: str, **headers: str) -> Any:
    return cluster.request("GET", path, headers={"accept": AGGREGATED, **headers})


def test_aggregated_discovery_says_the_same(cluster: Cluster) -> None:
    found = set()
    for path in ("/api", "/apis"):
        answer = aggregated(cluster, path)
        assert answer["kind"] == "APIGroupDiscoveryList"
        assert answer["apiVersion"] == "apidiscovery.k8s.io/v2"
        for item in answer["items"]:
            for version in item["versions"]:
                group = item["metadata"].get("name", "")
                where = f"/apis/{group}/{version['version']}" if group else "/api/v1"
                for resource in version["resources"]:
                    found.add((where, resource["resource"]))
                    subs = resource.get("subresources", ())
                    found |= {(where, f"{resource['resource']}/{sub['subresource']}") for sub in subs}
    places = {where for where, _ in found}
    plain = {(where, entry["name"]) for where in places for entry in cluster.get(where)["resources"]}
    assert found == plain
    assert len(plain) > 60


def test_aggregated_discovery_is_known_by_its_tag(cluster: Cluster) -> None:
    first = aggregated(cluster, "/apis")
    tag = first.headers["ETag"]
    same = aggregated(cluster, "/apis", **{"if-none-match": tag})
    assert (same.code, same.raw, same.headers["ETag"]) == (304, b"", tag)
    cluster.create(DEFINITIONS, crd())
    other = aggregated(cluster, "/apis", **{"if-none-match": tag})
    assert other.code == 200
    assert other.headers["ETag"] != tag
    assert other["items"][-1]["metadata"]["name"] == "example.com"


def test_definition_shows_everywhere_at_once_and_goes_again(cluster: Cluster) -> None:
    def shows() -> list[bool]:
        return [
            any(group["name"] == "example.com" for group in cluster.get("/apis")["groups"]),
            cluster.get("/apis/example.com/v1").code == 200,
            "apis/example.com/v1" in cluster.get("/openapi/v3")["paths"],
            cluster.get("/openapi/v3/apis/example.com/v1").code == 200,
            b"com.example.v1.Widget" in cluster.get("/openapi/v2").raw,
        ]

    assert shows() == [False] * 5
    cluster.create(DEFINITIONS, crd())
    assert shows() == [True] * 5
    cluster.delete(f"{DEFINITIONS}/widgets.example.com")
    assert shows() == [False] * 5


def test_openapi(cluster: Cluster) -> None:
    index = cluster.get("/openapi/v3")["paths"]
    assert "api/v1" in index
    path = index["apis/apps/v1"]["serverRelativeURL"].partition("?")[0]
    document = cluster.get(path).json
    assert "io.k8s.api.apps.v1.Deployment" in document["components"]["schemas"]
    assert "/apis/apps/v1/namespaces/{namespace}/deployments/{name}" in document["paths"]
    assert cluster.get("/openapi/v2")["swagger"] == "2.0"
