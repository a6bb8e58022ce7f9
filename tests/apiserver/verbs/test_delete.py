from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.client import Cluster, configmap, names, node, pod

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def bound(cluster: Cluster) -> Cluster:
    """A cluster with the pod `a` on a node."""
    cluster.create("/api/v1/nodes", node("n"))
    cluster.create(PODS, pod("a", nodeName="n"))
    return cluster


def test_object_goes_at_once_and_the_answer_is_a_status(cluster: Cluster) -> None:
    made = cluster.create(MAPS, configmap("a"))
    answer = cluster.delete(f"{MAPS}/a")
    assert answer.code == 200
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert answer["details"] == {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert not cluster.exists(f"{MAPS}/a")
    again = cluster.delete(f"{MAPS}/a")
    assert (again.code, again.message) == (404, 'configmaps "a" not found')


def test_unbound_pod_goes_at_once_and_the_answer_is_the_pod(cluster: Cluster) -> None:
    cluster.create(PODS, pod("a"))
    answer = cluster.delete(f"{PODS}/a")
    assert (answer["kind"], answer["metadata"]["name"]) == ("Pod", "a")
    assert not cluster.exists(f"{PODS}/a")


def test_bound_pod_has_its_grace_period(bound: Cluster) -> None:
    meta = bound.delete(f"{PODS}/a")["metadata"]
    assert meta["deletionGracePeriodSeconds"] == 30
    assert meta["deletionTimestamp"] == "2026-03-01T12:00:30Z"
    assert bound.exists(f"{PODS}/a")
    bound.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})
    assert not bound.exists(f"{PODS}/a")


def test_grace_period_only_gets_shorter(bound: Cluster) -> None:
    path = f"{PODS}/a"
    first = bound.delete(path, gracePeriodSeconds=60)["metadata"]
    assert first["deletionTimestamp"] == "2026-03-01T12:01:00Z"
    bound.advance(10)
    for same in (bound.delete(path), bound.delete(path, gracePeriodSeconds=90)):
        assert same["metadata"] == first
    shorter = bound.delete(path, gracePeriodSeconds=20)["metadata"]
    # Counted from when the deletion began.
    assert shorter["deletionTimestamp"] == "2026-03-01T12:00:20Z"
    assert shorter["deletionGracePeriodSeconds"] == 20


def test_negative_grace_is_one_second(bound: Cluster) -> None:
    meta = bound.delete(f"{PODS}/a", {"gracePeriodSeconds": -5})["metadata"]
    assert meta["deletionGracePeriodSeconds"] == 1


def test_finalizers_keep_an_object(cluster: Cluster) -> None:
    made = configmap("a", key="1")
    made["metadata"]["finalizers"] = ["example.com/one", "example.com/two"]
    cluster.create(MAPS, made)
    path = f"{MAPS}/a"
    gone = cluster.delete(path)
    assert gone["metadata"]["deletionTimestamp"] == "2026-03-01T12:00:00Z"
    assert gone["metadata"]["deletionGracePeriodSeconds"] == 0
    version = gone["metadata"]["resourceVersion"]
    assert cluster.delete(path)["metadata"]["resourceVersion"] == version
    added = cluster.patch(path, "merge", {"metadata": {"finalizers": ["example.com/three"]}})
    assert added.code == 422
    assert "no new finalizers can be added if the object is being deleted" in added.message
    revived = cluster.patch(path, "merge", {"metadata": {"deletionTimestamp": None}, "data": {"key": "2"}})
    assert revived["metadata"]["deletionTimestamp"]
    assert revived["data"] == {"key": "2"}
    watcher = cluster.watch(MAPS, resourceVersion=revived["metadata"]["resourceVersion"])
    cluster.patch(path, "merge", {"metadata": {"finalizers": ["example.com/two"]}})
    assert cluster.exists(path)
    last = cluster.patch(path, "merge", {"metadata": {"finalizers": None}})
    assert last.code == 200
    assert not cluster.exists(path)
    assert watcher.seen() == [("MODIFIED", "a"), ("DELETED", "a")]


