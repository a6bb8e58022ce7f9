"""Label selectors and node selectors in objects: validation, matching, conversion to text."""

from __future__ import annotations

from collections.abc import Mapping

from moorage.api.manifests import Manifest
from moorage.api.selectors import (
    NODE_NAME_FIELD,
    Operator,
    Requirement,
    SelectorError,
    written_selector,
)
from moorage.apimachinery.fields import FieldError, forbidden, invalid, required
from moorage.apimachinery.validation.metadata import validate_labels
from moorage.apimachinery.validation.names import check_label_value, check_qualified_name, check_subdomain

_WITH_VALUES = ("In", "NotIn")
_WITHOUT_VALUES = ("Exists", "DoesNotExist")
_COMPARING = ("Gt", "Lt")
_VALUES_NEEDED = "must be specified when `operator` is 'In' or 'NotIn'"
_VALUES_REFUSED = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_OPERATOR = "not a valid selector operator"


def check_label_selector(selector: Manifest | None, path: str) -> list[FieldError]:
    """A label selector; it may be absent."""
    if not selector:
        return []
    errors = validate_labels(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        errors += _check_expression(expression, f"{path}.matchExpressions[{index}]", comparing=False)
    return errors


def _check_expression(
    expression: Manifest, path: str, *, comparing: bool, check_values: bool = True
) -> list[FieldError]:
    operator = expression.get("operator", "")
    values = expression.get("values") or ()
    errors = []
    if operator in _WITH_VALUES:
        if not values:
            errors.append(required(f"{path}.values", _VALUES_NEEDED))
    elif operator in _WITHOUT_VALUES:
        if values:
            errors.append(forbidden(f"{path}.values", _VALUES_REFUSED))
    elif comparing and operator in _COMPARING:
        if len(values) != 1:
            why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.append(required(f"{path}.values", why))
    else:
        errors.append(invalid(f"{path}.operator", operator, _OPERATOR))
    errors += check_qualified_name(expression.get("key", ""), f"{path}.key")
    if check_values:
        for index, value in enumerate(values):
            errors += check_label_value(value, f"{path}.values[{index}]")
    return errors


def check_node_selector(selector: Manifest, path: str) -> list[FieldError]:
    """A node selector with at least one term."""
    terms = selector.get("nodeSelectorTerms") or ()
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    errors: list[FieldError] = []
    for index, term in enumerate(terms):
        errors += check_node_term(term, f"{path}.nodeSelectorTerms[{index}]")
    return errors


def check_node_term(term: Manifest, path: str, *, check_values: bool = True) -> list[FieldError]:
    """One term of a node selector; the check for valid label values is optional."""
    errors: list[FieldError] = []
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        here = f"{path}.matchExpressions[{index}]"
        errors += _check_expression(expression, here, comparing=True, check_values=check_values)
    for index, expression in enumerate(term.get("matchFields") or ()):
        errors += _check_field(expression, f"{path}.matchFields[{index}]")
    return errors


def _check_field(expression: Manifest, path: str) -> list[FieldError]:
    errors = []
    operator, values = expression.get("operator", ""), expression.get("values") or ()
    if operator not in _WITH_VALUES:
        errors.append(invalid(f"{path}.operator", operator, _OPERATOR))
    elif len(values) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(f"{path}.values", why))
    key = expression.get("key", "")
    if key != NODE_NAME_FIELD:
        errors.append(invalid(f"{path}.key", key, "not a valid field selector key"))
    else:
        for index, value in enumerate(values):
            errors += check_subdomain(value, f"{path}.values[{index}]")
    return errors


def selector_text(selector: Manifest | None) -> str:
    """A label selector in the form of a Scale's status."""
    if selector is None:
        return "<nothing>"
    try:
        return query_text(selector)
    except SelectorError:
        return "<error>"


def query_text(selector: Manifest) -> str:
    """A label selector in the form of a `labelSelector` query: `app=web,tier in (a,b)`; or SelectorError."""
    wanted = written_selector(selector).requirements or ()
    equalities = len(selector.get("matchLabels") or {})
    texts = [
        (each.key, _requirement_text(each, as_equality=index < equalities))
        for index, each in enumerate(wanted)
    ]
    return ",".join(text for _, text in sorted(texts, key=lambda pair: pair[0]))


def labels_text(labels: Mapping[str, str]) -> str:
    """Labels as an equality-based selector."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _requirement_text(wanted: Requirement, *, as_equality: bool) -> str:
    values = ",".join(sorted(wanted.values))
    match wanted.operator:
        case Operator.IN:
            return f"{wanted.key}={values}" if as_equality else f"{wanted.key} in ({values})"
        case Operator.NOT_IN:
            return f"{wanted.key} notin ({values})"
        case Operator.EXISTS:
            return wanted.key
        case Operator.DOES_NOT_EXIST:
            return f"!{wanted.key}"
        case Operator.GT:
            return f"{wanted.key}>{values}"
        case Operator.LT:
            return f"{wanted.key}<{values}"
