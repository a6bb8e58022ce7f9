from __future__ import annotations

import re
from typing import Any

import pytest

from tests.apiserver.client import Cluster, configmap, node

MAPS = "/api/v1/namespaces/default/configmaps"


def named(**metadata: Any) -> dict[str, Any]:
    return {"metadata": metadata}


def test_server_says_who_an_object_is(cluster: Cluster) -> None:
    given = named(
        name="a",
        uid="mine",
        creationTimestamp="2001-01-01T00:00:00Z",
        deletionTimestamp="2001-01-01T00:00:00Z",
        deletionGracePeriodSeconds=5,
        selfLink="/x",
    )
    before = cluster.get(MAPS)["metadata"]["resourceVersion"]
    made = cluster.create(MAPS, given)
    meta = made["metadata"]
    assert made["apiVersion"] == "v1"
    assert made["kind"] == "ConfigMap"
    assert meta["namespace"] == "default"
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", meta["uid"])
    assert meta["creationTimestamp"] == "2026-03-01T12:00:00Z"
    assert int(meta["resourceVersion"]) == int(before) + 1
    assert not {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} & meta.keys()
    assert cluster.get(f"{MAPS}/a").json == made


@pytest.mark.parametrize("version", ["0", "", "abc"])
def test_version_of_a_new_object_that_names_none_is_passed_over(cluster: Cluster, version: str) -> None:
    made = cluster.create(MAPS, named(name="a", resourceVersion=version))
    assert int(made["metadata"]["resourceVersion"]) > 1


REFUSED: dict[str, tuple[str, Any, int, str]] = {
    "no name": (MAPS, {}, 422, "metadata.name: Required value: name or generateName is required"),
    "bad name": (
        MAPS,
        named(name="A"),
        422,
        'metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain',
    ),
    "bad prefix": (MAPS, named(generateName="A"), 422, 'metadata.generateName: Invalid value: "A"'),
    "other namespace": (
        MAPS,
        named(name="a", namespace="other"),
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
    ),
    "no namespace": (
        "/api/v1/namespaces/none/configmaps",
        named(name="a"),
        404,
        'namespaces "none" not found',
    ),
    "version": (
        MAPS,
        named(name="a", resourceVersion="5"),
        500,
        "resourceVersion should not be set on objects to be created",
    ),
    "other kind": (MAPS, {"kind": "Secret", **named(name="a")}, 400, "cannot be handled as a ConfigMap"),
    "other version": (
        MAPS,
        {"apiVersion": "v2", **named(name="a")},
        400,
        "the API version in the data (v2) does not match the expected API version (v1)",
    ),
    "at a name": (f"{MAPS}/a", named(name="a"), 405, "the server does not allow this method"),
    "namespaced without namespace": (
        "/api/v1/configmaps",
        named(name="a"),
        405,
        "does not allow this method",
    ),
    "unknown resource": (
        "/api/v1/namespaces/default/things",
        {},
        404,
        "could not find the requested resource",
    ),
    "bad label": (MAPS, named(name="a", labels={"a": "b c"}), 422, 'metadata.labels: Invalid value: "b c"'),
    "bad finalizer": (
        MAPS,
        named(name="a", finalizers=["a b"]),
        422,
        'metadata.finalizers: Invalid value: "a b"',
    ),
    "owner without uid": (
        MAPS,
        named(name="a", ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": ""}]),
        422,
        "metadata.ownerReferences.uid: Invalid value",
    ),
}


@pytest.mark.parametrize(("path", "body", "code", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(cluster: Cluster, path: str, body: Any, code: int, message: str) -> None:
    answer = cluster.post(path, body)
    assert answer.code == code
    assert message in answer.message
    assert answer["kind"] == "Status"
    assert answer["code"] == code


def test_name_is_taken_only_once_in_a_namespace(cluster: Cluster) -> None:
    cluster.create("/api/v1/namespaces", {"metadata": {"name": "other"}})
    cluster.create(MAPS, configmap("a"))
    again = cluster.post(MAPS, configmap("a"))
    assert (again.code, again["reason"]) == (409, "AlreadyExists")
    assert again.message == 'configmaps "a" already exists'
    assert again["details"] == {"name": "a", "kind": "configmaps"}
    assert cluster.post("/api/v1/namespaces/other/configmaps", configmap("a", "other")).code == 201


def test_generated_names_differ(cluster: Cluster) -> None:
    made = [cluster.create(MAPS, named(generateName="job-"))["metadata"] for _ in range(20)]
    names = {meta["name"] for meta in made}
    assert len(names) == 20
    assert all(re.fullmatch(r"job-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)
    assert {meta["generateName"] for meta in made} == {"job-"}


def test_generated_name_leaves_room_for_its_suffix(cluster: Cluster) -> None:
    name = cluster.create(MAPS, named(generateName="a" * 100))["metadata"]["name"]
    assert name.startswith("a" * 58)
    assert len(name) == 63


def test_dry_run_answers_and_stores_nothing(cluster: Cluster) -> None:
    watcher = cluster.watch(MAPS)
    watcher.events()
    answer = cluster.post(MAPS, configmap("a", key="value"), dryRun="All")
    assert answer.code == 201
    assert answer["metadata"]["uid"]
    assert answer["data"] == {"key": "value"}
    assert not cluster.exists(f"{MAPS}/a")
    assert watcher.events() == []
    assert cluster.post(MAPS, configmap("a"), dryRun="Some").code == 400


def test_binding_by_its_own_resource_binds_and_is_not_stored(cluster: Cluster) -> None:
    pods = "/api/v1/namespaces/default/pods"
    containers = [{"name": "main", "image": "registry.example/app:1"}]
    cluster.create("/api/v1/nodes", node("n"))
    cluster.create(pods, {"metadata": {"name": "p"}, "spec": {"containers": containers}})
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    bindings = "/api/v1/namespaces/default/bindings"
    answer = cluster.post(bindings, binding)
    assert (answer.code, answer["kind"], answer["status"]) == (201, "Status", "Success")
    assert cluster.get(f"{pods}/p")["spec"]["nodeName"] == "n"
    assert cluster.post(bindings, binding).code == 409
    assert cluster.get(bindings).code == 405
    missing = cluster.post(bindings, {**binding, "metadata": {"name": "absent"}})
    assert (missing.code, missing.message) == (404, 'pods "absent" not found')


@pytest.mark.parametrize(
    ("version", "dry_run", "code"),
    [
        ("5", "", 500),
        ("18446744073709551615", "", 500),
        ("18446744073709551616", "", 201),
        ("9" * 5000, "", 201),
        ("00", "", 201),
        ("abc", "", 201),
        ("5", "All", 201),
    ],
)
def test_only_a_version_that_an_object_could_have_is_refused(
    cluster: Cluster, version: str, dry_run: str, code: int
) -> None:
    assert cluster.post(MAPS, named(name="a", resourceVersion=version), dryRun=dry_run).code == code


def test_what_is_wrong_with_an_object_is_reported_before_its_version(cluster: Cluster) -> None:
    assert cluster.post(MAPS, named(name="A", resourceVersion="5")).code == 422
