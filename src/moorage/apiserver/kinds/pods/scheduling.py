"""What is wrong with what a pod says about where it may run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moorage.api.manifests import Manifest
from moorage.api.selectors import NODE_NAME_FIELD
from moorage.apiserver.fields import FieldError, duplicate, forbidden, invalid, not_supported, required
from moorage.apiserver.kinds.metadata import label_key_problems, label_value_problems, validate_labels
from moorage.apiserver.kinds.pods.formats import (
    complaints,
    dns_label_problems,
    dns_subdomain_problems,
    not_one_of,
    qualified_name_errors,
)

TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
REQUIRED_TERMS: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED_TERMS: Final = "preferredDuringSchedulingIgnoredDuringExecution"

_OPERATOR: Final = "not a valid selector operator"
_NEEDS_VALUES: Final = "must be specified when `operator` is 'In' or 'NotIn'"
_NO_VALUES: Final = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_ONE_NUMBER: Final = "must be specified single value when `operator` is 'Lt' or 'Gt'"
_ONE_NAME: Final = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
_POLICIES: Final = ("Honor", "Ignore")


def validate_tolerations(tolerations: Sequence[Manifest], path: str) -> list[FieldError]:
    """What is wrong with tolerations."""
    errors: list[FieldError] = []
    for index, toleration in enumerate(tolerations):
        where = f"{path}[{index}]"
        key, operator = toleration.get("key", ""), toleration.get("operator", "")
        value, effect = toleration.get("value", ""), toleration.get("effect", "")
        if key:
            if problems := label_key_problems(key):
                errors += complaints(f"{where}.key", key, problems)
        elif operator != "Exists":
            problem = (
                'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            )
            errors.append(invalid(f"{where}.operator", operator, problem))
        if "tolerationSeconds" in toleration and effect != "NoExecute":
            problem = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(invalid(f"{where}.effect", effect, problem))
        if operator in ("Equal", ""):
            if problems := label_value_problems(value):
                errors.append(invalid(f"{where}.operator", value, ";".join(problems)))
        elif operator == "Exists":
            if value:
                problem = "value must be empty when `operator` is 'Exists'"
                errors.append(invalid(f"{where}.operator", value, problem))
        elif operator in ("Lt", "Gt"):
            errors.append(not_one_of(f"{where}.operator", operator, ("Equal", "Exists", "Lt", "Gt")))
        else:
            errors.append(not_one_of(f"{where}.operator", operator, ("Equal", "Exists")))
        if effect and effect not in TAINT_EFFECTS:
            errors.append(not_one_of(f"{where}.effect", effect, TAINT_EFFECTS))
    return errors


def validate_label_selector(selector: Manifest, path: str) -> list[FieldError]:
    """What is wrong with a selector of objects by their labels."""
    errors = validate_labels(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        where = f"{path}.matchExpressions[{index}]"
        values = expression.get("values") or ()
        errors += _operator_errors(expression.get("operator", ""), values, where, numbers=False)
        errors += qualified_name_errors(expression.get("key", ""), f"{where}.key")
        errors += _value_errors(values, where)
    return errors


def _operator_errors(operator: str, values: Sequence[str], path: str, *, numbers: bool) -> list[FieldError]:
    if operator in ("In", "NotIn"):
        return [] if values else [required(f"{path}.values", _NEEDS_VALUES)]
    if operator in ("Exists", "DoesNotExist"):
        return [forbidden(f"{path}.values", _NO_VALUES)] if values else []
    if numbers and operator in ("Gt", "Lt"):
        return [] if len(values) == 1 else [required(f"{path}.values", _ONE_NUMBER)]
    return [invalid(f"{path}.operator", operator, _OPERATOR)]


def _value_errors(values: Sequence[str], path: str) -> list[FieldError]:
    return [
        invalid(f"{path}.values[{index}]", value, problem)
        for index, value in enumerate(values)
        for problem in label_value_problems(value)
    ]


def validate_affinity(affinity: Manifest, path: str) -> list[FieldError]:
    """What is wrong with the nodes and the other pods that a pod wants, or wants not, to be near."""
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
        errors += validate_node_selector(selector, f"{path}.{REQUIRED_TERMS}")
    for index, term in enumerate(affinity.get(PREFERRED_TERMS) or ()):
        where = f"{path}.{PREFERRED_TERMS}[{index}]"
        errors += _weight_errors(term, where)
        # Values that no label can have are let through here: a wish that nobody meets does no harm.
        errors += _node_term(term.get("preference") or {}, f"{where}.preference", check_values=False)
    return errors


def validate_node_selector(selector: Manifest, path: str) -> list[FieldError]:
    """What is wrong with a selector of nodes."""
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    errors: list[FieldError] = []
    for index, term in enumerate(terms):
        errors += _node_term(term, f"{path}.nodeSelectorTerms[{index}]", check_values=True)
    return errors


def _node_term(term: Manifest, path: str, *, check_values: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        where = f"{path}.matchExpressions[{index}]"
        values = expression.get("values") or ()
        errors += _operator_errors(expression.get("operator", ""), values, where, numbers=True)
        errors += qualified_name_errors(expression.get("key", ""), f"{where}.key")
        if check_values:
            errors += _value_errors(values, where)
    for index, expression in enumerate(term.get("matchFields") or ()):
        errors += _node_field(expression, f"{path}.matchFields[{index}]")
    return errors


def _node_field(expression: Manifest, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    operator, values = expression.get("operator", ""), expression.get("values") or ()
    if operator not in ("In", "NotIn"):
        errors.append(invalid(f"{path}.operator", operator, _OPERATOR))
    elif len(values) != 1:
        errors.append(required(f"{path}.values", _ONE_NAME))
    if expression.get("key") != NODE_NAME_FIELD:
        problem = "not a valid field selector key"
        errors.append(invalid(f"{path}.key", expression.get("key", ""), problem))
    else:
        for index, value in enumerate(values):
            errors += complaints(f"{path}.values[{index}]", value, dns_subdomain_problems(value))
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
            errors += validate_label_selector(selector, f"{path}.{key}")
    for name in term.get("namespaces") or ():
        errors += complaints(f"{path}.namespace", name, dns_label_problems(name))
    errors += _label_key_errors(term, path)
    topology = term.get("topologyKey", "")
    if not topology:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    return errors + qualified_name_errors(topology, f"{path}.topologyKey")


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
                errors += qualified_name_errors(key, f"{path}.{name}[{index}]")
    if selector is not None:
        # Each key was merged into the selector once by now; a second time means its author had it too.
        seen = set(selector.get("matchLabels") or ())
        for expression in selector.get("matchExpressions") or ():
            key = expression.get("key", "")
            if key in match and key in seen:
                problem = "exists in both matchLabelKeys and labelSelector"
                errors.append(invalid(f"{path}[{_last_index(match, key)}]", key, problem))
            seen.add(key)
    for index, key in enumerate(match):
        if key in mismatch:
            problem = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(invalid(f"{path}.matchLabelKeys[{index}]", key, problem))
    return errors


def _last_index(items: Sequence[str], item: str) -> int:
    return max(index for index, other in enumerate(items) if other == item)


def validate_spread_constraints(constraints: Sequence[Manifest], path: str) -> list[FieldError]:
    """What is wrong with how a pod wants to be spread."""
    errors: list[FieldError] = []
    for index, constraint in enumerate(constraints):
        where = f"{path}[{index}]"
        topology, action = constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")
        if (skew := constraint.get("maxSkew", 0)) <= 0:
            errors.append(invalid(f"{where}.maxSkew", skew, "must be greater than zero"))
        if not topology:
            errors.append(required(f"{where}.topologyKey", "can not be empty"))
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            known = ("DoNotSchedule", "ScheduleAnyway")
            errors.append(not_supported(f"{where}.whenUnsatisfiable", action, known))
        for other in constraints[index + 1 :]:
            if (other.get("topologyKey", ""), other.get("whenUnsatisfiable", "")) == (topology, action):
                pair = f"{{{topology}, {action}}}"
                errors.append(duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", pair))
                break
        if (domains := constraint.get("minDomains")) is not None:
            if domains <= 0:
                errors.append(invalid(f"{where}.minDomains", domains, "must be greater than zero"))
            if action != "DoNotSchedule":
                problem = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                errors.append(invalid(f"{where}.minDomains", domains, problem))
        for key in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if key in constraint and constraint[key] not in _POLICIES:
                errors.append(not_supported(f"{where}.{key}", constraint[key], _POLICIES))
        errors += _label_key_errors(constraint, where)
        if selector := constraint.get("labelSelector"):
            errors += validate_label_selector(selector, f"{where}.labelSelector")
    return errors


def validate_scheduling_gates(gates: Sequence[Manifest], path: str) -> list[FieldError]:
    """What is wrong with what keeps a pod from being scheduled."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        errors += qualified_name_errors(name, f"{path}[{index}]")
        if name in seen:
            errors.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return errors
