"""CronJobs: jobs that are started at the times of a schedule, and the few finished ones that are kept."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from moorage.api.cron import Schedule, ScheduleError, parse_schedule
from moorage.api.manifests import Manifest, copy, moment, status_of, timestamp
from moorage.client.informer import EventType
from moorage.client.kinds import CRON_JOB, JOB
from moorage.http.errors import RequestError
from moorage_cluster.controllers.cluster import Cluster, owner_reference
from moorage_cluster.controllers.controller import Controller
from moorage_cluster.controllers.job_pods import finished_condition
from moorage_cluster.controllers.pods import is_deleted, is_namespace_terminating
from moorage_cluster.controllers.statuses import write_status

_SCHEDULED_AT: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_LATENESS: Final = timedelta(milliseconds=100)
"""Delay of reconciliation after a scheduled time, so that the time has surely come."""
_MAX_MISSED_SCHEDULES: Final = 100


class _NoScheduleError(Exception):
    """A CronJob without a usable schedule; the reason and the message are those of the event about it."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class _Due(NamedTuple):
    """The latest time that has come since a job was last started, and about how many have come."""

    time: datetime | None
    times: int


class CronJobController(Controller):
    """Starts jobs, keeps track of those that run, and deletes old ones."""

    name = "cronjob-controller"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._jobs = cluster.owned(JOB)
        self.watch(CRON_JOB, self._changed)
        self.watch_owned(JOB, "CronJob")

    def _changed(self, type: EventType, cron_job: Manifest, before: Manifest | None) -> None:
        """Enqueue a CronJob; after a change of its schedule only when its next time comes."""
        meta = cron_job["metadata"]
        if before is not None and _timing(before) != _timing(cron_job):
            try:
                wait = _seconds_to_next(cron_job, _schedule_of(cron_job), self.cluster.clock.utc_now())
            except _NoScheduleError:
                wait = 0.0  # Reconciliation reports why.
            self.enqueue_after(meta["namespace"], meta["name"], wait or 0.0)
        else:
            self.enqueue(meta["namespace"], meta["name"])

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Count the jobs of one CronJob, delete the oldest, and start one if it is time."""
        cron_job = self.cluster.informer(CRON_JOB).get(namespace, name)
        if cron_job is None:
            return None
        jobs = self._jobs.get(cron_job["metadata"]["uid"])
        status = _Status(cron_job)
        try:
            await self._delete_old(cron_job, jobs, status)
            await self._count(cron_job, jobs, status)
            seconds = await self._start(cron_job, status)
        except RequestError:
            await write_status(self.cluster, CRON_JOB, cron_job, status.written())
            raise
        await write_status(self.cluster, CRON_JOB, cron_job, status.written())
        return seconds

    async def _record_event(
        self, cron_job: Manifest, reason: str, message: str, type: str = "Normal"
    ) -> None:
        await self.cluster.record_event(cron_job, type, reason, message, self.name)

    # -- existing jobs

    async def _count(self, cron_job: Manifest, jobs: Iterable[Manifest], status: _Status) -> None:
        """Record which jobs run, which have finished, and which were deleted."""
        uids = set()
        for job in jobs:
            uid, name = job["metadata"]["uid"], job["metadata"]["name"]
            uids.add(uid)
            ended = finished_condition(job)
            if ended is None and uid not in status.active:
                message = f"Saw a job that the controller did not create or forgot: {name}"
                await self._record_event(cron_job, "UnexpectedJob", message, "Warning")
            if ended is not None and uid in status.active:
                del status.active[uid]
                message = f"Saw completed job: {name}, condition: {ended['type']}"
                await self._record_event(cron_job, "SawCompletedJob", message)
            if ended is not None and ended["type"] == "Complete":
                status.succeeded_at(status_of(job).get("completionTime"))
        for uid in [each for each in status.active if each not in uids]:
            name = status.active.pop(uid)["name"]
            await self._record_event(cron_job, "MissingJob", f"Active job went missing: {name}")

    async def _delete_old(self, cron_job: Manifest, jobs: Iterable[Manifest], status: _Status) -> None:
        """Keep only the newest of the jobs that have succeeded, and of those that have failed."""
        for type, limit in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
            ended = [job for job in jobs if _ended_as(job) == type and not is_deleted(job)]
            kept = cron_job["spec"].get(limit, len(ended))
            for job in sorted(ended, key=_age_key)[: max(0, len(ended) - kept)]:
                await self._delete(cron_job, job, status)

    async def _delete(self, cron_job: Manifest, job: Manifest, status: _Status) -> None:
        try:
            await self.cluster.delete(JOB, job, propagation="Background")
        except RequestError as error:
            await self._record_event(cron_job, "FailedDelete", f"Deleted job: {error}", "Warning")
            raise
        status.active.pop(job["metadata"]["uid"], None)
        await self._record_event(cron_job, "SuccessfulDelete", f"Deleted job {job['metadata']['name']}")

    # -- the next job

    async def _start(self, cron_job: Manifest, status: _Status) -> float | None:
        """Start a job if one is due; returns the seconds until the next scheduled time."""
        if is_deleted(cron_job) or cron_job["spec"].get("suspend"):
            return None
        now = self.cluster.clock.utc_now()
        try:
            schedule = _schedule_of(cron_job)
            due = _due(cron_job, schedule, now)
        except _NoScheduleError as error:
            await self._record_event(cron_job, error.reason, str(error), "Warning")
            return None
        if due.times > _MAX_MISSED_SCHEDULES:
            advice = "Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            message = f"too many missed start times. {advice}"
            await self._record_event(cron_job, "TooManyMissedTimes", message, "Warning")
        if due.time is not None and await self._may_start(cron_job, status, due.time, now):
            await self._replace(cron_job, status)
            if job := await self._create(cron_job, due.time):
                status.started(job, due.time)
        return _seconds_to_next({**cron_job, "status": status.written()}, schedule, now)

    async def _may_start(self, cron_job: Manifest, status: _Status, due: datetime, now: datetime) -> bool:
        deadline = cron_job["spec"].get("startingDeadlineSeconds")
        if deadline is not None and due + timedelta(seconds=deadline) < now:
            message = f"Missed scheduled time to start a job: {format_datetime(due)}"
            await self._record_event(cron_job, "MissSchedule", message, "Warning")
            return False
        if status.is_started(_job_name(cron_job, due), due):
            return False
        if cron_job["spec"]["concurrencyPolicy"] == "Forbid" and status.active:
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            await self._record_event(cron_job, "JobAlreadyActive", message)
            return False
        return True

    async def _replace(self, cron_job: Manifest, status: _Status) -> None:
        """Delete jobs that still run, for the concurrency policy Replace."""
        if cron_job["spec"]["concurrencyPolicy"] == "Replace":
            jobs = {job["metadata"]["uid"]: job for job in self._jobs.get(cron_job["metadata"]["uid"])}
            for uid in list(status.active):
                await self._delete(cron_job, jobs[uid], status)

    async def _create(self, cron_job: Manifest, due: datetime) -> Manifest | None:
        """Create the job of a scheduled time; an existing one counts, if the CronJob owns it."""
        namespace = cron_job["metadata"]["namespace"]
        wanted = _job(cron_job, due)
        try:
            job = await self.cluster.create(JOB, namespace, wanted)
        except RequestError as error:
            if error.already_exists:
                return self._own_job(cron_job, wanted["metadata"]["name"])
            if is_namespace_terminating(error):
                return None
            await self._record_event(cron_job, "FailedCreate", f"Error creating job: {error}", "Warning")
            raise
        await self._record_event(cron_job, "SuccessfulCreate", f"Created job {job['metadata']['name']}")
        return job

    def _own_job(self, cron_job: Manifest, name: str) -> Manifest | None:
        jobs = self._jobs.get(cron_job["metadata"]["uid"])
        return next((job for job in jobs if job["metadata"]["name"] == name), None)


class _Status:
    """The status of a CronJob during its reconciliation."""

    def __init__(self, cron_job: Manifest) -> None:
        status = status_of(cron_job)
        self.active: dict[str, Manifest] = {each["uid"]: each for each in status.get("active") or ()}
        self.last_started: str | None = status.get("lastScheduleTime")
        self._last_succeeded: str | None = status.get("lastSuccessfulTime")

    def succeeded_at(self, time: str | None) -> None:
        """Record that a job succeeded at a time."""
        self._last_succeeded = max(self._last_succeeded or "", time or "") or None

    def is_started(self, name: str, due: datetime) -> bool:
        """Whether the job of a time has been started."""
        is_active = any(each["name"] == name for each in self.active.values())
        return is_active or self.last_started == timestamp(due)

    def started(self, job: Manifest, due: datetime) -> None:
        """Record that the job of a time runs."""
        meta = job["metadata"]
        self.active[meta["uid"]] = {
            "apiVersion": job["apiVersion"],
            "kind": job["kind"],
            **{key: meta[key] for key in ("namespace", "name", "uid", "resourceVersion")},
        }
        self.last_started = timestamp(due)

    def written(self) -> Manifest:
        """The status as a manifest."""
        return {
            "active": list(self.active.values()) or None,
            "lastScheduleTime": self.last_started,
            "lastSuccessfulTime": self._last_succeeded,
        }


def _ended_as(job: Manifest) -> str:
    """How a job finished: `Complete`, `Failed`, or empty if it has not."""
    condition = finished_condition(job)
    return condition["type"] if condition else ""


def _age_key(job: Manifest) -> tuple[bool, str, str]:
    """Sort key: jobs by start time, those that never started last."""
    started = status_of(job).get("startTime") or ""
    return not started, started, job["metadata"]["name"]


def _timing(cron_job: Manifest) -> tuple[str, str | None]:
    spec = cron_job["spec"]
    return spec.get("schedule", ""), spec.get("timeZone")


def _schedule_of(cron_job: Manifest) -> Schedule:
    text, name = _timing(cron_job)
    try:
        return parse_schedule(text, ZoneInfo(name or "UTC"))
    except ScheduleError as error:
        message = f'unparseable schedule: "{text}" : {error}'
        raise _NoScheduleError("UnparseableSchedule", message) from None
    except (ZoneInfoNotFoundError, ValueError):
        message = f'invalid timeZone: "{name}": unknown time zone {name}'
        raise _NoScheduleError("UnknownTimeZone", message) from None


def _last_started(cron_job: Manifest) -> datetime:
    """When a job was last started, or the CronJob created."""
    return moment(status_of(cron_job).get("lastScheduleTime") or cron_job["metadata"]["creationTimestamp"])


def _due(cron_job: Manifest, schedule: Schedule, now: datetime) -> _Due:
    """The time for which a job is to be started now; times beyond the deadline do not count."""
    since = _last_started(cron_job)
    if (deadline := cron_job["spec"].get("startingDeadlineSeconds")) is not None:
        since = max(since, now - timedelta(seconds=deadline))
    first = schedule.next(since)
    second = first and schedule.next(first)
    if first is None or second is None:
        why = "time difference between two schedules is less than 1 second"
        raise _NoScheduleError("InvalidSchedule", f"invalid schedule: {_timing(cron_job)[0]} : {why}")
    if first > now:
        return _Due(None, 0)
    missed = (now - first) // (second - first) + 1
    return _Due(schedule.latest(since, now), missed)


def _seconds_to_next(cron_job: Manifest, schedule: Schedule, now: datetime) -> float | None:
    since = _last_started(cron_job)
    following = schedule.next(schedule.latest(since, now) or since)
    return None if following is None else (following + _LATENESS - now).total_seconds()


def _job_name(cron_job: Manifest, due: datetime) -> str:
    return f"{cron_job['metadata']['name']}-{int(due.timestamp()) // 60}"


def _job(cron_job: Manifest, due: datetime) -> Manifest:
    template = cron_job["spec"]["jobTemplate"]
    meta = template.get("metadata") or {}
    local = due.astimezone(ZoneInfo(cron_job["spec"].get("timeZone") or "UTC"))
    at = timestamp(due) if not local.utcoffset() else local.isoformat(timespec="seconds")
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.name,
        "metadata": {
            "name": _job_name(cron_job, due),
            "labels": dict(meta.get("labels") or {}),
            "annotations": {**(meta.get("annotations") or {}), _SCHEDULED_AT: at},
            "ownerReferences": [owner_reference(cron_job)],
        },
        "spec": copy(template["spec"]),
    }
