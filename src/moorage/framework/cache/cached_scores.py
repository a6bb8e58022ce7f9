"""Scores of every node for the pods of one equivalence class.

A class keeps one number for each node: the sum of all scores that do not depend on which nodes are feasible.
The scores of single plugins are kept only where they do depend on that, because they are normalised, and
where they do not change with the pods on a node: then they are usually shared with other classes
(`plugin_answers`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.cluster.row_log import RowLog
from moorage.cluster.snapshot import Snapshot
from moorage.framework.cache.cached_filters import MIN_COLUMNAR_ROWS, Rows, changes_since
from moorage.framework.cache.plugin_answers import NodeScores, PluginAnswers, normalizes
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.dependencies import DependsOn
from moorage.framework.interface.extension_points import MAX_SCORE, Plugin, Scores
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.framework.runtime.plan import ScorePlan
from moorage.framework.runtime.plugin_call import PluginCall
from moorage.framework.runtime.scores import ScoreTable

_NEVER: Final = -1
_NO_TOTALS: Final = np.zeros(0, np.int16)
_TOTAL_TYPES: Final = [(np.iinfo(each).max // MAX_SCORE, each) for each in (np.int16, np.int32, np.int64)]
"""The types of totals, with the sum of plugin weights up to which every total fits."""


class CachedScores:
    """The scores of one profile's plugins for one equivalence class."""

    __slots__ = (
        "_constant",
        "_dependencies",
        "_images_seen",
        "_kept",
        "_log",
        "_nodes_seen",
        "_open",
        "_plan",
        "_plugins",
        "_seen",
        "_shared",
        "_snapshot",
        "_summed",
        "_totals",
        "_varying",
    )

    def __init__(
        self,
        snapshot: Snapshot,
        dependencies: Mapping[str, DependsOn],
        plugins: Mapping[str, Plugin],
        shared: Mapping[str, PluginAnswers],
        log: RowLog,
    ) -> None:
        """shared: the plugins whose scores are kept for other classes, too.

        log: the changes of the snapshot that scores depend on.
        """
        self._snapshot = snapshot
        self._log = log
        self._dependencies = dependencies
        self._plugins = plugins
        self._shared = shared
        self._seen = self._nodes_seen = self._images_seen = _NEVER
        self._plan: ScorePlan | None = None
        self._totals: NDArray[Any] = _NO_TOTALS
        """For each row the weighted sum of the scores that do not depend on which nodes are feasible."""
        self._summed: Mapping[str, PluginCall] = {}
        """The plugins whose scores are kept in the totals alone: they depend on the pods on a node."""
        self._kept: dict[str, NodeScores] = {}
        """The scores of the other cached plugins."""
        self._constant = 0
        """The part of the totals that is the same on all nodes."""
        self._varying: Sequence[tuple[NodeScores, int]] = ()
        """The kept scores in the totals that are not, with their weights."""
        self._open: Sequence[PluginCall] = ()
        """The plugins whose scores depend on which nodes are feasible."""

    def score(self, plan: ScorePlan, cycle: CycleState, pod: Pod, nodes: Nodes) -> ScoreTable:
        """The scores of nodes by all score plugins that run, cached or not."""
        if plan is not self._plan:
            self._check_plan(plan)
        self._catch_up(plan, cycle, pod)
        totals = nodes.pick(self._totals)
        by_plugin: dict[str, Scores] = {}
        for call in self._open:
            kept = self._kept.get(call.plugin)
            scores = call.score(cycle, pod, nodes) if kept is None else nodes.pick(kept.raw)
            weighted = call.weighted(self._plugins[call.plugin], cycle, pod, nodes, scores)
            by_plugin[call.plugin] = weighted
            totals = totals + weighted
        return ScoreTable(totals, lambda: {**self._parts_of_totals(plan, cycle, pod, nodes), **by_plugin})

    def _check_plan(self, plan: ScorePlan) -> None:
        """Discard all scores if the set of cached score plugins has changed."""
        if self._plan is None or plan.cached != self._plan.cached:
            self._seen = _NEVER
            self._summed = {call.plugin: call for call in plan.by_pods if not self._normalizes(call)}
        else:
            self._find_open(plan)
        self._plan = plan

    def _normalizes(self, call: PluginCall) -> bool:
        return normalizes(self._plugins[call.plugin])

    def _find_open(self, plan: ScorePlan) -> None:
        self._open = [call for call in plan.active if not self._is_in_totals(call.plugin)]

    def _is_in_totals(self, plugin: str) -> bool:
        """Whether a plugin's scores are in the totals already."""
        if plugin in self._summed:
            return True
        kept = self._kept.get(plugin)
        return kept is not None and (not kept.normalizes or kept.constant is not None)

    def _parts_of_totals(
        self, plan: ScorePlan, cycle: CycleState, pod: Pod, nodes: Nodes
    ) -> dict[str, Scores]:
        """The scores of nodes that are in the totals, by plugin."""
        parts = {}
        for call in plan.cached:
            kept = self._kept.get(call.plugin)
            if kept is None:
                parts[call.plugin] = self._weighted(call, cycle, pod, nodes)
            elif kept.constant is not None:
                parts[call.plugin] = np.full(len(nodes), kept.constant, np.int64)
            elif not kept.normalizes:
                parts[call.plugin] = nodes.pick(kept.raw) * call.weight
        return parts

    def _weighted(self, call: PluginCall, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        scores = call.score(cycle, pod, nodes)
        return call.weighted(self._plugins[call.plugin], cycle, pod, nodes, scores)

    def _catch_up(self, plan: ScorePlan, cycle: CycleState, pod: Pod) -> None:
        """Bring all cached scores up to date."""
        snapshot = self._snapshot
        changed = changes_since(self._seen, self._log, snapshot, plan.max_changed_share)
        self._seen = _NEVER  # If a plugin fails half-way, the next pod starts from scratch.
        if changed is None:
            self._score_all(plan, cycle, pod)
        else:
            stale_images = self._images_seen != snapshot.images.version
            nodes_changed = snapshot.node_changes.since(self._nodes_seen) if len(changed) else ()
            if stale_images or nodes_changed is None or nodes_changed:
                self._rescore_nodes(plan, cycle, pod, changed, stale_images=stale_images)
            elif len(changed):
                self._rescore(plan, cycle, pod, changed)
        self._images_seen = snapshot.images.version
        self._seen = self._log.position
        self._nodes_seen = snapshot.node_changes.position

    def _score_all(self, plan: ScorePlan, cycle: CycleState, pod: Pod) -> None:
        """Score all nodes."""
        nodes = Nodes(self._snapshot)
        for call in plan.cached:
            if call.plugin not in self._summed:
                self._kept[call.plugin] = self._kept_scores(call, cycle, pod)
        self._find_parts(plan)
        total_type = next(each for max_weight, each in _TOTAL_TYPES if plan.cached_weight <= max_weight)
        totals: NDArray[Any] = np.full(len(nodes), self._constant, total_type)
        for kept, weight in self._varying:
            totals += kept.raw * weight
        for call in self._summed.values():
            totals += self._weighted(call, cycle, pod, nodes)
        self._totals = totals

    def _kept_scores(self, call: PluginCall, cycle: CycleState, pod: Pod) -> NodeScores:
        """The scores of all nodes by a plugin whose scores are kept."""
        answers = self._shared.get(call.plugin)
        if answers is not None:
            return answers.score(call, cycle, pod)
        raw = np.array(call.score(cycle, pod, Nodes(self._snapshot)), np.int64)
        kept = NodeScores(self._dependencies[call.plugin], raw, self._normalizes(call))
        self._find_constant(call, kept, cycle, pod)
        return kept

    def _find_constant(self, call: PluginCall, kept: NodeScores, cycle: CycleState, pod: Pod) -> None:
        if kept.normalizes:
            kept.find_constant(call, self._plugins[call.plugin], cycle, pod, self._snapshot)

    def _find_parts(self, plan: ScorePlan) -> None:
        """Determine what kept scores add to the totals."""
        self._constant, varying = 0, []
        for call in plan.cached:
            kept = self._kept.get(call.plugin)
            if kept is None:
                continue
            if kept.constant is not None:
                self._constant += kept.constant
            elif not kept.normalizes:
                varying.append((kept, call.weight))
        self._varying = varying
        self._find_open(plan)

    def _rescore(self, plan: ScorePlan, cycle: CycleState, pod: Pod, changed: Rows) -> None:
        """Score again the nodes where only pods have changed."""
        if len(self._summed) < len(plan.by_pods):
            for call in plan.by_pods:
                if call.plugin not in self._summed:
                    self._rescore_kept(call, cycle, pod, changed)
            self._update_totals(plan)
        self._sum_rows(cycle, pod, changed)

    def _rescore_nodes(
        self, plan: ScorePlan, cycle: CycleState, pod: Pod, changed: Rows, *, stale_images: bool
    ) -> None:
        """Score again the nodes where anything has changed."""
        for call in plan.cached:
            kept = self._kept.get(call.plugin)
            if kept is None:
                continue
            if call.plugin in self._shared or (stale_images and kept.depends_on.images):
                self._kept[call.plugin] = self._kept_scores(call, cycle, pod)
            elif len(changed):
                self._rescore_kept(call, cycle, pod, changed)
        self._update_totals(plan)
        self._sum_rows(cycle, pod, changed)

    def _rescore_kept(self, call: PluginCall, cycle: CycleState, pod: Pod, changed: Rows) -> None:
        """Score some nodes again by a plugin whose scores are kept for this class alone."""
        kept, rows = self._kept[call.plugin], np.asarray(changed, np.intp)
        kept.raw[rows] = call.score(cycle, pod, Nodes(self._snapshot, rows))
        self._find_constant(call, kept, cycle, pod)

    def _update_totals(self, plan: ScorePlan) -> None:
        """Replace what kept scores added to the totals; not for nodes whose scores were written in place."""
        constant, varying = self._constant, self._varying
        self._find_parts(plan)
        if self._constant != constant:
            self._totals += self._constant - constant
        before, now = {id(kept) for kept, _ in varying}, {id(kept) for kept, _ in self._varying}
        for kept, weight in varying:
            if id(kept) not in now:
                self._totals -= kept.raw * weight
        for kept, weight in self._varying:
            if id(kept) not in before:
                self._totals += kept.raw * weight

    def _sum_rows(self, cycle: CycleState, pod: Pod, changed: Rows) -> None:
        """Add up the totals of some nodes."""
        if len(changed) < MIN_COLUMNAR_ROWS:
            for row in changed:
                view, total = NodeView(self._snapshot, row), self._constant
                for kept, weight in self._varying:
                    total += int(kept.raw[row]) * weight
                for call in self._summed.values():
                    total += call.score_node(cycle, pod, view) * call.weight
                self._totals[row] = total
            return
        rows = np.asarray(changed, np.intp)
        nodes = Nodes(self._snapshot, rows)
        totals = np.full(len(rows), self._constant, np.int64)
        for kept, weight in self._varying:
            totals += kept.raw[rows] * weight
        for call in self._summed.values():
            totals += self._weighted(call, cycle, pod, nodes)
        self._totals[rows] = totals
