"""Failed pods of a job: whether they count, whether the job fails, and the backoff."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple

from moorage.api.conditions import find_condition
from moorage.api.manifests import Manifest, moment, status_of
from moorage.backoff import backoff_seconds
from moorage_cluster.controllers.pods import created_at, is_deleted, phase_of

_INITIAL_BACKOFF_SECONDS: Final = 10.0
_MAX_BACKOFF_SECONDS: Final = 600.0

Action = Literal["Ignore", "FailIndex", "Count", "FailJob"]


def only_replaces_failed(job: Manifest) -> bool:
    """Whether a pod is replaced only when it has failed, and not while it is terminating."""
    spec = job["spec"]
    return spec.get("podReplacementPolicy") == "Failed" or bool(spec.get("podFailurePolicy"))


def is_failed(job: Manifest, pod: Manifest) -> bool:
    """Whether a pod counts as failed."""
    if phase_of(pod) == "Failed":
        return True
    return not only_replaces_failed(job) and is_deleted(pod) and phase_of(pod) != "Succeeded"


class FailureDecision(NamedTuple):
    """The result of a job's pod failure policy for a failed pod; no action if no rule matches."""

    action: Action | None = None
    message: str = ""

    @property
    def counts(self) -> bool:
        """Whether the failure counts towards the limit."""
        return self.action != "Ignore"


def apply_failure_policy(job: Manifest, pod: Manifest) -> FailureDecision:
    """Apply a job's pod failure policy to a failed pod."""
    rules: list[Manifest] = (job["spec"].get("podFailurePolicy") or {}).get("rules") or []
    meta = pod["metadata"]
    name = f"{meta['namespace']}/{meta['name']}"
    for index, rule in enumerate(rules):
        where = f"matching {rule['action']} rule at index {index}"
        if rule.get("onExitCodes"):
            container = _failed_container(pod, rule["onExitCodes"])
            if container is not None:
                code = container["state"]["terminated"]["exitCode"]
                text = f"Container {container['name']} for pod {name} failed with exit code {code} {where}"
                return FailureDecision(rule["action"], text)
        elif condition := _condition(pod, rule.get("onPodConditions") or []):
            return FailureDecision(rule["action"], f"Pod {name} has condition {condition} {where}")
    return FailureDecision()


def _failed_container(pod: Manifest, wanted: Manifest) -> Manifest | None:
    status = pod.get("status") or {}
    for each in [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]:
        code = ((each.get("state") or {}).get("terminated") or {}).get("exitCode", 0)
        if code == 0 or wanted.get("containerName") not in (None, each["name"]):
            continue
        if (code in wanted["values"]) == (wanted["operator"] == "In"):
            found: Manifest = each
            return found
    return None


def _condition(pod: Manifest, patterns: list[Manifest]) -> str:
    for each in (pod.get("status") or {}).get("conditions") or []:
        for pattern in patterns:
            if each["type"] == pattern["type"] and each["status"] == pattern.get("status", "True"):
                return str(each["type"])
    return ""


def restarts_exceed_limit(job: Manifest, pods: list[Manifest]) -> bool:
    """Whether containers that are restarted in place have exceeded the backoff limit."""
    if job["spec"]["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    restarts = 0
    for pod in pods:
        if phase_of(pod) in ("Running", "Pending"):
            status = pod.get("status") or {}
            for field in ("initContainerStatuses", "containerStatuses"):
                restarts += sum(each.get("restartCount", 0) for each in status.get(field) or [])
    limit = backoff_limit(job)
    return restarts > 0 if limit == 0 else restarts >= limit


def backoff_limit(job: Manifest) -> int:
    """Number of failures before a job fails."""
    return int(job["spec"].get("backoffLimit", 6))


def finished_at(pod: Manifest) -> datetime:
    """When a pod finished, as far as its status shows."""
    ends = [
        ((each.get("state") or {}).get("terminated") or {}).get("finishedAt")
        for each in (pod.get("status") or {}).get("containerStatuses") or []
    ]
    if ends and all(ends):
        return max(moment(str(end)) for end in ends)
    ready = find_condition(status_of(pod), "Ready")
    if ready is not None and ready["status"] == "False" and ready.get("lastTransitionTime"):
        return moment(ready["lastTransitionTime"])
    if is_deleted(pod):
        meta = pod["metadata"]
        return moment(meta["deletionTimestamp"]) - timedelta(
            seconds=meta.get("deletionGracePeriodSeconds") or 0
        )
    return created_at(pod)


class BackoffRecord(NamedTuple):
    """Number of failures since the last success, and the time of the last failure."""

    failures: int = 0
    last: datetime | None = None

    def after(self, succeeded: list[Manifest], failed: list[Manifest]) -> BackoffRecord:
        """The backoff after more pods have finished."""
        failures = sorted(map(finished_at, failed))
        if not succeeded:
            return BackoffRecord(self.failures + len(failures), failures[-1]) if failures else self
        last_success = max(map(finished_at, succeeded))
        later = [each for each in failures if each > last_success]
        return BackoffRecord(len(later), later[-1] if later else None)

    def remaining_seconds(self, now: datetime) -> float:
        """Seconds to wait before the next pod is created."""
        if self.failures == 0 or self.last is None:
            return 0.0
        wait = backoff_seconds(self.failures, _INITIAL_BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS)
        return max(0.0, (self.last + timedelta(seconds=wait) - now).total_seconds())
