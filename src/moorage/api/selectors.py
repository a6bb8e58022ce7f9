"""Label selectors and node selectors, made ready to match.

API objects carry selectors as users wrote them; here they become tuples of `Requirement`, checked once and
hashable, so that matching many objects (see `cluster.labels`) can evaluate each distinct value once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from moorage.api.base import LabelSelector, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.manifests import Manifest
from moorage.api.names import label_value_problems, qualified_name_problems
from moorage.api.node import Node
from moorage.api.pod import Pod

NODE_NAME_FIELD = "metadata.name"

_INTEGER = re.compile(r"([+-]?)0*(\d{1,19})", re.ASCII)
_INT64_LIMIT = 1 << 63


class SelectorError(ValueError):
    """An invalid selector; `path` leads to the invalid part."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.path = path
        self.reason = reason


class Operator(StrEnum):
    """The operator of a requirement."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


_ALL_OPERATORS = tuple(Operator)
_LABEL_OPERATORS = (Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST)


def parse_integer(text: str) -> int | None:
    """The 64-bit integer in a label value, or None: the operand of Gt and Lt."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    number = int(match[1] + match[2])
    return number if -_INT64_LIMIT <= number < _INT64_LIMIT else None


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels meet this condition."""
        return self.accepts(labels.get(self.key))

    def accepts(self, value: str | None) -> bool:
        """Whether a label with this value (None: absent) meets the condition."""
        match self.operator:
            case Operator.IN:
                return value in self.values
            case Operator.NOT_IN:
                return value is None or value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case Operator.GT | Operator.LT:
                number = None if value is None else parse_integer(value)
                if number is None:
                    return False
                return number > self.bound if self.operator is Operator.GT else number < self.bound

    @property
    def bound(self) -> int:
        """What Gt and Lt compare with."""
        return parse_integer(next(iter(self.values))) or 0


def requirement(
    key: str,
    operator: str,
    values: Iterable[str],
    *,
    allowed: tuple[Operator, ...] = _ALL_OPERATORS,
    path: str = "",
) -> Requirement:
    """A checked requirement, or SelectorError."""
    if operator not in allowed:
        supported = ", ".join(f'"{op}"' for op in allowed)
        raise SelectorError(
            _child(path, "operator"), f'Unsupported value: "{operator}": supported values: {supported}'
        )
    op = Operator(operator)
    wanted = list(values)
    values_path = _child(path, "values")
    if problems := qualified_name_problems(key):
        raise SelectorError(_child(path, "key"), f'Invalid value: "{key}": {problems[0]}')
    if op in (Operator.IN, Operator.NOT_IN) and not wanted:
        raise SelectorError(
            values_path, "Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
        )
    if op in (Operator.EXISTS, Operator.DOES_NOT_EXIST) and wanted:
        raise SelectorError(
            values_path,
            f"Invalid value: {_go_list(wanted)}: values set must be empty for exists and does not exist",
        )
    if op in (Operator.GT, Operator.LT):
        if len(wanted) != 1:
            raise SelectorError(
                values_path,
                f"Invalid value: {_go_list(wanted)}: for 'Gt', 'Lt' operators, exactly one value is required",
            )
        if parse_integer(wanted[0]) is None:
            raise SelectorError(
                f"{values_path}[0]",
                f"Invalid value: \"{wanted[0]}\": for 'Gt', 'Lt' operators, the value must be an integer",
            )
    for index, value in enumerate(wanted):
        if problems := label_value_problems(value):
            raise SelectorError(f"{values_path}[{index}]", f'Invalid value: "{value}": {problems[0]}')
    return Requirement(key, op, frozenset(wanted))


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _go_list(values: list[str]) -> str:
    return "[" + ",".join(f'"{value}"' for value in values) + "]"


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all hold; `requirements` None matches nothing, () matches everything."""

    requirements: tuple[Requirement, ...] | None

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels meet every requirement."""
        if self.requirements is None:
            return False
        return all(each.matches(labels) for each in self.requirements)

    @property
    def empty(self) -> bool:
        """Whether this selector has no requirements, and so matches everything."""
        return self.requirements == ()

    def adding(self, labels: Mapping[str, str]) -> Selector:
        """This selector, narrowed to labels with exactly these values."""
        if self.requirements is None:
            return self
        return Selector(self.requirements + _equalities(labels))


NOTHING = Selector(None)
EVERYTHING = Selector(())


def _equalities(labels: Mapping[str, str]) -> tuple[Requirement, ...]:
    return tuple(Requirement(key, Operator.IN, frozenset((value,))) for key, value in labels.items())


def equality_selector(labels: Mapping[str, str]) -> Selector:
    """Labels with exactly these values, as services and node selectors ask for; taken as they are."""
    return Selector(_equalities(labels))


def label_selector(selector: LabelSelector | None) -> Selector:
    """A label selector ready to match: none matches nothing, an empty one everything; or SelectorError."""
    if selector is None:
        return NOTHING
    expressions = ((each.key, each.operator, each.values) for each in selector.match_expressions)
    return _label_selector(selector.match_labels, expressions)


def written_selector(selector: Manifest | None) -> Selector:
    """The same for a label selector as plain objects carry it."""
    if selector is None:
        return NOTHING
    expressions = (
        (each.get("key", ""), each.get("operator", ""), each.get("values") or ())
        for each in selector.get("matchExpressions") or ()
    )
    return _label_selector(selector.get("matchLabels") or {}, expressions)


def valid_selector(selector: Manifest | None) -> Selector:
    """The same, but an invalid one matches nothing."""
    try:
        return written_selector(selector)
    except SelectorError:
        return NOTHING


def _label_selector(
    labels: Mapping[str, str], expressions: Iterable[tuple[str, str, Iterable[str]]]
) -> Selector:
    equalities = [_equality(key, value) for key, value in labels.items()]
    others = [
        requirement(key, operator, values, allowed=_LABEL_OPERATORS) for key, operator, values in expressions
    ]
    return Selector((*equalities, *others))


def _equality(key: str, value: str) -> Requirement:
    """A label with exactly this value, or SelectorError."""
    if qualified_name_problems(key) or label_value_problems(value):
        return requirement(key, Operator.IN, (value,))
    return Requirement(key, Operator.IN, frozenset((value,)))


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """A condition on a node's field; `metadata.name` is the only field a node has."""

    key: str
    value: str
    negated: bool

    def matches(self, node_name: str) -> bool:
        """Whether a node of that name meets the condition."""
        actual = node_name if self.key == NODE_NAME_FIELD else ""
        return (actual == self.value) != self.negated


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """Conditions on a node's labels and fields that must all hold."""

    labels: tuple[Requirement, ...]
    fields: tuple[FieldRequirement, ...]

    def matches(self, node: Node) -> bool:
        """Whether a node meets every condition."""
        return all(each.matches(node.labels) for each in self.labels) and all(
            each.matches(node.name) for each in self.fields
        )


