from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.apiserver.client import PATCHES, Cluster, configmap, pod

MAPS = "/api/v1/namespaces/default/configmaps"
NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def with_metadata(obj: Any, **changes: Any) -> Any:
    meta = {key: value for key, value in {**obj["metadata"], **changes}.items() if value is not None}
    return {**obj, "metadata": meta}


def test_each_write_moves_the_version_and_keeps_the_identity(cluster: Cluster) -> None:
    made = cluster.create(MAPS, configmap("a", key="1"))
    cluster.advance(10)
    changed = cluster.put(f"{MAPS}/a", {**made, "data": {"key": "2"}}).json
    assert changed["data"] == {"key": "2"}
    assert int(changed["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    assert changed["metadata"] | {"resourceVersion": ""} == made["metadata"] | {"resourceVersion": ""}


def nothing_put(cluster: Cluster, obj: Any) -> Any:
    return cluster.put(f"{MAPS}/a", obj).json


def nothing_merged(cluster: Cluster, obj: Any) -> Any:
    return cluster.patch(f"{MAPS}/a", "merge", {"data": obj["data"]}).json


def nothing_tested(cluster: Cluster, obj: Any) -> Any:
    return cluster.patch(f"{MAPS}/a", "json", [{"op": "test", "path": "/data/key", "value": "1"}]).json


def nothing_unconditional(cluster: Cluster, obj: Any) -> Any:
    return cluster.put(f"{MAPS}/a", with_metadata(obj, resourceVersion=None, uid=None)).json


@pytest.mark.parametrize("write", [nothing_put, nothing_merged, nothing_tested, nothing_unconditional])
def test_write_of_the_same_moves_nothing(cluster: Cluster, write: Callable[[Cluster, Any], Any]) -> None:
    made = cluster.create(MAPS, configmap("a", key="1"))
    watcher = cluster.watch(MAPS, resourceVersion=made["metadata"]["resourceVersion"])
    assert write(cluster, made) == made
    assert cluster.get(f"{MAPS}/a").json == made
    assert watcher.events() == []


REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "old version": (
        {"resourceVersion": "1"},
        409,
        f'Operation cannot be fulfilled on configmaps "a": {MODIFIED}',
    ),
    "other uid": (
        {"uid": "other"},
        409,
        'Operation cannot be fulfilled on configmaps "a": Precondition failed: UID in precondition: other',
    ),
    "other name": ({"name": "b"}, 400, "the name of the object (b) does not match the name on the URL (a)"),
    "no name": (
        {"name": None},
        400,
        "the name of the object (a based on URL) was undeterminable: name must be provided",
    ),
    "other namespace": (
        {"namespace": "b"},
        400,
        "the namespace of the object (b) does not match the namespace on the URL (default)",
    ),
    "bad label": ({"labels": {"a b": "c"}}, 422, 'metadata.labels: Invalid value: "a b"'),
}


@pytest.mark.parametrize(("changes", "code", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(cluster: Cluster, changes: dict[str, Any], code: int, message: str) -> None:
    made = cluster.create(MAPS, configmap("a", key="1"))
    answer = cluster.put(f"{MAPS}/a", {**with_metadata(made, **changes), "data": {"key": "2"}})
    assert answer.code == code, answer
    assert message in answer.message
    assert cluster.get(f"{MAPS}/a").json == made


@pytest.mark.parametrize("kind", ["merge", "strategic", "apply"])
def test_a_patch_cannot_change_the_uid(cluster: Cluster, kind: str) -> None:
    made = cluster.create(MAPS, configmap("a", key="1"))
    patch = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"uid": "other"}, "data": {"key": "2"}}
    query = {"fieldManager": "m", "force": "true"} if kind == "apply" else {}
    answer = cluster.patch(f"{MAPS}/a", kind, patch, **query)
    assert (answer.code, answer.message) == (
        422,
        'ConfigMap "a" is invalid: metadata.uid: Invalid value: "other": field is immutable',
    )
    assert cluster.get(f"{MAPS}/a").json == made


def test_update_of_what_is_not_there(cluster: Cluster) -> None:
    answer = cluster.put(f"{MAPS}/a", configmap("a"))
    assert (answer.code, answer.message) == (404, 'configmaps "a" not found')


@pytest.mark.parametrize("version", ["0", "00", ""])
def test_update_with_version_zero_is_unconditional(cluster: Cluster, version: str) -> None:
    made = cluster.create(MAPS, configmap("a", key="1"))
    put = cluster.put(f"{MAPS}/a", {**with_metadata(made, resourceVersion=version), "data": {"key": "2"}})
    assert (put.code, put["data"]) == (200, {"key": "2"})
    assert int(put["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    patch = {"metadata": {"resourceVersion": version}, "data": {"key": "3"}}
    assert cluster.patch(f"{MAPS}/a", "merge", patch)["data"] == {"key": "3"}
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"resourceVersion": version}}
    assert cluster.patch(f"{MAPS}/a", "apply", applied, fieldManager="m").code == 200


def test_scale_with_version_zero_is_unconditional(cluster: Cluster) -> None:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": pod("a")["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    cluster.create(DEPLOYMENTS, {"metadata": {"name": "a"}, "spec": spec})
    scale = {"metadata": {"name": "a", "resourceVersion": "0"}, "spec": {"replicas": 3}}
    assert cluster.put(f"{DEPLOYMENTS}/a/scale", scale)["spec"] == {"replicas": 3}
    stale = cluster.put(f"{DEPLOYMENTS}/a/scale", with_metadata(scale, resourceVersion="1"))
    assert (stale.code, stale["reason"]) == (409, "Conflict")


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("abc", "invalid syntax"),
        ("-1", "invalid syntax"),
        ("1\x00\u2028", "invalid syntax"),
        ("9" * 20, "value out of range"),
        ("9" * 5000, "value out of range"),
    ],
)
def test_version_that_is_no_number(cluster: Cluster, version: str, why: str) -> None:
    made = cluster.create(MAPS, configmap("a", key="1"))
    answer = cluster.put(f"{MAPS}/a", with_metadata(made, resourceVersion=version))
    shown = '"{}"'.format(version.encode("unicode_escape").decode())
    assert (answer.code, answer.message) == (500, f"strconv.ParseUint: parsing {shown}: {why}")
    assert "reason" not in answer.json


