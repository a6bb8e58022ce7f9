"""Scores of every node for the pods of one equivalence class.

Scores are kept as they are before normalising, because that depends on which nodes are feasible; where
all nodes have the same, it does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from moorage.api.pod import Pod
from moorage.cluster.snapshot import Snapshot
from moorage.framework.cache.cached_filters import MIN_COLUMNAR_ROWS, changes_since
from moorage.framework.cache.plugin_answers import NodeScores, PluginAnswers, normalizes
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.dependencies import DependsOn
from moorage.framework.interface.extension_points import Plugin, Scores
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.framework.runtime.plan import ScorePlan
from moorage.framework.runtime.plugin_call import PluginCall
from moorage.framework.runtime.scores import ScoreTable

_NEVER: Final = -1


class CachedScores:
    """The scores of one profile's plugins for one equivalence class."""

    def __init__(
        self,
        snapshot: Snapshot,
        dependencies: Mapping[str, DependsOn],
        plugins: Mapping[str, Plugin],
        shared: Mapping[str, PluginAnswers],
    ) -> None:
        """shared: the plugins whose scores are kept for other classes, too."""
        self._snapshot = snapshot
        self._dependencies = dependencies
        self._plugins = plugins
        self._shared = shared
        self._scored: dict[str, NodeScores] = {}
        self._totals: Scores = np.zeros(0, np.int64)
        """For each row the weighted sum of the scores that need no normalising."""
        self._seen = self._nodes_seen = self._images_seen = _NEVER
        self._plan: ScorePlan | None = None
        self._by_row = False
        """Whether scores that depend on pods are added to a node's total without normalising."""
        self._open: Sequence[PluginCall] | None = None
        """The plugins whose scores depend on which nodes are feasible; None: not determined yet."""

    def score(self, plan: ScorePlan, cycle: CycleState, pod: Pod, nodes: Nodes) -> ScoreTable:
        """The scores of nodes by all score plugins that run, cached or not."""
        if plan is not self._plan:
            if self._plan is None or plan.cached != self._plan.cached:
                self._seen = _NEVER
            self._plan, self._open = plan, None
            self._by_row = not any(map(self._normalizes, plan.by_pods))
        self._catch_up(plan, cycle, pod)
        if self._open is None:
            self._open = [call for call in plan.active if not self._is_in_totals(call)]
        totals = self._totals if nodes.rows is None else self._totals[nodes.rows]
        by_plugin: dict[str, Scores] = {}
        for call in self._open:
            scored = self._scored.get(call.plugin)
            scores = call.score(cycle, pod, nodes) if scored is None else nodes.pick(scored.raw)
            weighted = call.weighted(self._plugins[call.plugin], cycle, pod, nodes, scores)
            by_plugin[call.plugin] = weighted
            totals = totals + weighted
        return ScoreTable(totals, lambda: {**self._cached_scores(plan.cached, nodes), **by_plugin})

    def _normalizes(self, call: PluginCall) -> bool:
        return normalizes(self._plugins[call.plugin])

    def _is_in_totals(self, call: PluginCall) -> bool:
        """Whether a plugin's scores are in the totals already."""
        scored = self._scored.get(call.plugin)
        return scored is not None and (not scored.normalizes or scored.constant is not None)

    def _cached_scores(self, calls: Sequence[PluginCall], nodes: Nodes) -> dict[str, Scores]:
        """The cached scores of nodes that do not depend on which nodes are feasible."""
        cached_by_plugin = {}
        for call in calls:
            scored = self._scored[call.plugin]
            if scored.constant is not None:
                cached_by_plugin[call.plugin] = np.full(len(nodes), scored.constant, np.int64)
            elif not scored.normalizes:
                cached_by_plugin[call.plugin] = nodes.pick(scored.raw) * call.weight
        return cached_by_plugin

    def _catch_up(self, plan: ScorePlan, cycle: CycleState, pod: Pod) -> None:
        """Bring all cached scores up to date."""
        snapshot, calls = self._snapshot, plan.cached
        changed = changes_since(self._seen, snapshot, plan.max_changed_share)
        self._seen = _NEVER  # If a plugin fails half-way, the next pod starts from scratch.
        if changed is None:
            for call in calls:
                self._scored[call.plugin] = self._score_all(call, cycle, pod)
            self._sum(plan, cycle, pod)
        else:
            stale_images = self._images_seen != snapshot.images.version
            nodes_changed = snapshot.node_changes.since(self._nodes_seen) if changed else ()
            if stale_images or nodes_changed is None or nodes_changed:
                self._rescore_nodes(plan, cycle, pod, changed, stale_images=stale_images)
            elif changed:
                self._rescore(plan, cycle, pod, changed)
        self._images_seen = snapshot.images.version
        self._seen = snapshot.changes.position
        self._nodes_seen = snapshot.node_changes.position

    def _score_all(self, call: PluginCall, cycle: CycleState, pod: Pod) -> NodeScores:
        """Score all nodes."""
        answers = self._shared.get(call.plugin)
        if answers is not None:
            return answers.score(call, cycle, pod)
        raw = np.array(call.score(cycle, pod, Nodes(self._snapshot)))
        return NodeScores(self._dependencies[call.plugin], raw, self._normalizes(call))

    def _rescore(self, plan: ScorePlan, cycle: CycleState, pod: Pod, changed: list[int]) -> None:
        """Score again the nodes where only pods have changed."""
        by_pods = plan.by_pods
        if len(changed) >= MIN_COLUMNAR_ROWS or not self._by_row:
            for call in by_pods:
                self._score_rows(call, self._scored[call.plugin], cycle, pod, changed)
            self._sum(plan, cycle, pod)
            return
        for row in changed:
            more = 0
            view = NodeView(self._snapshot, row)
            for call in by_pods:
                raw = self._scored[call.plugin].raw
                before = int(raw[row])
                score = call.score_node(cycle, pod, view)
                if score != before:
                    raw[row] = score
                    more += (score - before) * call.weight
            if more:
                self._totals[row] += more

    def _rescore_nodes(
        self, plan: ScorePlan, cycle: CycleState, pod: Pod, changed: list[int], *, stale_images: bool
    ) -> None:
        """Score again the nodes where anything has changed."""
        for call in plan.cached:
            scored = self._scored[call.plugin]
            if call.plugin in self._shared or (stale_images and scored.depends_on.images):
                self._scored[call.plugin] = self._score_all(call, cycle, pod)
            elif changed:
                self._score_rows(call, scored, cycle, pod, changed)
        self._sum(plan, cycle, pod)

    def _score_rows(
        self, call: PluginCall, scored: NodeScores, cycle: CycleState, pod: Pod, changed: list[int]
    ) -> None:
        rows = np.array(changed, np.intp)
        scored.raw[rows] = call.score(cycle, pod, Nodes(self._snapshot, rows))

    def _sum(self, plan: ScorePlan, cycle: CycleState, pod: Pod) -> None:
        """Add up the scores that do not depend on which nodes are feasible."""
        snapshot, totals, constant = self._snapshot, np.zeros(len(self._snapshot), np.int64), 0
        for call in plan.cached:
            scored, plugin = self._scored[call.plugin], self._plugins[call.plugin]
            if scored.normalizes and call.plugin not in self._shared:
                scored.find_constant(call, plugin, cycle, pod, snapshot)
            if scored.constant is not None:
                constant += scored.constant
            elif not scored.normalizes:
                totals += call.weighted(plugin, cycle, pod, Nodes(snapshot), scored.raw)
        if constant:
            totals += constant
        self._totals = totals
        self._open = None
