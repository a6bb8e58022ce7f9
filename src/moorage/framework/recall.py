"""What a profile's plugins have said of every node for pods of one template, kept true by what changes.

A plugin that says what its answers rest on (`basis`) is asked about all nodes once, and from then on only
about nodes where that has changed: one or two between one pod and the next. So a cycle costs what happened
since the last one of its template, and a few operations on whole columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.cluster.snapshot import Snapshot
from moorage.framework.basis import Basis, BasisPlugin
from moorage.framework.cycle import CycleState, StateKey
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.nodes import Nodes
from moorage.framework.points import Plugin
from moorage.framework.recalled_filters import RecalledFilters
from moorage.framework.recalled_scores import RecalledScores
from moorage.framework.scores import ScoreTable
from moorage.framework.status import SUCCESS, Code, Status
from moorage.framework.step import Step


class Recall:
    """One profile's memory for one template, over one snapshot as it moves."""

    def __init__(self, plugins: dict[str, Plugin], pod: Pod, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.bases: dict[str, Basis] = {}
        """The plugins whose answers are remembered."""
        self.prepared = CycleState()
        """What they wrote down, and where they stepped aside."""
        self._written_by: dict[str, AbstractSet[StateKey[Any]]] = {}
        for name, plugin in plugins.items():
            if isinstance(plugin, BasisPlugin):
                basis = Step(name, "basis", plugin.basis)(pod, snapshot.objects)
                if basis is not None:
                    self.bases[name] = basis
        self._tables = self._side_tables()
        self._versions = self._side_versions()
        self._filters = RecalledFilters(snapshot, self.bases, pod.priority)
        self._scores = RecalledScores(snapshot, self.bases, plugins)

    def _side_tables(self) -> tuple[type[Object], ...]:
        return tuple({table: None for basis in self.bases.values() for table in basis.tables})

    def _side_versions(self) -> list[int]:
        return [self.snapshot.objects.of(table).version for table in self._tables]

    def holds(self, snapshot: Snapshot) -> bool:
        """Whether this is about that snapshot, and nothing beside its rows has changed that matters."""
        return self.snapshot is snapshot and (not self._tables or self._versions == self._side_versions())

    def prepare(self, pre_filters: Sequence[Step], pre_scores: Sequence[Step], pod: Pod) -> None:
        """Let the plugins that are remembered prepare themselves, once for all pods of the template."""
        everywhere = Nodes(self.snapshot)
        for step in pre_filters:
            if step.plugin in self.bases:
                before = self.prepared.keys()
                answer = step(self.prepared, pod, everywhere)
                self._written_by[step.plugin] = self.prepared.keys() - before
                if isinstance(answer, Status) and answer.code is Code.SKIP:
                    self.prepared.skip_filter.add(step.plugin)
                elif answer is not None and answer != SUCCESS:
                    del self.bases[step.plugin]  # It narrows the search, or refuses: that is said every time.
        for step in pre_scores:
            if step.plugin in self.bases:
                status = step.status(self.prepared, pod, everywhere)
                if status is not None and status.code is Code.SKIP:
                    self.prepared.skip_score.add(step.plugin)
                elif status is not None and status.code is not Code.SUCCESS:
                    raise step.failed(status.message or status.code.value)

    def take_back(self, cycle: CycleState, plugins: AbstractSet[str]) -> None:
        """Let a cycle forget what plugins prepared in their pre-filters."""
        for plugin in plugins & self._written_by.keys():
            for key in self._written_by[plugin]:
                cycle.delete(key)

    def split(
        self, steps: Sequence[Step], skipped: AbstractSet[str]
    ) -> tuple[Sequence[Step], Sequence[Step]]:
        """The filters that have a say: those up to the first that is not remembered, and the others."""
        return self._filters.split(steps, skipped)

    def filter(
        self, steps: Sequence[Step], cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis
    ) -> Nodes:
        """The nodes that some filters let pass, all of them remembered: the first half of `split`."""
        return self._filters.filter(steps, cycle, pod, nodes, diagnosis)

    def score(self, steps: Sequence[Step], cycle: CycleState, pod: Pod, nodes: Nodes) -> ScoreTable:
        """What the score plugins that did not step aside, remembered or not, make of nodes."""
        return self._scores.score(steps, cycle, pod, nodes)