def test_cluster_wide_object_has_no_namespace(cluster: Cluster) -> None:
    made = cluster.create(NODES, {"metadata": {"name": "n", "namespace": "default"}})
    assert "namespace" not in made["metadata"]
    labelled = with_metadata(made, namespace="other", labels={"a": "b"})
    for answer in (
        cluster.put(f"{NODES}/n", labelled),
        cluster.patch(f"{NODES}/n", "merge", {"metadata": {"namespace": "other", "labels": {"a": "c"}}}),
        cluster.patch(f"{NODES}/n", "apply", _applied_node("n"), fieldManager="m", force="true"),
        cluster.patch(f"{NODES}/new", "apply", _applied_node("new"), fieldManager="m"),
    ):
        assert answer.code in (200, 201), answer
        assert "namespace" not in answer["metadata"]
        assert answer["metadata"]["labels"]


def _applied_node(name: str) -> Any:
    meta = {"name": name, "namespace": "other", "labels": {"a": "d"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta}


def test_some_kinds_want_the_version_and_some_are_made_by_an_update(cluster: Cluster) -> None:
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}, "spec": {}}
    made = cluster.put(f"{LEASES}/a", with_metadata(lease, resourceVersion="5"))
    assert made.code == 201
    for version in (None, "", "0"):
        again = cluster.put(f"{LEASES}/a", with_metadata(lease, resourceVersion=version))
        assert (again.code, again.message) == (
            422,
            'leases.coordination.k8s.io "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be '
            "specified for an update",
        )
    assert cluster.put(f"{LEASES}/a", {**made.json, "spec": {"holderIdentity": "x"}}).code == 200


def test_generation_counts_changes_of_the_spec(cluster: Cluster) -> None:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": pod("a")["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    made = cluster.create(DEPLOYMENTS, {"metadata": {"name": "a"}, "spec": spec})
    path = f"{DEPLOYMENTS}/a"

    def generation(kind: str, patch: Any, where: str = path) -> int:
        answer = cluster.patch(where, kind, patch)
        assert answer.code == 200, answer
        return int(answer["metadata"]["generation"])

    assert made["metadata"]["generation"] == 1
    assert generation("merge", {"metadata": {"labels": {"a": "b"}}}) == 1
    assert generation("merge", {"spec": {"replicas": 2}}) == 2
    assert generation("merge", {"status": {"replicas": 9}}) == 2
    assert generation("merge", {"status": {"replicas": 2}}, f"{path}/status") == 2
    assert cluster.get(path)["status"]["replicas"] == 2


def test_clients_cannot_set_the_generation(cluster: Cluster) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    made = cluster.create(path, {"metadata": {"name": "a"}, "value": 5})
    for generation in (None, 7):
        answer = cluster.put(f"{path}/a", with_metadata(made, resourceVersion=None, generation=generation))
        assert (answer.code, answer["metadata"]["generation"]) == (200, made["metadata"]["generation"])


