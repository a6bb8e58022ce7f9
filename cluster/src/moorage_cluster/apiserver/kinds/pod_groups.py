"""PodGroups and Workloads of v1.36 (v1alpha2): pods that are scheduled together.

All fields are served, as in a cluster with the feature gates of workload scheduling enabled. The kinds of
v1.37 are in `scheduling_groups` and `scheduling_workloads`.
"""

from __future__ import annotations

from typing import Any, Final

from moorage.admission.groups.rules import (
    MAX_TEMPLATES,
    POLICIES,
    changed,
    check_claim_statuses,
    check_claims,
    check_constraints,
    check_controller,
    check_count,
    check_name,
    check_required_long_name,
    check_union,
    check_unique,
)
from moorage.admission.system_objects import HIGHEST_USER_PRIORITY
from moorage.api.manifests import Manifest, child
from moorage.apimachinery.fields import FieldError, invalid, required, too_many
from moorage.apimachinery.validation.checks import check_conditions, check_optional_word
from moorage.apimachinery.validation.names import check_long_name
from moorage_cluster.apiserver.kinds.base import StatusStrategy, keep_metadata
from moorage_cluster.apiserver.strategy import Strategy

_MODES: Final = ("Pod", "PodGroup")
_MIN_PRIORITY: Final = -(2**31)
_UNCHANGING: Final = (
    "podGroupTemplateRef",
    "schedulingPolicy",
    "schedulingConstraints",
    "resourceClaims",
    "disruptionMode",
    "priorityClassName",
    "priority",
)


class PodGroupStrategy(StatusStrategy):
    """A PodGroup."""

    def default(self, obj: Manifest) -> None:
        """The disruption mode is Pod."""
        super().default(obj)
        spec = obj["spec"]
        spec.setdefault("disruptionMode", "Pod")
        spec.setdefault("schedulingPolicy", {})

    def prepare_status(self, obj: Manifest, old: Manifest) -> None:
        """Status updates do not change the metadata."""
        super().prepare_status(obj, old)
        keep_metadata(obj, old)

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the template reference and the scheduling fields."""
        spec = obj["spec"]
        errors = []
        if (reference := spec.get("podGroupTemplateRef")) is not None:
            errors += _check_template_reference(reference, "spec.podGroupTemplateRef")
        return errors + _check_group(spec, "spec")

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The fields of the spec are immutable."""
        spec, before = obj["spec"], old.get("spec") or {}
        return [changed(f"spec.{key}") for key in _UNCHANGING if not _same(spec.get(key), before.get(key))]

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Conditions are valid, and claims are those of the spec."""
        conditions = (obj.get("status") or {}).get("conditions") or ()
        return check_conditions(conditions, "status.conditions") + check_claim_statuses(obj)


class WorkloadStrategy(Strategy):
    """A Workload: templates of pod groups."""

    def default(self, obj: Manifest) -> None:
        """Add an empty scheduling policy where it is missing."""
        for template in child(obj, "spec").get("podGroupTemplates") or ():
            template.setdefault("schedulingPolicy", {})

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the controller reference and each template."""
        spec = obj["spec"]
        errors: list[FieldError] = []
        if (controller := spec.get("controllerRef")) is not None:
            errors += check_controller(controller, "spec.controllerRef")
        templates, path = spec.get("podGroupTemplates") or [], "spec.podGroupTemplates"
        if not templates:
            return [*errors, required(path)]
        if len(templates) > MAX_TEMPLATES:
            return [*errors, too_many(path, len(templates), MAX_TEMPLATES)]
        errors += check_unique(templates, path)
        for index, template in enumerate(templates):
            here = f"{path}[{index}]"
            errors += check_name(template.get("name", ""), f"{here}.name")
            errors += _check_group(template, here)
        return errors

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The controller reference and the templates are immutable."""
        spec, before = obj["spec"], old.get("spec") or {}
        keys = ("controllerRef", "podGroupTemplates")
        return [changed(f"spec.{key}") for key in keys if not _same(spec.get(key), before.get(key))]


def _same(new: Any, old: Any) -> bool:
    return new == old or (not new and not old)


def _check_template_reference(reference: Manifest, path: str) -> list[FieldError]:
    errors = check_union(reference, ("workload",), path)
    workload = reference.get("workload")
    if workload is None:
        return errors
    here = f"{path}.workload"
    errors += check_required_long_name(workload.get("workloadName", ""), f"{here}.workloadName")
    return errors + check_name(workload.get("podGroupTemplateName", ""), f"{here}.podGroupTemplateName")


def _check_group(spec: Manifest, path: str) -> list[FieldError]:
    """Validation errors of the common fields of a group and of a template for one."""
    errors = _check_policy(spec.get("schedulingPolicy") or {}, f"{path}.schedulingPolicy")
    errors += check_constraints(spec.get("schedulingConstraints") or {}, f"{path}.schedulingConstraints")
    errors += check_claims(spec.get("resourceClaims") or [], f"{path}.resourceClaims")
    if "disruptionMode" in spec:
        errors += check_optional_word(spec["disruptionMode"], _MODES, f"{path}.disruptionMode")
    if spec.get("priorityClassName"):
        errors += check_long_name(spec["priorityClassName"], f"{path}.priorityClassName")
    priority = spec.get("priority", 0)
    if priority > HIGHEST_USER_PRIORITY:
        why = f"must be less than or equal to {HIGHEST_USER_PRIORITY}"
        errors.append(invalid(f"{path}.priority", priority, why))
    elif priority < _MIN_PRIORITY:
        why = f"must be greater than or equal to {_MIN_PRIORITY}"
        errors.append(invalid(f"{path}.priority", priority, why))
    return errors


def _check_policy(policy: Manifest, path: str) -> list[FieldError]:
    errors = check_union(policy, POLICIES, path)
    if "gang" in policy:
        errors += check_count(policy["gang"], "minCount", f"{path}.gang")
    return errors
