"""What score plugins have said of every node for pods of one template.

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
from moorage.framework.interface.dependencies import Basis
from moorage.framework.interface.extension_points import Plugin, Scores
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.framework.runtime.plugin_call import Step
from moorage.framework.runtime.scores import ScoreTable

_NEVER: Final = -1


@dataclass(slots=True, eq=False)
class _Scored:
    """What one plugin scores every node, before normalising."""

    basis: Basis
    raw: Scores
    normalizes: bool
    same: int | None = None
    """What every node scores, if it is the same everywhere; looked at only where scores are normalised."""
    constant: int = 0
    """What every node gets, normalised and weighted, if its score is the same everywhere."""


@dataclass(slots=True, eq=False)
class _Scoring:
    """The score plugins of a profile that have a say about the pods of a template.

    all_steps, skipped: what this is about: all score plugins, and which of them stepped aside.
    active: those that did not. remembered: of these, the ones that are.
    by_pods: of those that are remembered, the ones who look at the pods on a node.
    by_row: whether what these say of a node goes into its total as it is.
    """

    all_steps: Sequence[Step]
    skipped: AbstractSet[str]
    active: Sequence[Step]
    remembered: Sequence[Step]
    by_pods: Sequence[Step]
    by_row: bool
    open: Sequence[Step] | None = None
    """Those whose scores depend on which nodes are feasible; None: to be found out."""


class RecalledScores:
    """The scores of one profile's plugins for one template."""

    def __init__(self, snapshot: Snapshot, bases: Mapping[str, Basis], plugins: Mapping[str, Plugin]) -> None:
        self._snapshot = snapshot
        self._bases = bases
        self._plugins = plugins
        self._scored: dict[str, _Scored] = {}
        self._totals: Scores = np.zeros(0, np.int64)
        """For each row the sum of what need not be normalised, weighted."""
        self._seen = self._nodes_seen = self._images_seen = _NEVER
        self._scoring: _Scoring | None = None

    def score(self, steps: Sequence[Step], cycle: CycleState, pod: Pod, nodes: Nodes) -> ScoreTable:
        """What the score plugins that did not step aside, remembered or not, make of nodes."""
        scoring = self._of(steps, cycle.skip_score)
        self._catch_up(scoring, cycle, pod)
        if scoring.open is None:
            scoring.open = [step for step in scoring.active if not self._is_settled(step)]
        totals = self._totals if nodes.rows is None else self._totals[nodes.rows]
        by_plugin: dict[str, Scores] = {}
        for step in scoring.open:
            scored = self._scored.get(step.plugin)
            scores = step.scores(cycle, pod, nodes) if scored is None else nodes.pick(scored.raw)
            weighted = step.weighted(self._plugins[step.plugin], cycle, pod, nodes, scores)
            by_plugin[step.plugin] = weighted
            totals = totals + weighted
        return ScoreTable(totals, lambda: {**self._settled(scoring.remembered, nodes), **by_plugin})

    def _of(self, steps: Sequence[Step], skipped: AbstractSet[str]) -> _Scoring:
        """Which score plugins have a say."""
        known = self._scoring
        if known is None or known.all_steps is not steps or known.skipped != skipped:
            active = [step for step in steps if step.plugin not in skipped]
            remembered = [step for step in active if step.plugin in self._bases]
            by_pods = [step for step in remembered if self._bases[step.plugin].pods]
            by_row = not any(map(self._normalizes, by_pods))
            known = self._scoring = _Scoring(steps, frozenset(skipped), active, remembered, by_pods, by_row)
        return known

    def _normalizes(self, step: Step) -> bool:
        return getattr(self._plugins[step.plugin], "normalize_score", None) is not None

    def _is_settled(self, step: Step) -> bool:
        """Whether what a plugin gives to nodes is in the totals already."""
        scored = self._scored.get(step.plugin)
        return scored is not None and (not scored.normalizes or scored.same is not None)

    def _settled(self, steps: Sequence[Step], nodes: Nodes) -> dict[str, Scores]:
        """What remembered plugins give to nodes, where it does not depend on which nodes are feasible."""
        settled = {}
        for step in steps:
            scored = self._scored[step.plugin]
            if not scored.normalizes:
                settled[step.plugin] = nodes.pick(scored.raw) * step.weight
            elif scored.same is not None:
                settled[step.plugin] = np.full(len(nodes), scored.constant, np.int64)
        return settled

    def _catch_up(self, scoring: _Scoring, cycle: CycleState, pod: Pod) -> None:
        """Bring all remembered scores up to date."""
        snapshot, steps = self._snapshot, scoring.remembered
        changed = snapshot.changes.since(self._seen)
        self._seen = _NEVER  # Should a plugin fail half-way, the next pod starts anew.
        if changed is None or len(changed) * 4 > len(snapshot):
            for step in steps:
                raw = np.array(step.scores(cycle, pod, Nodes(snapshot)))
                self._scored[step.plugin] = _Scored(self._bases[step.plugin], raw, self._normalizes(step))
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
            for step in by_pods:
                self._score_rows(step, self._scored[step.plugin], cycle, pod, changed)
            self._sum(scoring, cycle, pod)
            return
        for row in changed:
            more = 0
            view = NodeView(self._snapshot, row)
            for step in by_pods:
                raw = self._scored[step.plugin].raw
                before = int(raw[row])
                score = step.score_of(cycle, pod, view)
                if score != before:
                    raw[row] = score
                    more += (score - before) * step.weight
            if more:
                self._totals[row] += more

    def _rescore_nodes(
        self, scoring: _Scoring, cycle: CycleState, pod: Pod, changed: list[int], *, stale_images: bool
    ) -> None:
        """Score nodes anew where anything has changed."""
        for step in scoring.remembered:
            scored = self._scored[step.plugin]
            if stale_images and scored.basis.images:
                scored.raw[:] = step.scores(cycle, pod, Nodes(self._snapshot))
            elif changed:
                self._score_rows(step, scored, cycle, pod, changed)
        self._sum(scoring, cycle, pod)

    def _score_rows(
        self, step: Step, scored: _Scored, cycle: CycleState, pod: Pod, changed: list[int]
    ) -> None:
        rows = np.array(changed, np.intp)
        scored.raw[rows] = step.scores(cycle, pod, Nodes(self._snapshot, rows))

    def _sum(self, scoring: _Scoring, cycle: CycleState, pod: Pod) -> None:
        """Add up what does not depend on which nodes are feasible."""
        totals = np.zeros(len(self._snapshot), np.int64)
        for step in scoring.remembered:
            scored = self._scored[step.plugin]
            if not scored.normalizes:
                plugin, everywhere = self._plugins[step.plugin], Nodes(self._snapshot)
                totals += step.weighted(plugin, cycle, pod, everywhere, scored.raw)
                continue
            first = int(scored.raw[0]) if len(scored.raw) else 0
            scored.same = first if (scored.raw == first).all() else None
            if scored.same is not None:
                one, plugin = Nodes(self._snapshot, np.zeros(1, np.intp)), self._plugins[step.plugin]
                scored.constant = int(step.weighted(plugin, cycle, pod, one, scored.raw[:1])[0])
                totals += scored.constant
        self._totals = totals
        scoring.open = None
