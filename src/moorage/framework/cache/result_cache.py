"""Plugin results of every node for the pods of one equivalence class, updated where something has changed.

A plugin that declares what its answers depend on (`depends_on`) is called for all nodes once, and from then
on only for nodes where that has changed: one or two between one pod and the next. The cost of a cycle is
proportional to the changes since the last one of its class, plus a few operations on whole columns. Answers
that do not depend on all of the pod are shared with other classes (`plugin_answers`), so that the first
decision for a class is cheap, too.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from moorage.api.base import Object
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
    tables: the other kinds of objects that their answers depend on.
    """

    __slots__ = ("_preparations", "_tables", "_versions", "filters", "plan", "prepared", "scores", "snapshot")

    def __init__(
        self,
        snapshot: Snapshot,
        plan: ProfilePlan,
        prepared: CycleState,
        preparations: Mapping[str, PluginPreparation],
        tables: tuple[type[Object], ...],
        filters: CachedFilters,
        scores: CachedScores,
    ) -> None:
        self.snapshot = snapshot
        self.plan = plan
        self.prepared = prepared
        self._preparations = preparations
        self._tables = tables
        self._versions = versions_of(tables, snapshot)
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


class _Declared:
    """What plugins declared in `depends_on` for a pod, and what follows from that for other pods, too.

    by_number: the declarations, by number of the plugin in `ProfileCalls.depending`; None: not cached.
    dependencies: the same by plugin.
    own: the numbers of the plugins whose answers are not shared.
    answers: the shared answers of the others. shared: those that do not depend on the pods on a node.
    preparations: how these plugins prepared themselves. prepared: the cycle state that they wrote.
    traits: what the plan depends on, of these plugins.
    tables: the other kinds of objects that answers depend on.
    """

    __slots__ = (
        "_snapshot",
        "_versions",
        "answers",
        "by_number",
        "dependencies",
        "own",
        "preparations",
        "prepared",
        "shared",
        "tables",
        "traits",
    )

    def __init__(self, snapshot: Snapshot, by_number: Sequence[DependsOn | None]) -> None:
        self._snapshot = snapshot
        self.by_number = by_number
        self.dependencies: dict[str, DependsOn] = {}
        self.own: dict[int, str] = {}
        self.answers: dict[str, PluginAnswers] = {}
        self.shared: dict[str, PluginAnswers] = {}
        self.preparations: dict[str, PluginPreparation] = {}
        self.prepared = CycleState()
        self.traits = bytearray(len(by_number))
        self.tables: tuple[type[Object], ...] = ()
        self._versions: list[int] = []

    def holds(self, snapshot: Snapshot) -> bool:
        """Whether all shared answers are for that snapshot, and nothing relevant outside its rows changed."""
        return self._snapshot is snapshot and (
            not self.tables or self._versions == versions_of(self.tables, snapshot)
        )

    def copy_for(self, by_number: Sequence[DependsOn | None]) -> _Declared:
        """A copy for another pod, in which the declarations that differ are to be replaced."""
        twin = _Declared(self._snapshot, by_number)
        twin.dependencies, twin.own = self.dependencies.copy(), self.own.copy()
        twin.answers, twin.shared = self.answers.copy(), self.shared.copy()
        twin.preparations, twin.traits = self.preparations.copy(), self.traits.copy()
        return twin

    def remove(self, number: int, plugin: str) -> None:
        """Remove a plugin."""
        self.own.pop(number, None)
        self.traits[number] = 0
        for each in (self.dependencies, self.answers, self.shared, self.preparations):
            each.pop(plugin, None)

    def add_own(self, number: int, plugin: str, depends_on: DependsOn) -> None:
        """Add a plugin whose answers are not shared."""
        self.dependencies[plugin] = depends_on
        self.own[number] = plugin

    def add_shared(self, number: int, plugin: str, answers: PluginAnswers) -> None:
        """Add a plugin whose answers are shared, unless it answered what is not the same for all nodes."""
        preparation, depends_on = answers.preparation, answers.depends_on
        self.answers[plugin] = answers
        self.preparations[plugin] = preparation
        if preparation.is_cached:
            self.dependencies[plugin] = depends_on
            self.traits[number] = _traits(depends_on, preparation)
            if not depends_on.pods:
                self.shared[plugin] = answers

    def complete(self) -> None:
        """Collect what depends on all plugins."""
        for preparation in self.preparations.values():
            self.prepared.inherit(preparation.state)
        for each in self.by_number:
            if each is not None and each.node_objects:
                self._snapshot.follow(each.node_objects)
        declared = (each for each in self.by_number if each is not None and each.tables)
        tables = {table: None for each in declared for table in each.tables}
        self.tables = tuple(tables)
        self._versions = versions_of(self.tables, self._snapshot)


