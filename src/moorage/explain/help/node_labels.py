"""Give a node the labels that the pod's node selector and node affinity require, or a topology label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from msgspec.structs import replace as replaced

from moorage.api.node import Node
from moorage.api.selectors import Operator, Requirement, required_nodes
from moorage.explain.help.change import Situation
from moorage.explain.help.problem import Offer, Problem

_AFFINITY: Final = "NodeAffinity"
_SPREAD: Final = "PodTopologySpread"
_MAX_OFFERS: Final = 6
_HOSTNAME: Final = "kubernetes.io/hostname"


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
    keys = [each.topology_key for each in problem.pod.spec.topology_spread_constraints]
    for key in dict.fromkeys(keys):
        label = problem.nodes.label(key)
        is_missing = ~np.asarray(label.exists())
        values = sorted({value for value in label.values() if value is not None})
        for _, rows in zip(range(_MAX_OFFERS), problem.groups(_SPREAD, is_missing), strict=False):
            node = problem.snapshot.nodes[int(rows[0])]
            for value in [node.name] if key == _HOSTNAME else values[:_MAX_OFFERS] or [node.name]:
                yield problem.on_row(int(rows[0]), _SPREAD, LabelNode(node, key, value))
