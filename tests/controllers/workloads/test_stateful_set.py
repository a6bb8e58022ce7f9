"""StatefulSets: order, claims, updates, revisions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moorage.api.manifests import Manifest
from moorage.client.kinds import CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET
from moorage_cluster.controllers.stateful_set import StatefulSetController
from tests.controllers.harness import Harness
from tests.controllers.workloads.objects import bare_pod, template, workload


@pytest.fixture
def cluster() -> Iterator[Harness]:
    with Harness(StatefulSetController) as harness:
        yield harness


def stateful(**spec: Any) -> Manifest:
    return workload(serviceName="peers", **spec)


CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def status(cluster: Harness) -> Manifest:
    found: Manifest = cluster.get(STATEFUL_SET, "web")["status"]
    return found


def images(cluster: Harness) -> list[str]:
    pods = sorted(cluster.pods(), key=lambda pod: str(pod["metadata"]["name"]))
    return [pod["spec"]["containers"][0]["image"].removeprefix("app:") for pod in pods]


def set_image(cluster: Harness, image: str) -> None:
    cluster.patch(STATEFUL_SET, "web", {"spec": {"template": template(image)}})


def run_all(cluster: Harness) -> None:
    for _ in range(50):
        if not cluster.run_pods():
            return
    raise AssertionError("the set does not come to rest")


def test_pods_are_made_in_order_each_waiting_for_the_one_before(cluster: Harness) -> None:
    cluster.create(STATEFUL_SET, stateful(replicas=3))
    for expected in (["web-0"], ["web-0", "web-1"], ["web-0", "web-1", "web-2"]):
        assert cluster.names(POD) == expected
        cluster.run_pods(ready=False)
        assert cluster.names(POD) == expected
        cluster.run_pods()
    found = status(cluster)
    assert (found["replicas"], found["readyReplicas"], found["availableReplicas"]) == (3, 3, 3)
    assert (found["currentReplicas"], found["updatedReplicas"]) == (3, 3)
    assert found["currentRevision"] == found["updateRevision"]
    assert cluster.events("web") == [
        ("SuccessfulCreate", f"Create Pod web-{number} in StatefulSet web successful") for number in range(3)
    ]


def test_parallel_pods_are_made_and_taken_away_at_once(cluster: Harness) -> None:
    cluster.create(STATEFUL_SET, stateful(replicas=5, podManagementPolicy="Parallel"))
    assert len(cluster.list(POD)) == 5
    cluster.patch(STATEFUL_SET, "web", {"spec": {"replicas": 1}})
    assert cluster.names(POD) == ["web-0"]


def test_identity(cluster: Harness) -> None:
    cluster.create(STATEFUL_SET, stateful(replicas=1, ordinals={"start": 7}))
    pod = cluster.get(POD, "web-7")
    revision = status(cluster)["updateRevision"]
    assert pod["metadata"]["labels"] == {
        "app": "web",
        "statefulset.kubernetes.io/pod-name": "web-7",
        "apps.kubernetes.io/pod-index": "7",
        "controller-revision-hash": revision,
    }
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("web-7", "peers")


def test_scaling_down_goes_from_the_last_one_at_a_time(cluster: Harness) -> None:
    cluster.add_node("one")
    cluster.create(STATEFUL_SET, stateful(replicas=3))
    run_all(cluster)
    for pod in cluster.pods():
        cluster.bind(pod, "one")
    cluster.patch(STATEFUL_SET, "web", {"spec": {"replicas": 0}})
    for left in (["web-0", "web-1"], ["web-0"], []):
        assert sorted(pod["metadata"]["name"] for pod in cluster.pods()) == left
        cluster.settle()
        assert len(cluster.finish_deletions()) == 1
    assert cluster.list(POD) == []


def test_a_pod_that_is_not_ready_stops_scaling_down_unless_it_is_the_one(cluster: Harness) -> None:
    cluster.create(STATEFUL_SET, stateful(replicas=3))
    run_all(cluster)
    cluster.run_pods(ready=False, where=lambda pod: pod["metadata"]["name"] == "web-0")
    cluster.patch(STATEFUL_SET, "web", {"spec": {"replicas": 1}})
    assert len(cluster.list(POD)) == 3
    run_all(cluster)
    assert cluster.names(POD) == ["web-0"]


def test_a_deleted_or_ended_pod_comes_back_under_its_name(cluster: Harness) -> None:
    cluster.create(STATEFUL_SET, stateful(replicas=2))
    run_all(cluster)
    before = cluster.get(POD, "web-0")["metadata"]["uid"]
    cluster.delete(POD, "web-0")
    assert cluster.get(POD, "web-0")["metadata"]["uid"] != before
    run_all(cluster)
    before = cluster.get(POD, "web-1")["metadata"]["uid"]
    cluster.run_pods("Failed", where=lambda pod: pod["metadata"]["name"] == "web-1")
    assert cluster.get(POD, "web-1")["metadata"]["uid"] != before


def test_a_rolling_update_goes_from_the_last_to_the_first(cluster: Harness) -> None:
    cluster.create(STATEFUL_SET, stateful(replicas=3))
    run_all(cluster)
    set_image(cluster, "app:2")
    for expected in (["1", "1", "2"], ["1", "2", "2"], ["2", "2", "2"]):
        assert images(cluster) == expected
        assert status(cluster)["currentRevision"] != status(cluster)["updateRevision"]
        cluster.run_pods()
    found = status(cluster)
    assert found["currentRevision"] == found["updateRevision"]
    assert (found["currentReplicas"], found["updatedReplicas"]) == (3, 3)


def test_a_partition_keeps_the_first_pods_as_they_are(cluster: Harness) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    cluster.create(STATEFUL_SET, stateful(replicas=3, updateStrategy=strategy))
    run_all(cluster)
    set_image(cluster, "app:2")
    run_all(cluster)
    assert images(cluster) == ["1", "1", "2"]
    assert (status(cluster)["currentReplicas"], status(cluster)["updatedReplicas"]) == (2, 1)
    cluster.delete(POD, "web-0")
    run_all(cluster)
    assert images(cluster) == ["1", "1", "2"]
    cluster.patch(STATEFUL_SET, "web", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    run_all(cluster)
    assert images(cluster) == ["2", "2", "2"]


def test_on_delete_waits_for_the_user(cluster: Harness) -> None:
    cluster.create(STATEFUL_SET, stateful(replicas=2, updateStrategy={"type": "OnDelete"}))
    run_all(cluster)
    set_image(cluster, "app:2")
    run_all(cluster)
    assert images(cluster) == ["1", "1"]
    cluster.delete(POD, "web-0")
    assert images(cluster) == ["2", "1"]


def test_a_broken_update_stops_at_the_first_pod(cluster: Harness) -> None:
    cluster.create(STATEFUL_SET, stateful(replicas=3))
    run_all(cluster)
    set_image(cluster, "app:broken")
    cluster.run_pods(ready=False, where=lambda pod: pod["metadata"]["name"] == "web-2")
    assert images(cluster) == ["1", "1", "broken"]
    set_image(cluster, "app:1")
    cluster.delete(POD, "web-2")
    run_all(cluster)
    assert images(cluster) == ["1", "1", "1"]


def test_revisions_are_kept_used_again_and_forgotten(cluster: Harness) -> None:
    cluster.create(STATEFUL_SET, stateful(replicas=1, revisionHistoryLimit=1))
    run_all(cluster)
    for image in ("app:2", "app:1", "app:3", "app:4"):
        set_image(cluster, image)
        run_all(cluster)
    kept = {
        each["data"]["spec"]["template"]["spec"]["containers"][0]["image"]: each["revision"]
        for each in cluster.list(CONTROLLER_REVISION)
    }
    # The first image became the third revision when it came back.
    assert kept == {"app:3": 4, "app:4": 5}
    assert cluster.list(CONTROLLER_REVISION)[0]["data"]["spec"]["template"]["$patch"] == "replace"


def test_claims_are_made_from_templates_and_kept(cluster: Harness) -> None:
    cluster.create(STATEFUL_SET, stateful(replicas=2, volumeClaimTemplates=[CLAIM]))
    run_all(cluster)
    assert cluster.names(PERSISTENT_VOLUME_CLAIM) == ["data-web-0", "data-web-1"]
    assert cluster.get(PERSISTENT_VOLUME_CLAIM, "data-web-0")["metadata"]["labels"] == {"app": "web"}
    volumes = cluster.get(POD, "web-1")["spec"]["volumes"]
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}} in volumes
    assert (
        "SuccessfulCreate",
        "Create Claim data-web-0 Pod web-0 in StatefulSet web success",
    ) in cluster.events("web")
    cluster.delete(STATEFUL_SET, "web")
    assert cluster.names(PERSISTENT_VOLUME_CLAIM) == ["data-web-0", "data-web-1"]


def owners(cluster: Harness) -> dict[str, list[str]]:
    return {
        each["metadata"]["name"]: [owner["name"] for owner in each["metadata"].get("ownerReferences", [])]
        for each in cluster.list(PERSISTENT_VOLUME_CLAIM)
    }


@pytest.mark.parametrize(
    ("when_deleted", "when_scaled", "before", "after"),
    [
        ("Retain", "Retain", [], []),
        ("Delete", "Retain", ["web"], ["web"]),
        ("Retain", "Delete", [], ["web-1"]),
        ("Delete", "Delete", ["web"], ["web-1"]),
    ],
)
def test_claims_go_as_the_policy_says(
    cluster: Harness, when_deleted: str, when_scaled: str, before: list[str], after: list[str]
) -> None:
    policy = {"whenDeleted": when_deleted, "whenScaled": when_scaled}
    spec = stateful(replicas=2, volumeClaimTemplates=[CLAIM], persistentVolumeClaimRetentionPolicy=policy)
    cluster.add_node("one")
    cluster.create(STATEFUL_SET, spec)
    run_all(cluster)
    for pod in cluster.pods():
        cluster.bind(pod, "one")
    assert owners(cluster)["data-web-1"] == before
    cluster.patch(STATEFUL_SET, "web", {"spec": {"replicas": 1}})
    assert owners(cluster)["data-web-1"] == after


def test_a_pod_that_comes_back_waits_for_the_claim_of_the_one_before_to_go(cluster: Harness) -> None:
    policy = {"whenDeleted": "Retain", "whenScaled": "Delete"}
    spec = stateful(replicas=2, volumeClaimTemplates=[CLAIM], persistentVolumeClaimRetentionPolicy=policy)
    cluster.create(STATEFUL_SET, spec)
    run_all(cluster)
    before = cluster.get(PERSISTENT_VOLUME_CLAIM, "data-web-1")["metadata"]["uid"]
    cluster.patch(STATEFUL_SET, "web", {"spec": {"replicas": 1}})
    # Whoever protects claims in use has not let it go yet.
    assert "deletionTimestamp" in cluster.get(PERSISTENT_VOLUME_CLAIM, "data-web-1")["metadata"]
    cluster.patch(STATEFUL_SET, "web", {"spec": {"replicas": 2}})
    cluster.advance(5)
    assert cluster.names(POD) == ["web-0"]
    cluster.patch(PERSISTENT_VOLUME_CLAIM, "data-web-1", {"metadata": {"finalizers": None}})
    assert cluster.names(POD) == ["web-0", "web-1"]
    assert cluster.get(PERSISTENT_VOLUME_CLAIM, "data-web-1")["metadata"]["uid"] != before


def test_availability_in_order_takes_time(cluster: Harness) -> None:
    cluster.create(STATEFUL_SET, stateful(replicas=2, minReadySeconds=10))
    cluster.run_pods()
    cluster.advance(9)
    assert cluster.names(POD) == ["web-0"]
    cluster.advance(1)
    assert cluster.names(POD) == ["web-0", "web-1"]


def test_only_pods_of_its_names_are_adopted(cluster: Harness) -> None:
    cluster.create(POD, bare_pod("web-0"))
    cluster.create(POD, bare_pod("stranger"))
    cluster.create(STATEFUL_SET, stateful(replicas=1))
    assert [owner["name"] for owner in cluster.get(POD, "web-0")["metadata"]["ownerReferences"]] == ["web"]
    assert "ownerReferences" not in cluster.get(POD, "stranger")["metadata"]
