"""LimitRanges and ResourceQuotas: limits for namespaces and the pods in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from moorage.admission.policy_defaults import default_limit_range
from moorage.api.manifests import Manifest
from moorage.api.names import qualified_name_problems
from moorage.api.quantity import NANO, parse_quantity
from moorage.apimachinery.fields import (
    IMMUTABLE,
    FieldError,
    complaints,
    duplicate,
    forbidden,
    invalid,
    required,
)
from moorage.apimachinery.validation.resource_names import (
    check_amount,
    container_resource_problems,
    is_quota_resource,
    may_be_overcommitted,
    quota_resource_problems,
    resource_name_problems,
)
from moorage_cluster.apiserver.kinds.base import StatusStrategy
from moorage_cluster.apiserver.strategy import Strategy

_LIMIT_TYPES: Final = ("Pod", "Container", "PersistentVolumeClaim")
_POD_COMPUTE = frozenset(
    ("cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory", "pods")
)
_CLAIMS = frozenset(("persistentvolumeclaims", "requests.storage"))
_SCOPES: Final[Mapping[str, frozenset[str]]] = {
    "Terminating": _POD_COMPUTE,
    "NotTerminating": _POD_COMPUTE,
    "BestEffort": frozenset(("pods",)),
    "NotBestEffort": _POD_COMPUTE,
    "PriorityClass": _POD_COMPUTE,
    "CrossNamespacePodAffinity": _POD_COMPUTE,
    "VolumeAttributesClass": _CLAIMS,
}
"""The scopes, each with the resources that it can be applied to."""
_SCOPES_THAT_EXIST = (
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "CrossNamespacePodAffinity",
)
_OPPOSITES = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_MUST_EXIST = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
    "ResourceQuotaScopeCrossNamespacePodAffinity"
)


class LimitRangeStrategy(Strategy):
    """A LimitRange."""

    allows_create_on_update = True

    def default(self, obj: Manifest) -> None:
        """Set the defaults."""
        default_limit_range(obj)

    def validate(self, obj: Manifest) -> list[FieldError]:
        """The limits are consistent."""
        errors: list[FieldError] = []
        seen = set()
        for index, item in enumerate((obj.get("spec") or {}).get("limits") or ()):
            path = f"spec.limits[{index}]"
            kind = item.get("type", "")
            errors += _check_limit_type(kind, f"{path}.type")
            if kind in seen:
                errors.append(duplicate(f"{path}.type", kind))
            seen.add(kind)
            errors += _check_limits(item, kind, path)
        return errors


def _check_limit_type(kind: str, path: str) -> list[FieldError]:
    if problems := qualified_name_problems(kind):
        return complaints(path, kind, problems)
    if "/" not in kind and kind not in _LIMIT_TYPES:
        return [invalid(path, kind, "must be a standard limit type or fully qualified")]
    return []


def _check_limits(item: Manifest, kind: str, path: str) -> list[FieldError]:
    problems_of = container_resource_problems if kind in ("Pod", "Container") else resource_name_problems
    errors = []
    parts = ["max", "min"]
    if kind == "Pod":
        errors += [
            forbidden(f"{path}.{key}", "may not be specified when `type` is 'Pod'")
            for key in ("default", "defaultRequest")
            if item.get(key)
        ]
    else:
        parts += ["default", "defaultRequest"]
    if kind == "PersistentVolumeClaim" and not any(
        "storage" in (item.get(key) or {}) for key in ("min", "max")
    ):
        why = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(required(f"{path}.limits", why))
    parts.append("maxLimitRequestRatio")
    names: dict[str, None] = {}
    for part in parts:
        for name in item.get(part) or ():
            names[name] = None
            errors += complaints(f"{path}.{part}[{name}]", name, problems_of(name))
    for name in names:
        amounts = {part: item[part][name] for part in parts if name in (item.get(part) or {})}
        errors += _check_order(amounts, name, path)
    return errors


_ORDER: Final = (
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    (
        "min",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "min value {} is greater than default request value {}",
    ),
    (
        "defaultRequest",
        "max",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than max value {}",
    ),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than default limit value {}",
    ),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)
"""The smaller and the larger field, the field of the error, the field of the value shown, and the message."""


def _check_order(amounts: Mapping[str, str], name: str, path: str) -> list[FieldError]:
    errors = []
    for lower, upper, blamed, shown, words in _ORDER:
        if lower in amounts and upper in amounts:
            low, high = amounts[lower], amounts[upper]
            if parse_quantity(low) > parse_quantity(high):
                errors.append(invalid(f"{path}.{blamed}[{name}]", amounts[shown], words.format(low, high)))
    if "maxLimitRequestRatio" in amounts:
        errors += _check_ratio(amounts, f"{path}.maxLimitRequestRatio[{name}]")
    limit, request = amounts.get("default"), amounts.get("defaultRequest")
    if limit and request and limit != request and not may_be_overcommitted(name):
        why = f"default value {limit} must equal to defaultRequest value {request} in {name}"
        errors.append(invalid(f"{path}.defaultRequest[{name}]", request, why))
    return errors


def _check_ratio(amounts: Mapping[str, str], path: str) -> list[FieldError]:
    text = amounts["maxLimitRequestRatio"]
    ratio = parse_quantity(text)
    errors = []
    if ratio < NANO:
        errors.append(invalid(path, text, f"ratio {text} is less than 1"))
    low, high = parse_quantity(amounts.get("min", "0")), parse_quantity(amounts.get("max", "0"))
    if "max" in amounts and low and ratio / NANO > high / low:
        errors.append(invalid(path, text, f"ratio {text} is greater than max/min = {high / low:f}"))
    return errors


class ResourceQuotaStrategy(StatusStrategy):
    """A ResourceQuota."""

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Resources and scopes are compatible."""
        spec = obj.get("spec") or {}
        errors = _check_hard(spec.get("hard") or {}, "spec.hard")
        errors += _check_scopes(spec)
        if "scopeSelector" in spec:
            errors += _check_scope_selector(spec)
        return errors

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The scopes are immutable."""
        errors = self.validate(obj)
        scopes = (obj.get("spec") or {}).get("scopes") or []
        if set(scopes) != set((old.get("spec") or {}).get("scopes") or ()):
            errors.append(invalid("spec.scopes", scopes, IMMUTABLE))
        return errors

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Validate the resources and amounts of the status."""
        status = obj.get("status") or {}
        errors: list[FieldError] = []
        for part in ("hard", "used"):
            errors += _check_hard(status.get(part) or {}, f"status.{part}")
        return errors


