"""Rules of pod groups and of templates for them, in all versions of the API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moorage.api.manifests import Manifest
from moorage.apimachinery.fields import IMMUTABLE, FieldError, duplicate, invalid, required, too_many
from moorage.apimachinery.validation.checks import repetitions
from moorage.apimachinery.validation.names import (
    check_long_name,
    check_path_segment,
    check_qualified_name,
    check_short_name,
)

MAX_TEMPLATES: Final = 8
_MAX_CLAIMS: Final = 4
POLICIES: Final = ("basic", "gang")


def changed(path: str) -> FieldError:
    """An immutable field has changed."""
    return invalid(path, None, IMMUTABLE)


def check_name(name: str, path: str) -> list[FieldError]:
    """A required name of at most 63 characters."""
    return check_short_name(name, path) if name else [required(path)]


def check_required_long_name(name: str, path: str) -> list[FieldError]:
    """A required name of at most 253 characters."""
    return check_long_name(name, path) if name else [required(path)]


def check_union(value: Manifest, members: Sequence[str], path: str) -> list[FieldError]:
    """Exactly one member is set; an empty list is not."""
    given = [member for member in members if value.get(member) not in (None, [])]
    if len(given) == 1:
        return []
    choices = ", ".join(f"`{member}`" for member in members)
    if given:
        return [invalid(path, f"{{{', '.join(given)}}}", f"must specify exactly one of: {choices}")]
    return [invalid(path, "", f"must specify one of: {choices}")]


def check_unique(items: Sequence[Manifest], path: str) -> list[FieldError]:
    """No two items have the same name."""
    repeated = repetitions(item.get("name", "") for item in items)
    return [duplicate(f"{path}[{index}]", items[index]) for index in repeated]


def check_controller(controller: Manifest, path: str) -> list[FieldError]:
    """The reference to the controller of a Workload."""
    errors: list[FieldError] = []
    if controller.get("apiGroup"):
        errors += check_long_name(controller["apiGroup"], f"{path}.apiGroup")
    for key in ("kind", "name"):
        value = controller.get(key, "")
        errors += check_path_segment(value, f"{path}.{key}") if value else [required(f"{path}.{key}")]
    return errors


def check_constraints(constraints: Manifest, path: str) -> list[FieldError]:
    """At most one topology key."""
    topology, here = constraints.get("topology") or [], f"{path}.topology"
    if len(topology) > 1:
        return [too_many(here, len(topology), 1)]
    errors: list[FieldError] = []
    for index, constraint in enumerate(topology):
        key, where = constraint.get("key", ""), f"{here}[{index}].key"
        errors += check_qualified_name(key, where) if key else [required(where)]
    return errors


def check_count(gang: Manifest, key: str, path: str) -> list[FieldError]:
    """A minimum of pods or groups of a gang."""
    count = gang.get(key, 0)
    if count == 0:
        return [required(f"{path}.{key}")]
    return [] if count > 0 else [invalid(f"{path}.{key}", count, "must be greater than or equal to 1")]


def check_claims(claims: Sequence[Manifest], path: str) -> list[FieldError]:
    """The resource claims of a group."""
    if len(claims) > _MAX_CLAIMS:
        return [too_many(path, len(claims), _MAX_CLAIMS)]
    errors = check_unique(claims, path)
    for index, claim in enumerate(claims):
        here = f"{path}[{index}]"
        errors += check_union(claim, ("resourceClaimName", "resourceClaimTemplateName"), here)
        errors += check_name(claim.get("name", ""), f"{here}.name")
        for key in ("resourceClaimName", "resourceClaimTemplateName"):
            if key in claim:
                errors += check_long_name(claim[key], f"{here}.{key}")
    return errors


def check_claim_statuses(obj: Manifest) -> list[FieldError]:
    """Claims in the status are those of the spec."""
    errors: list[FieldError] = []
    claims = {claim.get("name") for claim in obj["spec"].get("resourceClaims") or ()}
    for index, claim in enumerate((obj.get("status") or {}).get("resourceClaimStatuses") or ()):
        path = f"status.resourceClaimStatuses[{index}]"
        if claim.get("name") not in claims:
            why = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(invalid(f"{path}.name", claim.get("name", ""), why))
        if "resourceClaimName" in claim:
            errors += check_long_name(claim["resourceClaimName"], f"{path}.resourceClaimName")
    return errors
