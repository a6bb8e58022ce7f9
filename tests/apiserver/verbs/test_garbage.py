from __future__ import annotations

from typing import Any

import pytest

from moorage.api.manifests import Manifest
from tests.apiserver.client import Cluster, configmap, node, owned, owner

MAPS = "/api/v1/namespaces/default/configmaps"
NODES = "/api/v1/nodes"
BLOCKING = {"blockOwnerDeletion": True}


def make(cluster: Cluster, name: str, *owners: dict[str, Any], finalizer: str = "") -> Any:
    obj = owned(configmap(name), *owners)
    if finalizer:
        obj["metadata"]["finalizers"] = [finalizer]
    return cluster.create(MAPS, obj)


def remaining(cluster: Cluster) -> str:
    found = [item["metadata"]["name"] for item in cluster.get(MAPS)["items"]]
    return " ".join(name for name in found if len(name) == 1)


def owners_of(cluster: Cluster, name: str) -> list[str]:
    meta = cluster.get(f"{MAPS}/{name}")["metadata"]
    return [reference["name"] for reference in meta.get("ownerReferences", [])]


def release(cluster: Cluster, name: str) -> None:
    cluster.patch(f"{MAPS}/{name}", "merge", {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("policy", ["", "Background", "Foreground"])
def test_chain_goes_with_its_first(cluster: Cluster, policy: str) -> None:
    a = make(cluster, "a")
    b = make(cluster, "b", owner(a, **BLOCKING))
    make(cluster, "c", owner(b, **BLOCKING))
    make(cluster, "d")
    cluster.delete(f"{MAPS}/a", {"propagationPolicy": policy} if policy else None)
    assert remaining(cluster) == "d"


@pytest.mark.parametrize("options", [{"propagationPolicy": "Orphan"}, {"orphanDependents": True}])
def test_orphans_stay_without_their_owner(cluster: Cluster, options: dict[str, Any]) -> None:
    a, b = make(cluster, "a"), make(cluster, "b")
    make(cluster, "c", owner(a), owner(b))
    make(cluster, "d", owner(a))
    cluster.delete(f"{MAPS}/a", options)
    assert remaining(cluster) == "b c d"
    assert owners_of(cluster, "c") == ["b"]
    assert owners_of(cluster, "d") == []


TEMPLATE: Manifest = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
RUN_ONCE = {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
OLD_KINDS = {
    "/api/v1/namespaces/default/replicationcontrollers": {"template": TEMPLATE},
    "/apis/batch/v1/namespaces/default/jobs": {"template": RUN_ONCE},
}
JOB_WARNING = (
    '299 - "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to '
    'remove them or set propagationPolicy=Orphan to suppress this warning"'
)


@pytest.mark.parametrize(("path", "spec"), OLD_KINDS.items(), ids=["ReplicationController", "Job"])
def test_old_kinds_orphan_by_default(cluster: Cluster, path: str, spec: Any) -> None:
    for name, options in (("a", None), ("b", {"propagationPolicy": "Background"})):
        made = cluster.create(path, {"metadata": {"name": name}, "spec": spec})
        make(cluster, name, owner(made))
        answer = cluster.delete(f"{path}/{name}", options)
        warned = path.endswith("/jobs") and options is None
        assert answer.headers.get("Warning") == (JOB_WARNING if warned else None)
        assert not cluster.exists(f"{path}/{name}")
    assert remaining(cluster) == "a"
    assert owners_of(cluster, "a") == []


def test_old_kinds_that_lose_their_owner_do_not_orphan(cluster: Cluster) -> None:
    a = make(cluster, "a")
    path, spec = next(iter(OLD_KINDS.items()))
    dependent = owned({"metadata": {"name": "r"}, "spec": spec}, owner(a))
    make(cluster, "b", owner(cluster.create(path, dependent)))
    cluster.delete(f"{MAPS}/a")
    assert remaining(cluster) == ""


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_dependent_stays_for_its_other_owner(cluster: Cluster, policy: str) -> None:
    a, b = make(cluster, "a"), make(cluster, "b")
    make(cluster, "c", owner(a, **BLOCKING), owner(b, **BLOCKING))
    cluster.delete(f"{MAPS}/a", {"propagationPolicy": policy})
    assert remaining(cluster) == "b c"
    assert owners_of(cluster, "c") == ["b"]
    cluster.delete(f"{MAPS}/b", {"propagationPolicy": policy})
    assert remaining(cluster) == ""


def test_foreground_owner_waits_for_what_blocks_it(cluster: Cluster) -> None:
    a = make(cluster, "a")
    make(cluster, "b", owner(a, **BLOCKING), finalizer="example.com/slow")
    make(cluster, "c", owner(a), finalizer="example.com/slow")
    answer = cluster.delete(f"{MAPS}/a", {"propagationPolicy": "Foreground"})
    assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert remaining(cluster) == "a b c"
    assert cluster.get(f"{MAPS}/b")["metadata"]["deletionTimestamp"]
    release(cluster, "b")
    # What does not block goes when its owner has gone.
    assert remaining(cluster) == "c"
    assert cluster.get(f"{MAPS}/c")["metadata"]["deletionTimestamp"]


def test_circle_goes_too(cluster: Cluster) -> None:
    a = make(cluster, "a")
    b = make(cluster, "b", owner(a, **BLOCKING))
    cluster.patch(f"{MAPS}/a", "merge", {"metadata": {"ownerReferences": [owner(b, **BLOCKING)]}})
    cluster.delete(f"{MAPS}/a", {"propagationPolicy": "Foreground"})
    assert remaining(cluster) == ""


def test_background_deletion_replaces_an_earlier_wish(cluster: Cluster) -> None:
    a = make(cluster, "a", finalizer="example.com/slow")
    make(cluster, "b", owner(a, **BLOCKING))
    cluster.delete(f"{MAPS}/a", {"propagationPolicy": "Background"})
    assert remaining(cluster) == "a b"
    release(cluster, "a")
    assert remaining(cluster) == ""


def test_dependent_made_after_its_owner_went(cluster: Cluster) -> None:
    a = make(cluster, "a")
    cluster.delete(f"{MAPS}/a")
    make(cluster, "b", owner(a))
    assert remaining(cluster) == ""


def test_owner_of_the_same_name_is_another(cluster: Cluster) -> None:
    old = make(cluster, "a")
    cluster.delete(f"{MAPS}/a")
    make(cluster, "a")
    make(cluster, "b", owner(old))
    assert remaining(cluster) == "a"


def test_owner_in_another_namespace_does_not_count(cluster: Cluster) -> None:
    cluster.create("/api/v1/namespaces", {"metadata": {"name": "other"}})
    elsewhere = cluster.create("/api/v1/namespaces/other/configmaps", configmap("a", "other"))
    make(cluster, "b", owner(elsewhere))
    assert remaining(cluster) == ""


def test_owner_of_an_unknown_kind_keeps_its_dependents(cluster: Cluster) -> None:
    stranger = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "x", "uid": "1-2-3"}
    make(cluster, "b", stranger)
    assert remaining(cluster) == "b"


def test_cluster_wide_owner(cluster: Cluster) -> None:
    n = cluster.create(NODES, node("n"))
    make(cluster, "b", owner(n))
    assert remaining(cluster) == "b"
    cluster.delete(f"{NODES}/n")
    assert remaining(cluster) == ""


def test_cluster_wide_dependent_cannot_be_owned_from_a_namespace(cluster: Cluster) -> None:
    a = make(cluster, "a")
    cluster.create(NODES, owned(node("n"), owner(a)))
    cluster.delete(f"{MAPS}/a")
    assert cluster.exists(f"{NODES}/n")


def test_many_dependents(cluster: Cluster) -> None:
    a = make(cluster, "a")
    for number in range(200):
        make(cluster, f"dependent-{number}", owner(a, **BLOCKING))
    cluster.delete(f"{MAPS}/a", {"propagationPolicy": "Foreground"})
    cluster.advance(0)
    assert remaining(cluster) == ""
    assert not cluster.get(MAPS, fieldSelector="metadata.name=dependent-7")["items"]
