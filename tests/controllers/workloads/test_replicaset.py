"""ReplicaSets and ReplicationControllers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moorage.api.manifests import Manifest
from moorage.client.kinds import NAMESPACE, POD, REPLICA_SET, REPLICATION_CONTROLLER, RESOURCE_QUOTA
from moorage_cluster.controllers.replicaset import ReplicaSetController, ReplicationManager
from tests.controllers.harness import Harness
from tests.controllers.workloads.objects import bare_pod, template, workload


@pytest.fixture
def cluster() -> Iterator[Harness]:
    with Harness(ReplicaSetController, ReplicationManager) as harness:
        yield harness


def status(cluster: Harness, name: str = "web") -> Manifest:
    found: Manifest = cluster.get(REPLICA_SET, name)["status"]
    return found


def owner_names(pod: Manifest) -> list[str]:
    return [owner["name"] for owner in pod["metadata"].get("ownerReferences", [])]


def test_pods_are_made_counted_and_told_of(cluster: Harness) -> None:
    cluster.create(REPLICA_SET, workload(replicas=3))
    assert status(cluster)["replicas"] == 3
    cluster.run_pods(limit=2)
    counts = status(cluster)
    assert (counts["readyReplicas"], counts["availableReplicas"], counts["fullyLabeledReplicas"]) == (2, 2, 3)
    assert counts["observedGeneration"] == 1
    created = [f"Created pod: {name}" for name in cluster.names(POD)]
    assert sorted(message for _, message in cluster.events("web")) == created
    pod = cluster.pods()[0]
    assert pod["metadata"]["generateName"] == "web-"
    assert owner_names(pod) == ["web"]


def test_a_replication_controller_keeps_its_pods_too(cluster: Harness) -> None:
    cluster.create(
        REPLICATION_CONTROLLER,
        {"metadata": {"name": "web"}, "spec": {"replicas": 2, "template": template()}},
    )
    cluster.run_pods()
    found = cluster.get(REPLICATION_CONTROLLER, "web")["status"]
    assert (found["replicas"], found["availableReplicas"]) == (2, 2)
    cluster.patch(REPLICATION_CONTROLLER, "web", {"spec": {"replicas": 0}})
    assert cluster.names(POD) == []


def test_a_pod_that_ends_or_goes_is_replaced(cluster: Harness) -> None:
    cluster.create(REPLICA_SET, workload(replicas=2))
    cluster.run_pods()
    cluster.run_pods("Failed", limit=1)
    assert len(cluster.list(POD)) == 3
    cluster.delete(
        POD, cluster.pods(where=lambda pod: pod["status"]["phase"] == "Running")[0]["metadata"]["name"]
    )
    assert len(cluster.pods(where=lambda pod: pod["status"]["phase"] != "Failed")) == 2


def test_pods_on_their_way_out_are_counted_apart(cluster: Harness) -> None:
    cluster.add_node("one")
    cluster.create(REPLICA_SET, workload(replicas=2))
    for pod in cluster.pods():
        cluster.bind(pod, "one")
    cluster.run_pods()
    cluster.patch(REPLICA_SET, "web", {"spec": {"replicas": 1}})
    assert (status(cluster)["replicas"], status(cluster)["terminatingReplicas"]) == (1, 1)
    cluster.finish_deletions()
    assert status(cluster)["terminatingReplicas"] == 0


def test_orphans_are_adopted_and_strangers_dropped(cluster: Harness) -> None:
    cluster.create(POD, bare_pod("orphan"))
    cluster.create(POD, bare_pod("other", {"app": "db"}))
    cluster.create(REPLICA_SET, workload(replicas=2))
    assert owner_names(cluster.get(POD, "orphan")) == ["web"]
    assert owner_names(cluster.get(POD, "other")) == []
    assert len(cluster.list(POD)) == 3
    cluster.patch(POD, "orphan", {"metadata": {"labels": {"app": "db"}}})
    assert owner_names(cluster.get(POD, "orphan")) == []
    assert len(cluster.list(POD)) == 4
    cluster.patch(POD, "other", {"metadata": {"labels": {"app": "web"}}})
    left = cluster.list(POD, labelSelector="app=web")
    assert [owner_names(pod) for pod in left] == [["web"]] * 2


def test_an_expression_selects_orphans_too(cluster: Harness) -> None:
    cluster.create(POD, bare_pod("orphan"))
    expression = {"key": "app", "operator": "In", "values": ["web", "www"]}
    cluster.create(REPLICA_SET, workload(replicas=1, selector={"matchExpressions": [expression]}))
    assert [owner_names(pod) for pod in cluster.list(POD)] == [["web"]]


def test_availability_comes_with_time(cluster: Harness) -> None:
    cluster.create(REPLICA_SET, workload(replicas=1, minReadySeconds=10))
    cluster.run_pods()
    cluster.advance(9)
    assert (status(cluster)["readyReplicas"], status(cluster).get("availableReplicas", 0)) == (1, 0)
    cluster.advance(1)
    assert status(cluster)["availableReplicas"] == 1


def test_creation_starts_slowly_and_failure_is_reported(cluster: Harness) -> None:
    cluster.create(RESOURCE_QUOTA, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "3"}}})
    cluster.create(REPLICA_SET, workload(replicas=50))
    assert len(cluster.list(POD)) == 3
    failures = [message for reason, message in cluster.events("web") if reason == "FailedCreate"]
    # One, then two, then a batch of four that is refused, then one at a time; not forty-seven at once.
    assert 4 <= len(failures) <= 6
    assert "exceeded quota: few" in failures[0]
    (condition,) = status(cluster)["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "ReplicaFailure",
        "True",
        "FailedCreate",
    )
    cluster.patch(RESOURCE_QUOTA, "few", {"spec": {"hard": {"pods": "100"}}})
    cluster.advance(120, step=5)
    assert len(cluster.list(POD)) == 50
    assert not status(cluster).get("conditions")


def test_more_pods_than_one_burst(cluster: Harness) -> None:
    cluster.create(REPLICA_SET, workload(replicas=600))
    assert status(cluster)["replicas"] == 600
    assert len(cluster.events("web")) == 25
    cluster.patch(REPLICA_SET, "web", {"spec": {"replicas": 0}})
    assert cluster.list(POD) == []


def test_a_namespace_that_goes_takes_its_sets_along(cluster: Harness) -> None:
    cluster.create(NAMESPACE, {"metadata": {"name": "passing"}})
    made = workload(replicas=2)
    made["metadata"]["namespace"] = "passing"
    cluster.create(REPLICA_SET, made)
    cluster.delete(NAMESPACE, "passing")
    cluster.advance(5)
    assert cluster.list(POD) == []
    assert cluster.find(NAMESPACE, "passing") is None


def test_a_deleted_set_leaves_its_pods_when_asked(cluster: Harness) -> None:
    cluster.create(REPLICA_SET, workload(replicas=2))
    cluster.delete(REPLICA_SET, "web", propagation="Orphan")
    assert [owner_names(pod) for pod in cluster.list(POD)] == [[], []]
    cluster.create(REPLICA_SET, workload("again", replicas=3))
    assert [owner_names(pod) for pod in cluster.list(POD)] == [["again"]] * 3
