"""One body sent again and again: each time it means what it meant the first time, and a new object."""

from __future__ import annotations

from typing import Any

from moorage_cluster.apiserver.store import encode
from tests.apiserver.client import Cluster

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"


def pod(**spec: Any) -> dict[str, Any]:
    containers = [
        {"name": "main", "image": "i", "resources": {"requests": {"cpu": "0.1", "memory": "1024Ki"}}}
    ]
    return {"metadata": {"generateName": "p-"}, "spec": {"containers": containers, **spec}}


def without_identity(obj: dict[str, Any]) -> dict[str, Any]:
    own = ("name", "uid", "resourceVersion", "creationTimestamp")
    meta = {key: value for key, value in obj["metadata"].items() if key not in own}
    return {**obj, "metadata": meta}


def test_every_object_is_its_own(cluster: Cluster) -> None:
    body = pod(automountServiceAccountToken=False)
    first, second, third = (cluster.create(PODS, body) for _ in range(3))
    assert first["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "100m", "memory": "1Mi"}
    assert without_identity(first) == without_identity(second) == without_identity(third)
    assert len({each["metadata"]["name"] for each in (first, second, third)}) == 3
    assert len({each["metadata"]["uid"] for each in (first, second, third)}) == 3


def test_what_admission_adds_is_not_taken_for_what_was_sent(cluster: Cluster) -> None:
    names = {cluster.create(PODS, pod())["spec"]["volumes"][0]["name"] for _ in range(3)}
    assert len(names) == 3


def test_what_changes_in_the_cluster_counts_for_the_next_one(cluster: Cluster) -> None:
    assert cluster.create(PODS, pod())["spec"]["priority"] == 0
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    cluster.create(classes, {"metadata": {"name": "high"}, "value": 7, "globalDefault": True})
    assert cluster.create(PODS, pod())["spec"]["priority"] == 7


def test_unknown_fields_are_warned_of_each_time(cluster: Cluster) -> None:
    body = pod(colour="red")
    for _ in range(3):
        answer = cluster.post(PODS, body)
        assert (answer.code, answer.headers["Warning"]) == (201, '299 - "unknown field \\"spec.colour\\""')


def test_strict_validation_does_not_depend_on_cached_bodies(cluster: Cluster) -> None:
    body = pod(colour="red")
    for validation, code in (("Ignore", 201), ("Strict", 400), ("Ignore", 201), ("Strict", 400)):
        assert cluster.post(PODS, body, fieldValidation=validation).code == code


def test_a_field_given_twice_is_rejected_if_strict(cluster: Cluster) -> None:
    body = b'{"metadata":{"generateName":"m-"},"data":{},"data":{"a":"b"}}'
    for validation, code in (("Warn", 201), ("Warn", 201), ("Strict", 400)):
        assert cluster.post(MAPS, body, fieldValidation=validation).code == code


def test_one_body_is_another_object_elsewhere(cluster: Cluster) -> None:
    body = {"metadata": {"generateName": "x-"}}
    kinds = {
        path: cluster.create(path, body)["kind"] for path in (MAPS, MAPS.replace("configmaps", "secrets"))
    }
    assert list(kinds.values()) == ["ConfigMap", "Secret"]


def test_it_is_another_object_in_another_language(cluster: Cluster) -> None:
    body = encode({"metadata": {"generateName": "x-"}})
    assert cluster.post(MAPS, body).code == 201
    for content_type, code in (("application/yaml", 201), ("application/json", 201), ("text/plain", 415)):
        assert cluster.request("POST", MAPS, body, {"content-type": content_type}).code == code


def test_times_are_those_of_each_creation(cluster: Cluster) -> None:
    taint = {"key": "k", "effect": "NoSchedule"}
    spec = {
        "driver": "d.example",
        "nodeName": "n",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "one", "taints": [taint]}],
    }
    body = {"metadata": {"generateName": "s-"}, "spec": spec}

    def added() -> str:
        time: str = cluster.create(SLICES, body)["spec"]["devices"][0]["taints"][0]["timeAdded"]
        return time

    first = added()
    cluster.clock.advance(5.0)
    assert added() > first


def test_many_bodies_are_all_understood(cluster: Cluster) -> None:
    for _ in range(2):
        for number in range(300):
            made = cluster.create(MAPS, {"metadata": {"generateName": "m-"}, "data": {"n": str(number)}})
            assert made["data"] == {"n": str(number)}
