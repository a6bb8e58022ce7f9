"""Scores of every node for the pods of one equivalence class.

Scores are remembered as they are before normalising, because that depends on which nodes are feasible; where
all nodes have the same, it does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

import numpy as np

from moorage.api.pod import Pod
from moorage.cluster.snapshot import Snapshot
from moorage.framework.cache.cached_filters import WORTH_COLUMNS
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.dependencies import DependsOn
from moorage.framework.interface.extension_points import Plugin, Scores
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.framework.runtime.plugin_call import PluginCall
from moorage.framework.runtime.scores import ScoreTable

_NEVER: Final = -1


@dataclass(slots=True, eq=False)
class _Scored:
    """What one plugin scores every node, before normalising."""

    depends_on: DependsOn
    raw: Scores
    normalizes: bool
    same: int | None = None
    """What every node scores, if it is the same everywhere; looked at only where scores are normalised."""
    constant: int = 0
    """What every node gets, normalised and weighted, if its score is the same everywhere."""


@dataclass(slots=True, eq=False)
class _Scoring:
    """The score plugins of a profile that run for the pods of an equivalence class.

    all_calls, skipped: what this is about: all score plugins, and which of them stepped aside.
    active: those that did not. remembered: of these, the ones that are.
    by_pods: of those that are remembered, the ones who look at the pods on a node.
    by_row: whether what these say of a node goes into its total as it is.
    """

    all_calls: Sequence[PluginCall]
    skipped: AbstractSet[str]
    active: Sequence[PluginCall]
    remembered: Sequence[PluginCall]
    by_pods: Sequence[PluginCall]
    by_row: bool
    open: Sequence[PluginCall] | None = None
    """Those whose scores depend on which nodes are feasible; None: to be found out."""


class CachedScores:
    """The scores of one profile's plugins for one equivalence class."""

    def __init__(
        self, snapshot: Snapshot, dependencies: Mapping[str, DependsOn], plugins: Mapping[str, Plugin]
    ) -> None:
        self._snapshot = snapshot
        self._dependencies = dependencies
        self._plugins = plugins
        self._scored: dict[str, _Scored] = {}
        self._totals: Scores = np.zeros(0, np.int64)
        """For each row the sum of what need not be normalised, weighted."""
        self._seen = self._nodes_seen = self._images_seen = _NEVER
        self._scoring: _Scoring | None = None

    def score(self, calls: Sequence[PluginCall], cycle: CycleState, pod: Pod, nodes: Nodes) -> ScoreTable:
        """What the score plugins that did not step aside, remembered or not, make of nodes."""
        scoring = self._of(calls, cycle.skip_score)
        self._catch_up(scoring, cycle, pod)
        if scoring.open is None:
            scoring.open = [call for call in scoring.active if not self._is_settled(call)]
        totals = self._totals if nodes.rows is None else self._totals[nodes.rows]
        by_plugin: dict[str, Scores] = {}
        for call in scoring.open:
            scored = self._scored.get(call.plugin)
            scores = call.scores(cycle, pod, nodes) if scored is None else nodes.pick(scored.raw)
            weighted = call.weighted(self._plugins[call.plugin], cycle, pod, nodes, scores)
            by_plugin[call.plugin] = weighted
            totals = totals + weighted
        return ScoreTable(totals, lambda: {**self._settled(scoring.remembered, nodes), **by_plugin})

    def _of(self, calls: Sequence[PluginCall], skipped: AbstractSet[str]) -> _Scoring:
        """Which score plugins have a say."""
        known = self._scoring
        if known is None or known.all_calls is not calls or known.skipped != skipped:
            active = [call for call in calls if call.plugin not in skipped]
            remembered = [call for call in active if call.plugin in self._dependencies]
            by_pods = [call for call in remembered if self._dependencies[call.plugin].pods]
            by_row = not any(map(self._normalizes, by_pods))
            known = self._scoring = _Scoring(calls, frozenset(skipped), active, remembered, by_pods, by_row)
        return known

    def _normalizes(self, call: PluginCall) -> bool:
        return getattr(self._plugins[call.plugin], "normalize_score", None) is not None

    def _is_settled(self, call: PluginCall) -> bool:
        """Whether what a plugin gives to nodes is in the totals already."""
        scored = self._scored.get(call.plugin)
        return scored is not None and (not scored.normalizes or scored.same is not None)

    def _settled(self, calls: Sequence[PluginCall], nodes: Nodes) -> dict[str, Scores]:
        """What remembered plugins give to nodes, where it does not depend on which nodes are feasible."""
        settled = {}
        for call in calls:
            scored = self._scored[call.plugin]
            if not scored.normalizes:
                settled[call.plugin] = nodes.pick(scored.raw) * call.weight
            elif scored.same is not None:
                settled[call.plugin] = np.full(len(nodes), scored.constant, np.int64)
        return settled

    def _catch_up(self, scoring: _Scoring, cycle: CycleState, pod: Pod) -> None:
        """Bring all remembered scores up to date."""
        snapshot, calls = self._snapshot, scoring.remembered
        changed = snapshot.changes.since(self._seen)
        self._seen = _NEVER  # Should a plugin fail half-way, the next pod starts anew.
        if changed is None or len(changed) * 4 > len(snapshot):
            for call in calls:
                raw = np.array(call.scores(cycle, pod, Nodes(snapshot)))
                self._scored[call.plugin] = _Scored(
                    self._dependencies[call.plugin], raw, self._normalizes(call)
                )
            self._sum(scoring, cycle, pod)
        else:
            stale_images = self._images_seen != snapshot.images.version
            nodes_changed = snapshot.node_changes.since(self._nodes_seen) if changed else ()
            if stale_images or nodes_changed is None or nodes_changed:
                self._rescore_nodes(scoring, cycle, pod, changed, stale_images=stale_images)
            elif changed:
                self._rescore(scoring, cycle, pod, changed)
        self._images_seen = snapshot.images.version
        self._seen = snapshot.changes.position
        self._nodes_seen = snapshot.node_changes.position

    def _rescore(self, scoring: _Scoring, cycle: CycleState, pod: Pod, changed: list[int]) -> None:
        """Score nodes anew where only pods have changed."""
        by_pods = scoring.by_pods
        if len(changed) >= WORTH_COLUMNS or not scoring.by_row:
            for call in by_pods:
                self._score_rows(call, self._scored[call.plugin], cycle, pod, changed)
            self._sum(scoring, cycle, pod)
            return
        for row in changed:
            more = 0
            view = NodeView(self._snapshot, row)
            for call in by_pods:
                raw = self._scored[call.plugin].raw
                before = int(raw[row])
                score = call.score_of(cycle, pod, view)
                if score != before:
                    raw[row] = score
                    more += (score - before) * call.weight
            if more:
                self._totals[row] += more

    def _rescore_nodes(
        self, scoring: _Scoring, cycle: CycleState, pod: Pod, changed: list[int], *, stale_images: bool
    ) -> None:
        """Score nodes anew where anything has changed."""
        for call in scoring.remembered:
            scored = self._scored[call.plugin]
            if stale_images and scored.depends_on.images:
                scored.raw[:] = call.scores(cycle, pod, Nodes(self._snapshot))
            elif changed:
                self._score_rows(call, scored, cycle, pod, changed)
        self._sum(scoring, cycle, pod)

    def _score_rows(
        self, call: PluginCall, scored: _Scored, cycle: CycleState, pod: Pod, changed: list[int]
    ) -> None:
        rows = np.array(changed, np.intp)
        scored.raw[rows] = call.scores(cycle, pod, Nodes(self._snapshot, rows))

    def _sum(self, scoring: _Scoring, cycle: CycleState, pod: Pod) -> None:
        """Add up what does not depend on which nodes are feasible."""
        totals = np.zeros(len(self._snapshot), np.int64)
        for call in scoring.remembered:
            scored = self._scored[call.plugin]
            if not scored.normalizes:
                plugin, everywhere = self._plugins[call.plugin], Nodes(self._snapshot)
                totals += call.weighted(plugin, cycle, pod, everywhere, scored.raw)
                continue
            first = int(scored.raw[0]) if len(scored.raw) else 0
            scored.same = first if (scored.raw == first).all() else None
            if scored.same is not None:
                one, plugin = Nodes(self._snapshot, np.zeros(1, np.intp)), self._plugins[call.plugin]
                scored.constant = int(call.weighted(plugin, cycle, pod, one, scored.raw[:1])[0])
                totals += scored.constant
        self._totals = totals
        scoring.open = None
