"""Validation of requests and limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set

from moorage.admission.pods.totals import containers_total
from moorage.api.manifests import Manifest
from moorage.api.names import HUGE_PAGES, is_pod_level_resource
from moorage.api.quantity import NANO, parse_quantity
from moorage.api.text_cache import cached_by_text
from moorage.apimachinery.fields import (
    FieldError,
    Problem,
    complaints,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.apimachinery.validation.names import check_label
from moorage.apimachinery.validation.resource_names import (
    check_amount,
    container_resource_problems,
    may_be_overcommitted,
    resource_name_problems,
)


def validate_requirements(
    resources: Manifest, claims: Set[str], path: str, *, of_pod: bool = False
) -> list[FieldError]:
    """Validation errors of the resources of a container, or of a pod as a whole."""
    errors: list[FieldError] = []
    limits: dict[str, str] = resources.get("limits") or {}
    requests: dict[str, str] = resources.get("requests") or {}
    huge = False
    for name, amount in limits.items():
        huge = huge or name.startswith(HUGE_PAGES)
        if not _fine(name, amount, of_pod):
            errors += _amount_errors(name, amount, f"{path}.limits[{name}]", of_pod)
    for name, amount in requests.items():
        huge = huge or name.startswith(HUGE_PAGES)
        if not _fine(name, amount, of_pod):
            errors += _amount_errors(name, amount, f"{path}.requests[{name}]", of_pod)
        limit = limits.get(name)
        if limit is not None:
            if amount != limit:
                errors += _above_limit(name, amount, limit, f"{path}.requests")
        elif not may_be_overcommitted(name):
            errors.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
    if huge and not any(name in ("cpu", "memory") for name in (*limits, *requests)):
        errors.append(forbidden(path, "HugePages require cpu or memory"))
    if wanted := resources.get("claims"):
        errors += _claim_errors(wanted, claims, f"{path}.claims")
    return errors


def _above_limit(name: str, amount: str, limit: str, path: str) -> list[FieldError]:
    wanted, most = parse_quantity(amount), parse_quantity(limit)
    if wanted != most and not may_be_overcommitted(name):
        return [invalid(path, amount, f"must be equal to {name} limit of {limit}")]
    if wanted > most:
        return [invalid(path, amount, f"must be less than or equal to {name} limit of {limit}")]
    return []


@cached_by_text(count=8192)
def _fine(name: str, amount: str, of_pod: bool) -> bool:
    return not _amount_errors(name, amount, "", of_pod)


def _amount_errors(name: str, amount: str, path: str, of_pod: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    if not of_pod:
        errors += complaints(path, name, container_resource_problems(name))
    elif problems := resource_name_problems(name):
        errors += complaints(path, name, problems)
    elif not is_pod_level_resource(name):
        errors.append(not_supported(path, name, ("cpu", HUGE_PAGES, "memory")))
    try:
        quantity = parse_quantity(amount)
    except ValueError:
        errors.append(invalid(path, amount, "must be a valid resource quantity"))
        return errors
    errors += check_amount(name, amount, path)
    if name.startswith(HUGE_PAGES) and not _is_multiple(quantity, name.removeprefix(HUGE_PAGES)):
        errors.append(invalid(path, amount, f"{amount} is not positive integer multiple of {name}"))
    return errors


def _is_multiple(quantity: int, page: str) -> bool:
    try:
        size = parse_quantity(page)
    except ValueError:
        return False
    return size > 0 and size % NANO == 0 and quantity % size == 0


def _claim_errors(wanted: list[Manifest], claims: Set[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    times: Counter[str] = Counter()
    known = f": {', '.join(sorted(claims))}" if claims else " which is empty"
    for index, claim in enumerate(wanted):
        name, request = claim.get("name", ""), claim.get("request", "")
        where = f"{path}[{index}]"
        if not name:
            errors.append(required(where))
            continue
        if (name, "") in seen:
            errors.append(duplicate(where, name))
        else:
            if request:
                errors += check_label(request, f"{where}.request")
            if (name, request) in seen:
                errors.append(duplicate(where, f"{name}/{request}"))
            elif not request:
                errors += [duplicate(where, name)] * times[name]
            if (name, request) not in seen:
                times[name] += 1
            seen.add((name, request))
        if name not in claims:
            detail = f"must be one of the names in pod.spec.resourceClaims{known}"
            errors.append(FieldError(Problem.NOT_FOUND, where, name, detail))
    return errors


def validate_pod_resources(spec: Manifest, claims: Set[str], path: str) -> list[FieldError]:
    """Validation errors of pod-level resources, also in relation to those of the containers."""
    resources = spec["resources"]
    if (spec.get("os") or {}).get("name") == "windows":
        return [forbidden(path, "may not be set for a windows pod")]
    errors: list[FieldError] = []
    if "claims" in resources:
        errors.append(forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    errors += validate_requirements(resources, claims, path, of_pod=True)
    if errors:
        return errors
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name, total in containers_total(spec, "requests").items():
        if name in requests and total.billionths > parse_quantity(requests[name]):
            detail = f"must be greater than or equal to aggregate container requests of {total}"
            errors.append(invalid(f"{path}.requests[{name}]", requests[name], detail))
    for name, total in containers_total(spec, "limits").items():
        most = limits.get(name) if name.startswith(HUGE_PAGES) else None
        if most is not None and total.billionths > parse_quantity(most):
            detail = f"must be greater than or equal to aggregate container limits of {total}"
            errors.append(invalid(f"{path}.limits[{name}]", most, detail))
    for index, container in enumerate(spec.get("containers") or ()):
        for name, amount in (container.get("resources", {}).get("limits") or {}).items():
            if name in limits and parse_quantity(amount) > parse_quantity(limits[name]):
                where = f"{path}.containers[{index}][{name}].limits"
                errors.append(
                    invalid(where, amount, f"must be less than or equal to pod limits of {limits[name]}")
                )
    return errors
