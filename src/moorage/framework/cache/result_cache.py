"""Plugin results of every node for the pods of one equivalence class, updated where something has changed.

A plugin that declares what its answers depend on (`depends_on`) is called for all nodes once, and from then
on only for nodes where that has changed: one or two between one pod and the next. The cost of a cycle is
proportional to the changes since the last one of its class, plus a few operations on whole columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.cluster.snapshot import Snapshot
from moorage.framework.cache.cached_filters import CachedFilters
from moorage.framework.cache.cached_scores import CachedScores
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.dependencies import DependsOn
from moorage.framework.interface.extension_points import DependsOnPlugin, Plugin
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SUCCESS, Code, Status
from moorage.framework.runtime.plan import Choice, Plan, ProfileCalls
from moorage.framework.runtime.plugin_call import PluginCall


class PluginResultCache:
    """One profile's plugin results for one equivalence class, over one snapshot as it moves."""

    def __init__(self, plugins: Mapping[str, Plugin], pod: Pod, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.dependencies: dict[str, DependsOn] = {}
        """The plugins whose answers are cached."""
        self.prepared = CycleState()
        """The cycle state that these plugins wrote in pre_filter and pre_score."""
        self._written_by: dict[str, AbstractSet[StateKey[Any]]] = {}
        for name, plugin in plugins.items():
            if isinstance(plugin, DependsOnPlugin):
                depends_on = PluginCall(name, "depends_on", plugin.depends_on)(pod, snapshot.objects)
                if depends_on is not None:
                    self.dependencies[name] = depends_on
        self._tables = self._side_tables()
        self._versions = self._side_versions()
        self.filters = CachedFilters(snapshot, pod.priority)
        """Their filter results."""
        self.scores = CachedScores(snapshot, self.dependencies, plugins)
        """Their scores."""
        self.plan: Plan
        """Which plugins run for the pods of the class; made by `prepare`."""

    def _side_tables(self) -> tuple[type[Object], ...]:
        return tuple(
            {table: None for depends_on in self.dependencies.values() for table in depends_on.tables}
        )

    def _side_versions(self) -> list[int]:
        return [self.snapshot.objects.of(table).version for table in self._tables]

    def holds(self, snapshot: Snapshot) -> bool:
        """Whether the results are for that snapshot and nothing relevant outside its rows has changed."""
        return self.snapshot is snapshot and (not self._tables or self._versions == self._side_versions())

    def prepare(self, profile: ProfileCalls, pod: Pod, *, is_sampled: bool) -> None:
        """Run pre_filter and pre_score of the cached plugins, once for the class, and make its plan."""
        self.prepared.is_sampled = is_sampled
        everywhere = Nodes(self.snapshot)
        skipped_filters, skipped_scores = set(), set()
        for call in profile.by_method["pre_filter"]:
            if call.plugin in self.dependencies:
                before = self.prepared.keys()
                answer = call(self.prepared, pod, everywhere)
                self._written_by[call.plugin] = self.prepared.keys() - before
                if isinstance(answer, Status) and answer.code is Code.SKIP:
                    skipped_filters.add(call.plugin)
                elif answer is not None and answer != SUCCESS:
                    # It narrows the search, or rejects: it is called for every pod.
                    del self.dependencies[call.plugin]
        for call in profile.by_method["pre_score"]:
            if call.plugin in self.dependencies and call.skips(self.prepared, pod, everywhere):
                skipped_scores.add(call.plugin)
        left_out = {
            Choice.PRE_FILTER_SKIPPED: frozenset(skipped_filters),
            Choice.PRE_SCORE_SKIPPED: frozenset(skipped_scores),
            Choice.NOT_AFTER_FILTER: frozenset(
                plugin for plugin, depends_on in self.dependencies.items() if not depends_on.runs_after_filter
            ),
        }
        self.plan = Plan(profile, self, self.dependencies, left_out)

    def take_back(self, cycle: CycleState, plugins: AbstractSet[str]) -> None:
        """Remove from a cycle the state that plugins prepared in their pre-filters."""
        for plugin in plugins & self._written_by.keys():
            for key in self._written_by[plugin]:
                cycle.delete(key)
