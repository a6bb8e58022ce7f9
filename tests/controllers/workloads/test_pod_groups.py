"""Groups of pods: jobs get theirs, and one in use is not removed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moorage.api.manifests import Manifest
from moorage.client.kinds import CONFIG_MAP, CORE_EVENT, JOB, POD
from moorage_cluster.apiserver.embedded import Settings
from moorage_cluster.controllers.cluster import owner_reference
from moorage_cluster.controllers.pod_groups import POD_GROUP, WORKLOAD
from moorage_cluster.controllers.workload_controllers import workload_controllers
from tests.apiserver.client import WITH_GROUPS
from tests.controllers.harness import Harness
from tests.controllers.workloads.objects import bare_pod

GANG: Manifest = {"schedulingPolicy": {"gang": {}}}


def harness(*, groups_of_jobs: bool = True) -> Harness:
    controllers = workload_controllers(has_groups=True, groups_of_jobs=groups_of_jobs)
    return Harness(*controllers, settings=Settings(version=WITH_GROUPS))


@pytest.fixture
def cluster() -> Iterator[Harness]:
    with harness() as made:
        made.add_node("one")
        yield made


def job(name: str = "work", pod: Manifest | None = None, **spec: Any) -> Manifest:
    containers = [{"name": "main", "image": "app:1"}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers, **(pod or {})}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"template": template, **spec}}


def group(name: str = "g") -> Manifest:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"basic": {}}},
    }


def only(objects: list[Manifest]) -> Manifest:
    (found,) = objects
    return found


def groups_of_pods(cluster: Harness) -> list[str]:
    return [(pod["spec"].get("schedulingGroup") or {}).get("podGroupName", "") for pod in cluster.list(POD)]


def test_a_job_gets_a_workload_and_a_group_that_its_pods_name(cluster: Harness) -> None:
    made = cluster.create(JOB, job(parallelism=3, completions=3, scheduling=GANG))
    workload, found = only(cluster.list(WORKLOAD)), only(cluster.list(POD_GROUP))
    template = {"name": "work-pgt-0", "schedulingPolicy": {"gang": {"minCount": 3}}}
    assert workload["spec"] == {
        "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "work"},
        "podGroupTemplates": [template],
    }
    assert found["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    name = workload["metadata"]["name"]
    assert found["spec"]["workloadRef"] == {"workloadName": name, "templateName": "work-pgt-0"}
    owners = [owner["uid"] for owner in found["metadata"]["ownerReferences"]]
    assert owners == [made["metadata"]["uid"], workload["metadata"]["uid"]]
    assert groups_of_pods(cluster) == [found["metadata"]["name"]] * 3
    reasons = {event["reason"] for event in cluster.list(CORE_EVENT)}
    assert {"WorkloadCreated", "PodGroupCreated"} <= reasons


def test_a_job_without_wishes_has_a_basic_group(cluster: Harness) -> None:
    cluster.create(JOB, job())
    assert only(cluster.list(POD_GROUP))["spec"]["schedulingPolicy"] == {"basic": {}}


def test_the_minimum_follows_the_job(cluster: Harness) -> None:
    cluster.create(JOB, job(parallelism=4, scheduling={"schedulingPolicy": {"gang": {"minCount": 2}}}))
    wanted = {"spec": {"scheduling": {"schedulingPolicy": {"gang": {"minCount": 3}}}}}
    cluster.patch(JOB, "work", wanted)
    gang = {"gang": {"minCount": 3}}
    assert only(cluster.list(POD_GROUP))["spec"]["schedulingPolicy"] == gang
    assert only(cluster.list(WORKLOAD))["spec"]["podGroupTemplates"][0]["schedulingPolicy"] == gang


def test_a_job_that_names_a_group_gets_no_other(cluster: Harness) -> None:
    cluster.create(POD_GROUP, group())
    cluster.create(JOB, job(pod={"schedulingGroup": {"podGroupName": "g"}}))
    assert cluster.list(WORKLOAD) == []
    assert groups_of_pods(cluster) == ["g"]


def test_a_job_of_another_controller_gets_a_group_of_the_template_that_it_names(cluster: Harness) -> None:
    owner = cluster.create(CONFIG_MAP, {"metadata": {"name": "owner", "namespace": "default"}})
    templates = [{"name": "workers", "schedulingPolicy": {"gang": {"minCount": 1}}}]
    controller = {"kind": "ConfigMap", "name": "owner"}
    workload = {
        "metadata": {"name": "w", "namespace": "default"},
        "spec": {"controllerRef": controller, "podGroupTemplates": templates},
    }
    cluster.create(WORKLOAD, workload)
    for name, noted in (
        ("child", {}),
        ("delegated", {"scheduling.k8s.io/group-template-name": "workers"}),
    ):
        made = job(name)
        made["metadata"] |= {"ownerReferences": [owner_reference(owner)], "annotations": noted}
        cluster.create(JOB, made)
    assert cluster.names(WORKLOAD) == ["w"]
    named = {pod["metadata"]["labels"]["job-name"]: pod["spec"] for pod in cluster.list(POD)}
    assert "schedulingGroup" not in named["child"]
    found = only(cluster.list(POD_GROUP))
    assert named["delegated"]["schedulingGroup"] == {"podGroupName": found["metadata"]["name"]}
    assert found["spec"]["schedulingPolicy"] == {"gang": {"minCount": 1}}


def test_jobs_get_no_groups_without_the_gate() -> None:
    with harness(groups_of_jobs=False) as plain:
        plain.create(JOB, job(scheduling=GANG))
        assert plain.list(WORKLOAD) == []
        assert groups_of_pods(plain) == [""]


def test_deleting_a_job_removes_its_pods_and_its_groups(cluster: Harness) -> None:
    cluster.create(JOB, job(parallelism=2, scheduling=GANG))
    cluster.delete(JOB, "work", propagation="Background")
    cluster.finish_deletions()
    assert (cluster.list(POD), cluster.list(POD_GROUP), cluster.list(WORKLOAD)) == ([], [], [])


@pytest.mark.parametrize("ends", ["deleted", "finished"])
def test_a_deleted_group_stays_until_its_last_pod_is_gone_or_finished(cluster: Harness, ends: str) -> None:
    cluster.create(POD_GROUP, group())
    member = bare_pod("p")
    member["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    cluster.create(POD, member)
    cluster.delete(POD_GROUP, "g")
    assert cluster.get(POD_GROUP, "g")["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]
    if ends == "deleted":
        cluster.delete(POD, "p")
        cluster.finish_deletions()
    else:
        cluster.patch(POD, "p", {"status": {"phase": "Succeeded"}}, subresource="status")
    assert cluster.list(POD_GROUP) == []


def test_a_group_without_pods_is_removed_at_once(cluster: Harness) -> None:
    cluster.create(POD_GROUP, group())
    cluster.delete(POD_GROUP, "g")
    assert cluster.list(POD_GROUP) == []