def node_term(term: NodeSelectorTerm, path: str = "") -> NodeTerm:
    """A node selector term ready to match, or SelectorError."""
    labels = tuple(
        requirement(e.key, e.operator, e.values, path=f"{_child(path, 'matchExpressions')}[{i}]")
        for i, e in enumerate(term.match_expressions)
    )
    fields = tuple(
        _field_requirement(e, f"{_child(path, 'matchFields')}[{i}]") for i, e in enumerate(term.match_fields)
    )
    return NodeTerm(labels, fields)


def _field_requirement(expression: NodeSelectorRequirement, path: str) -> FieldRequirement:
    if expression.operator not in (Operator.IN, Operator.NOT_IN):
        raise SelectorError(
            _child(path, "operator"),
            f'Unsupported value: "{expression.operator}": supported values: "In", "NotIn"',
        )
    if len(expression.values) != 1:
        raise SelectorError(
            _child(path, "values"),
            f"Invalid value: {_go_list(list(expression.values))}: must have one element",
        )
    return FieldRequirement(expression.key, expression.values[0], expression.operator == Operator.NOT_IN)


def node_terms(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    """The terms of a node selector that can match: empty and malformed terms match no node."""
    terms = []
    for term in selector.node_selector_terms:
        if not term.match_expressions and not term.match_fields:
            continue
        try:
            terms.append(node_term(term))
        except SelectorError:
            continue
    return tuple(terms)


@dataclass(frozen=True, slots=True)
class RequiredNodes:
    """The nodes a pod requires: its nodeSelector and its required node affinity together."""

    labels: tuple[Requirement, ...]
    terms: tuple[NodeTerm, ...] | None

    def matches(self, node: Node) -> bool:
        """Whether a node matches."""
        if not all(each.matches(node.labels) for each in self.labels):
            return False
        return self.terms is None or any(term.matches(node) for term in self.terms)

    @property
    def anything(self) -> bool:
        """Whether every node matches."""
        return not self.labels and self.terms is None


def required_nodes(pod: Pod) -> RequiredNodes:
    """The nodes a pod requires."""
    required = _required_affinity(pod)
    return RequiredNodes(
        _equalities(pod.spec.node_selector), None if required is None else node_terms(required)
    )


def named_nodes(pod: Pod) -> frozenset[str] | None:
    """The nodes that a pod requires by name, as pods of DaemonSets do; None: it requires more than names.

    Empty: its terms name nodes, but none that meets them all.
    """
    required = _required_affinity(pod)
    if required is None or not required.node_selector_terms:
        return None
    names: set[str] = set()
    for term in required.node_selector_terms:
        by_name = [
            frozenset(field.values)
            for field in term.match_fields
            if field.key == NODE_NAME_FIELD and field.operator == Operator.IN
        ]
        if not by_name:
            return None
        names |= frozenset.intersection(*by_name)
    return frozenset(names)


def is_only_named(pod: Pod) -> bool:
    """Whether a pod requires nothing of its node but one name, as pods of DaemonSets do."""
    required = _required_affinity(pod)
    if required is None or pod.spec.node_selector or len(required.node_selector_terms) != 1:
        return False
    term = required.node_selector_terms[0]
    if term.match_expressions or len(term.match_fields) != 1:
        return False
    field = term.match_fields[0]
    return field.key == NODE_NAME_FIELD and field.operator == Operator.IN and len(field.values) == 1


def _required_affinity(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.required_during_scheduling_ignored_during_execution
