"""What differs between two explanations."""

from __future__ import annotations

from collections import Counter
from typing import Final

from moorage.explain.explanation import Explanation
from moorage.ui.what_if.documents import (
    BeforeAfter,
    Differences,
    OtherPods,
    ReasonDifference,
    ScoreDifference,
)

_MAX_NODES: Final = 100
"""Number of nodes that are listed."""


def differences(now: Explanation, then: Explanation, others: OtherPods | None) -> Differences:
    """The differences, from a pod's explanation now to that of then."""
    before, after = _feasible(now), _feasible(then)
    node_before, node_after = _node(now), _node(then)
    return Differences(
        node=BeforeAfter(before=node_before, after=node_after),
        is_equally_good=then.decision is not None and node_before in then.decision.best(),
        feasible=BeforeAfter(before=len(before), after=len(after)),
        opened=tuple(sorted(after - before))[:_MAX_NODES],
        closed=tuple(sorted(before - after))[:_MAX_NODES],
        reasons=_reasons(now, then),
        scores=_scores(now, then, [name for name in dict.fromkeys((node_before, node_after)) if name]),
        others=others,
    )


def _feasible(explanation: Explanation) -> set[str]:
    return set() if explanation.decision is None else set(explanation.decision.feasible.names)


def _node(explanation: Explanation) -> str | None:
    """The node that is chosen; of equally good ones, the one that the pod is on."""
    if explanation.decision is None:
        return None
    present = explanation.pod.spec.node_name
    return present if present in explanation.decision.best() else explanation.decision.node


def _reasons(now: Explanation, then: Explanation) -> tuple[ReasonDifference, ...]:
    """The reasons whose number of nodes differs, the greatest difference first."""
    before, after = _counts(now), _counts(then)
    changed = [key for key in before | after if before[key] != after[key]]
    changed.sort(key=lambda key: (-abs(after[key] - before[key]), key))
    return tuple(
        ReasonDifference(plugin=plugin, reasons=reasons, before=before[key], after=after[key])
        for key in changed
        for plugin, reasons in [key]
    )


def _counts(explanation: Explanation) -> Counter[tuple[str, tuple[str, ...]]]:
    counts: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for each in explanation.refused:
        counts[each.plugin, each.reasons] += len(each.rows)
    return counts


def _scores(now: Explanation, then: Explanation, nodes: list[str]) -> tuple[ScoreDifference, ...]:
    before, after = _by_plugin(now, nodes), _by_plugin(then, nodes)
    nothing: tuple[int | None, dict[str, int]] = (None, {})
    rows = []
    for plugin in dict.fromkeys((*before, *after)):
        (weight_before, scores_before), (weight_after, scores_after) = (
            each.get(plugin, nothing) for each in (before, after)
        )
        rows.append(
            ScoreDifference(
                plugin=plugin,
                weight=BeforeAfter(before=weight_before, after=weight_after),
                nodes={
                    name: BeforeAfter(before=scores_before.get(name), after=scores_after.get(name))
                    for name in nodes
                },
            )
        )
    return tuple(rows)


def _by_plugin(explanation: Explanation, nodes: list[str]) -> dict[str, tuple[int | None, dict[str, int]]]:
    """Weight and weighted scores of some nodes, by plugin."""
    if explanation.decision is None:
        return {}
    names = explanation.decision.feasible.names
    places = {name: names.index(name) for name in nodes if name in names}
    return {
        each.plugin: (each.weight, {name: int(each.weighted[place]) for name, place in places.items()})
        for each in explanation.scores
    }
