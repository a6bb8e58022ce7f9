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
from moorage.framework.basis import Basis
from moorage.framework.cycle import CycleState
from moorage.framework.nodes import Nodes, NodeView
from moorage.framework.points import Plugin, Scores
from moorage.framework.recalled_filters import WORTH_COLUMNS
from moorage.framework.scores import ScoreTable
from moorage.framework.step import Step

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
        self._scoring: tuple[Sequence[Step], AbstractSet[str], list[Step], list[Step]] | None = None

    def score(self, steps: Sequence[Step], cycle: CycleState, pod: Pod, nodes: Nodes) -> ScoreTable:
        """What the score plugins that did not step aside, remembered or not, make of nodes."""
        known = self._scoring
        if known is None or known[0] is not steps or known[1] != cycle.skip_score:
            active = [step for step in steps if step.plugin not in cycle.skip_score]
            remembered = [step for step in active if step.plugin in self._bases]
            known = self._scoring = (steps, frozenset(cycle.skip_score), active, remembered)
        _, _, active, remembered = known
        self._catch_up(remembered, cycle, pod)
        totals = self._totals if nodes.rows is None else self._totals[nodes.rows]
        by_plugin: dict[str, Scores] = {}
        for step in active:
            scored = self._scored.get(step.plugin)
            if scored is None:
                scores = step.scores(cycle, pod, nodes)
            elif scored.normalizes and scored.same is None:
                scores = nodes.pick(scored.raw)
            else:
                continue
            weighted = step.weighted(self._plugins[step.plugin], cycle, pod, nodes, scores)
            by_plugin[step.plugin] = weighted
            totals = totals + weighted
        return ScoreTable(totals, lambda: {**self._settled(remembered, nodes), **by_plugin})

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

    def _catch_up(self, steps: Sequence[Step], cycle: CycleState, pod: Pod) -> None:
        """Bring all remembered scores up to date."""
        snapshot = self._snapshot
        changed = snapshot.changes.since(self._seen)
        self._seen = _NEVER  # Should a plugin fail half-way, the next pod starts anew.
        if changed is None or len(changed) * 4 > len(snapshot):
            for step in steps:
                normalizes = getattr(self._plugins[step.plugin], "normalize_score", None) is not None
                raw = step.scores(cycle, pod, Nodes(snapshot))
                self._scored[step.plugin] = _Scored(self._bases[step.plugin], np.array(raw), normalizes)
            self._sum(steps, cycle, pod)
        else:
            stale_images = self._images_seen != snapshot.images.version
            nodes_changed = snapshot.node_changes.since(self._nodes_seen) if changed else ()
            if stale_images or nodes_changed is None or nodes_changed:
                self._rescore_nodes(steps, cycle, pod, changed, stale_images=stale_images)
            elif changed:
                self._rescore(steps, cycle, pod, changed)
        self._images_seen = snapshot.images.version
        self._seen = snapshot.changes.position
        self._nodes_seen = snapshot.node_changes.position

    def _rescore(self, steps: Sequence[Step], cycle: CycleState, pod: Pod, changed: list[int]) -> None:
        """Score nodes anew where only pods have changed."""
        by_pods = [step for step in steps if self._scored[step.plugin].basis.pods]
        if len(changed) >= WORTH_COLUMNS or any(self._scored[step.plugin].normalizes for step in by_pods):
            for step in by_pods:
                self._score_rows(step, self._scored[step.plugin], cycle, pod, changed)
            self._sum(steps, cycle, pod)
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
        self, steps: Sequence[Step], cycle: CycleState, pod: Pod, changed: list[int], *, stale_images: bool
    ) -> None:
        """Score nodes anew where anything has changed."""
        for step in steps:
            scored = self._scored[step.plugin]
            if stale_images and scored.basis.images:
                scored.raw[:] = step.scores(cycle, pod, Nodes(self._snapshot))
            elif changed:
                self._score_rows(step, scored, cycle, pod, changed)
        self._sum(steps, cycle, pod)

    def _score_rows(
        self, step: Step, scored: _Scored, cycle: CycleState, pod: Pod, changed: list[int]
    ) -> None:
        rows = np.array(changed, np.intp)
        scored.raw[rows] = step.scores(cycle, pod, Nodes(self._snapshot, rows))

    def _sum(self, steps: Sequence[Step], cycle: CycleState, pod: Pod) -> None:
        """Add up what does not depend on which nodes are feasible."""
        totals = np.zeros(len(self._snapshot), np.int64)
        for step in steps:
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
