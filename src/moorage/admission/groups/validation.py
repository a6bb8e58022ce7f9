"""The fields of PodGroups and CompositePodGroups of v1.37 (v1beta1, v1alpha3): defaults and validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from moorage.admission.groups.rules import (
    POLICIES,
    changed,
    check_claims,
    check_constraints,
    check_count,
    check_name,
    check_required_long_name,
    check_union,
)
from moorage.admission.system_objects import HIGHEST_USER_PRIORITY
from moorage.api.manifests import Manifest, child
from moorage.apimachinery.fields import FieldError, invalid, not_supported, required
from moorage.apimachinery.validation.names import check_long_name

_PREEMPTION_POLICIES: Final = ("Never", "PreemptLowerPriority")

Check = Callable[[Any, str], list[FieldError]]


class Immutable(NamedTuple):
    """A field that is checked when an object is created and cannot change."""

    name: str
    check: Check
    is_required: bool = False

    def errors(self, new: Manifest, old: Manifest | None, path: str) -> list[FieldError]:
        """Validation errors; `old` is None for a new object."""
        value, here = new.get(self.name), f"{path}.{self.name}"
        is_missing = value is None or value == []
        if old is None:
            if is_missing:
                return [required(here)] if self.is_required else []
            return self.check(value, here)
        if value == old.get(self.name) or (is_missing and not old.get(self.name)):
            return []
        return [changed(here), *([required(here)] if self.is_required and is_missing else ())]


def check_reference(reference: Manifest, path: str) -> list[FieldError]:
    """The reference to a template of a Workload."""
    errors = check_required_long_name(reference.get("workloadName", ""), f"{path}.workloadName")
    return errors + check_name(reference.get("templateName", ""), f"{path}.templateName")


def check_disruption_mode(mode: Manifest, path: str) -> list[FieldError]:
    """Single pods or all together."""
    return check_union(mode, ("single", "all"), path)


def check_priority(priority: int, path: str) -> list[FieldError]:
    """A priority that users may have."""
    if priority <= HIGHEST_USER_PRIORITY:
        return []
    return [invalid(path, priority, f"must be less than or equal to {HIGHEST_USER_PRIORITY}")]


def check_preemption_policy(policy: str, path: str) -> list[FieldError]:
    """A known preemption policy."""
    return [] if policy in _PREEMPTION_POLICIES else [not_supported(path, policy, _PREEMPTION_POLICIES)]


def check_policy(policy: Manifest, old: Manifest | None, minimum: str, path: str) -> list[FieldError]:
    """A scheduling policy: its kind is fixed, the minimum of a gang is not."""
    kinds = [kind for kind in POLICIES if kind in policy]
    errors: list[FieldError] = []
    if old is None or kinds != [kind for kind in POLICIES if kind in old]:
        errors += check_union(policy, POLICIES, path)
    gang, here = policy.get("gang"), f"{path}.gang"
    if old is not None:
        before = old.get("gang")
        if ("basic" in policy) != ("basic" in old):
            errors.append(changed(f"{path}.basic"))
        if before is None and gang is not None:
            return [*errors, invalid(here, None, "field cannot be set once created")]
        if before is not None and gang is None:
            return [*errors, invalid(here, None, "field cannot be cleared once set")]
        if gang == before:
            return errors
    return errors if gang is None else errors + check_count(gang, minimum, here)


CONSTRAINTS: Final = Immutable("schedulingConstraints", check_constraints)
CLAIMS: Final = Immutable("resourceClaims", check_claims)
PRIORITIES: Final = (
    Immutable("priorityClassName", check_long_name),
    Immutable("priority", check_priority),
    Immutable("preemptionPolicy", check_preemption_policy),
)
"""Fields of groups, composite groups and templates for both."""
_PARENT: Final = Immutable("parentCompositePodGroupName", check_long_name)
_MODE: Final = Immutable("disruptionMode", check_disruption_mode, is_required=True)


def check_fields(
    fields: Sequence[Immutable], new: Manifest, old: Manifest | None, path: str
) -> list[FieldError]:
    """Validation errors of some fields."""
    return [error for field in fields for error in field.errors(new, old, path)]


_COMPOSITE_FIELDS: Final = (
    _PARENT,
    Immutable("workloadRef", check_reference, is_required=True),
    Immutable("schedulingPolicy", lambda policy, path: check_policy(policy, None, "minGroupCount", path)),
    CONSTRAINTS,
    _MODE,
    *PRIORITIES,
)


def default_group(spec: Manifest, *, has_policy: bool) -> None:
    """Single pods are disrupted, and groups preempt; has_policy: whether they have a preemption policy."""
    child(spec, "schedulingPolicy")
    spec.setdefault("disruptionMode", {"single": {}})
    if has_policy:
        spec.setdefault("preemptionPolicy", "PreemptLowerPriority")


def check_pod_group(spec: Manifest, old: Manifest | None) -> list[FieldError]:
    """Validation errors of a PodGroup's spec; `old` is None for a new one."""
    errors: list[FieldError] = []
    if old is None and "parentCompositePodGroupName" in spec and "workloadRef" not in spec:
        errors.append(required("spec.workloadRef", "must be set when parentCompositePodGroupName is set"))
    before = None if old is None else old.get("schedulingPolicy") or {}
    errors += check_fields((_PARENT, Immutable("workloadRef", check_reference)), spec, old, "spec")
    errors += check_policy(spec["schedulingPolicy"], before, "minCount", "spec.schedulingPolicy")
    return errors + check_fields((CONSTRAINTS, CLAIMS, _MODE, *PRIORITIES), spec, old, "spec")


def check_composite_pod_group(spec: Manifest, old: Manifest | None) -> list[FieldError]:
    """Validation errors of a CompositePodGroup's spec; `old` is None for a new one."""
    return check_fields(_COMPOSITE_FIELDS, spec, old, "spec")