def test_status_and_the_rest_are_written_apart(cluster: Cluster) -> None:
    made = cluster.create(PODS, pod("a"))
    status = {"phase": "Running"}
    cluster.put(f"{PODS}/a", {**made, "status": status})
    assert cluster.get(f"{PODS}/a")["status"]["phase"] == "Pending"
    answer = cluster.put(f"{PODS}/a/status", {**made, "spec": {"containers": []}, "status": status})
    assert answer.code == 200
    assert answer["status"]["phase"] == "Running"
    assert answer["spec"] == made["spec"]


PATCH_BODIES: dict[str, Any] = {
    "json": [{"op": "add", "path": "/metadata/labels/tier", "value": "web"}],
    "merge": {"metadata": {"labels": {"tier": "web"}}},
    "strategic": {"metadata": {"labels": {"tier": "web"}}},
    "apply": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"tier": "web"}}},
}


@pytest.mark.parametrize("kind", PATCHES)
def test_every_patch_type(cluster: Cluster, kind: str) -> None:
    cluster.create(PODS, pod("a"))
    query = {"fieldManager": "me"} if kind == "apply" else {}
    answer = cluster.patch(f"{PODS}/a", kind, PATCH_BODIES[kind], **query)
    assert answer.code == 200, answer
    assert answer["metadata"]["labels"] == {"app": "a", "tier": "web"}


def test_patch_of_an_older_version_is_refused(cluster: Cluster) -> None:
    made = cluster.create(MAPS, configmap("a", key="1"))
    version = made["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version}, "data": {"key": "2"}}
    assert cluster.patch(f"{MAPS}/a", "merge", patch).code == 200
    late = cluster.patch(f"{MAPS}/a", "merge", patch | {"data": {"key": "3"}})
    assert (late.code, late["reason"]) == (409, "Conflict")
    assert cluster.get(f"{MAPS}/a")["data"] == {"key": "2"}


BAD_PATCHES: dict[str, tuple[str, Any, int, str]] = {
    "rename": (
        "application/merge-patch+json",
        b'{"metadata":{"name":"b"}}',
        400,
        "does not match the name on",
    ),
    "not an object": ("application/merge-patch+json", b"[]", 400, ""),
    "not JSON": ("application/json-patch+json", b"{", 400, ""),
    "failed test": (
        "application/json-patch+json",
        b'[{"op":"test","path":"/data/key","value":"9"}]',
        422,
        "",
    ),
    "no type": ("", b"{}", 415, "accepted media types include: application/json-patch+json"),
    "plain JSON": (
        "application/json",
        b"{}",
        415,
        "accepted media types include: application/json-patch+json",
    ),
    "apply without manager": (
        "application/apply-patch+yaml",
        b"apiVersion: v1\nkind: ConfigMap\n",
        400,
        "fieldManager: Required value: is required for apply patch",
    ),
}


@pytest.mark.parametrize(("content_type", "body", "code", "message"), BAD_PATCHES.values(), ids=BAD_PATCHES)
def test_bad_patch(cluster: Cluster, content_type: str, body: bytes, code: int, message: str) -> None:
    made = cluster.create(MAPS, configmap("a", key="1"))
    answer = cluster.request("PATCH", f"{MAPS}/a", body, {"content-type": content_type})
    assert answer.code == code, answer
    assert message in answer.message
    assert cluster.get(f"{MAPS}/a").json == made


def test_patch_of_what_is_not_there(cluster: Cluster) -> None:
    assert cluster.patch(f"{MAPS}/a", "merge", {}).code == 404
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "1"}}
    made = cluster.patch(f"{MAPS}/a", "apply", applied, fieldManager="me")
    assert made.code == 201
    assert made["metadata"]["managedFields"][0]["manager"] == "me"
    assert cluster.patch(f"{MAPS}/a", "apply", applied, fieldManager="me").code == 200


def test_apply_conflicts_until_forced(cluster: Cluster) -> None:
    def applied(value: str) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": value}}

    path = f"{MAPS}/a"
    cluster.patch(path, "apply", applied("1"), fieldManager="one")
    refused = cluster.patch(path, "apply", applied("2"), fieldManager="two")
    assert (refused.code, refused["reason"]) == (409, "Conflict")
    assert refused["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.key"}
    ]
    forced = cluster.patch(path, "apply", applied("2"), fieldManager="two", force="true")
    assert forced["data"] == {"key": "2"}
    assert [entry["manager"] for entry in forced["metadata"]["managedFields"]] == ["two"]
