"""PodGroups and CompositePodGroups of v1.37 (v1beta1, v1alpha3): pods that are scheduled together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from moorage.admission.system_objects import HIGHEST_USER_PRIORITY
from moorage.api.manifests import Manifest, child
from moorage.apimachinery.fields import FieldError, invalid, not_supported, required, too_many
from moorage.apimachinery.validation.checks import check_conditions
from moorage.apimachinery.validation.names import check_long_name
from moorage_cluster.apiserver.kinds.base import StatusStrategy, keep_metadata
from moorage_cluster.apiserver.kinds.group_rules import (
    POLICIES,
    changed,
    check_claim_statuses,
    check_claims,
    check_constraints,
    check_count,
    check_name,
    check_required_long_name,
    check_union,
)
from moorage_cluster.apiserver.server_version import (
    COMPOSITE_POD_GROUP,
    DEFAULT_SERVED,
    DRA_WORKLOAD_RESOURCE_CLAIMS,
    POD_GROUP_PREEMPTION_POLICY,
    TOPOLOGY_AWARE_WORKLOAD_SCHEDULING,
    ServerVersion,
)

MAX_CLAIM_STATUSES: Final = 4
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


def drop_disabled(
    new: Manifest, old: Manifest | None, gates: Sequence[tuple[str, str]], version: ServerVersion
) -> None:
    """Drop fields (by name and gate) whose feature gate is off, unless the object had them before."""
    for name, gate in gates:
        if not version.enabled(gate) and not (old and old.get(name)):
            new.pop(name, None)


POLICY_GATES: Final = (("preemptionPolicy", POD_GROUP_PREEMPTION_POLICY),)
TEMPLATE_GATES: Final = (
    ("schedulingConstraints", TOPOLOGY_AWARE_WORKLOAD_SCHEDULING),
    ("resourceClaims", DRA_WORKLOAD_RESOURCE_CLAIMS),
    *POLICY_GATES,
)
_GROUP_GATES: Final = (*TEMPLATE_GATES, ("parentCompositePodGroupName", COMPOSITE_POD_GROUP))


class _GroupStrategy(StatusStrategy):
    """What groups and composite groups have in common."""

    allows_unconditional_update = False
    gates: Sequence[tuple[str, str]] = ()

    def __init__(self, version: ServerVersion = DEFAULT_SERVED) -> None:
        self._version = version

    def default(self, obj: Manifest) -> None:
        """Single pods are disrupted, and groups preempt."""
        super().default(obj)
        spec = obj["spec"]
        child(spec, "schedulingPolicy")
        spec.setdefault("disruptionMode", {"single": {}})
        if self._version.enabled(POD_GROUP_PREEMPTION_POLICY):
            spec.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def prepare_create(self, obj: Manifest) -> None:
        """Drop fields of disabled features."""
        super().prepare_create(obj)
        drop_disabled(obj["spec"], None, self.gates, self._version)

    def prepare_update(self, obj: Manifest, old: Manifest) -> None:
        """Drop fields of disabled features."""
        super().prepare_update(obj, old)
        drop_disabled(obj["spec"], old.get("spec"), self.gates, self._version)

    def prepare_status(self, obj: Manifest, old: Manifest) -> None:
        """Status updates do not change the metadata."""
        super().prepare_status(obj, old)
        keep_metadata(obj, old)

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the spec."""
        return self._check(obj["spec"], None)

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Only the minimum of a gang can change."""
        return self._check(obj["spec"], old.get("spec") or {})

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Conditions are valid."""
        return check_conditions((obj.get("status") or {}).get("conditions") or (), "status.conditions")

    def _check(self, spec: Manifest, old: Manifest | None) -> list[FieldError]:
        raise NotImplementedError


class PodGroupStrategy(_GroupStrategy):
    """A PodGroup."""

    gates = _GROUP_GATES

    def prepare_status(self, obj: Manifest, old: Manifest) -> None:
        """Claims of the group are dropped without the feature."""
        super().prepare_status(obj, old)
        if not self._version.enabled(DRA_WORKLOAD_RESOURCE_CLAIMS) and not obj["spec"].get("resourceClaims"):
            child(obj, "status").pop("resourceClaimStatuses", None)

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Conditions are valid, and claims are those of the spec."""
        claims = (obj.get("status") or {}).get("resourceClaimStatuses") or ()
        errors = super().validate_status(obj, old)
        if len(claims) > MAX_CLAIM_STATUSES:
            errors.append(too_many("status.resourceClaimStatuses", len(claims), MAX_CLAIM_STATUSES))
        return errors + check_claim_statuses(obj)

    def _check(self, spec: Manifest, old: Manifest | None) -> list[FieldError]:
        errors: list[FieldError] = []
        if old is None and "parentCompositePodGroupName" in spec and "workloadRef" not in spec:
            errors.append(required("spec.workloadRef", "must be set when parentCompositePodGroupName is set"))
        before = None if old is None else old.get("schedulingPolicy") or {}
        errors += check_fields((_PARENT, Immutable("workloadRef", check_reference)), spec, old, "spec")
        errors += check_policy(spec["schedulingPolicy"], before, "minCount", "spec.schedulingPolicy")
        return errors + check_fields((CONSTRAINTS, CLAIMS, _MODE, *PRIORITIES), spec, old, "spec")


class CompositePodGroupStrategy(_GroupStrategy):
    """A CompositePodGroup: a group of groups."""

    gates = POLICY_GATES
    _FIELDS: Final = (
        _PARENT,
        Immutable("workloadRef", check_reference, is_required=True),
        Immutable("schedulingPolicy", lambda policy, path: check_policy(policy, None, "minGroupCount", path)),
        CONSTRAINTS,
        _MODE,
        *PRIORITIES,
    )

    def _check(self, spec: Manifest, old: Manifest | None) -> list[FieldError]:
        return check_fields(self._FIELDS, spec, old, "spec")
