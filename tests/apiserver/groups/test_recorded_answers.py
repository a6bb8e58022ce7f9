"""Answers to good and bad requests about pod groups are those of kube-apiserver v1.37.

Each file is a sequence of requests, with the code, the message and the fields that matter of the answers that
kube-apiserver v1.37.0-rc.1 gave with the same feature gates. Nulls are left out. Where a message ends with a
value in Go's notation, only its beginning is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.emulation.kubernetes_version import V1_36, V1_37, KubernetesVersion
from moorage_cluster.apiserver.embedded import Settings
from tests.apiserver.client import WITH_GROUPS, Answer, Cluster, pod

GATES = {
    "groups": (
        "GenericWorkload",
        "TopologyAwareWorkloadScheduling",
        "PodGroupPreemptionPolicy",
        "CompositePodGroup",
    ),
    "jobs_and_claims": ("GenericWorkload", "WorkloadWithJob", "DRAWorkloadResourceClaims"),
    "no_gates": (),
}
MERGE_PATCH = {"content-type": "application/merge-patch+json"}


def recorded(name: str) -> Iterator[dict[str, Any]]:
    for line in Path(__file__).with_name(f"{name}.jsonl").read_text().splitlines():
        yield json.loads(line)


def sent(cluster: Cluster, request: dict[str, Any]) -> Answer:
    path, _, query = request["path"].partition("?")
    headers = MERGE_PATCH if request["method"] == "PATCH" else None
    selectors = {"fieldSelector": "spec.priority=1"} if query else {}
    return cluster.request(request["method"], path, request.get("body"), headers, **selectors)


def facts(answer: Answer, wanted: dict[str, Any]) -> dict[str, Any]:
    """What an answer says of that which was recorded."""
    found: dict[str, Any] = {"code": answer.code}
    if answer.code >= 400:
        begins = wanted.get("begins")
        if begins is None:
            return found | {"message": answer.message}
        return found | {"begins": answer.message[: len(begins)]}
    obj = answer.json
    if warning := answer.headers.get("Warning"):
        found["warnings"] = [warning]
    if "versions" in obj:
        return found | {"versions": [each["version"] for each in obj["versions"]]}
    if "rules" in obj:
        told = ("podgroups", "devicetaint")
        return found | {"rules": [rule for rule in obj["rules"] if any(word in str(rule) for word in told)]}
    if obj["kind"] in ("Pod", "Job"):
        key = {"Pod": "schedulingGroup", "Job": "scheduling"}[obj["kind"]]
        return found | ({key: obj["spec"][key]} if key in obj["spec"] else {})
    meta = obj["metadata"]
    found |= {key: obj[key] for key in ("apiVersion", "spec", "status") if key in obj}
    found |= {key: meta[key] for key in ("finalizers", "labels", "generation") if key in meta}
    return found | ({"deleting": True} if "deletionTimestamp" in meta else {})


@pytest.mark.parametrize("name", GATES)
def test_answers_are_those_of_kubernetes(name: str) -> None:
    cluster = Cluster(Settings(version=V1_37.with_gates(dict.fromkeys(GATES[name], True))))
    differing = {}
    for request in recorded(name):
        wanted = request["answer"]
        found = facts(sent(cluster, request), wanted)
        if found != wanted:
            differing[request["name"]] = (found, wanted)
    cluster.close()
    assert differing == {}


def test_a_server_of_v1_36_has_the_groups_of_v1_36() -> None:
    cluster = Cluster(Settings(version=V1_36))
    assert cluster.get("/version")["gitVersion"] == "v1.36.4+moorage"
    versions = [each["version"] for each in cluster.get("/apis/scheduling.k8s.io")["versions"]]
    assert versions == ["v1", "v1alpha2"]
    group = {
        "metadata": {"name": "g"},
        "spec": {"schedulingPolicy": {"basic": {}}, "disruptionMode": "PodGroup"},
    }
    made = cluster.create("/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups", group)
    assert made["spec"]["disruptionMode"] == "PodGroup"
    assert "finalizers" not in made["metadata"]
    assert cluster.get("/apis/resource.k8s.io/v1/devicetaintrules").code == 404
    schemas = cluster.get("/openapi/v3/apis/batch/v1")["components"]["schemas"]
    assert "scheduling" not in schemas["io.k8s.api.batch.v1.JobSpec"]["properties"]
    cluster.close()


def test_kubectl_shows_groups_as_kubernetes_does() -> None:
    cluster = Cluster(Settings(version=V1_37.with_gates(dict.fromkeys(GATES["groups"], True))))
    group = {
        "metadata": {"name": "g"},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 2}},
            "workloadRef": {"workloadName": "w", "templateName": "t"},
        },
    }
    path = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
    cluster.create(path, group)
    accept = {"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    table = cluster.request("GET", path, headers=accept).json
    assert [column["name"] for column in table["columnDefinitions"]] == [
        "Name", "Policy", "Workload", "Status", "Age",
    ]  # fmt: skip
    assert table["rows"][0]["cells"] == ["g", "Gang", "w", "Pending", "0s"]
    cluster.close()


def test_groups_of_another_version_in_the_data_directory_are_left_alone(tmp_path: Path) -> None:
    def server(version: KubernetesVersion) -> Cluster:
        return Cluster(Settings(tmp_path, version=version))

    group = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"basic": {}}}}
    old, new = (
        f"/apis/scheduling.k8s.io/{version}/namespaces/default/podgroups"
        for version in ("v1alpha2", "v1beta1")
    )
    first = server(V1_36)
    made = first.create(old, group)
    first.close()
    second = server(WITH_GROUPS)
    assert second.get(new)["items"] == []
    second.close()
    third = server(V1_36)
    assert third.get(f"{old}/g").json == made
    third.close()


def test_objects_keep_the_fields_of_gates_that_are_off_now(tmp_path: Path) -> None:
    def server(*gates: str) -> Cluster:
        return Cluster(Settings(tmp_path, version=V1_37.with_gates(dict.fromkeys(gates, True))))

    path, group = "/api/v1/namespaces/default/pods", {"podGroupName": "g"}
    first = server("GenericWorkload")
    first.create(path, pod("p", schedulingGroup=group))
    first.close()
    second = server()
    labeled = second.patch(f"{path}/p", "merge", {"metadata": {"labels": {"a": "b"}}})
    assert (labeled.code, labeled["spec"]["schedulingGroup"]) == (200, group)
    again = second.put(f"{path}/p", labeled.json | {"metadata": labeled["metadata"] | {"labels": {}}})
    second.close()
    assert (again.code, again.json["spec"].get("schedulingGroup")) == (200, group)
