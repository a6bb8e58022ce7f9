"""Plugin results of every node for the pods of one equivalence class, updated where something has changed.

A plugin that declares what its answers depend on (`depends_on`) is called for all nodes once, and from then
on only for nodes where that has changed: one or two between one pod and the next. The cost of a cycle is
proportional to the changes since the last one of its class, plus a few operations on whole columns. Answers
that do not depend on all of the pod are shared with other classes (`plugin_answers`), so that the first
decision for a class is cheap, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from moorage.api.pod import Pod
from moorage.cluster.snapshot import Snapshot
from moorage.framework.cache.cached_filters import CachedFilters
from moorage.framework.cache.cached_scores import CachedScores
from moorage.framework.cache.filter_codes import SharedFilterCodes
from moorage.framework.cache.plugin_answers import (
    PluginAnswers,
    PluginPreparation,
    SharedAnswers,
    versions_of,
)
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.dependencies import DependsOn
from moorage.framework.interface.extension_points import Plugin
from moorage.framework.interface.nodes import Nodes
from moorage.framework.runtime.plan import Plans, ProfileCalls, ProfilePlan, traits_of


class PluginResultCache:
    """One profile's plugin results for one equivalence class, over one snapshot as it moves.

    plan: which plugins run for the pods of the class.
    prepared: the cycle state that the cached plugins wrote in pre_filter and pre_score.
    preparations: how they did that, by plugin.
    """

    __slots__ = ("_preparations", "_tables", "_versions", "filters", "plan", "prepared", "scores", "snapshot")

    def __init__(
        self,
        snapshot: Snapshot,
        plan: ProfilePlan,
        prepared: CycleState,
        preparations: Mapping[str, PluginPreparation],
        dependencies: Iterable[DependsOn],
        filters: CachedFilters,
        scores: CachedScores,
    ) -> None:
        self.snapshot = snapshot
        self.plan = plan
        self.prepared = prepared
        self._preparations = preparations
        self._tables = tuple({table: None for each in dependencies if each.tables for table in each.tables})
        self._versions = versions_of(self._tables, snapshot)
        self.filters = filters
        """The filter results of the cached plugins."""
        self.scores = scores
        """Their scores."""

    def holds(self, snapshot: Snapshot) -> bool:
        """Whether the results are for that snapshot and nothing relevant outside its rows has changed."""
        return self.snapshot is snapshot and (
            not self._tables or self._versions == versions_of(self._tables, snapshot)
        )

    def delete_state(self, cycle: CycleState, plugins: AbstractSet[str]) -> None:
        """Remove from a cycle the state that plugins prepared in their pre-filters."""
        for plugin in plugins & self._preparations.keys():
            for key in self._preparations[plugin].written:
                cycle.delete(key)


class ResultCaches:
    """Makes the result caches of a profile's equivalence classes."""

    def __init__(self, profile: ProfileCalls, plugins: Mapping[str, Plugin]) -> None:
        self._profile = profile
        self._plugins = plugins
        self._plans = Plans(profile)
        self._shared = SharedAnswers(profile, plugins)
        self._shared_codes = SharedFilterCodes()

    def make(self, pod: Pod, snapshot: Snapshot, *, is_sampled: bool) -> PluginResultCache:
        """The result cache of a pod's equivalence class; runs pre_filter and pre_score of cached plugins.

        Pods of a class may differ in their claims. Of moorage's own plugins, those that read claims return no
        dependencies for pods that have any; whether a plugin from outside reads them is not known.
        """
        dependencies: dict[str, DependsOn] = {}
        shared: dict[str, PluginAnswers] = {}
        preparations: dict[str, PluginPreparation] = {}
        own: dict[str, PluginPreparation] = {}
        prepared = CycleState()
        prepared.is_sampled = is_sampled
        uncached = self._profile.outside if pod.has_claims else frozenset()
        for call in self._profile.depending:
            plugin = call.plugin
            depends_on = None if plugin in uncached else call(pod, snapshot.objects)
            if depends_on is None:
                continue
            if not isinstance(depends_on, DependsOn):
                raise call.failed(f"returned {depends_on!r}; return a DependsOn, or None")
            dependencies[plugin] = depends_on
            if depends_on.reads is None:
                own[plugin] = preparations[plugin] = PluginPreparation(prepared)
                continue
            answers = self._shared.of(plugin, depends_on, pod, snapshot, is_sampled=is_sampled)
            preparations[plugin] = answers.preparation
            prepared.inherit(answers.preparation.state)
            if not depends_on.pods:
                shared[plugin] = answers
        self._prepare(pod, snapshot, own)
        for plugin in [plugin for plugin, each in preparations.items() if not each.is_cached]:
            del dependencies[plugin]
            shared.pop(plugin, None)
        # Of moorage's own plugins, those that depend on the pods of a node do not read their labels.
        reads_labels = any(
            each.pods and plugin in self._profile.outside for plugin, each in dependencies.items()
        )
        log = snapshot.changes if reads_labels else snapshot.load_changes
        return PluginResultCache(
            snapshot,
            self._plan(dependencies, preparations),
            prepared,
            preparations,
            dependencies.values(),
            CachedFilters(snapshot, pod.priority, shared, self._shared_codes, log),
            CachedScores(snapshot, dependencies, self._plugins, shared, log),
        )

    def _prepare(self, pod: Pod, snapshot: Snapshot, own: Mapping[str, PluginPreparation]) -> None:
        """Prepare the plugins whose answers are not shared."""
        everywhere = Nodes(snapshot)
        for call in self._profile.by_method["pre_filter"]:
            if (preparation := own.get(call.plugin)) is not None:
                preparation.pre_filter(call, pod, everywhere)
        for call in self._profile.by_method["pre_score"]:
            if (preparation := own.get(call.plugin)) is not None:
                preparation.pre_score(call, pod, everywhere)

    def _plan(
        self, dependencies: Mapping[str, DependsOn], preparations: Mapping[str, PluginPreparation]
    ) -> ProfilePlan:
        traits = bytearray(len(self._profile.depending))
        for number, call in enumerate(self._profile.depending):
            depends_on = dependencies.get(call.plugin)
            if depends_on is not None:
                preparation = preparations[call.plugin]
                traits[number] = traits_of(
                    by_pods=depends_on.pods,
                    skips_filter=preparation.skips_filter,
                    skips_score=preparation.skips_score,
                    runs_after_filter=depends_on.runs_after_filter,
                )
        return self._plans.of(bytes(traits))
