"""Filter results of every node for the pods of one equivalence class.

Filters are cached up to the first that cannot be: a node is rejected by the first filter that rejects it, and
the filters after that must see only the nodes that are left.

Nominated pods of equal or higher priority count as if they were there, and as if they were not: a node where
some are nominated must pass both times.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.cluster.pod_table import PodInfo
from moorage.cluster.row_log import RowLog
from moorage.cluster.snapshot import Snapshot
from moorage.framework.cache.filter_codes import FilterCodes, SharedFilterCodes
from moorage.framework.cache.plugin_answers import PluginAnswers
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.hypothetical_pods import HypotheticalPods
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.framework.runtime.plan import FilterPlan
from moorage.framework.runtime.plugin_call import PluginCall

MIN_COLUMNAR_ROWS: Final = 12
"""Number of nodes from which on columns are faster than one node at a time."""
_MIN_COLUMNAR_LOADS: Final = 48
"""The same where only pods on the nodes have changed: most filters need not be called then."""

_NEVER: Final = -1
"""Log position before the first write; forces a full evaluation."""


Rows = list[int] | NDArray[np.intp]
"""Rows of a snapshot, each once: a list if they are few."""


def changes_since(
    position: int, log: RowLog, snapshot: Snapshot, max_share: float, max_rows: int = 0
) -> Rows | None:
    """The rows that changed since a position; None if all nodes are to be evaluated again.

    max_share: the share of nodes up to which only the changed ones are; max_rows: their number, if larger.
    """
    writes = log.position - position
    if writes <= MIN_COLUMNAR_ROWS:
        return log.since(position)
    if writes > max_rows and writes > max_share * len(snapshot):
        return None
    rows = log.array_since(position, len(snapshot))
    return rows if rows is None or len(rows) >= MIN_COLUMNAR_ROWS else rows.tolist()


class CachedFilters:
    """The results of one profile's filters for one equivalence class."""

    __slots__ = (
        "_filtered_by",
        "_log",
        "_nodes_seen",
        "_open_after",
        "_plan",
        "_priority",
        "_results",
        "_seen",
        "_shared",
        "_shared_codes",
        "_snapshot",
    )

    def __init__(
        self,
        snapshot: Snapshot,
        priority: int,
        shared: Mapping[str, PluginAnswers],
        shared_codes: SharedFilterCodes,
        log: RowLog,
    ) -> None:
        """shared: the plugins whose results are kept for other classes, too; shared_codes: their codes.

        log: the changes of the snapshot that results depend on.
        """
        self._snapshot = snapshot
        self._log = log
        self._priority = priority
        self._shared = shared
        self._shared_codes = shared_codes
        self._results = FilterCodes()
        self._seen = self._nodes_seen = _NEVER
        self._filtered_by: list[str] = []
        self._plan: FilterPlan | None = None
        self._open_after: dict[str, Sequence[PluginCall]] = {}
        """By the filter that rejected a node: the filters that may answer otherwise with other pods on it."""

    def _check_plan(self, plan: FilterPlan) -> None:
        """Discard all results if the set of cached filters has changed."""
        if plan is not self._plan:
            self._plan = plan
            self._open_after = {}
            names = [call.plugin for call in plan.cached]
            if names != self._filtered_by:
                self._filtered_by, self._seen = names, _NEVER

    def filter(
        self, plan: FilterPlan, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis
    ) -> Nodes:
        """The nodes that the cached filters let pass."""
        self._check_plan(plan)
        nominated_to = self._snapshot.nominated.node_of(pod.uid)
        own = None if nominated_to is None else self._snapshot.row_of.get(nominated_to)
        if own is not None and nodes.rows is not None and nodes.rows.tolist() == [own]:
            return self._filter_own(plan, cycle, pod, nodes, diagnosis)
        self._catch_up(plan, cycle, pod)
        results = self._results
        if own is not None:
            results = results.copy()
            results.write(own, self._code_without(self._open_calls(plan, own, ()), cycle, pod, own))
        if nodes.rows is None:
            passing = results.passing()
            if passing is None:
                return nodes
            diagnosis.refuse_cached(nodes, results.lend(), results.refusals, results.counts())
            return Nodes(self._snapshot, passing)
        here = nodes.pick(results.codes)
        if not here.any():
            return nodes
        diagnosis.refuse_cached(nodes, here, results.refusals)
        return nodes.where(here == 0)

    def _filter_own(
        self, plan: FilterPlan, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis
    ) -> Nodes:
        """As `filter`, for the node that a pod is nominated to: its result is valid for this pod only."""
        assert nodes.rows is not None
        row = int(nodes.rows[0])
        nodes_changed = None if self._seen == _NEVER else self._snapshot.node_changes.since(self._nodes_seen)
        calls = self._open_calls(plan, row, nodes_changed)
        code = self._code_without(calls, cycle, pod, row)
        if not code:
            return nodes
        diagnosis.refuse_cached(nodes, np.array((code,), np.int16), self._results.refusals)
        return Nodes(self._snapshot, nodes.rows[:0])

    def _catch_up(self, plan: FilterPlan, cycle: CycleState, pod: Pod) -> None:
        """Bring the results up to date."""
        snapshot, calls = self._snapshot, plan.cached
        # In a full evaluation, every node with nominated pods is filtered once more.
        max_rows = len(snapshot.nominated)
        changed = changes_since(self._seen, self._log, snapshot, plan.max_changed_share, max_rows)
        self._seen = _NEVER  # If a plugin fails half-way, the next pod starts from scratch.
        if changed is None:
            self._filter_all(calls, cycle, pod)
            if snapshot.nominated:
                names = (name for name, _ in snapshot.nominated.items())
                rows = [snapshot.row_of[name] for name in names if name in snapshot.row_of]
                self._filter_nominated(plan, cycle, pod, rows)
        elif len(changed):
            self._refilter(plan, cycle, pod, changed)
        self._seen = self._log.position
        self._nodes_seen = snapshot.node_changes.position

    def _refilter(self, plan: FilterPlan, cycle: CycleState, pod: Pod, changed: Rows) -> None:
        results = self._results
        nodes_changed = self._snapshot.node_changes.since(self._nodes_seen)
        if _is_for_columns(plan, len(changed), nodes_changed):
            rows = np.asarray(changed, np.intp)
            results.write(rows, 0)
            self._filter_nodes(plan.cached, cycle, pod, Nodes(self._snapshot, rows))
            self._filter_nominated(plan, cycle, pod, changed)
            return
        for row in changed if isinstance(changed, list) else changed.tolist():
            before = int(results.codes[row])
            calls = self._open_calls(plan, row, nodes_changed)
            with_nominated = self._code_with_nominated(calls, cycle, pod, row)
            code = with_nominated or self._filter_row(calls, cycle, pod, row, ())
            if code != before:
                results.write_row(row, code)

    def _open_calls(
        self, plan: FilterPlan, row: int, nodes_changed: Container[int] | None
    ) -> Sequence[PluginCall]:
        """The filters that can answer otherwise than when a row got its code.

        On the same node, those that it passed answer alike, unless they depend on pods.
        nodes_changed: the rows whose node has changed since; None: any.
        """
        if nodes_changed is None or row in nodes_changed:
            return plan.cached
        code = int(self._results.codes[row])
        return self._open_from(plan, self._results.refusals[code - 1].plugin) if code else plan.by_pods

    def _open_from(self, plan: FilterPlan, rejected_by: str) -> Sequence[PluginCall]:
        found = self._open_after.get(rejected_by)
        if found is None:
            by_pods = {call.plugin for call in plan.by_pods}
            first = self._filtered_by.index(rejected_by)
            found = self._open_after[rejected_by] = [
                call for number, call in enumerate(plan.cached) if number >= first or call.plugin in by_pods
            ]
        return found

    def _filter_nominated(self, plan: FilterPlan, cycle: CycleState, pod: Pod, rows: Rows) -> None:
        """Filter nodes that have just been filtered once more, with the pods nominated to them added."""
        snapshot = self._snapshot
        if not snapshot.nominated:
            return
        added = {row: pods for row in np.asarray(rows).tolist() if (pods := self._nominated(row))}
        if len(added) < MIN_COLUMNAR_ROWS:
            for row, pods in added.items():
                if code := self._filter_row(self._open_calls(plan, row, ()), cycle, pod, row, pods):
                    self._results.write_row(row, code)
            return
        places = [(place, info) for place, pods in enumerate(added.values()) for info in pods]
        with_pods = HypotheticalPods(snapshot, len(added), added=places)
        self._filter_nodes(plan.cached, cycle, pod, Nodes(snapshot, np.array([*added]), with_pods))

    def _nominated(self, row: int, but: str = "") -> tuple[PodInfo, ...]:
        """The pods nominated to a node that count before this class."""
        nominated = self._snapshot.nominated.on(self._snapshot.names[row])
        if not nominated:
            return ()
        return tuple([i for i in nominated if i.priority >= self._priority and i.pod.uid != but])

    def _code_with_nominated(
        self, calls: Sequence[PluginCall], cycle: CycleState, pod: Pod, row: int, but: str = ""
    ) -> int:
        """The result of a node with the pods nominated to it that count before this class; 0 without any."""
        added = self._nominated(row, but)
        return self._filter_row(calls, cycle, pod, row, added) if added else 0

    def _code_without(self, calls: Sequence[PluginCall], cycle: CycleState, pod: Pod, row: int) -> int:
        """The result of a node for a pod that is nominated to it: its own nomination does not count."""
        with_others = self._code_with_nominated(calls, cycle, pod, row, pod.uid)
        return with_others or self._filter_row(calls, cycle, pod, row, ())

    def _filter_all(self, calls: Sequence[PluginCall], cycle: CycleState, pod: Pod) -> None:
        """Filter all nodes. Cached filters may see nodes that others rejected: the first rejection counts."""
        snapshot = self._snapshot
        results, rest = self._shared_codes.of(calls, self._shared, cycle, pod, snapshot)
        self._results = results
        everywhere = Nodes(snapshot)
        for number, call in enumerate(rest):
            passing = results.passing()
            if passing is not None and len(passing) * 2 < len(snapshot):
                if len(passing):
                    self._filter_nodes(rest[number:], cycle, pod, Nodes(snapshot, passing))
                break
            answers = self._shared.get(call.plugin)
            if answers is None:
                results.add(call.plugin, call.filter(cycle, pod, everywhere))
            else:
                results.add(call.plugin, answers.filter(call, cycle, pod))

    def _filter_nodes(self, calls: Sequence[PluginCall], cycle: CycleState, pod: Pod, nodes: Nodes) -> None:
        """Filter some nodes; the codes of those that are rejected are written."""
        for call in calls:
            result = call.filter(cycle, pod, nodes)
            if result.codes is None or not result.codes.any():
                continue
            assert nodes.rows is not None
            self._results.write(nodes.rows, self._results.table(call.plugin, result)[result.codes])
            nodes = nodes.where(result.codes == 0)
            if not len(nodes):
                break

    def _filter_row(
        self, calls: Sequence[PluginCall], cycle: CycleState, pod: Pod, row: int, added: tuple[PodInfo, ...]
    ) -> int:
        view = NodeView(self._snapshot, row, added)
        for call in calls:
            reason = call.filter_node(cycle, pod, view)
            if reason is not None:
                return self._results.code(call.plugin, reason)
        return 0


def _is_for_columns(plan: FilterPlan, changed: int, nodes_changed: list[int] | None) -> bool:
    """Whether columns are the faster way to filter a number of rows again.

    nodes_changed: the rows whose node has changed.
    """
    if changed < MIN_COLUMNAR_ROWS or changed >= _MIN_COLUMNAR_LOADS:
        return changed >= MIN_COLUMNAR_ROWS
    return nodes_changed != [] or any(call.one_node is None for call in plan.cached)
