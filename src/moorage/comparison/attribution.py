"""Why a pod is on another node than in the run that is compared with.

The two runs differ from the first difference on, so the decisions themselves cannot be compared. Instead the
pod is decided for twice in one and the same cluster, that of the run at this moment: by the run's own
configuration, and by the other one. If the other configuration would not have chosen the node, or gives the
pod's former node an equal total where this one does not, then the configuration has moved the pod. If it
would have chosen the same node, then the different state of the cluster has.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec
import numpy as np

from moorage.engine.decision import Decision
from moorage.scheduler.shadow.comparing import Explanation, different_scores, rejection_of

TwoScores = dict[str, tuple[int, int]]
"""The weighted scores of two nodes by plugin, where they differ."""

_EQUAL: Final = "both nodes are equally good"
_SCORES_DIFFERENTLY: Final = "scores the nodes differently"
_SCORES_HIGHER: Final = "scores the node higher than the former one"


class Cause(StrEnum):
    """What moved a pod."""

    CONFIGURATION = "configuration"
    """In the same cluster, the other configuration would not have chosen this node."""
    CLUSTER = "cluster"
    """It would have: other pods, or nodes, are not where they are in the other run."""
    TIE = "tie"
    """Both configurations give both nodes equal totals: the choice was random."""
    GROUP = "group"
    """The pod was placed as a member of its group; there is no decision for it alone."""


class Attribution(msgspec.Struct, rename="camel"):
    """What moved a pod, and how."""

    cause: Cause
    plugin: str = ""
    """The plugin that did; empty if no plugin did."""
    reason: str = ""
    instead: str = ""
    """The node that the other configuration would have chosen; only where the configuration is the cause."""
    scores: TwoScores = {}
    """The scores of the node instead, or else of the former node, and of this node."""
    other_scores: TwoScores = {}
    """The same by the other configuration."""


class _Judged:
    """A decision, as what it says of single nodes."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        self.node = decision.node
        self._best = None if decision.scores is None else decision.scores.totals.max()

    def has(self, node: str) -> bool:
        """Whether a node passes all filters."""
        return self._index(node) is not None

    def accepts(self, node: str) -> bool:
        """Whether a node may be chosen: no other has a greater total."""
        index, scores = self._index(node), self.decision.scores
        return index is not None and (scores is None or bool(scores.totals[index] == self._best))

    def rejection(self, node: str) -> Explanation | None:
        """The plugin that rejects a node, and why; None if none does."""
        return None if self.has(node) else rejection_of(self.decision, node)

    def scores(self, one: str, other: str) -> TwoScores:
        """The weighted scores of two nodes; none where they were not compared."""
        first, second, scores = self._index(one), self._index(other), self.decision.scores
        if scores is None or first is None or second is None:
            return {}
        return different_scores(scores, first, second)

    def _index(self, node: str) -> int | None:
        feasible = self.decision.feasible
        row = feasible.snapshot.row_of.get(node)
        if row is None or feasible.rows is None:
            return row
        found = np.flatnonzero(feasible.rows == row)
        return int(found[0]) if len(found) else None


def attribution(decision: Decision, other_decision: Decision, former: str) -> Attribution:
    """Why the node of a decision is not the former node.

    other_decision: that of the other configuration for the same pod in the same cluster.
    """
    here, other, node = _Judged(decision), _Judged(other_decision), decision.node
    assert node is not None
    if not other.accepts(node):
        return _by_configuration(here, other, node, former if other.accepts(former) else other.node)
    if not other.accepts(former):
        return _by_cluster(here, node, former)
    if here.accepts(former):
        return Attribution(Cause.TIE, reason=_EQUAL)
    return _by_configuration(here, other, node, former)


def _by_configuration(here: _Judged, other: _Judged, node: str, instead: str | None) -> Attribution:
    """instead: a node that the other configuration would choose; None if there is none."""
    cause, refused = Cause.CONFIGURATION, other.rejection(node)
    if refused is not None:
        reason = f"does not reject the node any more: {refused.reason}"
        return Attribution(cause, refused.plugin, reason, instead or "")
    if instead is None:
        return Attribution(cause, reason=other.decision.message)
    refused = here.rejection(instead)
    if refused is not None:
        return Attribution(cause, refused.plugin, f"rejects the other node: {refused.reason}", instead)
    scores, other_scores = here.scores(instead, node), other.scores(instead, node)
    plugin = _largest(changes_of_lead(scores, other_scores))
    return Attribution(cause, plugin, _SCORES_DIFFERENTLY, instead, scores, other_scores)


def _by_cluster(here: _Judged, node: str, former: str) -> Attribution:
    cause, pod = Cause.CLUSTER, here.decision.pod
    if former not in here.decision.feasible.snapshot.row_of:
        return Attribution(cause, reason="the former node is not there")
    if pod.status.nominated_node_name == node and here.decision.scores is None:
        return Attribution(cause, reason="preemption made room on the node")
    if not here.has(former):
        refused = here.rejection(former)
        if refused is None:
            return Attribution(cause, reason="the former node was not searched")
        return Attribution(cause, refused.plugin, f"rejects the former node: {refused.reason}")
    scores = here.scores(former, node)
    return Attribution(cause, _largest(_leads(scores)), _SCORES_HIGHER, scores=scores)


def changes_of_lead(scores: TwoScores, other_scores: TwoScores) -> dict[str, int]:
    """By plugin, how much more it prefers the second of two nodes than by the other configuration."""
    leads, other_leads = _leads(scores), _leads(other_scores)
    plugins = dict.fromkeys([*leads, *other_leads])
    changes = {plugin: leads.get(plugin, 0) - other_leads.get(plugin, 0) for plugin in plugins}
    return {plugin: change for plugin, change in changes.items() if change}


def _leads(scores: TwoScores) -> dict[str, int]:
    return {plugin: second - first for plugin, (first, second) in scores.items()}


def _largest(leads: Mapping[str, int]) -> str:
    """The plugin that prefers the node most; of several, the first by name."""
    return max(sorted(leads), key=lambda plugin: leads[plugin], default="")
