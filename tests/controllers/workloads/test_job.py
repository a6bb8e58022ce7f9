"""Jobs: completions, failures and their pauses, indexes, suspension, deadlines, and nothing left stuck."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from moorage.api.manifests import Manifest
from moorage.client.kinds import JOB, POD
from moorage_cluster.controllers.job import JobController
from moorage_cluster.controllers.job_finalizers import JobFinalizerController
from moorage_cluster.controllers.job_indexes import first_free, format_indexes, parse_indexes
from moorage_cluster.controllers.job_ttl import JobTtlController
from tests.controllers.harness import Harness
from tests.controllers.workloads.objects import bare_pod

INDEX = "batch.kubernetes.io/job-completion-index"
FINALIZER = "batch.kubernetes.io/job-tracking"


@pytest.fixture
def cluster() -> Iterator[Harness]:
    with Harness(JobController, JobFinalizerController, JobTtlController) as harness:
        harness.add_node("one")
        yield harness


def job(restart: str = "Never", **spec: Any) -> Manifest:
    containers = [{"name": "main", "image": "app:1"}]
    template = {"spec": {"restartPolicy": restart, "containers": containers}}
    return {"metadata": {"name": "work", "namespace": "default"}, "spec": {"template": template, **spec}}


def status(cluster: Harness) -> Manifest:
    found: Manifest = cluster.get(JOB, "work")["status"]
    return found


def conditions(cluster: Harness) -> dict[str, str]:
    return {
        each["type"]: each.get("reason", "")
        for each in status(cluster).get("conditions", [])
        if each["status"] == "True"
    }


def running(cluster: Harness) -> list[Manifest]:
    return cluster.pods(where=lambda pod: pod["status"]["phase"] not in ("Succeeded", "Failed"))


def tracked(cluster: Harness) -> list[str]:
    return [
        pod["metadata"]["name"]
        for pod in cluster.list(POD)
        if FINALIZER in pod["metadata"].get("finalizers", [])
    ]


def indexes(cluster: Harness) -> list[int]:
    return sorted(int(pod["metadata"]["annotations"][INDEX]) for pod in running(cluster))


def bind_all(cluster: Harness) -> None:
    for pod in cluster.pods(where=lambda pod: not pod["spec"].get("nodeName")):
        cluster.bind(pod, "one")


def test_a_job_runs_so_many_at_once_until_so_many_have_succeeded(cluster: Harness) -> None:
    cluster.create(JOB, job(parallelism=2, completions=5))
    seen = cluster.record(
        lambda pods: sum(pod["status"].get("phase", "Pending") in ("Pending", "Running") for pod in pods)
    )
    for done, active in ((1, 2), (2, 2), (3, 2), (4, 1)):
        cluster.run_pods()
        cluster.run_pods("Succeeded", limit=1)
        cluster.run_pods()
        found = status(cluster)
        assert (found["succeeded"], found["active"], found["ready"]) == (done, active, active)
    cluster.run_pods("Succeeded")
    found = status(cluster)
    assert (found["succeeded"], found.get("active", 0)) == (5, 0)
    assert conditions(cluster) == {
        "SuccessCriteriaMet": "CompletionsReached",
        "Complete": "CompletionsReached",
    }
    assert found["completionTime"]
    assert max(seen) == 2
    assert len(cluster.list(POD)) == 5
    assert tracked(cluster) == []
    assert not any(found.get("uncountedTerminatedPods", {}).values())
    assert cluster.events("work")[-1] == ("Completed", "Job completed")


def test_without_completions_one_success_ends_it(cluster: Harness) -> None:
    cluster.create(JOB, job(parallelism=3))
    cluster.run_pods("Succeeded", limit=1)
    assert conditions(cluster) == {}
    assert len(cluster.list(POD)) == 3
    cluster.run_pods("Succeeded")
    assert "Complete" in conditions(cluster)


def test_failures_are_retried_after_growing_pauses_until_the_limit(cluster: Harness) -> None:
    cluster.create(JOB, job(backoffLimit=3))
    waited = []
    for _ in range(3):
        cluster.run_pods("Failed")
        start = cluster.clock.now()
        while not running(cluster):
            cluster.advance(1)
        waited.append(cluster.clock.now() - start)
    assert waited == [10, 20, 40]
    cluster.run_pods("Failed")
    assert conditions(cluster) == {"FailureTarget": "BackoffLimitExceeded", "Failed": "BackoffLimitExceeded"}
    assert status(cluster)["failed"] == 4
    assert tracked(cluster) == []
    assert cluster.events("work")[-1] == (
        "BackoffLimitExceeded",
        "Job has reached the specified backoff limit",
    )


def test_a_success_ends_the_pauses(cluster: Harness) -> None:
    cluster.create(JOB, job(parallelism=2, completions=4))
    cluster.run_pods("Failed", limit=1)
    cluster.advance(5)
    cluster.run_pods("Succeeded", limit=1)
    assert len(running(cluster)) == 2


def test_a_failed_job_takes_its_other_pods_along(cluster: Harness) -> None:
    cluster.create(JOB, job(parallelism=3, completions=3, backoffLimit=0))
    bind_all(cluster)
    cluster.run_pods()
    cluster.run_pods("Failed", limit=1)
    assert running(cluster) == []
    assert conditions(cluster) == {"FailureTarget": "BackoffLimitExceeded"}
    cluster.finish_deletions()
    assert conditions(cluster) == {"FailureTarget": "BackoffLimitExceeded", "Failed": "BackoffLimitExceeded"}
    assert status(cluster)["failed"] == 3


def test_restarts_in_place_count_towards_the_limit(cluster: Harness) -> None:
    cluster.create(JOB, job(restart="OnFailure", backoffLimit=2))
    cluster.run_pods()
    (pod,) = cluster.pods()
    statuses = [{**pod["status"]["containerStatuses"][0], "restartCount": 2}]
    cluster.patch(
        POD, pod["metadata"]["name"], {"status": {"containerStatuses": statuses}}, subresource="status"
    )
    assert "Failed" in conditions(cluster)


def test_the_deadline(cluster: Harness) -> None:
    cluster.create(JOB, job(activeDeadlineSeconds=60))
    cluster.advance(59)
    assert conditions(cluster) == {}
    cluster.advance(1)
    assert conditions(cluster) == {"FailureTarget": "DeadlineExceeded", "Failed": "DeadlineExceeded"}
    assert cluster.list(POD) == []


def test_indexes_are_given_retried_and_completed(cluster: Harness) -> None:
    cluster.create(JOB, job(parallelism=2, completions=4, completionMode="Indexed"))
    assert indexes(cluster) == [0, 1]
    (pod,) = [each for each in cluster.pods() if each["metadata"]["annotations"][INDEX] == "1"]
    assert pod["metadata"]["generateName"] == "work-1-"
    assert pod["metadata"]["labels"][INDEX] == "1"
    assert pod["spec"]["hostname"] == "work-1"
    assert pod["spec"]["containers"][0]["env"] == [
        {
            "name": "JOB_COMPLETION_INDEX",
            "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}},
        }
    ]
    cluster.run_pods("Failed", where=lambda pod: pod["metadata"]["annotations"][INDEX] == "0")
    cluster.advance(10)
    assert indexes(cluster) == [0, 1]
    cluster.run_pods("Succeeded", where=lambda pod: pod["metadata"]["annotations"][INDEX] == "1")
    assert indexes(cluster) == [0, 2]
    assert status(cluster)["completedIndexes"] == "1"
    for _ in range(2):
        cluster.run_pods("Succeeded")
    found = status(cluster)
    assert (found["completedIndexes"], found["succeeded"], found["failed"]) == ("0-3", 4, 1)
    assert "Complete" in conditions(cluster)


def test_each_index_has_its_own_limit(cluster: Harness) -> None:
    cluster.create(JOB, job(parallelism=2, completions=2, completionMode="Indexed", backoffLimitPerIndex=1))
    for _ in range(2):
        cluster.run_pods("Failed", where=lambda pod: pod["metadata"]["annotations"][INDEX] == "0")
        cluster.advance(30)
    assert indexes(cluster) == [1]
    assert status(cluster)["failedIndexes"] == "0"
    cluster.run_pods("Succeeded")
    assert conditions(cluster) == {"FailureTarget": "FailedIndexes", "Failed": "FailedIndexes"}


def test_a_success_policy_ends_it_early(cluster: Harness) -> None:
    policy = {"rules": [{"succeededIndexes": "0"}]}
    cluster.create(JOB, job(parallelism=3, completions=3, completionMode="Indexed", successPolicy=policy))
    cluster.run_pods("Succeeded", where=lambda pod: pod["metadata"]["annotations"][INDEX] == "0")
    assert conditions(cluster) == {"SuccessCriteriaMet": "SuccessPolicy", "Complete": "SuccessPolicy"}
    assert (status(cluster)["succeeded"], status(cluster).get("failed", 0)) == (1, 0)


class Policy(NamedTuple):
    rule: Manifest
    exit_code: int
    conditions: list[Manifest]
    failed: int
    ends: str


DISRUPTED = {"type": "DisruptionTarget", "status": "True"}
POLICIES = {
    "fails the job": Policy(
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        42,
        [],
        1,
        "PodFailurePolicy",
    ),
    "not that code": Policy(
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}, 1, [], 1, ""
    ),
    "any other code": Policy(
        {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [42]}},
        1,
        [],
        1,
        "PodFailurePolicy",
    ),
    "ignores disruptions": Policy(
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        1,
        [DISRUPTED],
        0,
        "",
    ),
    "counts what no rule is about": Policy(
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        1,
        [],
        1,
        "",
    ),
}


@pytest.mark.parametrize("case", POLICIES.values(), ids=POLICIES.keys())
def test_failure_policy(cluster: Harness, case: Policy) -> None:
    cluster.create(JOB, job(podFailurePolicy={"rules": [case.rule]}))
    cluster.run_pods("Failed", exit_code=case.exit_code, conditions=case.conditions)
    assert status(cluster).get("failed", 0) == case.failed
    assert conditions(cluster).get("Failed", "") == case.ends
    if case.ends:
        (pod,) = cluster.list(POD)
        assert status(cluster)["conditions"][-1]["message"] == (
            f"Container main for pod default/{pod['metadata']['name']} failed with exit code "
            f"{case.exit_code} matching FailJob rule at index 0"
        )


def test_suspending_and_resuming(cluster: Harness) -> None:
    cluster.create(JOB, job(parallelism=2, completions=2, suspend=True))
    assert cluster.list(POD) == []
    assert conditions(cluster) == {"Suspended": "JobSuspended"}
    cluster.advance(30)
    cluster.patch(JOB, "work", {"spec": {"suspend": False}})
    assert len(cluster.list(POD)) == 2
    assert status(cluster)["startTime"] == "2026-03-01T12:00:30Z"
    cluster.run_pods()
    cluster.patch(JOB, "work", {"spec": {"suspend": True}})
    assert cluster.list(POD) == []
    found = status(cluster)
    assert (found.get("active", 0), found.get("failed", 0)) == (0, 0)
    cluster.patch(JOB, "work", {"spec": {"suspend": False}})
    cluster.run_pods("Succeeded")
    assert "Complete" in conditions(cluster)
    reasons = [reason for reason, _ in cluster.events("work") if reason in ("Suspended", "Resumed")]
    assert sorted(reasons) == ["Resumed", "Suspended"]


def test_less_parallelism_deletes_pods_that_are_not_failures(cluster: Harness) -> None:
    cluster.create(JOB, job(parallelism=4, completions=9))
    cluster.run_pods(limit=2)
    ready = [
        pod["metadata"]["name"] for pod in cluster.pods(where=lambda p: p["status"]["phase"] == "Running")
    ]
    cluster.patch(JOB, "work", {"spec": {"parallelism": 2}})
    assert cluster.names(POD) == sorted(ready)
    assert status(cluster).get("failed", 0) == 0


def test_a_deleted_pod_is_a_failure_and_is_replaced(cluster: Harness) -> None:
    cluster.create(JOB, job())
    bind_all(cluster)
    cluster.run_pods()
    cluster.delete(POD, cluster.names(POD)[0])
    cluster.finish_deletions()
    assert status(cluster)["failed"] == 1
    cluster.advance(10)
    assert len(running(cluster)) == 1


def test_replacing_only_what_has_failed(cluster: Harness) -> None:
    cluster.create(JOB, job(podReplacementPolicy="Failed"))
    bind_all(cluster)
    cluster.run_pods()
    cluster.delete(POD, cluster.names(POD)[0])
    cluster.advance(30)
    assert running(cluster) == []
    assert status(cluster)["terminating"] == 1


def test_time_to_live(cluster: Harness) -> None:
    cluster.create(JOB, job(ttlSecondsAfterFinished=100))
    cluster.run_pods("Succeeded")
    cluster.advance(99)
    assert cluster.names(JOB) == ["work"]
    cluster.advance(1)
    assert cluster.names(JOB) == []
    assert cluster.list(POD) == []


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_deleting_a_job_leaves_nothing_stuck(cluster: Harness, propagation: str, phase: str) -> None:
    cluster.create(JOB, job(parallelism=2, completions=2))
    bind_all(cluster)
    cluster.run_pods(phase, limit=1)
    cluster.delete(JOB, "work", propagation=propagation)
    cluster.finish_deletions()
    assert cluster.names(JOB) == []
    assert tracked(cluster) == []
    assert len(cluster.list(POD)) == (2 if propagation == "Orphan" else 0)


def test_a_pod_that_no_job_counts_does_not_wait(cluster: Harness) -> None:
    cluster.create(POD, bare_pod("left-over", finalizers=[FINALIZER]))
    assert tracked(cluster) == []


def test_jobs_of_others_are_left_alone(cluster: Harness) -> None:
    cluster.create(JOB, job(managedBy="example.com/other"))
    assert cluster.list(POD) == []


def test_many_pods(cluster: Harness) -> None:
    cluster.create(JOB, job(parallelism=510, completions=510))
    cluster.run_pods("Succeeded")
    cluster.advance(1)
    assert status(cluster)["succeeded"] == 510
    assert "Complete" in conditions(cluster)


@pytest.mark.parametrize(
    ("text", "found"),
    [("", set()), ("1", {1}), ("1,3-5,7", {1, 3, 4, 5, 7}), ("8-20", {8, 9}), ("x,2", {2})],
)
def test_reading_indexes(text: str, found: set[int]) -> None:
    assert parse_indexes(text, 10) == found


@pytest.mark.parametrize(
    ("indexes", "text"), [((), ""), ((1,), "1"), ((1, 2), "1,2"), ((5, 3, 4, 7, 0), "0,3-5,7")]
)
def test_writing_indexes(indexes: tuple[int, ...], text: str) -> None:
    assert format_indexes(indexes) == text


def test_free_indexes() -> None:
    assert first_free({0, 2}, 3, 5) == [1, 3, 4]
    assert first_free({0, 2}, 9, 4) == [1, 3]
