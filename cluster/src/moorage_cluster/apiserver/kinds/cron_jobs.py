"""CronJobs: jobs created on a schedule."""

from __future__ import annotations

import re
import zoneinfo
from typing import Final

from moorage.api.cron import ScheduleError, parse_schedule
from moorage.api.manifests import Manifest, child
from moorage.api.text_cache import cached_by_text
from moorage.apimachinery.fields import FieldError, complaints, invalid, not_supported, required
from moorage.apimachinery.validation.checks import check_not_negative, check_one_of
from moorage_cluster.apiserver.kinds.base import StatusStrategy
from moorage_cluster.apiserver.kinds.job_rules import check_job_spec
from moorage_cluster.apiserver.kinds.jobs import default_job_spec

_POLICIES: Final = ("Allow", "Forbid", "Replace")
_MAX_NAME_LENGTH: Final = 52
"""Maximum length of a name: jobs append a dash and ten digits, and a job's name must fit in a label."""
_ZONE_PART_RE = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


class CronJobStrategy(StatusStrategy):
    """A CronJob."""

    has_generation = True

    def default(self, obj: Manifest) -> None:
        """Jobs may run concurrently; three successful jobs and a failed one are kept."""
        super().default(obj)
        spec = obj["spec"]
        if not spec.get("concurrencyPolicy"):
            spec["concurrencyPolicy"] = "Allow"
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)
        template = child(spec, "jobTemplate")
        child(template, "metadata")
        default_job_spec(child(template, "spec"))

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the schedule and the job template."""
        errors = _check_spec(obj["spec"], None)
        name = obj["metadata"].get("name", "")
        if len(name) > _MAX_NAME_LENGTH:
            why = f"must be no more than {_MAX_NAME_LENGTH} characters"
            errors.append(invalid("metadata.name", name, why))
        return errors

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """All fields may change."""
        return _check_spec(obj["spec"], old.get("spec") or {})


def _check_spec(spec: Manifest, before: Manifest | None) -> list[FieldError]:
    schedule = spec.get("schedule", "")
    errors = []
    if not schedule:
        errors.append(required("spec.schedule"))
    else:
        with_zone = before is not None and "TZ" in before.get("schedule", "")
        errors += _check_schedule(schedule, spec, with_zone=with_zone)
    errors += check_not_negative(spec, ("startingDeadlineSeconds",), "spec")
    if "timeZone" in spec and (before is None or before.get("timeZone") != spec["timeZone"]):
        errors += complaints("spec.timeZone", spec["timeZone"], _zone_problems(spec["timeZone"]))
    errors += check_one_of(spec.get("concurrencyPolicy", ""), _POLICIES, "spec.concurrencyPolicy")
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    errors += check_job_spec(job, "spec.jobTemplate.spec")
    if "selector" in job:
        why = "`selector` will be auto-generated"
        errors.append(invalid("spec.jobTemplate.spec.selector", job["selector"], why))
    if job.get("manualSelector"):
        errors.append(not_supported("spec.jobTemplate.spec.manualSelector", True, ("nil", "false")))
    limits = ("successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    return errors + check_not_negative(spec, limits, "spec")


def _check_schedule(schedule: str, spec: Manifest, *, with_zone: bool) -> list[FieldError]:
    path = "spec.schedule"
    errors = []
    try:
        parse_schedule(schedule)
    except ScheduleError as error:
        errors.append(invalid(path, schedule, str(error)))
    if "TZ" in schedule:
        if not with_zone:
            why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            errors.append(invalid(path, schedule, why))
        elif "timeZone" in spec:
            why = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
            errors.append(invalid(path, schedule, why))
    return errors


@cached_by_text(count=256)
def _zone_problems(zone: str) -> tuple[str, ...]:
    if not zone:
        return ("timeZone must be nil or non-empty string",)
    unknown = f"unknown time zone {zone}"
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _ZONE_PART_RE.fullmatch(part):
            return (unknown,)
    if zone.lower() == "local":
        why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return (why,) if zone == "Local" else (why, unknown)
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return (unknown,)
    return ()
