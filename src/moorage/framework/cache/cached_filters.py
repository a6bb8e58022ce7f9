"""Filter results of every node for the pods of one equivalence class.

Filters are cached up to the first that cannot be: a node is rejected by the first filter that rejects it, and
the filters after that must see only the nodes that are left.

Nominated pods of equal or higher priority count as if they were there, and as if they were not: a node where
some are nominated must pass both times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.cluster.pod_table import PodInfo
from moorage.cluster.snapshot import Snapshot
from moorage.framework.cache.plugin_answers import PluginAnswers
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis, Refusal
from moorage.framework.interface.filter_result import FilterResult, Reason
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.framework.runtime.plan import FilterPlan
from moorage.framework.runtime.plugin_call import PluginCall

MIN_COLUMNAR_ROWS: Final = 12
"""Number of nodes from which on columns are faster than one node at a time."""

_NEVER: Final = -1
"""Log position before the first write; forces a full evaluation."""


def changes_since(position: int, snapshot: Snapshot, max_share: float) -> list[int] | None:
    """The rows that changed since a position; None if all nodes are to be evaluated again.

    max_share: the share of nodes up to which only the changed ones are.
    """
    log = snapshot.changes
    writes = log.position - position
    if writes > MIN_COLUMNAR_ROWS and writes > max_share * len(snapshot):
        return None
    return log.since(position)


class CachedFilters:
    """The results of one profile's filters for one equivalence class."""

    def __init__(self, snapshot: Snapshot, priority: int, shared: Mapping[str, PluginAnswers]) -> None:
        """shared: the plugins whose results are kept for other classes, too."""
        self._snapshot = snapshot
        self._priority = priority
        self._shared = shared
        self._codes = np.zeros(0, np.int16)
        """For each row 0, or why it was rejected: 1 + index into `_refusals`."""
        self._refusals: list[Refusal] = []
        self._known: dict[Refusal, int] = {}
        self._passing: NDArray[np.intp] | None = None
        self._seen = self._nodes_seen = _NEVER
        self._filtered_by: list[str] = []
        self._plan: FilterPlan | None = None

    def _check_plan(self, plan: FilterPlan) -> None:
        """Discard all results if the set of cached filters has changed."""
        if plan is not self._plan:
            self._plan = plan
            names = [call.plugin for call in plan.cached]
            if names != self._filtered_by:
                self._filtered_by, self._seen = names, _NEVER

    def filter(
        self, plan: FilterPlan, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis
    ) -> Nodes:
        """The nodes that the cached filters let pass."""
        calls = plan.cached
        self._check_plan(plan)
        self._catch_up(plan, cycle, pod)
        codes = self._codes
        nominated_to = self._snapshot.nominated.node_of(pod.uid)
        own = None if nominated_to is None else self._snapshot.row_of.get(nominated_to)
        if own is not None:
            codes = codes.copy()
            codes[own] = self._code_without(calls, cycle, pod, own)
        elif nodes.rows is None:
            passing = self._rows_passing()
            if passing is None:
                return nodes
            diagnosis.refuse_cached(nodes, codes, self._refusals)
            return Nodes(self._snapshot, passing)
        here = nodes.pick(codes)
        if not here.any():
            return nodes
        diagnosis.refuse_cached(nodes, here, self._refusals)
        return nodes.where(here == 0)

    def _catch_up(self, plan: FilterPlan, cycle: CycleState, pod: Pod) -> None:
        """Bring `_codes` up to date."""
        snapshot, calls = self._snapshot, plan.cached
        changed = changes_since(self._seen, snapshot, plan.max_changed_share)
        self._seen = _NEVER  # If a plugin fails half-way, the next pod starts from scratch.
        if changed is None:
            self._filter_all(calls, cycle, pod)
            if snapshot.nominated:
                names = (name for name, _ in snapshot.nominated.items())
                rows = [snapshot.row_of[name] for name in names if name in snapshot.row_of]
                self._filter_nominated(calls, cycle, pod, rows)
        elif changed:
            self._refilter(plan, cycle, pod, changed)
        self._seen = snapshot.changes.position
        self._nodes_seen = snapshot.node_changes.position

    def _refilter(self, plan: FilterPlan, cycle: CycleState, pod: Pod, changed: list[int]) -> None:
        calls = plan.cached
        if len(changed) >= MIN_COLUMNAR_ROWS:
            rows = np.array(changed, np.intp)
            self._codes[rows] = 0
            self._filter_rows(calls, cycle, pod, rows)
            self._filter_nominated(calls, cycle, pod, changed)
            return
        nodes_changed = self._snapshot.node_changes.since(self._nodes_seen)
        for row in changed:
            before = int(self._codes[row])
            # Where all filters passed, only the results of filters that depend on pods can have changed.
            is_same_node = before == 0 and nodes_changed is not None and row not in nodes_changed
            code = self._filter_row(plan.by_pods if is_same_node else calls, cycle, pod, row, ())
            if code != before:
                self._codes[row] = code
                if not before or not code:
                    self._passing = None
        self._filter_nominated(calls, cycle, pod, changed)

    def _filter_nominated(
        self, calls: Sequence[PluginCall], cycle: CycleState, pod: Pod, rows: list[int]
    ) -> None:
        """Filter nodes a second time, with the pods nominated to them added."""
        nominated, names = self._snapshot.nominated, self._snapshot.names
        if not nominated:
            return
        for row in rows:
            added = self._nominated_before(nominated.on(names[row]))
            if added and (code := self._filter_row(calls, cycle, pod, row, added)):
                self._codes[row] = code
                self._passing = None

    def _nominated_before(self, nominated: tuple[PodInfo, ...], but: str = "") -> tuple[PodInfo, ...]:
        """The pods that count before those of this class."""
        return tuple(i for i in nominated if i.pod.priority >= self._priority and i.pod.uid != but)

    def _code_without(self, calls: Sequence[PluginCall], cycle: CycleState, pod: Pod, row: int) -> int:
        """The result of a node for a pod that is nominated to it: its own nomination does not count."""
        added = self._nominated_before(self._snapshot.nominated.on(self._snapshot.names[row]), pod.uid)
        with_others = self._filter_row(calls, cycle, pod, row, added) if added else 0
        return with_others or self._filter_row(calls, cycle, pod, row, ())

    def _filter_all(self, calls: Sequence[PluginCall], cycle: CycleState, pod: Pod) -> None:
        """Filter all nodes. Cached filters may see nodes that others rejected: the first rejection counts."""
        rows = len(self._snapshot)
        codes = self._codes = np.zeros(rows, np.int16)
        everywhere, passing = Nodes(self._snapshot), rows
        for number, call in enumerate(calls):
            if passing * 2 < rows:
                if passing:
                    self._filter_rows(calls[number:], cycle, pod, np.flatnonzero(codes == 0))
                break
            answers = self._shared.get(call.plugin)
            if answers is None:
                result = call.filter(cycle, pod, everywhere)
            else:
                result = answers.filter(call, cycle, pod)
            if result.codes is None or not result.codes.any():
                continue
            found = self._table(call.plugin, result)[result.codes]
            if passing < rows:
                np.copyto(codes, found, where=codes == 0)
            else:
                codes[:] = found
            passing = rows - int(np.count_nonzero(codes))
        self._passing = np.arange(rows) if passing == rows else None

    def _filter_rows(
        self, calls: Sequence[PluginCall], cycle: CycleState, pod: Pod, rows: NDArray[np.intp]
    ) -> None:
        """Filter some nodes, which have passed so far."""
        nodes = Nodes(self._snapshot, rows)
        for call in calls:
            result = call.filter(cycle, pod, nodes)
            if result.codes is None or not result.codes.any():
                continue
            assert nodes.rows is not None
            self._codes[nodes.rows] = self._table(call.plugin, result)[result.codes]
            nodes = nodes.where(result.codes == 0)
            if not len(nodes):
                break
        self._passing = None

    def _table(self, plugin: str, result: FilterResult) -> NDArray[np.int16]:
        """The codes here of a filter's reasons, by its own codes."""
        return np.array([0, *(self._code(plugin, each) for each in result.reasons)], np.int16)

    def _filter_row(
        self, calls: Sequence[PluginCall], cycle: CycleState, pod: Pod, row: int, added: tuple[PodInfo, ...]
    ) -> int:
        view = NodeView(self._snapshot, row, added)
        for call in calls:
            reason = call.filter_node(cycle, pod, view)
            if reason is not None:
                return self._code(call.plugin, reason)
        return 0

    def _code(self, plugin: str, reason: Reason) -> int:
        refusal = Refusal(plugin, reason)
        code = self._known.get(refusal)
        if code is None:
            self._refusals.append(refusal)
            code = self._known[refusal] = len(self._refusals)
        return code

    def _rows_passing(self) -> NDArray[np.intp] | None:
        """The rows that passed all cached filters; None: all of them."""
        if self._passing is None:
            self._passing = np.flatnonzero(self._codes == 0)
        return None if len(self._passing) == len(self._codes) else self._passing
