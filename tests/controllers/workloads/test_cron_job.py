"""CronJobs: when jobs start, how many at once, which ones are kept, and what is told of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from moorage.api.manifests import Manifest
from moorage.client.kinds import CRON_JOB, JOB
from moorage_cluster.controllers.cron_job import CronJobController
from moorage_cluster.controllers.job import JobController
from tests.controllers.harness import START, Harness

SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
NOON_MINUTES = int(START.timestamp()) // 60


@pytest.fixture
def cluster() -> Iterator[Harness]:
    with Harness(CronJobController, JobController) as harness:
        yield harness


def cron_job(schedule: str = "*/5 * * * *", name: str = "tick", **spec: Any) -> Manifest:
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "app:1"}]}}
    template = {
        "metadata": {"labels": {"app": "tick"}, "annotations": {"a": "b"}},
        "spec": {"template": pod, "backoffLimit": 0},
    }
    meta = {"name": name, "namespace": "default"}
    return {"metadata": meta, "spec": {"schedule": schedule, "jobTemplate": template, **spec}}


def pass_minutes(cluster: Harness, minutes: float) -> None:
    cluster.advance(minutes * 60, step=30)
    cluster.advance(1)


def status(cluster: Harness, name: str = "tick") -> Manifest:
    found: Manifest = cluster.get(CRON_JOB, name).get("status") or {}
    return found


def active(cluster: Harness) -> list[str]:
    return [each["name"] for each in status(cluster).get("active") or ()]


def reasons(cluster: Harness) -> list[str]:
    return [reason for reason, _ in cluster.events("tick")]


def test_a_job_starts_at_each_time_of_the_schedule(cluster: Harness) -> None:
    made = cluster.create(CRON_JOB, cron_job())
    pass_minutes(cluster, 4)
    assert cluster.names(JOB) == []
    pass_minutes(cluster, 6)
    assert cluster.names(JOB) == [f"tick-{NOON_MINUTES + 5}", f"tick-{NOON_MINUTES + 10}"]
    job = cluster.list(JOB)[0]
    assert job["metadata"]["labels"]["app"] == "tick"
    assert job["metadata"]["annotations"] == {"a": "b", SCHEDULED_AT: "2026-03-01T12:05:00Z"}
    assert job["spec"]["backoffLimit"] == 0
    assert job["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "name": "tick",
            "uid": made["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert status(cluster)["lastScheduleTime"] == "2026-03-01T12:10:00Z"
    assert active(cluster) == cluster.names(JOB)
    assert ("SuccessfulCreate", f"Created job tick-{NOON_MINUTES + 5}") in cluster.events("tick")


def test_schedules_are_read_in_their_time_zone(cluster: Harness) -> None:
    # Noon in UTC is 17:30 in Kolkata.
    cluster.create(CRON_JOB, cron_job("45 17 * * *", timeZone="Asia/Kolkata"))
    pass_minutes(cluster, 15)
    (job,) = cluster.list(JOB)
    assert job["metadata"]["annotations"][SCHEDULED_AT] == "2026-03-01T17:45:00+05:30"
    assert status(cluster)["lastScheduleTime"] == "2026-03-01T12:15:00Z"


def test_jobs_that_end_are_counted_and_the_oldest_are_deleted(cluster: Harness) -> None:
    cluster.create(CRON_JOB, cron_job("* * * * *", successfulJobsHistoryLimit=1, failedJobsHistoryLimit=1))
    for phase in ("Succeeded", "Failed", "Succeeded", "Failed"):
        pass_minutes(cluster, 1)
        cluster.run_pods(phase)
    kept = [f"tick-{NOON_MINUTES + 3}", f"tick-{NOON_MINUTES + 4}"]
    assert cluster.names(JOB) == kept
    assert active(cluster) == []
    assert datetime.fromisoformat(status(cluster)["lastSuccessfulTime"]) > START
    recorded = cluster.events("tick")
    assert ("SawCompletedJob", f"Saw completed job: tick-{NOON_MINUTES + 1}, condition: Complete") in recorded
    assert ("SawCompletedJob", f"Saw completed job: tick-{NOON_MINUTES + 2}, condition: Failed") in recorded
    assert ("SuccessfulDelete", f"Deleted job tick-{NOON_MINUTES + 1}") in recorded


@pytest.mark.parametrize(
    ("policy", "jobs", "recorded"),
    [
        ("Allow", [1, 2], "SuccessfulCreate"),
        ("Forbid", [1], "JobAlreadyActive"),
        ("Replace", [2], "SuccessfulDelete"),
    ],
)
def test_a_job_that_still_runs(cluster: Harness, policy: str, jobs: list[int], recorded: str) -> None:
    cluster.create(CRON_JOB, cron_job("* * * * *", concurrencyPolicy=policy))
    pass_minutes(cluster, 2)
    assert active(cluster) == [f"tick-{NOON_MINUTES + each}" for each in jobs]
    assert [job for job in cluster.names(JOB) if job in active(cluster)] == active(cluster)
    assert recorded in reasons(cluster)


def test_a_forbidden_start_is_made_up_for_when_the_job_before_has_ended(cluster: Harness) -> None:
    cluster.create(CRON_JOB, cron_job("* * * * *", concurrencyPolicy="Forbid"))
    pass_minutes(cluster, 2)
    cluster.run_pods("Succeeded")
    assert active(cluster) == [f"tick-{NOON_MINUTES + 2}"]


def test_nothing_starts_while_suspended_and_only_the_latest_time_is_made_up_for(cluster: Harness) -> None:
    cluster.create(CRON_JOB, cron_job("* * * * *", suspend=True))
    pass_minutes(cluster, 10)
    assert cluster.names(JOB) == []
    cluster.patch(CRON_JOB, "tick", {"spec": {"suspend": False}})
    assert cluster.names(JOB) == [f"tick-{NOON_MINUTES + 10}"]


def test_a_deadline_keeps_jobs_from_starting_late(cluster: Harness) -> None:
    cluster.create(CRON_JOB, cron_job("*/10 * * * *", suspend=True, startingDeadlineSeconds=30))
    pass_minutes(cluster, 11)
    cluster.patch(CRON_JOB, "tick", {"spec": {"suspend": False}})
    assert cluster.names(JOB) == []
    pass_minutes(cluster, 9)
    assert cluster.names(JOB) == [f"tick-{NOON_MINUTES + 20}"]


def test_many_missed_times_are_reported(cluster: Harness) -> None:
    cluster.create(CRON_JOB, cron_job("* * * * *", suspend=True))
    cluster.advance(102 * 60, step=600)
    cluster.patch(CRON_JOB, "tick", {"spec": {"suspend": False}})
    assert cluster.names(JOB) == [f"tick-{NOON_MINUTES + 102}"]
    advice = "Set or decrease .spec.startingDeadlineSeconds or check clock skew"
    assert ("TooManyMissedTimes", f"too many missed start times. {advice}") in cluster.events("tick")


def test_another_schedule_holds_from_its_next_time_on(cluster: Harness) -> None:
    cluster.create(CRON_JOB, cron_job("@yearly"))
    pass_minutes(cluster, 7)
    cluster.patch(CRON_JOB, "tick", {"spec": {"schedule": "*/5 * * * *"}})
    assert cluster.names(JOB) == []
    pass_minutes(cluster, 3)
    assert cluster.names(JOB) == [f"tick-{NOON_MINUTES + 10}"]


def test_a_schedule_without_any_time_is_reported(cluster: Harness) -> None:
    cluster.create(CRON_JOB, cron_job("59 23 31 2 *"))
    why = "time difference between two schedules is less than 1 second"
    assert cluster.events("tick") == [("InvalidSchedule", f"invalid schedule: 59 23 31 2 * : {why}")]


def test_jobs_that_others_delete_or_create_are_reported(cluster: Harness) -> None:
    made = cluster.create(CRON_JOB, cron_job())
    pass_minutes(cluster, 5)
    cluster.delete(JOB, f"tick-{NOON_MINUTES + 5}", propagation="Background")
    assert active(cluster) == []
    assert ("MissingJob", f"Active job went missing: tick-{NOON_MINUTES + 5}") in cluster.events("tick")
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "controller": True}
    by_hand = {
        "metadata": {"name": "by-hand", "ownerReferences": [{**owner, "uid": made["metadata"]["uid"]}]},
        "spec": made["spec"]["jobTemplate"]["spec"],
    }
    cluster.create(JOB, by_hand)
    message = "Saw a job that the controller did not create or forgot: by-hand"
    assert ("UnexpectedJob", message) in cluster.events("tick")


def test_after_a_restart_no_time_is_used_twice(cluster: Harness) -> None:
    cluster.create(CRON_JOB, cron_job())
    pass_minutes(cluster, 5)
    cluster.restart()
    assert cluster.names(JOB) == [f"tick-{NOON_MINUTES + 5}"]
    pass_minutes(cluster, 5)
    assert cluster.names(JOB) == [f"tick-{NOON_MINUTES + 5}", f"tick-{NOON_MINUTES + 10}"]
