"""How the pods of a job are scheduled together, since v1.37 (`spec.scheduling`)."""

from __future__ import annotations

from typing import Any, Final

from moorage.admission.groups.rules import POLICIES, check_union
from moorage.admission.groups.validation import (
    CLAIMS,
    CONSTRAINTS,
    Immutable,
    check_disruption_mode,
    check_fields,
)
from moorage.api.manifests import Manifest
from moorage.apimachinery.fields import FieldError, invalid

_IMMUTABLE: Final = (CONSTRAINTS, Immutable("disruptionMode", check_disruption_mode), CLAIMS)
_OTHER_POLICY: Final = (
    "the basic/gang policy variant is immutable after creation; only schedulingPolicy.gang.minCount may be "
    "updated"
)


def check_job_scheduling(spec: Manifest, path: str) -> list[FieldError]:
    """Validation errors of the scheduling of a job with this spec."""
    scheduling = spec.get("scheduling")
    if scheduling is None:
        return []
    here, errors = f"{path}.schedulingPolicy", list[FieldError]()
    policy = scheduling.get("schedulingPolicy")
    count = ((policy or {}).get("gang") or {}).get("minCount")
    parallelism = spec.get("parallelism", 1)
    if count is not None and count > parallelism:
        why = f"must not be greater than parallelism ({parallelism})"
        errors.append(invalid(f"{here}.gang.minCount", count, why))
    if policy is not None:
        errors += check_union(policy, POLICIES, here)
    if count is not None and count < 1:
        errors.append(invalid(f"{here}.gang.minCount", count, "must be greater than or equal to 1"))
    return errors + check_fields(_IMMUTABLE, scheduling, None, path)


def check_job_scheduling_change(new: Manifest | None, old: Manifest | None, path: str) -> list[FieldError]:
    """Only the minimum of a gang can change."""
    if new is None or old is None:
        return _check_presence(new, old, path)
    policy, before = new.get("schedulingPolicy"), old.get("schedulingPolicy")
    here = f"{path}.schedulingPolicy"
    errors = _check_presence(policy, before, here)
    if policy is not None and before is not None and ("basic" in policy) != ("basic" in before):
        errors.append(invalid(here, None, _OTHER_POLICY))
    return errors + check_fields(_IMMUTABLE, new, old, path)


def _check_presence(new: Any, old: Any, path: str) -> list[FieldError]:
    if (new is None) == (old is None):
        return []
    why = "field cannot be set once created" if old is None else "field cannot be cleared once set"
    return [invalid(path, None, why)]
