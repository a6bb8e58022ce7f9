"""What is wrong with requests and limits."""

from __future__ import annotations

from collections.abc import Set
from functools import lru_cache
from typing import Final

from moorage.api.manifests import Manifest
from moorage.api.names import is_extended_resource, is_native_resource
from moorage.api.quantity import NANO, parse_quantity
from moorage.apiserver.fields import (
    FieldError,
    Problem,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.apiserver.kinds.metadata import label_key_problems
from moorage.apiserver.kinds.pods.formats import complaints, dns_label_problems
from moorage.apiserver.kinds.pods.resources import HUGE_PAGES, aggregate, is_pod_level_resource

_NEGATIVE: Final = "must be greater than or equal to 0"
_OF_CONTAINERS: Final = frozenset(("cpu", "memory", "ephemeral-storage"))
_OF_CLUSTERS: Final = frozenset(
    (
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "storage",
        "requests.storage",
        "services.nodeports",
        "services.loadbalancers",
    )
)
_COUNTED_IN_WHOLES: Final = frozenset(
    (
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    )
)


@lru_cache(maxsize=1024)
def resource_name_problems(name: str) -> tuple[str, ...]:
    """What keeps text from being the name of a resource that containers may ask for."""
    problems = list(label_key_problems(name))
    if "/" not in name:
        huge = name.startswith(HUGE_PAGES)
        if not problems and name not in _OF_CLUSTERS and not huge:
            problems.append("must be a standard resource type or fully qualified")
        if name not in _OF_CONTAINERS and not huge:
            problems.append("must be a standard resource for containers")
    elif not is_native_resource(name) and not is_extended_resource(name):
        problems.append("doesn't follow extended resource name standard")
    return tuple(problems)


@lru_cache(maxsize=1024)
def may_overcommit(name: str) -> bool:
    """Whether limits may be above requests."""
    return is_native_resource(name) and not name.startswith(HUGE_PAGES)


@lru_cache(maxsize=1024)
def _in_wholes(name: str) -> bool:
    return name in _COUNTED_IN_WHOLES or is_extended_resource(name)


def validate_requirements(
    resources: Manifest, claims: Set[str], path: str, *, of_pod: bool = False
) -> list[FieldError]:
    """What is wrong with the resources of a container, or of a pod as a whole."""
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
        elif not may_overcommit(name):
            errors.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
    if huge and not any(name in ("cpu", "memory") for name in (*limits, *requests)):
        errors.append(forbidden(path, "HugePages require cpu or memory"))
    if wanted := resources.get("claims"):
        errors += _claim_errors(wanted, claims, f"{path}.claims")
    return errors


def _above_limit(name: str, amount: str, limit: str, path: str) -> list[FieldError]:
    wanted, most = parse_quantity(amount), parse_quantity(limit)
    if wanted != most and not may_overcommit(name):
        return [invalid(path, amount, f"must be equal to {name} limit of {limit}")]
    if wanted > most:
        return [invalid(path, amount, f"must be less than or equal to {name} limit of {limit}")]
    return []


@lru_cache(maxsize=8192)
def _fine(name: str, amount: str, of_pod: bool) -> bool:
    return not _amount_errors(name, amount, "", of_pod)


def _amount_errors(name: str, amount: str, path: str, of_pod: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    if not of_pod:
        errors += complaints(path, name, resource_name_problems(name))
    elif problems := label_key_problems(name):
        errors += complaints(path, name, problems)
    elif "/" not in name and name not in _OF_CLUSTERS and not name.startswith(HUGE_PAGES):
        errors.append(invalid(path, name, "must be a standard resource type or fully qualified"))
    elif not is_pod_level_resource(name):
        errors.append(not_supported(path, name, ("cpu", "memory", HUGE_PAGES)))
    try:
        quantity = parse_quantity(amount)
    except ValueError:
        errors.append(invalid(path, amount, "must be a valid resource quantity"))
        return errors
    if quantity < 0:
        errors.append(invalid(path, amount, _NEGATIVE))
    if quantity % NANO and _in_wholes(name):
        errors.append(invalid(path, amount, "must be an integer"))
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
                errors += complaints(f"{where}.request", request, dns_label_problems(request))
            if (name, request) in seen:
                errors.append(duplicate(where, f"{name}/{request}"))
            elif not request:
                errors += [duplicate(where, name) for other, _ in seen if other == name]
            seen.add((name, request))
        if name not in claims:
            known = f": {', '.join(sorted(claims))}" if claims else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{known}"
            errors.append(FieldError(Problem.NOT_FOUND, where, name, detail))
    return errors


def validate_pod_resources(spec: Manifest, claims: Set[str], path: str) -> list[FieldError]:
    """What is wrong with a pod's own resources, also against those of its containers."""
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
    for name, amount in aggregate(spec, "requests").items():
        if name in requests and parse_quantity(amount) > parse_quantity(requests[name]):
            detail = f"must be greater than or equal to aggregate container requests of {amount}"
            errors.append(invalid(f"{path}.requests[{name}]", requests[name], detail))
    for name, amount in aggregate(spec, "limits").items():
        most = limits.get(name) if name.startswith(HUGE_PAGES) else None
        if most is not None and parse_quantity(amount) > parse_quantity(most):
            detail = f"must be greater than or equal to aggregate container limits of {amount}"
            errors.append(invalid(f"{path}.limits[{name}]", most, detail))
    for index, container in enumerate(spec.get("containers") or ()):
        for name, amount in (container.get("resources", {}).get("limits") or {}).items():
            if name in limits and parse_quantity(amount) > parse_quantity(limits[name]):
                where = f"{path}.containers[{index}][{name}].limits"
                errors.append(
                    invalid(where, amount, f"must be less than or equal to pod limits of {limits[name]}")
                )
    return errors