def test_preconditions(cluster: Cluster) -> None:
    meta = cluster.create(MAPS, configmap("a"))["metadata"]
    path = f"{MAPS}/a"
    other = cluster.delete(path, {"preconditions": {"uid": "other"}})
    assert other.code == 409
    assert other.message == (
        'Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (other) does not match '
        f"the UID in record ({meta['uid']}). The object might have been deleted and then recreated"
    )
    old = cluster.delete(path, {"preconditions": {"resourceVersion": "1"}})
    assert old.message == (
        'Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (1) does '
        f"not match the ResourceVersion in record ({meta['resourceVersion']}). "
        "The object might have been modified"
    )
    right = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    for version in ("0", ""):
        assert cluster.delete(path, {"preconditions": {"resourceVersion": version}}).code == 409
    assert cluster.delete(path, {"preconditions": right}).code == 200


@pytest.mark.parametrize(("field", "name"), [("uid", "UID"), ("resourceVersion", "ResourceVersion")])
def test_preconditions_of_a_namespace_are_reported_in_other_words(
    cluster: Cluster, field: str, name: str
) -> None:
    meta = cluster.create("/api/v1/namespaces", {"metadata": {"name": "team"}})["metadata"]
    answer = cluster.delete("/api/v1/namespaces/team", {"preconditions": {field: "1"}})
    assert (answer.code, answer.message) == (
        409,
        'Operation cannot be fulfilled on namespaces "team": Precondition failed: '
        f"{name} in precondition: 1, {name} in object meta: {meta[field]}",
    )


@pytest.mark.parametrize("how", ["query", "body"])
def test_dry_run_deletes_nothing(cluster: Cluster, how: str) -> None:
    cluster.create(MAPS, configmap("a"))
    if how == "query":
        answer = cluster.delete(f"{MAPS}/a", dryRun="All")
    else:
        answer = cluster.delete(f"{MAPS}/a", {"dryRun": ["All"]})
    assert answer.code == 200
    assert cluster.exists(f"{MAPS}/a")


BAD_OPTIONS: dict[str, tuple[Any, int, str]] = {
    "unknown policy": (
        {"propagationPolicy": "Sideways"},
        422,
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Sideways"',
    ),
    "policy twice": (
        {"propagationPolicy": "Orphan", "orphanDependents": True},
        422,
        "orphanDependents and deletionPropagation cannot be both set",
    ),
    "grace of another type": ({"gracePeriodSeconds": "soon"}, 400, ""),
    "not options": ([], 400, ""),
    "unknown dry run": ({"dryRun": ["Some"]}, 400, 'dryRun: Unsupported value: "Some"'),
}


@pytest.mark.parametrize(("options", "code", "message"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_bad_options(cluster: Cluster, options: Any, code: int, message: str) -> None:
    cluster.create(MAPS, configmap("a"))
    answer = cluster.delete(f"{MAPS}/a", options)
    assert answer.code == code, answer
    assert message in answer.message
    assert cluster.exists(f"{MAPS}/a")


def test_collection_goes_as_selected(cluster: Cluster) -> None:
    for name in "abcd":
        cluster.create(PODS, pod(name))
    by_label = cluster.delete(PODS, labelSelector="app in (a,b)")
    assert by_label["kind"] == "PodList"
    assert list(names(by_label["items"])) == ["a", "b"]
    cluster.delete(PODS, fieldSelector="metadata.name=c", dryRun="All")
    assert cluster.exists(f"{PODS}/c")
    cluster.delete(PODS, fieldSelector="metadata.name=c")
    assert list(names(cluster.get(PODS)["items"])) == ["d"]
    cluster.delete(PODS)
    assert cluster.get(PODS)["items"] == []


def test_collection_of_all_namespaces_is_not_deleted(cluster: Cluster) -> None:
    assert cluster.delete("/api/v1/pods").code == 405
    assert cluster.delete("/api/v1/namespaces").code == 405
