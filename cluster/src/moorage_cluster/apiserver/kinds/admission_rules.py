"""Common parts of admission webhooks and policies: the requests they match, and match conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moorage.api.manifests import Manifest, child
from moorage.apimachinery.fields import FieldError, duplicate, invalid, not_supported, required, too_many
from moorage.apimachinery.validation.checks import check_optional_word, repetitions
from moorage.apimachinery.validation.names import check_path_segment, check_qualified_name
from moorage.apimachinery.validation.selectors import check_label_selector

FAILURE_POLICIES: Final = ("Fail", "Ignore")
REINVOCATION_POLICIES: Final = ("IfNeeded", "Never")
_MATCH_POLICIES: Final = ("Equivalent", "Exact")
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_MUTATING_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_MAX_CONDITIONS: Final = 64
_SELECTORS: Final = ("namespaceSelector", "objectSelector")


def default_match(place: Manifest, rule_lists: Sequence[str]) -> None:
    """The match policy is Equivalent, selectors select everything, and rules apply to any scope."""
    place.setdefault("matchPolicy", "Equivalent")
    for key in _SELECTORS:
        child(place, key)
    for key in rule_lists:
        for rule in place.get(key) or ():
            rule.setdefault("scope", "*")


def check_match_policy(place: Manifest, path: str) -> list[FieldError]:
    """How rules match requests for equivalent resources."""
    return check_optional_word(place["matchPolicy"], _MATCH_POLICIES, f"{path}.matchPolicy")


def check_selectors(place: Manifest, path: str) -> list[FieldError]:
    """The namespace selector and the object selector."""
    errors: list[FieldError] = []
    for key in _SELECTORS:
        errors += check_label_selector(place[key], f"{path}.{key}")
    return errors


def check_rule(rule: Manifest, path: str) -> list[FieldError]:
    """Operations on resources."""
    operations: Sequence[str] = rule.get("operations") or ()
    errors = _check_wildcard(operations, f"{path}.operations", "operations")
    for index, operation in enumerate(operations):
        errors += check_optional_word(operation, _OPERATIONS, f"{path}.operations[{index}]")
    errors += _check_wildcard(rule.get("apiGroups") or (), f"{path}.apiGroups", "API groups")
    versions: Sequence[str] = rule.get("apiVersions") or ()
    errors += _check_wildcard(versions, f"{path}.apiVersions", "API versions")
    errors += [required(f"{path}.apiVersions[{index}]") for index, each in enumerate(versions) if not each]
    errors += _check_resources(rule.get("resources") or (), f"{path}.resources")
    return errors + check_optional_word(rule["scope"], _SCOPES, f"{path}.scope")


def _check_wildcard(values: Sequence[str], path: str, what: str) -> list[FieldError]:
    """A list of values, or a wildcard alone."""
    if not values:
        return [required(path)]
    if len(values) > 1 and "*" in values:
        return [invalid(path, values, f"if '*' is present, must not specify other {what}")]
    return []


def _check_resources(resources: Sequence[str], path: str) -> list[FieldError]:
    """Resources and subresources, none of them covered by a preceding wildcard."""
    errors = [] if resources else [required(path)]
    covered: set[str] = set()
    for index, each in enumerate(resources):
        resource, slash, subresource = each.partition("/")
        if not each:
            errors.append(required(f"{path}[{index}]"))
        if not slash:
            continue
        wildcards = (f"{resource}/*", f"*/{subresource}")
        for wildcard in wildcards:
            if wildcard in covered:
                why = f"if '{wildcard}' is present, must not specify {each}"
                errors.append(invalid(f"{path}[{index}]", each, why))
        covered |= {each} & set(wildcards)
    if len(resources) > 1 and "*/*" in resources:
        errors.append(invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    plain = [each for each in resources if "/" not in each]
    if "*" in plain and plain[-1] != "*":
        why = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(path, resources, why))
    return errors


def check_match_conditions(conditions: Sequence[Manifest], path: str) -> list[FieldError]:
    """Match conditions with unique names; their expressions are not checked."""
    errors: list[FieldError] = []
    if len(conditions) > _MAX_CONDITIONS:
        errors.append(too_many(path, len(conditions), _MAX_CONDITIONS))
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        here, name = f"{path}[{index}]", condition.get("name", "")
        if not condition.get("expression", "").strip():
            errors.append(required(f"{here}.expression"))
        errors += check_qualified_name(name, f"{here}.name") if name else [required(f"{here}.name")]
        if name in seen:
            errors.append(duplicate(f"{here}.name", name))
        seen |= {name} - {""}
    return errors


def check_match_resources(match: Manifest, path: str) -> list[FieldError]:
    """The requests that a policy matches."""
    errors = check_match_policy(match, path) + check_selectors(match, path)
    for key in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(key) or ()):
            here = f"{path}.{key}[{index}]"
            errors += _check_resource_names(rule.get("resourceNames") or (), f"{here}.resourceNames")
            errors += check_rule(rule, here)
    return errors


def check_mutating_operations(match: Manifest, path: str) -> list[FieldError]:
    """Operations on requests with an object that can be changed."""
    return [
        not_supported(f"{path}.resourceRules.operations", operation, _MUTATING_OPERATIONS)
        for rule in match.get("resourceRules") or ()
        for operation in rule.get("operations") or ()
        if operation not in _MUTATING_OPERATIONS
    ]


def _check_resource_names(names: Sequence[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    repeated = set(repetitions(names))
    for index, name in enumerate(names):
        errors += check_path_segment(name, f"{path}[{index}]")
        if index in repeated:
            errors.append(duplicate(f"{path}[{index}]", name))
    return errors
