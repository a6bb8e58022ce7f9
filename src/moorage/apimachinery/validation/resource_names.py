"""Validation of resource names in limits, quotas and nodes, and of amounts."""

from __future__ import annotations

from typing import Final

from moorage.api.names import (
    HUGE_PAGES,
    cached_rule,
    is_extended_resource,
    is_native_resource,
    qualified_name_problems,
)
from moorage.api.quantity import NANO, parse_quantity
from moorage.apimachinery.fields import NOT_NEGATIVE, FieldError, invalid

_CONTAINER = frozenset(("cpu", "memory", "ephemeral-storage"))
_COUNTED = frozenset(
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
_QUOTA: Final = _COUNTED | {
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
}
_STANDARD: Final = _QUOTA | {"storage"}


def is_quota_resource(name: str) -> bool:
    """Whether a name without a domain can be limited by a quota."""
    return name in _QUOTA or name.startswith((HUGE_PAGES, f"requests.{HUGE_PAGES}"))


def may_be_overcommitted(name: str) -> bool:
    """Whether limits may be greater than requests."""
    return is_native_resource(name) and not name.startswith(HUGE_PAGES)


@cached_rule
def resource_name_problems(name: str) -> tuple[str, ...]:
    """Why a name is not a valid resource name."""
    if problems := qualified_name_problems(name):
        return problems
    standard = "/" in name or name in _STANDARD or name.startswith((HUGE_PAGES, f"requests.{HUGE_PAGES}"))
    return () if standard else ("must be a standard resource type or fully qualified",)


@cached_rule
def container_resource_problems(name: str) -> tuple[str, ...]:
    """Why a name is not valid for a resource of containers."""
    problems = resource_name_problems(name)
    if "/" not in name:
        if name not in _CONTAINER and not name.startswith(HUGE_PAGES):
            return (*problems, "must be a standard resource for containers")
    elif not is_native_resource(name) and not is_extended_resource(name):
        return (*problems, "doesn't follow extended resource name standard")
    return problems


@cached_rule
def quota_resource_problems(name: str) -> tuple[str, ...]:
    """Why a name is not valid for a resource of quotas."""
    problems = resource_name_problems(name)
    if "/" not in name and not is_quota_resource(name):
        return (*problems, "must be a standard resource for quota")
    return problems


def _is_whole(name: str) -> bool:
    return name in _COUNTED or is_extended_resource(name)


def check_amount(name: str, quantity: str, path: str) -> list[FieldError]:
    """An amount of a resource: not negative, and an integer where the resource is counted."""
    amount = parse_quantity(quantity)
    errors = []
    if amount < 0:
        errors.append(invalid(path, quantity, NOT_NEGATIVE))
    if amount % NANO and _is_whole(name):
        errors.append(invalid(path, quantity, "must be an integer"))
    return errors
