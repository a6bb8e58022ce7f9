"""Give a node the labels that the pod's node selector and node affinity require, or a topology label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any, Final

import numpy as np
from msgspec.structs import replace as replaced

from moorage.api.labels import HOSTNAME
from moorage.api.node import Node
from moorage.api.selectors import Operator, Requirement, required_nodes
from moorage.explain.help.change import Situation
from moorage.explain.help.problem import Mask, Offer, Problem

_AFFINITY: Final = "NodeAffinity"
_SPREAD: Final = "PodTopologySpread"
_MAX_OFFERS: Final = 6


@dataclass(frozen=True, slots=True)
class LabelNode:
    """Set a label of a node, or remove it (None)."""

    node: Node
    key: str
    value: str | None

    kind: str = "nodeLabel"

    def __str__(self) -> str:
        if self.value is None:
            return f"remove label {self.key} from node {self.node.name}"
        return f"label node {self.node.name} {self.key}={self.value}"

    def apply(self, situation: Situation) -> Situation:
        """With the label."""
        node = situation.current(self.node)
        labels = {key: value for key, value in node.labels.items() if key != self.key}
        if self.value is not None:
            labels[self.key] = self.value
        return situation.putting(replaced(node, metadata=replaced(node.metadata, labels=labels)))

    def details(self) -> dict[str, Any]:
        """The node and its label."""
        return {"node": self.node.name, "key": self.key, "value": self.value}


def offers(problem: Problem) -> Iterator[Offer]:
    """The nodes with the fewest missing labels, for each group that other filters treat alike."""
    yield from _for_affinity(problem)
    yield from _for_spread(problem)


def _for_affinity(problem: Problem) -> Iterator[Offer]:
    wanted = required_nodes(problem.pod)
    terms = wanted.terms if wanted.terms is not None else (None,)
    alternatives = [
        (*wanted.labels, *(() if term is None else term.labels))
        for term in terms
        if term is None or not term.fields
    ]
    if not alternatives:
        return
    unmet = [_unmet(problem, requirements) for requirements in alternatives]
    fewest = np.min(unmet, axis=0)
    for _, rows in zip(range(_MAX_OFFERS), problem.groups(_AFFINITY), strict=False):
        for row in dict.fromkeys((int(rows[0]), int(rows[fewest[rows].argmin()]))):
            node = problem.snapshot.nodes[row]
            requirements = alternatives[int(np.argmin([counts[row] for counts in unmet]))]
            missing = [each for each in requirements if not each.matches(node.labels)]
            if missing:
                changes = (LabelNode(node, each.key, _value_for(each)) for each in missing)
                yield problem.on_row(row, _AFFINITY, *changes)


def _unmet(problem: Problem, requirements: Sequence[Requirement]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """How many requirements each node does not meet."""
    counts = np.zeros(len(problem.snapshot), np.int64)
    for each in requirements:
        counts += ~np.asarray(problem.nodes.label(each.key).matches(each))
    return counts


def _value_for(requirement: Requirement) -> str | None:
    """A value that meets a requirement."""
    match requirement.operator:
        case Operator.IN:
            return min(requirement.values)
        case Operator.EXISTS:
            return "true"
        case Operator.GT:
            return str(requirement.bound + 1)
        case Operator.LT:
            return str(requirement.bound - 1)
        case Operator.NOT_IN | Operator.DOES_NOT_EXIST:
            return None


def _for_spread(problem: Problem) -> Iterator[Offer]:
    """The topology labels that spread constraints need, with the values that other nodes have."""
    constraints = problem.pod.spec.topology_spread_constraints
    keys = list(dict.fromkeys(each.topology_key for each in constraints))
    if not keys:
        return
    is_missing = np.array([~np.asarray(problem.nodes.label(key).exists()) for key in keys])
    lacks_any: Mask = np.logical_or.reduce(is_missing)
    for _, rows in zip(range(_MAX_OFFERS), problem.groups(_SPREAD, lacks_any), strict=False):
        row = int(rows[0])
        node = problem.snapshot.nodes[row]
        missing = [key for key, absent in zip(keys, is_missing[:, row].tolist(), strict=True) if absent]
        values = product(*(_values(problem, key, node) for key in missing))
        for chosen in islice(values, _MAX_OFFERS):
            changes = (LabelNode(node, key, value) for key, value in zip(missing, chosen, strict=True))
            yield problem.on_row(row, _SPREAD, *changes)


def _values(problem: Problem, key: str, node: Node) -> list[str]:
    """The values of a topology label that a node may get."""
    if key == HOSTNAME:
        return [node.name]
    known = {value for value in problem.nodes.label(key).values() if value is not None}
    return sorted(known) or [node.name]