def _traits(depends_on: DependsOn, preparation: PluginPreparation) -> int:
    return traits_of(
        by_pods=depends_on.pods,
        skips_filter=preparation.skips_filter,
        skips_score=preparation.skips_score,
        runs_after_filter=depends_on.runs_after_filter,
    )


class ResultCaches:
    """Makes the result caches of a profile's equivalence classes."""

    def __init__(self, profile: ProfileCalls, plugins: Mapping[str, Plugin]) -> None:
        self._profile = profile
        self._plugins = plugins
        self._plans = Plans(profile)
        self._shared = SharedAnswers(profile, plugins)
        self._shared_codes = SharedFilterCodes()
        self._last: _Declared | None = None

    def make(self, pod: Pod, snapshot: Snapshot, *, is_sampled: bool) -> PluginResultCache:
        """The result cache of a pod's equivalence class; runs pre_filter and pre_score of cached plugins.

        Pods of a class may differ in their claims and in their group. Of moorage's own plugins, those that
        read claims return no dependencies for pods that have any, and no filter or score reads the group;
        whether a plugin from outside reads them is not known.
        """
        declared = self._declared(pod, snapshot, is_sampled=is_sampled)
        prepared = CycleState()
        prepared.is_sampled = is_sampled
        prepared.inherit(declared.prepared)
        own = {plugin: PluginPreparation(prepared) for plugin in declared.own.values()}
        self._prepare(pod, snapshot, own)
        dependencies, traits = declared.dependencies, bytearray(declared.traits)
        for number, plugin in declared.own.items():
            if own[plugin].is_cached:
                traits[number] = _traits(dependencies[plugin], own[plugin])
            else:
                dependencies = {name: each for name, each in dependencies.items() if name != plugin}
        log = snapshot.changes if self._reads_labels(dependencies) else snapshot.load_changes
        return PluginResultCache(
            snapshot,
            self._plans.of(bytes(traits)),
            prepared,
            {**declared.preparations, **own},
            declared.tables,
            CachedFilters(snapshot, pod.priority, declared.shared, self._shared_codes, log),
            CachedScores(snapshot, dependencies, self._plugins, declared.shared, log),
        )

    def _reads_labels(self, dependencies: Mapping[str, DependsOn]) -> bool:
        """Whether a plugin may read the labels of pods: moorage's own, which depend on pods, do not."""
        outside = self._profile.outside
        return bool(outside) and any(each.pods and name in outside for name, each in dependencies.items())

    def _declared(self, pod: Pod, snapshot: Snapshot, *, is_sampled: bool) -> _Declared:
        """What plugins declare for a pod, with the answers that are shared."""
        by_number, last = self._depends_on(pod, snapshot), self._last
        if last is None or not last.holds(snapshot):
            last = _Declared(snapshot, [None] * len(by_number))
        elif all(map(operator.is_, by_number, last.by_number)):
            return last
        declared = last.copy_for(by_number)
        for number, depends_on in enumerate(by_number):
            if depends_on is last.by_number[number]:
                continue
            plugin = self._profile.depending[number].plugin
            declared.remove(number, plugin)
            if depends_on is None:
                continue
            if depends_on.reads is None:
                declared.add_own(number, plugin, depends_on)
            else:
                answers = self._shared.of(plugin, depends_on, pod, snapshot, is_sampled=is_sampled)
                declared.add_shared(number, plugin, answers)
        declared.complete()
        self._last = declared
        return declared

    def _depends_on(self, pod: Pod, snapshot: Snapshot) -> list[DependsOn | None]:
        """What the plugins of a profile declare for a pod."""
        objects = snapshot.objects
        differs = pod.has_claims or pod.spec.scheduling_group is not None
        uncached = self._profile.outside if differs else frozenset()
        declared: list[DependsOn | None] = []
        for call in self._profile.depending:
            depends_on = None if call.plugin in uncached else call(pod, objects)
            if depends_on is not None and not isinstance(depends_on, DependsOn):
                raise call.failed(f"returned {depends_on!r}; return a DependsOn, or None")
            declared.append(depends_on)
        return declared

    def _prepare(self, pod: Pod, snapshot: Snapshot, own: Mapping[str, PluginPreparation]) -> None:
        """Prepare the plugins whose answers are not shared."""
        everywhere = Nodes(snapshot)
        for call in self._profile.by_method["pre_filter"]:
            if (preparation := own.get(call.plugin)) is not None:
                preparation.pre_filter(call, pod, everywhere)
        for call in self._profile.by_method["pre_score"]:
            if (preparation := own.get(call.plugin)) is not None:
                preparation.pre_score(call, pod, everywhere)
