"""Quotas show what is used of them."""

from __future__ import annotations

from tests.apiserver.client import Cluster, pod

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
PODS = "/api/v1/namespaces/default/pods"


def requesting(name: str, cpu: str) -> dict[str, object]:
    resources = {"requests": {"cpu": cpu}}
    return pod(name, containers=[{"name": "main", "image": "registry.example/app:1", "resources": resources}])


def test_a_quotas_status_follows_what_its_namespace_uses(cluster: Cluster) -> None:
    cluster.create(PODS, requesting("before", "500m"))
    cluster.create(
        QUOTAS, {"metadata": {"name": "some"}, "spec": {"hard": {"requests.cpu": "2", "pods": "3"}}}
    )
    assert cluster.get(f"{QUOTAS}/some")["status"]["used"] == {"requests.cpu": "500m", "pods": "1"}
    cluster.create(PODS, requesting("after", "1"))
    assert cluster.get(f"{QUOTAS}/some")["status"]["used"] == {"requests.cpu": "1500m", "pods": "2"}
    cluster.delete(f"{PODS}/before")
    assert cluster.get(f"{QUOTAS}/some")["status"] == {
        "hard": {"requests.cpu": "2", "pods": "3"},
        "used": {"requests.cpu": "1", "pods": "1"},
    }


def test_the_quota_is_enforced_in_the_same_numbers(cluster: Cluster) -> None:
    cluster.create(QUOTAS, {"metadata": {"name": "some"}, "spec": {"hard": {"requests.cpu": "1"}}})
    cluster.create(PODS, requesting("a", "800m"))
    refused = cluster.post(PODS, requesting("b", "300m"))
    assert refused.code == 403
    assert refused.message.endswith(
        "exceeded quota: some, requested: requests.cpu=300m, used: requests.cpu=800m, limited: requests.cpu=1"
    )


def test_every_cluster_has_the_service_of_its_api_server(cluster: Cluster) -> None:
    assert cluster.get("/api/v1/namespaces/default/services/kubernetes")["spec"]["clusterIP"] == "10.96.0.1"
