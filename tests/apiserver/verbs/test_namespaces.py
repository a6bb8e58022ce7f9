from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.client import Cluster, configmap, node, pod
from tests.apiserver.extensions.definitions import crd, widget

NAMESPACES = "/api/v1/namespaces"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def begin(cluster: Cluster, name: str) -> Any:
    return cluster.create(NAMESPACES, {"metadata": {"name": name}})


def test_namespace_begins_with_what_pods_need(cluster: Cluster) -> None:
    made = begin(cluster, "a")
    assert made["status"] == {"phase": "Active"}
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a"}
    assert cluster.exists(f"{NAMESPACES}/a/serviceaccounts/default")
    ca = cluster.get(f"{NAMESPACES}/a/configmaps/kube-root-ca.crt")
    assert ca["data"]["ca.crt"] == cluster.server.certificate.ca_pem


def test_default_service_account_is_made_again_after_its_deletion(cluster: Cluster) -> None:
    path = f"{NAMESPACES}/default/serviceaccounts/default"
    before = cluster.get(path)["metadata"]["uid"]
    cluster.delete(path)
    assert cluster.get(path)["metadata"]["uid"] != before


@pytest.mark.parametrize(
    "patch",
    [
        {"data": {"ca.crt": ""}},
        {"data": {"other": "value"}},
        {"metadata": {"annotations": {"kubernetes.io/description": None}}},
    ],
)
def test_root_ca_is_restored_after_a_change(cluster: Cluster, patch: Any) -> None:
    path = f"{NAMESPACES}/default/configmaps/kube-root-ca.crt"
    before = cluster.get(path).json
    assert cluster.patch(path, "merge", patch).code == 200
    after = cluster.get(path).json
    assert after["data"] == before["data"]
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


def test_root_ca_is_made_again_after_its_deletion(cluster: Cluster) -> None:
    path = f"{NAMESPACES}/default/configmaps/kube-root-ca.crt"
    cluster.delete(path)
    assert cluster.get(path)["data"]["ca.crt"] == cluster.server.certificate.ca_pem


def conditions(cluster: Cluster, name: str) -> dict[str, tuple[str, str, str]]:
    status = cluster.get(f"{NAMESPACES}/{name}")["status"]
    return {one["type"]: (one["status"], one["reason"], one["message"]) for one in status["conditions"]}


