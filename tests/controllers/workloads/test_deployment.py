"""Deployments: rollouts step by step, scaling, revisions, conditions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from moorage.api.conditions import is_ready
from moorage.api.manifests import Manifest
from moorage.client.kinds import DEPLOYMENT, POD, REPLICA_SET, RESOURCE_QUOTA
from moorage_cluster.controllers.deployment import DeploymentController
from moorage_cluster.controllers.deployment_scaling import old_sizes, resized
from moorage_cluster.controllers.deployment_sets import Sets, fenceposts
from moorage_cluster.controllers.pods import is_active
from moorage_cluster.controllers.replicaset import ReplicaSetController
from tests.controllers.harness import Harness
from tests.controllers.workloads.objects import template, workload

REVISION = "deployment.kubernetes.io/revision"


@pytest.fixture
def cluster() -> Iterator[Harness]:
    with Harness(DeploymentController, ReplicaSetController) as harness:
        yield harness


def rolling(surge: Any, unavailable: Any) -> Manifest:
    limits = {"maxSurge": surge, "maxUnavailable": unavailable}
    return {"type": "RollingUpdate", "rollingUpdate": limits}


def set_image(cluster: Harness, image: str) -> None:
    cluster.patch(DEPLOYMENT, "web", {"spec": {"template": template(image)}})


def status(cluster: Harness) -> Manifest:
    found: Manifest = cluster.get(DEPLOYMENT, "web")["status"]
    return found


def reasons(cluster: Harness) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in status(cluster)["conditions"]}


def image_of(obj: Manifest) -> str:
    spec = obj["spec"].get("template", obj)["spec"]
    return str(spec["containers"][0]["image"])


def sizes(cluster: Harness) -> dict[str, int]:
    return {image_of(each): each["spec"]["replicas"] for each in cluster.list(REPLICA_SET)}


def roll_out(cluster: Harness, pods_at_a_time: int = 1) -> None:
    """Let pods become ready, a few at a time, until the deployment is what it is to be."""
    for _ in range(100):
        if not cluster.run_pods(limit=pods_at_a_time):
            return
    raise AssertionError("the rollout does not end")


class Limits(NamedTuple):
    replicas: int
    surge: Any
    unavailable: Any
    most: int
    fewest: int


LIMITS = {
    "defaults": Limits(10, "25%", "25%", 13, 8),
    "surge only": Limits(4, 1, 0, 5, 4),
    "unavailable only": Limits(4, 0, 1, 4, 3),
    "both rounded away": Limits(3, 0, "10%", 3, 2),
    "all at once": Limits(3, "100%", "100%", 6, 0),
    "a single pod": Limits(1, "25%", "25%", 2, 1),
}


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS.keys())
@pytest.mark.parametrize("pods_at_a_time", [1, 3])
def test_a_rolling_update_stays_within_its_limits(
    cluster: Harness, limits: Limits, pods_at_a_time: int
) -> None:
    strategy = rolling(limits.surge, limits.unavailable)
    cluster.create(DEPLOYMENT, workload(replicas=limits.replicas, strategy=strategy))
    cluster.run_pods()
    seen = cluster.record(
        lambda pods: (
            sum(map(is_active, pods)),
            sum(is_active(pod) and is_ready(pod) for pod in pods),
        )
    )
    set_image(cluster, "app:2")
    roll_out(cluster, pods_at_a_time)
    assert {image_of(pod) for pod in cluster.pods()} == {"app:2"}
    assert len(cluster.pods()) == limits.replicas
    assert max(total for total, _ in seen) == limits.most
    assert min(ready for _, ready in seen) >= limits.fewest
    assert sizes(cluster) == {"app:1": 0, "app:2": limits.replicas}
    assert reasons(cluster)["Progressing"] == ("True", "NewReplicaSetAvailable")


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (2, 0, "1%", (0, 1)),
        (2, "1%", "25%", (1, 0)),
        (10, "25%", "25%", (3, 2)),
        (1, 5, 5, (5, 1)),
        (0, "25%", "25%", (0, 0)),
    ],
)
def test_fenceposts(replicas: int, surge: Any, unavailable: Any, expected: tuple[int, int]) -> None:
    deployment = {"spec": {"replicas": replicas, "strategy": rolling(surge, unavailable)}}
    assert fenceposts(deployment) == expected


def test_what_a_deployment_makes(cluster: Harness) -> None:
    cluster.create(DEPLOYMENT, workload(replicas=2))
    (made,) = cluster.list(REPLICA_SET)
    hash_label = made["metadata"]["labels"]["pod-template-hash"]
    assert made["metadata"]["name"] == f"web-{hash_label}"
    assert made["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": hash_label}
    assert made["metadata"]["annotations"] == {
        REVISION: "1",
        "deployment.kubernetes.io/desired-replicas": "2",
        "deployment.kubernetes.io/max-replicas": "3",
    }
    assert cluster.get(DEPLOYMENT, "web")["metadata"]["annotations"][REVISION] == "1"
    assert cluster.events("web") == [
        ("ScalingReplicaSet", f"Scaled up replica set web-{hash_label} from 0 to 2")
    ]
    assert reasons(cluster) == {
        "Available": ("False", "MinimumReplicasUnavailable"),
        "Progressing": ("True", "ReplicaSetUpdated"),
    }
    cluster.run_pods()
    assert reasons(cluster) == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }
    found = status(cluster)
    assert (found["replicas"], found["updatedReplicas"], found["availableReplicas"]) == (2, 2, 2)
    assert found["observedGeneration"] == 1


def test_pods_that_do_not_work_are_replaced_first(cluster: Harness) -> None:
    cluster.create(DEPLOYMENT, workload(replicas=4, strategy=rolling(1, 1)))
    cluster.run_pods()
    set_image(cluster, "app:broken")
    cluster.run_pods(ready=False, where=lambda pod: image_of(pod) == "app:broken")
    assert sizes(cluster) == {"app:1": 3, "app:broken": 2}
    set_image(cluster, "app:3")
    # The broken ones go at once; what worked stays until the third image does.
    assert sizes(cluster) == {"app:1": 3, "app:broken": 0, "app:3": 2}


def test_recreate_waits_until_old_pods_have_ended(cluster: Harness) -> None:
    cluster.add_node("one")
    cluster.create(DEPLOYMENT, workload(replicas=2, strategy={"type": "Recreate"}))
    for pod in cluster.pods():
        cluster.bind(pod, "one")
    cluster.run_pods()
    set_image(cluster, "app:2")
    assert cluster.pods() == []
    cluster.finish_deletions(limit=1)
    assert cluster.pods() == []
    cluster.finish_deletions()
    assert [image_of(pod) for pod in cluster.pods()] == ["app:2"] * 2
    roll_out(cluster)
    assert reasons(cluster)["Progressing"] == ("True", "NewReplicaSetAvailable")


def test_going_back_makes_the_old_set_the_newest_revision(cluster: Harness) -> None:
    cluster.create(DEPLOYMENT, workload(replicas=1))
    for image in ("app:2", "app:1"):
        roll_out(cluster)
        set_image(cluster, image)
    roll_out(cluster)
    annotations = {image_of(each): each["metadata"]["annotations"] for each in cluster.list(REPLICA_SET)}
    assert {image: each[REVISION] for image, each in annotations.items()} == {"app:1": "3", "app:2": "2"}
    assert annotations["app:1"]["deployment.kubernetes.io/revision-history"] == "1"
    assert cluster.get(DEPLOYMENT, "web")["metadata"]["annotations"][REVISION] == "3"


def test_old_sets_are_kept_as_long_as_history_goes(cluster: Harness) -> None:
    cluster.create(DEPLOYMENT, workload(replicas=1, revisionHistoryLimit=2))
    for number in range(2, 7):
        roll_out(cluster)
        set_image(cluster, f"app:{number}")
    roll_out(cluster)
    assert sizes(cluster) == {"app:4": 0, "app:5": 0, "app:6": 1}


def test_scaling(cluster: Harness) -> None:
    cluster.create(DEPLOYMENT, workload(replicas=2))
    roll_out(cluster)
    cluster.patch(DEPLOYMENT, "web", {"spec": {"replicas": 5}})
    roll_out(cluster)
    assert (len(cluster.pods()), status(cluster)["availableReplicas"]) == (5, 5)
    cluster.patch(DEPLOYMENT, "web", {"spec": {"replicas": 0}})
    assert cluster.pods() == []
    name = cluster.list(REPLICA_SET)[0]["metadata"]["name"]
    assert [message for _, message in cluster.events("web")][1:] == [
        f"Scaled up replica set {name} from 2 to 5",
        f"Scaled down replica set {name} from 5 to 0",
    ]


def test_scaling_in_the_middle_of_a_rollout_is_in_proportion(cluster: Harness) -> None:
    cluster.create(DEPLOYMENT, workload(replicas=10, strategy=rolling(3, 2)))
    cluster.run_pods()
    set_image(cluster, "app:2")
    assert sizes(cluster) == {"app:1": 8, "app:2": 5}
    cluster.patch(DEPLOYMENT, "web", {"spec": {"replicas": 15}})
    assert sizes(cluster) == {"app:1": 11, "app:2": 7}


class Shares(NamedTuple):
    replicas: int
    before: list[int]
    expected: list[int]


SHARES = {
    "grows": Shares(20, [5, 5], [10, 10]),
    "rounding goes to the largest": Shares(11, [7, 3], [8, 3]),
    "shrinks": Shares(5, [7, 3], [3, 2]),
    "to nothing": Shares(0, [7, 3], [0, 0]),
    "stays": Shares(10, [7, 3], [7, 3]),
}


@pytest.mark.parametrize("case", SHARES.values(), ids=SHARES.keys())
def test_proportions(case: Shares) -> None:
    def replica_set(name: str, size: int) -> Manifest:
        annotations = {"deployment.kubernetes.io/max-replicas": "10"}
        meta = {"name": name, "creationTimestamp": f"2026-01-0{name}T00:00:00Z", "annotations": annotations}
        return {"metadata": meta, "spec": {"replicas": size}}

    old, new = replica_set("1", case.before[0]), replica_set("2", case.before[1])
    deployment = {"spec": {"replicas": case.replicas, "strategy": rolling(0, 1)}}
    found = {each["metadata"]["name"]: size for each, size in resized(deployment, Sets(new, [old]))}
    assert [found["1"], found["2"]] == case.expected


def test_a_set_that_has_just_shrunk_counts_no_more_pods_than_it_keeps() -> None:
    """Its status is still of before; taken at its word, too many pods would go at once."""

    def replica_set(name: str, size: int, available: int) -> Manifest:
        meta = {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
        return {"metadata": meta, "spec": {"replicas": size}, "status": {"availableReplicas": available}}

    deployment = {"spec": {"replicas": 3, "strategy": rolling(1, 1)}}
    sets = Sets(replica_set("new", 1, 1), [replica_set("old", 2, 3)])
    assert [size for _, size in old_sizes(deployment, sets)] == [1]


def test_a_paused_deployment_scales_but_does_not_roll(cluster: Harness) -> None:
    cluster.create(DEPLOYMENT, workload(replicas=2))
    roll_out(cluster)
    cluster.patch(DEPLOYMENT, "web", {"spec": {"paused": True}})
    assert reasons(cluster)["Progressing"] == ("Unknown", "DeploymentPaused")
    set_image(cluster, "app:2")
    cluster.patch(DEPLOYMENT, "web", {"spec": {"replicas": 3}})
    roll_out(cluster)
    assert sizes(cluster) == {"app:1": 3}
    cluster.patch(DEPLOYMENT, "web", {"spec": {"paused": False}})
    assert set(sizes(cluster)) == {"app:1", "app:2"}
    roll_out(cluster)
    assert sizes(cluster) == {"app:1": 0, "app:2": 3}
    assert reasons(cluster)["Progressing"] == ("True", "NewReplicaSetAvailable")


def test_a_rollout_that_stands_still_is_reported_after_its_deadline(cluster: Harness) -> None:
    cluster.create(DEPLOYMENT, workload(replicas=1, progressDeadlineSeconds=60))
    cluster.advance(59)
    assert reasons(cluster)["Progressing"][0] == "True"
    cluster.advance(5)
    assert reasons(cluster)["Progressing"] == ("False", "ProgressDeadlineExceeded")
    name = cluster.list(REPLICA_SET)[0]["metadata"]["name"]
    messages = [each["message"] for each in status(cluster)["conditions"] if each["type"] == "Progressing"]
    assert messages == [f'ReplicaSet "{name}" has timed out progressing.']
    cluster.run_pods()
    assert reasons(cluster)["Progressing"] == ("True", "NewReplicaSetAvailable")


def test_min_ready_seconds_slow_a_rollout_down(cluster: Harness) -> None:
    cluster.create(DEPLOYMENT, workload(replicas=2, minReadySeconds=30, strategy=rolling(0, 1)))
    cluster.run_pods()
    cluster.advance(30)
    assert status(cluster)["availableReplicas"] == 2
    set_image(cluster, "app:2")
    cluster.run_pods()
    cluster.advance(29)
    assert sizes(cluster) == {"app:1": 1, "app:2": 1}
    cluster.advance(1)
    assert sizes(cluster) == {"app:1": 0, "app:2": 2}


def test_a_set_that_cannot_make_pods_shows_in_the_deployment(cluster: Harness) -> None:
    cluster.create(RESOURCE_QUOTA, {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
    cluster.create(DEPLOYMENT, workload(replicas=1))
    assert reasons(cluster)["ReplicaFailure"] == ("True", "FailedCreate")


def test_a_name_that_is_taken_is_avoided(cluster: Harness) -> None:
    cluster.create(DEPLOYMENT, workload(replicas=1))
    (made,) = cluster.list(REPLICA_SET)
    cluster.delete(DEPLOYMENT, "web")
    stranger = workload(made["metadata"]["name"], {"app": "other"}, replicas=0)
    cluster.create(REPLICA_SET, stranger)
    cluster.create(DEPLOYMENT, workload(replicas=1))
    cluster.advance(2)
    assert status(cluster)["collisionCount"] == 1
    assert len(cluster.pods()) == 1


def test_orphaned_sets_are_adopted_again(cluster: Harness) -> None:
    cluster.create(DEPLOYMENT, workload(replicas=2))
    pods = cluster.names(POD)
    cluster.delete(DEPLOYMENT, "web", propagation="Orphan")
    assert cluster.names(POD) == pods
    cluster.create(DEPLOYMENT, workload(replicas=2))
    assert cluster.names(POD) == pods
    assert len(cluster.list(REPLICA_SET)) == 1


def test_deleting_a_deployment_deletes_everything(cluster: Harness) -> None:
    cluster.create(DEPLOYMENT, workload(replicas=2))
    cluster.delete(DEPLOYMENT, "web")
    assert cluster.list(REPLICA_SET) == []
    assert cluster.list(POD) == []