def _check_hard(amounts: Mapping[str, str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, quantity in amounts.items():
        here = f"{path}[{name}]"
        errors += complaints(here, name, quota_resource_problems(name))
        errors += check_amount(name, quantity, here)
    return errors


def _misapplied(scope: str, spec: Manifest) -> int:
    """The number of a quota's resources that a scope cannot be applied to."""
    allowed = _SCOPES.get(scope)
    if allowed is None:
        return 0
    return sum(is_quota_resource(name) and name not in allowed for name in spec.get("hard") or ())


def _check_scopes(spec: Manifest) -> list[FieldError]:
    scopes: Sequence[str] = spec.get("scopes") or ()
    errors = []
    for scope in scopes:
        if scope not in _SCOPES:
            errors.append(invalid("spec.scopes", scopes, "unsupported scope"))
        unfit = invalid("spec.scopes", scopes, "unsupported scope applied to resource")
        errors += [unfit] * _misapplied(scope, spec)
    errors += [
        invalid("spec.scopes", scopes, "conflicting scopes") for pair in _OPPOSITES if pair <= set(scopes)
    ]
    return errors


def _check_scope_selector(spec: Manifest) -> list[FieldError]:
    path = "spec.scopeSelector.matchExpressions"
    errors = []
    scopes = set()
    for expression in spec["scopeSelector"].get("matchExpressions") or ():
        scope, operator = expression.get("scopeName", ""), expression.get("operator", "")
        values = expression.get("values") or []
        if scope not in _SCOPES:
            errors.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
        unfit = invalid(path, spec["scopeSelector"], "unsupported scope applied to resource")
        errors += [unfit] * _misapplied(scope, spec)
        if scope in _SCOPES_THAT_EXIST and operator != "Exists":
            errors.append(invalid(f"{path}.operator", operator, _MUST_EXIST))
        if operator in ("In", "NotIn"):
            if not values:
                why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                errors.append(required(f"{path}.values", why))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                errors.append(invalid(f"{path}.values", values, why))
        else:
            errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
        scopes.add(scope)
    errors += [
        invalid(path, spec.get("scopes"), "conflicting scopes") for pair in _OPPOSITES if pair <= scopes
    ]
    return errors
