"""Validation of a pod's scheduling constraints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moorage.api.manifests import Manifest
from moorage.apimachinery.fields import (
    NOT_POSITIVE,
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.apimachinery.validation.names import check_label, check_qualified_name, check_subdomain
from moorage.apimachinery.validation.selectors import (
    check_label_selector,
    check_node_selector,
    check_node_term,
)

REQUIRED_TERMS: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED_TERMS: Final = "preferredDuringSchedulingIgnoredDuringExecution"

_POLICIES: Final = ("Honor", "Ignore")


def validate_affinity(affinity: Manifest, path: str) -> list[FieldError]:
    """Validation errors of node affinity, pod affinity and pod anti-affinity."""
    errors: list[FieldError] = []
    if nodes := affinity.get("nodeAffinity"):
        errors += _node_affinity(nodes, f"{path}.nodeAffinity")
    for key in ("podAffinity", "podAntiAffinity"):
        if pods := affinity.get(key):
            errors += _pod_affinity(pods, f"{path}.{key}")
    return errors


def _node_affinity(affinity: Manifest, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if (selector := affinity.get(REQUIRED_TERMS)) is not None:
        errors += check_node_selector(selector, f"{path}.{REQUIRED_TERMS}")
    for index, term in enumerate(affinity.get(PREFERRED_TERMS) or ()):
        where = f"{path}.{PREFERRED_TERMS}[{index}]"
        errors += _weight_errors(term, where)
        # Invalid label values are allowed here: a preference that no node meets does no harm.
        errors += check_node_term(term.get("preference") or {}, f"{where}.preference", check_values=False)
    return errors


def _pod_affinity(affinity: Manifest, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, term in enumerate(affinity.get(REQUIRED_TERMS) or ()):
        errors += _pod_term(term, f"{path}.{REQUIRED_TERMS}[{index}]")
    for index, weighted in enumerate(affinity.get(PREFERRED_TERMS) or ()):
        where = f"{path}.{PREFERRED_TERMS}[{index}]"
        errors += _weight_errors(weighted, where)
        errors += _pod_term(weighted.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm")
    return errors


def _weight_errors(term: Manifest, path: str) -> list[FieldError]:
    weight = term.get("weight", 0)
    return [] if 0 < weight <= 100 else [invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def _pod_term(term: Manifest, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for key in ("labelSelector", "namespaceSelector"):
        if selector := term.get(key):
            errors += check_label_selector(selector, f"{path}.{key}")
    for name in term.get("namespaces") or ():
        errors += check_label(name, f"{path}.namespace")
    errors += _label_key_errors(term, path)
    topology = term.get("topologyKey", "")
    if not topology:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    return errors + check_qualified_name(topology, f"{path}.topologyKey")


def _label_key_errors(term: Manifest, path: str) -> list[FieldError]:
    match, mismatch = term.get("matchLabelKeys") or [], term.get("mismatchLabelKeys") or []
    if not match and not mismatch:
        return []
    selector = term.get("labelSelector")
    errors: list[FieldError] = []
    for name, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            problem = "must not be specified when labelSelector is not set"
            errors.append(forbidden(f"{path}.{name}", problem))
        elif keys:
            for index, key in enumerate(keys):
                errors += check_qualified_name(key, f"{path}.{name}[{index}]")
    if selector is not None:
        # Each key has already been merged into the selector once; a second occurrence came from the client.
        seen = set(selector.get("matchLabels") or ())
        last_places = {key: index for index, key in enumerate(match)}
        for expression in selector.get("matchExpressions") or ():
            key = expression.get("key", "")
            if key in last_places and key in seen:
                problem = "exists in both matchLabelKeys and labelSelector"
                errors.append(invalid(f"{path}[{last_places[key]}]", key, problem))
            seen.add(key)
    mismatched = set(mismatch)
    for index, key in enumerate(match):
        if key in mismatched:
            problem = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(invalid(f"{path}.matchLabelKeys[{index}]", key, problem))
    return errors


def validate_spread_constraints(constraints: Sequence[Manifest], path: str) -> list[FieldError]:
    """Validation errors of topology spread constraints."""
    errors: list[FieldError] = []
    last_places = {_topology_and_action(each): index for index, each in enumerate(constraints)}
    for index, constraint in enumerate(constraints):
        where = f"{path}[{index}]"
        topology, action = _topology_and_action(constraint)
        if (skew := constraint.get("maxSkew", 0)) <= 0:
            errors.append(invalid(f"{where}.maxSkew", skew, NOT_POSITIVE))
        if not topology:
            errors.append(required(f"{where}.topologyKey", "can not be empty"))
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            known = ("DoNotSchedule", "ScheduleAnyway")
            errors.append(not_supported(f"{where}.whenUnsatisfiable", action, known))
        if last_places[topology, action] > index:
            pair = f"{{{topology}, {action}}}"
            errors.append(duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", pair))
        if (domains := constraint.get("minDomains")) is not None:
            if domains <= 0:
                errors.append(invalid(f"{where}.minDomains", domains, NOT_POSITIVE))
            if action != "DoNotSchedule":
                problem = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                errors.append(invalid(f"{where}.minDomains", domains, problem))
        for key in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if key in constraint and constraint[key] not in _POLICIES:
                errors.append(not_supported(f"{where}.{key}", constraint[key], _POLICIES))
        errors += _label_key_errors(constraint, where)
        if selector := constraint.get("labelSelector"):
            errors += check_label_selector(selector, f"{where}.labelSelector")
    return errors


def _topology_and_action(constraint: Manifest) -> tuple[str, str]:
    return constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")


def validate_scheduling_gates(gates: Sequence[Manifest], path: str) -> list[FieldError]:
    """Validation errors of scheduling gates."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        errors += check_qualified_name(name, f"{path}[{index}]")
        if name in seen:
            errors.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return errors


def validate_scheduling_group(group: Manifest, path: str) -> list[FieldError]:
    """Validation errors of the pod group reference; the group need not exist."""
    name = group.get("podGroupName")
    if name is None:
        return [invalid(f"{path}.podGroupName", None, "must specify one of: `podGroupName`")]
    return check_subdomain(name, f"{path}.podGroupName")
