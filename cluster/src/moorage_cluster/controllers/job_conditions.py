"""Whether a job completes or fails: by its conditions, limits, deadline and policies."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from moorage.api.conditions import find_condition
from moorage.api.manifests import Manifest, moment, status_of, timestamp
from moorage_cluster.controllers.job_failures import (
    apply_failure_policy,
    backoff_limit,
    is_failed,
    restarts_exceed_limit,
)
from moorage_cluster.controllers.job_indexes import parse_indexes
from moorage_cluster.controllers.job_tally import JobTally, is_indexed

SUCCESS: Final = "SuccessCriteriaMet"
FAILURE: Final = "FailureTarget"


class JobConclusion(NamedTuple):
    """The result of a job: successful or not, and why."""

    type: str
    reason: str
    message: str

    @property
    def is_failure(self) -> bool:
        """Whether the job has failed."""
        return self.type == FAILURE

    @property
    def final_type(self) -> str:
        """The type of the final condition, once no pod is running."""
        return "Failed" if self.is_failure else "Complete"


COMPLETE: Final = JobConclusion(SUCCESS, "CompletionsReached", "Reached expected number of succeeded pods")


def job_condition(now: datetime, type: str, status: str, reason: str, message: str) -> Manifest:
    """A job's condition."""
    moment_text = timestamp(now)
    return {
        "type": type,
        "status": status,
        "reason": reason,
        "message": message,
        "lastProbeTime": moment_text,
        "lastTransitionTime": moment_text,
    }


def is_suspended(job: Manifest) -> bool:
    """Whether a job is suspended."""
    return bool(job["spec"].get("suspend"))


def deadline(job: Manifest, started: str | None) -> datetime | None:
    """The active deadline of a job, if it has one."""
    seconds = job["spec"].get("activeDeadlineSeconds")
    if seconds is None or not started or is_suspended(job):
        return None
    return moment(started) + timedelta(seconds=seconds)


def job_conclusion(tally: JobTally, started: str | None, now: datetime) -> JobConclusion | None:
    """The result of a job that finishes before all completions; None if it continues."""
    job = tally.job
    for type in (SUCCESS, FAILURE):
        known = find_condition(status_of(job), type)
        if known is not None and known["status"] == "True":
            return JobConclusion(type, known.get("reason") or "", known.get("message") or "")
    if message := _policy_failure(tally):
        return JobConclusion(FAILURE, "PodFailurePolicy", message)
    if tally.failed > backoff_limit(job) or restarts_exceed_limit(job, tally.pods):
        return JobConclusion(FAILURE, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    due = deadline(job, started)
    if due is not None and now >= due:
        return JobConclusion(FAILURE, "DeadlineExceeded", "Job was active longer than specified deadline")
    return _by_indexes(tally) if is_indexed(job) else None


def _policy_failure(tally: JobTally) -> str:
    for pod in tally.pods:
        if is_failed(tally.job, pod):
            decision = apply_failure_policy(tally.job, pod)
            if decision.action == "FailJob":
                return decision.message
    return ""


def _by_indexes(tally: JobTally) -> JobConclusion | None:
    spec, failed = tally.job["spec"], len(tally.failed_indexes)
    if tally.limit_per_index is not None:
        most = spec.get("maxFailedIndexes")
        if most is not None and failed > most:
            message = "Job has exceeded the specified maximal number of failed indexes"
            return JobConclusion(FAILURE, "MaxFailedIndexesExceeded", message)
        if failed and failed + len(tally.succeeded_indexes) >= tally.completions:
            return JobConclusion(FAILURE, "FailedIndexes", "Job has failed indexes")
    rules: list[Manifest] = (spec.get("successPolicy") or {}).get("rules") or []
    for number, rule in enumerate(rules):
        if _is_met(rule, tally):
            return JobConclusion(SUCCESS, "SuccessPolicy", f"Matched rules at index {number}")
    return None


def _is_met(rule: Manifest, tally: JobTally) -> bool:
    done, enough = tally.succeeded_indexes, rule.get("succeededCount")
    if rule.get("succeededIndexes") is not None:
        wanted = parse_indexes(rule["succeededIndexes"], tally.completions)
        if not wanted:
            return False
        done = done & wanted
        return done == wanted or (enough is not None and len(done) >= enough)
    return bool(done) and enough is not None and len(done) >= enough
