"""Validation of a job's status: a finished job stays finished, and the counters are consistent."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest
from moorage.apimachinery.fields import IMMUTABLE, OMITTED, FieldError, duplicate, invalid, required
from moorage.apimachinery.validation.checks import check_not_negative
from moorage_cluster.apiserver.kinds.job_policies import count_indexes

_TERMINAL: Final = ("Failed", "Complete", "FailureTarget", "SuccessCriteriaMet")


def check_job_status(obj: Manifest, old: Manifest) -> list[FieldError]:
    """Validation errors of an update of a job's status."""
    status, before = obj.get("status") or {}, old.get("status") or {}
    now, then = _conditions(status), _conditions(before)
    errors = check_not_negative(status, ("active", "succeeded", "failed", "ready", "terminating"), "status")
    errors += _check_uncounted(status)
    errors += _check_combinations(now, then)
    errors += _check_times(obj, status, before, now, then)
    errors += _check_numbers(obj, status, before, now, then)
    return errors + _check_indexes(obj, status, before)


def _conditions(status: Manifest) -> set[str]:
    """The types of the conditions that are True."""
    return {each.get("type", "") for each in status.get("conditions") or () if each.get("status") == "True"}


def _refusal(why: str) -> FieldError:
    return invalid("status.conditions", OMITTED, why)


def _check_uncounted(status: Manifest) -> list[FieldError]:
    errors = []
    seen = set()
    for part in ("succeeded", "failed"):
        for index, uid in enumerate((status.get("uncountedTerminatedPods") or {}).get(part) or ()):
            path = f"status.uncountedTerminatedPods.{part}[{index}]"
            if not uid:
                errors.append(invalid(path, uid, "must not be empty"))
            elif uid in seen:
                errors.append(duplicate(path, uid))
            seen.add(uid)
    return errors


def _check_combinations(now: set[str], then: set[str]) -> list[FieldError]:
    errors = []
    new = now - then
    if {"Complete", "Failed"} <= now and new & {"Complete", "Failed"}:
        errors.append(_refusal("cannot set Complete=True and Failed=true conditions"))
    if {"Complete", "FailureTarget"} <= now and new & {"Complete", "FailureTarget"}:
        errors.append(_refusal("cannot set Complete=True and FailureTarget=true conditions"))
    if "Failed" in new and "FailureTarget" not in now:
        errors.append(_refusal("cannot set Failed=True condition without the FailureTarget=true condition"))
    if "Complete" in new and "SuccessCriteriaMet" not in now:
        why = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        errors.append(_refusal(why))
    for other in ("Failed", "FailureTarget"):
        if {"SuccessCriteriaMet", other} <= now:
            errors.append(_refusal(f"cannot set SuccessCriteriaMet=True and {other}=true conditions"))
    for kind in _TERMINAL:
        if kind in then and kind not in now:
            word = "" if kind == "SuccessCriteriaMet" else "terminal "
            errors.append(_refusal(f"cannot disable the {word}{kind}=True condition"))
    return errors


def _check_times(
    obj: Manifest, status: Manifest, before: Manifest, now: set[str], then: set[str]
) -> list[FieldError]:
    errors = []
    start, end = status.get("startTime"), status.get("completionTime")
    first_start, first_end = before.get("startTime"), before.get("completionTime")
    ended, had_ended = now & {"Complete", "Failed"}, then & {"Complete", "Failed"}
    completing = ("Complete" in now) != ("Complete" in then) or end != first_end
    if end and "Complete" not in now and completing:
        why = "cannot set completionTime when there is no Complete=True condition"
        errors.append(invalid("status.completionTime", end, why))
    if not end and "Complete" in now and completing:
        errors.append(required("status.completionTime", "completionTime is required for Complete jobs"))
    if start and end and end < start and (start != first_start or end != first_end):
        errors.append(invalid("status.completionTime", end, "must be equal to or after `startTime`"))
    if end and first_end and end != first_end:
        errors.append(invalid("status.completionTime", end, IMMUTABLE))
    if ended and not start and (bool(ended) != bool(had_ended) or start != first_start):
        errors.append(required("status.startTime", "startTime is required for finished job"))
    resuming = "Suspended" in then and "Suspended" not in now
    if first_start and start != first_start and not obj["spec"].get("suspend") and not resuming:
        why = "field is immutable for unsuspended job once set"
        errors.append(invalid("status.startTime", start, why))
    return errors


def _check_numbers(
    obj: Manifest, status: Manifest, before: Manifest, now: set[str], then: set[str]
) -> list[FieldError]:
    errors = []
    spec = obj["spec"]
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for key in ("failed", "succeeded"):
        if status.get(key, 0) < before.get(key, 0) and not (elastic and key == "succeeded"):
            errors.append(invalid(f"status.{key}", status.get(key, 0), f"cannot decrease the {key} counter"))
    active, ready = status.get("active", 0), status.get("ready", 0)
    changed = active != before.get("active", 0) or ready != before.get("ready", 0)
    if ready > active and changed:
        errors.append(invalid("status.ready", ready, "cannot set more ready pods than active"))
    ended = now & {"Complete", "Failed"}
    if not ended:
        return errors
    ending = not then & {"Complete", "Failed"}
    for key in ("active", "terminating"):
        count = status.get(key, 0)
        if count > 0 and (ending or count != before.get(key, 0)):
            errors.append(invalid(f"status.{key}", count, f"{key}>0 is invalid for finished job"))
    uncounted = status.get("uncountedTerminatedPods") or {}
    if (uncounted.get("succeeded") or uncounted.get("failed")) and (
        ending or uncounted != before.get("uncountedTerminatedPods")
    ):
        why = "must be empty for finished job"
        errors.append(invalid("status.uncountedTerminatedPods", uncounted, why))
    return errors


def _check_indexes(obj: Manifest, status: Manifest, before: Manifest) -> list[FieldError]:
    errors = []
    spec = obj["spec"]
    for key in ("completedIndexes", "failedIndexes"):
        text = status.get(key, "")
        if not text or text == before.get(key):
            continue
        if key == "completedIndexes" and spec.get("completionMode") != "Indexed":
            why = "cannot set non-empty completedIndexes when non-indexed completion mode"
            errors.append(invalid(f"status.{key}", text, why))
        if key == "failedIndexes" and "backoffLimitPerIndex" not in spec:
            why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
            errors.append(invalid(f"status.{key}", text, why))
        try:
            count_indexes(text, spec.get("completions", 0))
        except ValueError as error:
            errors.append(invalid(f"status.{key}", text, f"error parsing {key}: {error}"))
    return errors
