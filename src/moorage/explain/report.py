"""A decision as rows: every node with its rejection or its scores, best nodes first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moorage.engine.decision import Decision
from moorage.explain.evaluation import first_refusals
from moorage.framework.interface.effects import EvictPods


@dataclass(frozen=True, slots=True)
class NodeReport:
    """The result for one node."""

    node: str
    chosen: bool
    refused_by: str = ""
    reasons: tuple[str, ...] = ()
    scores: dict[str, int] | None = None
    total: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data, without fields that do not apply."""
        facts = {
            "node": self.node,
            "chosen": self.chosen,
            "refusedBy": self.refused_by,
            "reasons": list(self.reasons),
            "scores": self.scores,
            "total": self.total,
        }
        return {key: value for key, value in facts.items() if value not in ("", [], None)}


@dataclass(frozen=True, slots=True)
class Report:
    """A readable decision: the best nodes first, then the rejected ones."""

    pod: str
    node: str | None
    message: str
    nodes: tuple[NodeReport, ...]
    tied: int
    """Number of nodes with the best total score."""
    nominated: str | None = None
    """The node that preemption would nominate for the pod, if it is unschedulable."""
    victims: tuple[str, ...] = ()
    """The pods that preemption would evict there."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        facts: dict[str, Any] = {"pod": self.pod, "node": self.node, "message": self.message}
        if self.nominated:
            facts |= {"nominated": self.nominated, "victims": list(self.victims)}
        return {**facts, "nodes": [node.as_dict() for node in self.nodes]}


def report(decision: Decision) -> Report:
    """The report of a decision."""
    feasible = _feasible(decision)
    arranged = decision.post_filter
    effects = () if arranged is None else arranged.effects
    return Report(
        decision.pod.key,
        decision.node,
        decision.message,
        (*sorted(feasible, key=_best_first), *_refused(decision)),
        len(decision.best()),
        None if arranged is None else arranged.nominated_node or None,
        tuple(victim.key for each in effects if isinstance(each, EvictPods) for victim in each.victims),
    )


def _best_first(node: NodeReport) -> tuple[bool, int, str]:
    return (not node.chosen, -(node.total or 0), node.node)


def _feasible(decision: Decision) -> list[NodeReport]:
    scores = decision.scores
    if scores is None:
        return [NodeReport(name, name == decision.node) for name in decision.feasible.names]
    return [
        NodeReport(
            name,
            name == decision.node,
            scores={plugin: int(values[index]) for plugin, values in scores.by_plugin.items()},
            total=int(scores.totals[index]),
        )
        for index, name in enumerate(decision.feasible.names)
    ]


def _refused(decision: Decision) -> list[NodeReport]:
    names = decision.feasible.snapshot.names
    rows = [
        NodeReport(names[row], False, group.plugin, group.reasons)
        for group in first_refusals(decision)
        for row in group.rows.tolist()
    ]
    return sorted(rows, key=lambda node: (node.refused_by, node.reasons, node.node))
