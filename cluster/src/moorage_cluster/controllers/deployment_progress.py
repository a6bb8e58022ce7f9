"""A deployment's status: counts, and whether its rollout progresses."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from moorage.api.conditions import find_condition
from moorage.api.manifests import Manifest, moment, status_of
from moorage_cluster.controllers.deployment_sets import Sets, counted, fenceposts, size_of, total_size
from moorage_cluster.controllers.statuses import new_condition, with_condition, without_condition

PROGRESSING: Final = "Progressing"
AVAILABLE: Final = "Available"
FAILURE: Final = "ReplicaFailure"
TIMED_OUT: Final = "ProgressDeadlineExceeded"
_DONE: Final = "NewReplicaSetAvailable"
_PAUSED: Final = "DeploymentPaused"
_FOREVER: Final = 2**31 - 1


def deadline_seconds(deployment: Manifest) -> int | None:
    """Progress deadline of a rollout in seconds, if there is one."""
    seconds: int | None = deployment["spec"].get("progressDeadlineSeconds")
    return None if seconds is None or seconds == _FOREVER else seconds


def progressing(now: datetime, status: str, reason: str, message: str) -> Manifest:
    """A Progressing condition."""
    return new_condition(now, PROGRESSING, status, reason, message, updated=True)


def conditions_after_pausing(deployment: Manifest, now: datetime) -> list[Manifest]:
    """The conditions, with Progressing set after pausing or resuming: paused time does not count."""
    status = status_of(deployment)
    conditions: list[Manifest] = status.get("conditions") or []
    known = find_condition(status, PROGRESSING)
    if deadline_seconds(deployment) is None or (known is not None and known.get("reason") == TIMED_OUT):
        return conditions
    is_paused, was_paused = bool(deployment["spec"].get("paused")), _has_reason(known, _PAUSED)
    if is_paused and not was_paused:
        return with_condition(conditions, progressing(now, "Unknown", _PAUSED, "Deployment is paused"))
    if was_paused and not is_paused:
        note = progressing(now, "Unknown", "DeploymentResumed", "Deployment is resumed")
        return with_condition(conditions, note)
    return conditions


def counted_status(deployment: Manifest, sets: Sets, conditions: list[Manifest], now: datetime) -> Manifest:
    """The status from the sets' counts, with the Available condition."""
    available = counted(sets.all, "availableReplicas")
    _, max_unavailable = fenceposts(deployment)
    if available >= size_of(deployment) - max_unavailable:
        availability = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        availability = (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    return {
        "observedGeneration": deployment["metadata"].get("generation", 0),
        "replicas": counted(sets.all, "replicas"),
        "updatedReplicas": counted([sets.new], "replicas") if sets.new is not None else 0,
        "readyReplicas": counted(sets.all, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, total_size(sets.all) - available),
        "terminatingReplicas": counted(sets.all, "terminatingReplicas"),
        "conditions": with_condition(conditions, new_condition(now, AVAILABLE, *availability, updated=True)),
    }


def rollout_status(deployment: Manifest, sets: Sets, conditions: list[Manifest], now: datetime) -> Manifest:
    """The status from the sets' counts, with all conditions."""
    status = counted_status(deployment, sets, conditions, now)
    kept: list[Manifest] = status["conditions"]
    if deadline_seconds(deployment) is None:
        kept = without_condition(kept, PROGRESSING)
    else:
        known = find_condition(status_of(deployment), PROGRESSING)
        is_settled = status["replicas"] == status["updatedReplicas"] and _has_reason(known, _DONE)
        if not is_settled:
            kept = _with_progress(deployment, sets, {**status, "conditions": kept}, now)
    failure = _failure(sets)
    if failure is not None:
        kept = with_condition(kept, failure)
    else:
        kept = without_condition(kept, FAILURE)
    return {**status, "conditions": kept}


def seconds_to_deadline(deployment: Manifest, status: Manifest, now: datetime) -> float | None:
    """Seconds until the progress deadline of a rollout; None if it has completed or failed."""
    seconds, known = deadline_seconds(deployment), find_condition(status, PROGRESSING)
    if (
        seconds is None
        or known is None
        or known.get("reason") == TIMED_OUT
        or is_complete(deployment, status)
    ):
        return None
    since = moment(known.get("lastUpdateTime") or known["lastTransitionTime"])
    return max(0.0, (since + timedelta(seconds=seconds) - now).total_seconds()) + 1


def is_complete(deployment: Manifest, status: Manifest) -> bool:
    """Whether a status has all pods updated and available, and no old ones."""
    size = size_of(deployment)
    counts = (status.get(field) or 0 for field in ("updatedReplicas", "replicas", "availableReplicas"))
    observed: int = status.get("observedGeneration") or 0
    return all(count == size for count in counts) and observed >= deployment["metadata"].get("generation", 0)


def _has_reason(condition: Manifest | None, reason: str) -> bool:
    return condition is not None and condition.get("reason") == reason


def _with_progress(deployment: Manifest, sets: Sets, status: Manifest, now: datetime) -> list[Manifest]:
    conditions: list[Manifest] = status["conditions"]
    subject = f'Deployment "{deployment["metadata"]["name"]}"'
    if sets.new is not None:
        subject = f'ReplicaSet "{sets.new["metadata"]["name"]}"'
    if is_complete(deployment, status):
        done = progressing(now, "True", _DONE, f"{subject} has successfully progressed.")
        return with_condition(conditions, done)
    if _has_moved(status_of(deployment), status):
        moved = progressing(now, "True", "ReplicaSetUpdated", f"{subject} is progressing.")
        known = find_condition(status, PROGRESSING)
        if known is not None and known["status"] == "True":
            moved["lastTransitionTime"] = known["lastTransitionTime"]
        return [*without_condition(conditions, PROGRESSING), moved]
    if _is_late(deployment, find_condition(status, PROGRESSING), now):
        late = progressing(now, "False", TIMED_OUT, f"{subject} has timed out progressing.")
        return with_condition(conditions, late)
    return conditions


def _has_moved(before: Manifest, after: Manifest) -> bool:
    """Whether a rollout has progressed."""

    def grew(field: str) -> bool:
        return int(after.get(field) or 0) > int(before.get(field) or 0)

    def old(status: Manifest) -> int:
        return int(status.get("replicas") or 0) - int(status.get("updatedReplicas") or 0)

    return (
        grew("updatedReplicas")
        or old(after) < old(before)
        or grew("readyReplicas")
        or grew("availableReplicas")
    )


def _is_late(deployment: Manifest, known: Manifest | None, now: datetime) -> bool:
    seconds = deadline_seconds(deployment)
    if seconds is None or known is None or known.get("reason") == _DONE:
        return False
    if known.get("reason") == TIMED_OUT:
        return True
    since = moment(known.get("lastUpdateTime") or known["lastTransitionTime"])
    return since + timedelta(seconds=seconds) < now


def _failure(sets: Sets) -> Manifest | None:
    """The ReplicaFailure condition of a set, the new one first."""
    for each in [*([sets.new] if sets.new is not None else []), *sets.all]:
        known = find_condition(status_of(each), FAILURE)
        if known is not None:
            return {**known, "lastUpdateTime": known["lastTransitionTime"]}
    return None
