"""Jobs: pods that run until a number of completions, with a limited parallelism."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from moorage.api.conditions import find_condition, is_ready
from moorage.api.manifests import Manifest, status_of, timestamp
from moorage.client.kinds import JOB, POD
from moorage.http.errors import RequestError
from moorage_cluster.controllers.adoption import claim, selects_nothing, watch_pods
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.controller import Controller, Key
from moorage_cluster.controllers.job_conditions import (
    COMPLETE,
    JobConclusion,
    deadline,
    is_suspended,
    job_conclusion,
    job_condition,
)
from moorage_cluster.controllers.job_failures import (
    BackoffRecord,
    apply_failure_policy,
    finished_at,
    only_replaces_failed,
)
from moorage_cluster.controllers.job_groups import JobGroups, join_group
from moorage_cluster.controllers.job_indexes import first_free, index_of
from moorage_cluster.controllers.job_pods import (
    FAILURE_COUNT,
    FINALIZER,
    IGNORED_FAILURE_COUNT,
    is_finished_job,
    is_ours,
    job_pod,
    untrack,
)
from moorage_cluster.controllers.job_tally import JobTally, failure_count, is_indexed
from moorage_cluster.controllers.pod_ranking import pods_to_delete
from moorage_cluster.controllers.pods import (
    BURST,
    create_pod,
    delete_pod,
    is_active,
    is_deleted,
    is_terminating,
    slow_start,
    together,
)
from moorage_cluster.controllers.statuses import write_status


class _Outcome(NamedTuple):
    """The result of creating and deleting pods."""

    refusal: RequestError | None = None
    again_seconds: float | None = None


class JobController(Controller):
    """Runs the pods of Jobs and counts them."""

    name = "job-controller"

    def __init__(self, cluster: Cluster, *, makes_groups: bool = False) -> None:
        super().__init__(cluster)
        self._groups = JobGroups(cluster, self.name) if makes_groups else None
        self._backoffs: dict[Key, tuple[str, BackoffRecord]] = {}
        """With the job's uid: another job may reuse the name."""
        self.watch(JOB)
        watch_pods(self, JOB)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Create or delete pods of one job, count finished ones, and finish the job when it is due."""
        job = self.cluster.informer(JOB).get(namespace, name)
        if job is None or is_finished_job(job):
            self._backoffs.pop((namespace, name), None)
            return None
        if not is_ours(job) or selects_nothing(job):
            return None
        tally = JobTally(job, await claim(self.cluster, JOB, job, POD, finalizers=(FINALIZER,)))
        now = self.cluster.clock.utc_now()
        started: str | None = status_of(job).get("startTime")
        if not started and not is_suspended(job):
            started = timestamp(now)
        backoff = self._backoff(job).after(tally.new_succeeded, tally.new_failed)
        conclusion = job_conclusion(tally, started, now)
        outcome, draft = _Outcome(), {"startTime": started}
        if conclusion is not None:
            outcome = _Outcome(await self._delete(job, tally.active))
        elif not is_deleted(job):
            if self._groups is not None:
                tally.group = await self._groups.group_of(job, tally.pods)
            outcome = await self._manage(tally, backoff, now)
            enough = tally.completions if _has_completions(job) else 1
            if tally.succeeded >= enough and not any(map(is_active, self._pods(job))):
                conclusion = COMPLETE
            else:
                draft |= await self._suspension(job, started, now)
        if outcome.refusal is not None:
            conclusion = None
        await self._count(tally, conclusion, draft, backoff, now)
        if outcome.refusal is not None:
            raise outcome.refusal
        due = deadline(job, started)
        waits = [outcome.again_seconds, (due - now).total_seconds() if due is not None else None]
        return min((max(0.0, wait) for wait in waits if wait is not None), default=None)

    def _backoff(self, job: Manifest) -> BackoffRecord:
        meta = job["metadata"]
        uid, backoff = self._backoffs.get((meta["namespace"], meta["name"]), ("", BackoffRecord()))
        return backoff if uid == meta["uid"] else BackoffRecord()

    def _pods(self, job: Manifest) -> list[Manifest]:
        return self.cluster.owned(POD).get(job["metadata"]["uid"])

    # -- creating and deleting pods

    async def _manage(self, tally: JobTally, backoff: BackoffRecord, now: datetime) -> _Outcome:
        job, active = tally.job, len(tally.active)
        parallelism = int(job["spec"].get("parallelism", 1))
        if is_suspended(job):
            return _Outcome(await self._withdraw(job, tally.active))
        if _has_completions(job):
            wanted = max(0, min(parallelism, tally.completions - tally.succeeded))
        else:
            wanted = active if tally.succeeded > 0 else parallelism
        extra = self._extra(tally, max(0, active - wanted), now)[:BURST]
        if extra:
            return _Outcome(await self._withdraw(job, extra))
        waiting = sum(map(is_terminating, tally.pods)) if only_replaces_failed(job) else 0
        missing = min(wanted - waiting - active, BURST)
        if missing <= 0:
            return _Outcome()
        if tally.limit_per_index is None and (wait := backoff.remaining_seconds(now)) > 0:
            return _Outcome(again_seconds=wait)
        if not is_indexed(job):
            return _Outcome(await slow_start(missing, lambda _: self._create(tally, None, {})))
        return await self._create_indexed(tally, missing, now)

    async def _create_indexed(self, tally: JobTally, missing: int, now: datetime) -> _Outcome:
        job = tally.job
        busy = [pod for pod in tally.pods if is_active(pod)]
        if only_replaces_failed(job):
            busy += [pod for pod in tally.pods if is_terminating(pod)]
        taken = {index for pod in busy if (index := index_of(pod)) is not None}
        free = first_free(taken | tally.succeeded_indexes | tally.failed_indexes, missing, tally.completions)
        annotations: dict[int, dict[str, str]] = {index: {} for index in free}
        waits: list[float] = []
        if tally.limit_per_index is not None:
            for index in free:
                wait, annotations[index] = self._retry(tally, index, now)
                if wait > 0:
                    del annotations[index]
                    waits.append(wait)
        ready = list(annotations.items())
        refusal = await slow_start(len(ready), lambda number: self._create(tally, *ready[number]))
        return _Outcome(refusal, min(waits, default=None))

    def _retry(self, tally: JobTally, index: int, now: datetime) -> tuple[float, dict[str, str]]:
        """Remaining backoff of a failed index in seconds, and the failure annotations of its next pod."""
        last = tally.last_failed(index)
        if last is None:
            return 0.0, {FAILURE_COUNT: "0"}
        ignored = int(last["metadata"].get("annotations", {}).get(IGNORED_FAILURE_COUNT, "0"))
        failures = failure_count(last)
        wait = BackoffRecord(failures + ignored + 1, finished_at(last)).remaining_seconds(now)
        if apply_failure_policy(tally.job, last).counts:
            failures += 1
        else:
            ignored += 1
        failure_counts = {FAILURE_COUNT: str(failures)}
        return wait, failure_counts | ({IGNORED_FAILURE_COUNT: str(ignored)} if ignored else {})

    def _extra(self, tally: JobTally, at_least: int, now: datetime) -> list[Manifest]:
        """Active pods to delete: those of unwanted or duplicate indexes, then by deletion rank."""
        if not is_indexed(tally.job):
            return pods_to_delete(tally.active, at_least, [], now) if at_least else []
        by_index: dict[int, list[Manifest]] = {}
        extra: list[Manifest] = []
        for pod in tally.active:
            index = index_of(pod)
            if index is None or index >= tally.completions:
                extra.append(pod)
            else:
                by_index.setdefault(index, []).append(pod)
        left: list[Manifest] = []
        for pods in by_index.values():
            to_delete = pods_to_delete(pods, len(pods) - 1, [], now) if len(pods) > 1 else []
            extra += to_delete
            left += [pod for pod in pods if pod not in to_delete]
        if len(extra) < at_least:
            extra += pods_to_delete(left, at_least - len(extra), [], now)
        return extra

    async def _create(self, tally: JobTally, index: int | None, annotations: dict[str, str]) -> None:
        pod = job_pod(tally.job, index, annotations)
        if tally.group is not None:
            join_group(pod, tally.group)
        await create_pod(self.cluster, tally.job, pod, self.name)

    async def _delete(self, job: Manifest, pods: list[Manifest]) -> RequestError | None:
        return await together(delete_pod(self.cluster, job, pod, self.name) for pod in pods)

    async def _withdraw(self, job: Manifest, pods: list[Manifest]) -> RequestError | None:
        """Delete active pods without counting them as failed."""

        async def withdraw(pod: Manifest) -> None:
            await untrack(self.cluster, pod)
            await delete_pod(self.cluster, job, pod, self.name)

        return await together(withdraw(pod) for pod in pods)

    # -- status

    async def _suspension(self, job: Manifest, started: str | None, now: datetime) -> Manifest:
        """The status changes after a job was suspended or resumed."""
        conditions: list[Manifest] = status_of(job).get("conditions") or []
        known = find_condition(status_of(job), "Suspended")
        is_noted = known is not None and known["status"] == "True"
        if is_suspended(job) == is_noted:
            return {}
        others = [each for each in conditions if each["type"] != "Suspended"]
        if is_suspended(job):
            await self.cluster.record_event(job, "Normal", "Suspended", "Job suspended", self.name)
            note = job_condition(now, "Suspended", "True", "JobSuspended", "Job suspended")
            return {"conditions": [*others, note], "startTime": None}
        await self.cluster.record_event(job, "Normal", "Resumed", "Job resumed", self.name)
        note = job_condition(now, "Suspended", "False", "JobResumed", "Job resumed")
        return {"conditions": [*others, note], "startTime": timestamp(now)}

    async def _count(
        self,
        tally: JobTally,
        conclusion: JobConclusion | None,
        draft: Manifest,
        backoff: BackoffRecord,
        now: datetime,
    ) -> None:
        """Count finished pods, remove their finalizers, and finish the job once none is left."""
        job = tally.job
        conditions: list[Manifest] = draft.get("conditions") or status_of(job).get("conditions") or []
        if conclusion is not None and not find_condition({"conditions": conditions}, conclusion.type):
            note = job_condition(now, conclusion.type, "True", conclusion.reason, conclusion.message)
            conditions = [*conditions, note]
        done, is_all = tally.to_count(
            conclusion is not None, conclusion is not None and conclusion.is_failure
        )
        draft = {**draft, "conditions": conditions, **self._running(job)}
        job = await write_status(self.cluster, JOB, job, {**draft, **tally.counts()})
        meta = job["metadata"]
        self._backoffs[meta["namespace"], meta["name"]] = (meta["uid"], backoff)
        refusal = await together(untrack(self.cluster, pod) for pod in done)
        if refusal is not None:
            raise refusal
        tally.count()
        draft |= self._running(job)
        is_over = conclusion is not None and is_all and not draft["terminating"]
        if conclusion is not None and is_over:
            end = job_condition(now, conclusion.final_type, "True", conclusion.reason, conclusion.message)
            draft["conditions"] = [*conditions, end]
            if not conclusion.is_failure:
                draft["completionTime"] = end["lastTransitionTime"]
        await write_status(self.cluster, JOB, job, {**draft, **tally.counts()})
        if conclusion is not None and is_over:
            await self._record_end(job, tally, conclusion)

    def _running(self, job: Manifest) -> Manifest:
        pods = self._pods(job)
        active = [pod for pod in pods if is_active(pod)]
        return {
            "active": len(active),
            "ready": sum(map(is_ready, active)),
            "terminating": sum(map(is_terminating, pods)),
        }

    async def _record_end(self, job: Manifest, tally: JobTally, conclusion: JobConclusion) -> None:
        if conclusion.is_failure:
            await self.cluster.record_event(job, "Warning", conclusion.reason, conclusion.message, self.name)
            return
        if _has_completions(job) and tally.succeeded > tally.completions:
            message = "Too many succeeded pods running after completion count reached"
            await self.cluster.record_event(job, "Warning", "TooManySucceededPods", message, self.name)
        await self.cluster.record_event(job, "Normal", "Completed", "Job completed", self.name)


def _has_completions(job: Manifest) -> bool:
    return job["spec"].get("completions") is not None
