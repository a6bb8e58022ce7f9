"""Selectors, matched the plain way.

A label selector that is absent matches nothing, an empty one everything. A node selector term that is empty
or malformed matches no node; a node selector needs one term that matches.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from moorage.api.base import LabelSelector, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.node import Node
from moorage.api.pod import Pod

LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


class MalformedError(Exception):
    """An expression that says nothing sensible."""


def integer(text: str) -> int | None:
    """The signed 64-bit number that a text is, or None."""
    if re.fullmatch(r"[+-]?[0-9]+", text) is None:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def holds(labels: Mapping[str, str], key: str, operator: str, values: tuple[str, ...]) -> bool:
    """Whether one expression holds for labels."""
    present = key in labels
    if operator == "In":
        return present and labels[key] in values
    if operator == "NotIn":
        return not present or labels[key] not in values
    if operator == "Exists":
        return present
    if operator == "DoesNotExist":
        return not present
    mine, bound = integer(labels[key]) if present else None, integer(values[0])
    if mine is None or bound is None:
        return False
    return mine > bound if operator == "Gt" else mine < bound


def select(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector matches labels."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return all(holds(labels, each.key, each.operator, each.values) for each in selector.match_expressions)


def is_empty(selector: LabelSelector | None) -> bool:
    """Whether a label selector is there but asks for nothing."""
    return selector is not None and not selector.match_labels and not selector.match_expressions


def check(expression: NodeSelectorRequirement) -> None:
    """Raise MalformedError unless an expression on node labels makes sense."""
    operator, values = expression.operator, expression.values
    prefix, slash, name = expression.key.rpartition("/")
    if LABEL_NAME.fullmatch(name) is None or (slash and not prefix):
        raise MalformedError(f"key {expression.key}")
    if operator not in ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"):
        raise MalformedError(f"operator {operator}")
    if operator in ("In", "NotIn") and not values:
        raise MalformedError("no values")
    if operator in ("Exists", "DoesNotExist") and values:
        raise MalformedError("values where there may be none")
    if operator in ("Gt", "Lt") and (len(values) != 1 or integer(values[0]) is None):
        raise MalformedError("not one number")
    if any(LABEL_VALUE.fullmatch(value) is None for value in values):
        raise MalformedError("not a label value")


def field_holds(node: Node, expression: NodeSelectorRequirement) -> bool:
    """Whether an expression on a node's fields holds; `metadata.name` is the only field a node has."""
    if expression.operator not in ("In", "NotIn") or len(expression.values) != 1:
        raise MalformedError("fields are In or NotIn one value")
    field = node.name if expression.key == "metadata.name" else ""
    return (field == expression.values[0]) == (expression.operator == "In")


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """Whether a node meets all expressions of a term; MalformedError if one of them makes no sense."""
    if not term.match_expressions and not term.match_fields:
        return False
    for each in term.match_expressions:
        check(each)
    fields = [field_holds(node, each) for each in term.match_fields]
    labels = [holds(node.labels, each.key, each.operator, each.values) for each in term.match_expressions]
    return all(labels) and all(fields)


def node_selected(selector: NodeSelector, node: Node) -> bool:
    """Whether a term of a node selector matches a node."""
    for term in selector.node_selector_terms:
        try:
            if term_matches(term, node):
                return True
        except MalformedError:
            continue
    return False


def required_selector(pod: Pod) -> NodeSelector | None:
    """The node affinity that a pod insists on, if it has one."""
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.required_during_scheduling_ignored_during_execution


def wanted_by(pod: Pod, node: Node) -> bool:
    """Whether a node meets a pod's nodeSelector and its required node affinity."""
    if any(node.labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    required = required_selector(pod)
    return required is None or node_selected(required, node)
