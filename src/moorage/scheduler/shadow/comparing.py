"""A decision of ours beside the node that another scheduler chose."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from msgspec.structs import replace

from moorage.engine.decision import Decision
from moorage.framework.runtime.framework import Framework
from moorage.framework.runtime.scores import ScoreTable
from moorage.scheduler.shadow.report import Comparison, ComparisonResult, template_of
from moorage.scheduler.shadow.weights import Factors, WeightEvidence, winning_factors


class Explanation(NamedTuple):
    """The plugin that explains a difference, and how."""

    plugin: str
    reason: str


def result_of(decision: Decision, node: str) -> ComparisonResult:
    """Whether a decision agrees with the choice of a node."""
    if decision.node == node:
        return "same"
    return "tie" if decision.node is not None and node in decision.best() else "different"


def compare(
    decision: Decision,
    node: str,
    framework: Framework,
    evidence: WeightEvidence,
    time: datetime,
    *,
    reordered: bool = False,
) -> Comparison:
    """Compare a decision with the choice of a node; what that tells of weights is added to the evidence."""
    pod, result = decision.pod, result_of(decision, node)
    factors = add_evidence(decision, node, evidence, is_different=result == "different")
    made = Comparison(
        time=time,
        pod=pod.key,
        uid=pod.uid,
        profile=pod.spec.scheduler_name,
        template=template_of(pod),
        result=result,
        node=node,
        ours=decision.node or "",
        reordered=reordered,
    )
    if result != "different":
        return made
    return replace(made, **explained(decision, node, factors, framework, evidence))


def add_evidence(
    decision: Decision, node: str, evidence: WeightEvidence, *, is_different: bool
) -> Mapping[str, Factors]:
    """The weights with which the other scheduler's node would win, which are added to the evidence."""
    scores = decision.scores
    if scores is None or node not in decision.feasible.names:
        return {}
    factors = winning_factors(scores, decision.feasible.names.index(node))
    evidence.add(factors, scores.by_plugin, is_different=is_different)
    return factors


def explained(
    decision: Decision,
    node: str,
    factors: Mapping[str, Factors],
    framework: Framework,
    evidence: WeightEvidence,
) -> dict[str, Any]:
    """Fields of a comparison that explain why our node is another one."""
    names, scores, ours = decision.feasible.names, decision.scores, decision.node
    if scores is None or ours is None or node not in names:
        return _by_rejection(decision, node)._asdict()
    mine, theirs = names.index(ours), names.index(node)
    return {
        **_by_weight(factors, evidence, framework)._asdict(),
        "totals": (int(scores.totals[theirs]), int(scores.totals[mine])),
        "scores": different_scores(scores, theirs, mine),
    }


def different_scores(scores: ScoreTable, one: int, other: int) -> dict[str, tuple[int, int]]:
    """The scores of two nodes, by index, by the plugins that score them differently."""
    return {
        plugin: (int(points[one]), int(points[other]))
        for plugin, points in scores.by_plugin.items()
        if points[one] != points[other]
    }


def _by_rejection(decision: Decision, node: str) -> Explanation:
    """We would not have used the node: the plugin that rejects it."""
    if node not in decision.feasible.snapshot.row_of:
        return Explanation("", f"node {node} is not known")
    found = rejection_of(decision, node)
    if found is not None:
        return Explanation(found.plugin, f"rejects {node}: {found.reason}")
    return Explanation("", decision.message or f"{node} was not among the nodes that were searched")


def rejection_of(decision: Decision, node: str) -> Explanation | None:
    """The plugin that rejects a node of the cluster, and its reasons; None if none does."""
    refusal = decision.diagnosis.of(decision.feasible.snapshot.row_of[node])
    if refusal is not None:
        return Explanation(refusal.plugin, ", ".join(refusal.reason.texts))
    status = decision.diagnosis.pre_filter or decision.diagnosis.left_out
    return None if status is None else Explanation(status.plugin, status.message)


def _by_weight(factors: Mapping[str, Factors], evidence: WeightEvidence, framework: Framework) -> Explanation:
    """Both nodes are feasible: the plugin that has another weight."""
    plugin = evidence.explain(factors)
    if not plugin:
        return Explanation("", "no other weight of a single plugin explains it")
    weight = next(call.weight for call in framework.at("score") if call.plugin == plugin)
    interval = evidence.consistent(plugin) or factors[plugin]
    if interval.highest < 0:
        return Explanation(plugin, f"prefers other nodes: weight {weight} would have to be negative")
    return Explanation(plugin, f"has weight {_range(interval, weight)} there, and {weight} here")


def _range(interval: Factors, weight: int) -> str:
    lowest, highest = max(interval.lowest, 0.0) * weight, interval.highest * weight
    if math.isinf(highest):
        return f"{lowest:.3g} or more"
    return f"{lowest:.3g} to {highest:.3g}" if lowest > 0 else f"{highest:.3g} or less"