DELETED_SO_FAR = {
    "NamespaceDeletionDiscoveryFailure": (
        "False",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "False",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "False",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("False", "ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": (
        "False",
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
}


def test_pods_are_deleted_before_all_else(cluster: Cluster) -> None:
    begin(cluster, "a")
    held = pod("p", "a")
    held["metadata"]["finalizers"] = ["example.com/slow"]
    cluster.create(f"{NAMESPACES}/a/pods", held)
    cluster.create(f"{NAMESPACES}/a/configmaps", configmap("m", "a"))
    cluster.delete(f"{NAMESPACES}/a")
    assert cluster.get(f"{NAMESPACES}/a/pods/p")["metadata"]["deletionTimestamp"]
    assert "deletionTimestamp" not in cluster.get(f"{NAMESPACES}/a/configmaps/m")["metadata"]
    assert conditions(cluster, "a") == DELETED_SO_FAR
    cluster.patch(f"{NAMESPACES}/a/pods/p", "merge", {"metadata": {"finalizers": None}})
    assert not cluster.exists(f"{NAMESPACES}/a")


def test_conditions_say_what_a_deletion_waits_for(cluster: Cluster) -> None:
    begin(cluster, "a")
    for name in ("m", "n"):
        held = configmap(name, "a")
        held["metadata"]["finalizers"] = ["example.com/slow"]
        cluster.create(f"{NAMESPACES}/a/configmaps", held)
    cluster.delete(f"{NAMESPACES}/a")
    assert conditions(cluster, "a") == DELETED_SO_FAR | {
        "NamespaceContentRemaining": (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 2 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: "
            "example.com/slow in 2 resource instances",
        ),
    }
    cluster.patch(f"{NAMESPACES}/a/configmaps/m", "merge", {"metadata": {"finalizers": None}})
    cluster.advance(8)
    remaining = conditions(cluster, "a")["NamespaceContentRemaining"]
    assert remaining[2] == "Some resources are remaining: configmaps. has 1 resource instances"


def test_pods_that_outlive_their_grace_period_are_a_failure(cluster: Cluster) -> None:
    begin(cluster, "a")
    cluster.create("/api/v1/nodes", node("n"))
    cluster.create(f"{NAMESPACES}/a/pods", pod("p", "a", nodeName="n"))
    cluster.delete(f"{NAMESPACES}/a")
    assert conditions(cluster, "a") == DELETED_SO_FAR
    cluster.advance(32)
    assert conditions(cluster, "a")["NamespaceDeletionContentFailure"] == (
        "True",
        "ContentDeletionFailed",
        "Failed to delete all resource types, 1 remaining: "
        "unexpected items still remain in namespace: a for gvr: /v1, Resource=pods",
    )
    cluster.delete(f"{NAMESPACES}/a/pods/p", {"gracePeriodSeconds": 0})
    assert not cluster.exists(f"{NAMESPACES}/a")


def test_namespace_takes_everything_with_it(cluster: Cluster) -> None:
    begin(cluster, "a")
    cluster.create(DEFINITIONS, crd())
    cluster.create(f"{NAMESPACES}/a/configmaps", configmap("m", "a"))
    cluster.create(f"{NAMESPACES}/a/pods", pod("p", "a"))
    cluster.create("/apis/example.com/v1/namespaces/a/widgets", widget())
    watcher = cluster.watch(NAMESPACES, fieldSelector="metadata.name=a")
    watcher.events()
    answer = cluster.delete(f"{NAMESPACES}/a")
    assert answer["status"]["phase"] == "Terminating"
    assert answer["metadata"]["deletionTimestamp"]
    assert not cluster.exists(f"{NAMESPACES}/a")
    for path in (
        "/api/v1/configmaps",
        "/api/v1/pods",
        "/apis/example.com/v1/widgets",
        "/api/v1/serviceaccounts",
    ):
        assert not cluster.get(path, fieldSelector="metadata.namespace=a")["items"], path
    assert [kind for kind, _ in watcher.seen()] == ["MODIFIED", "MODIFIED", "DELETED"]
    assert begin(cluster, "a")["status"] == {"phase": "Active"}


def test_namespace_waits_for_what_stays(cluster: Cluster) -> None:
    begin(cluster, "a")
    cluster.create("/api/v1/nodes", node("n"))
    cluster.create(f"{NAMESPACES}/a/pods", pod("p", "a", nodeName="n"))
    held = configmap("m", "a")
    held["metadata"]["finalizers"] = ["example.com/slow"]
    cluster.create(f"{NAMESPACES}/a/configmaps", held)
    cluster.delete(f"{NAMESPACES}/a")
    assert cluster.get(f"{NAMESPACES}/a/pods/p")["metadata"]["deletionGracePeriodSeconds"] == 30
    refused = cluster.post(f"{NAMESPACES}/a/configmaps", configmap("late", "a"))
    assert (refused.code, refused["reason"]) == (403, "Forbidden")
    assert refused.message == (
        'configmaps "late" is forbidden: unable to create new content in namespace a because it is being '
        "terminated"
    )
    cluster.delete(f"{NAMESPACES}/a/pods/p", {"gracePeriodSeconds": 0})
    assert cluster.exists(f"{NAMESPACES}/a")
    cluster.patch(f"{NAMESPACES}/a/configmaps/m", "merge", {"metadata": {"finalizers": None}})
    assert not cluster.exists(f"{NAMESPACES}/a")


def test_own_finalizer_keeps_an_empty_namespace(cluster: Cluster) -> None:
    cluster.create(NAMESPACES, {"metadata": {"name": "a", "finalizers": ["example.com/slow"]}})
    cluster.delete(f"{NAMESPACES}/a")
    left = cluster.get(f"{NAMESPACES}/a").json
    assert not left["spec"].get("finalizers")
    assert not cluster.exists(f"{NAMESPACES}/a/serviceaccounts/default")
    cluster.patch(f"{NAMESPACES}/a", "merge", {"metadata": {"finalizers": None}})
    assert not cluster.exists(f"{NAMESPACES}/a")


def test_foreign_spec_finalizer_is_removed_by_finalize(cluster: Cluster) -> None:
    made = {"metadata": {"name": "a"}, "spec": {"finalizers": ["example.com/slow"]}}
    cluster.create(NAMESPACES, made)
    cluster.delete(f"{NAMESPACES}/a")
    left = cluster.get(f"{NAMESPACES}/a").json
    assert left["spec"]["finalizers"] == ["example.com/slow"]
    left["spec"]["finalizers"] = []
    assert cluster.put(f"{NAMESPACES}/a/finalize", left).code == 200
    assert not cluster.exists(f"{NAMESPACES}/a")


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_some_namespaces_stay(cluster: Cluster, name: str) -> None:
    answer = cluster.delete(f"{NAMESPACES}/{name}")
    assert answer.code == 403
    assert answer.message == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


def test_definition_takes_its_objects_with_it(cluster: Cluster) -> None:
    widgets = "/apis/example.com/v1/namespaces/default/widgets"
    cluster.create(DEFINITIONS, crd())
    held = widget()
    held["metadata"]["finalizers"] = ["example.com/slow"]
    cluster.create(widgets, held)
    cluster.delete(f"{DEFINITIONS}/widgets.example.com")
    assert cluster.get(f"{widgets}/w")["metadata"]["deletionTimestamp"]
    late = cluster.post(widgets, {**widget(), "metadata": {"name": "late"}})
    assert (late.code, late.message) == (
        403,
        'widgets.example.com "late" is forbidden: '
        "create not allowed while custom resource definition is terminating",
    )
    cluster.patch(f"{widgets}/w", "merge", {"metadata": {"finalizers": None}})
    assert not cluster.exists(f"{DEFINITIONS}/widgets.example.com")
    assert cluster.get(widgets).code == 404
