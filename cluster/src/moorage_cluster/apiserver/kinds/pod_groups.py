"""PodGroups and Workloads: pods that are scheduled together.

All fields are served, as in a cluster with the feature gates of workload scheduling enabled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from moorage.admission.system_objects import HIGHEST_USER_PRIORITY
from moorage.api.manifests import Manifest, child
from moorage.apimachinery.fields import IMMUTABLE, FieldError, duplicate, invalid, required, too_many
from moorage.apimachinery.validation.checks import check_conditions, check_optional_word, repetitions
from moorage.apimachinery.validation.names import (
    check_long_name,
    check_path_segment,
    check_qualified_name,
    check_short_name,
)
from moorage_cluster.apiserver.kinds.base import StatusStrategy, keep_metadata
from moorage_cluster.apiserver.strategy import Strategy

_MODES: Final = ("Pod", "PodGroup")
_MAX_TEMPLATES: Final = 8
_MAX_CLAIMS: Final = 4
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
        return [_changed(f"spec.{key}") for key in _UNCHANGING if not _same(spec.get(key), before.get(key))]

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Conditions are valid, and claims are those of the spec."""
        status = obj.get("status") or {}
        errors = check_conditions(status.get("conditions") or (), "status.conditions")
        claims = {claim.get("name") for claim in obj["spec"].get("resourceClaims") or ()}
        for index, claim in enumerate(status.get("resourceClaimStatuses") or ()):
            path = f"status.resourceClaimStatuses[{index}]"
            if claim.get("name") not in claims:
                why = "must match the name of an entry in `spec.resourceClaims`"
                errors.append(invalid(f"{path}.name", claim.get("name", ""), why))
            if "resourceClaimName" in claim:
                errors += check_long_name(claim["resourceClaimName"], f"{path}.resourceClaimName")
        return errors


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
            errors += _check_controller(controller, "spec.controllerRef")
        templates, path = spec.get("podGroupTemplates") or [], "spec.podGroupTemplates"
        if not templates:
            return [*errors, required(path)]
        if len(templates) > _MAX_TEMPLATES:
            return [*errors, too_many(path, len(templates), _MAX_TEMPLATES)]
        errors += _check_unique(templates, path)
        for index, template in enumerate(templates):
            here = f"{path}[{index}]"
            errors += _check_name(template.get("name", ""), f"{here}.name")
            errors += _check_group(template, here)
        return errors

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The controller reference and the templates are immutable."""
        spec, before = obj["spec"], old.get("spec") or {}
        keys = ("controllerRef", "podGroupTemplates")
        return [_changed(f"spec.{key}") for key in keys if not _same(spec.get(key), before.get(key))]


def _changed(path: str) -> FieldError:
    return invalid(path, None, IMMUTABLE)


def _same(new: Any, old: Any) -> bool:
    return new == old or (not new and not old)


def _check_name(name: str, path: str) -> list[FieldError]:
    return check_short_name(name, path) if name else [required(path)]


def _check_union(value: Manifest, members: Sequence[str], path: str) -> list[FieldError]:
    given = [member for member in members if member in value]
    if len(given) == 1:
        return []
    choices = ", ".join(f"`{member}`" for member in members)
    if given:
        shown = ", ".join(f"`{member}`" for member in given)
        return [invalid(path, f"{{{shown}}}", f"must specify exactly one of: {choices}")]
    return [invalid(path, "", f"must specify one of: {choices}")]


def _check_unique(items: Sequence[Manifest], path: str) -> list[FieldError]:
    repeated = repetitions(item.get("name", "") for item in items)
    return [duplicate(f"{path}[{index}]", items[index]) for index in repeated]


def _check_controller(controller: Manifest, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if controller.get("apiGroup"):
        errors += check_long_name(controller["apiGroup"], f"{path}.apiGroup")
    for key in ("kind", "name"):
        value = controller.get(key, "")
        errors += check_path_segment(value, f"{path}.{key}") if value else [required(f"{path}.{key}")]
    return errors


def _check_template_reference(reference: Manifest, path: str) -> list[FieldError]:
    errors = _check_union(reference, ("workload",), path)
    workload = reference.get("workload")
    if workload is None:
        return errors
    here = f"{path}.workload"
    name = workload.get("workloadName", "")
    errors += check_long_name(name, f"{here}.workloadName") if name else [required(f"{here}.workloadName")]
    return errors + _check_name(workload.get("podGroupTemplateName", ""), f"{here}.podGroupTemplateName")


def _check_group(spec: Manifest, path: str) -> list[FieldError]:
    """Validation errors of the common fields of a group and of a template for one."""
    errors = _check_policy(spec.get("schedulingPolicy") or {}, f"{path}.schedulingPolicy")
    topology = (spec.get("schedulingConstraints") or {}).get("topology") or []
    here = f"{path}.schedulingConstraints.topology"
    if len(topology) > 1:
        errors.append(too_many(here, len(topology), 1))
    for index, constraint in enumerate(topology[:1]):
        key, where = constraint.get("key", ""), f"{here}[{index}].key"
        errors += check_qualified_name(key, where) if key else [required(where)]
    errors += _check_claims(spec.get("resourceClaims") or [], f"{path}.resourceClaims")
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
    errors = _check_union(policy, ("basic", "gang"), path)
    if "gang" in policy:
        count = policy["gang"].get("minCount", 0)
        if count == 0:
            errors.append(required(f"{path}.gang.minCount"))
        elif count < 1:
            errors.append(invalid(f"{path}.gang.minCount", count, "must be greater than or equal to 1"))
    return errors


def _check_claims(claims: Sequence[Manifest], path: str) -> list[FieldError]:
    if len(claims) > _MAX_CLAIMS:
        return [too_many(path, len(claims), _MAX_CLAIMS)]
    errors = _check_unique(claims, path)
    for index, claim in enumerate(claims):
        here = f"{path}[{index}]"
        errors += _check_name(claim.get("name", ""), f"{here}.name")
        errors += _check_union(claim, ("resourceClaimName", "resourceClaimTemplateName"), here)
        for key in ("resourceClaimName", "resourceClaimTemplateName"):
            if key in claim:
                errors += check_long_name(claim[key], f"{here}.{key}")
    return errors
