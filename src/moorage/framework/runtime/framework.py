"""The framework of a profile: runs its plugins at every extension point, in order, by the framework's rules.

The scheduling-cycle half is synchronous and pure (pod + snapshot in, answers out); the binding half may
wait. An exception or an invalid answer of a plugin becomes a PluginError with the plugin's name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from random import Random
from time import perf_counter
from typing import Any

import msgspec
import numpy as np

from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.cluster.pod_table import PodInfo
from moorage.cluster.snapshot import Snapshot
from moorage.config.types import Profile
from moorage.framework.cache.equivalence_classes import EquivalenceClasses
from moorage.framework.cache.result_cache import PluginResultCache, ResultCaches
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.effects import Effect
from moorage.framework.interface.events import interests_of
from moorage.framework.interface.extension_points import (
    CatchUpPlugin,
    Plugin,
    PodChangePlugin,
    PostFilterResult,
    Scores,
)
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.pod_groups import (
    GroupDryRun,
    Placement,
    PlacementAssignments,
    PlacementProgress,
    PodGroupInfo,
    PodGroupPostFilterResult,
)
from moorage.framework.interface.status import SUCCESS, Code, PluginError, Status, unschedulable
from moorage.framework.loading.registry import Registry, RegistryError, is_from_moorage
from moorage.framework.runtime.filtering import filter_by_node, run_filters, state_without
from moorage.framework.runtime.group_points import (
    generate_placements,
    judge_placement,
    make_room_for_group,
    score_placements,
)
from moorage.framework.runtime.hypothetical_nodes import HypotheticalNodes
from moorage.framework.runtime.observation import FrameworkObserver, observe
from moorage.framework.runtime.plan import CallDecision, ProfilePlan
from moorage.framework.runtime.plugin_call import PluginCall
from moorage.framework.runtime.pre_binding import ask_pre_flights
from moorage.framework.runtime.pre_filtering import run_pre_filters
from moorage.framework.runtime.profile_calls import profile_calls
from moorage.framework.runtime.queue_sorting import OutsideOrder, sub_queues_of
from moorage.framework.runtime.scores import ScoreTable
from moorage.framework.runtime.single_node_filters import SingleNodeFilters
from moorage.klog import UNHANDLED, Logger, kobj
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.queueing_rules import QueueRules

log = Logger(__name__)


class Framework:
    """The plugins of one profile, ready to run.

    observer: observes the durations of extension points and plugins.
    """

    def __init__(
        self,
        profile: Profile,
        registry: Registry,
        handle: Handle | None = None,
        observer: FrameworkObserver | None = None,
    ) -> None:
        self.profile = profile
        self._observer = observer
        # `filter` without observation: the time of a plugin's dry runs counts as that plugin's time.
        self.handle = (handle or Handle()).for_profile(
            profile.scheduler_name,
            self.filter,
            self.single_node_filters,
            self.without_pods,
            self.hypothetical_nodes,
        )
        self._registry = registry
        self.plugins: dict[str, Plugin] = {}
        for name in profile.plugins.names():
            if name not in registry:
                raise RegistryError(
                    f"profile {profile.scheduler_name}: there is no plugin {name}; "
                    f"known are {', '.join(sorted(registry))}; for one of your own install its package, "
                    "write module:Class, or add --plugin FILE.py"
                )
            self.plugins[name] = registry.make(name, profile.args(name), self.handle)
        self._calls = profile_calls(profile, self.plugins, self.handle, observer)
        self._gates = tuple(dataclasses.replace(call, observer=None) for call in self.at("pre_enqueue"))
        """The plugins that gate pods, without observation."""
        self._plan = ProfilePlan(self._calls)
        """The plan for pods without cached results."""
        self._result_caches = ResultCaches(self._calls, self.plugins)
        self._results: StateKey[PluginResultCache] = StateKey("plugin results of a profile")
        sorting = self.at("queue_sort")[0]
        is_own = is_from_moorage(self.plugins[sorting.plugin])
        self.sort_key: Callable[[QueuedPod], Any] = sorting.method if is_own else OutsideOrder(sorting)
        """A pod's place in the active queue: smaller keys first."""
        self.sub_queues = sub_queues_of(self.plugins[sorting.plugin], self.sort_key)
        """The order of sub-queues, each of which has the order above inside; None: there are none."""
        self._catching_up = {
            name: plugin for name, plugin in self.plugins.items() if isinstance(plugin, CatchUpPlugin)
        }
        self._follows_pods = any(
            isinstance(self.plugins[call.plugin], PodChangePlugin) for call in self.at("filter")
        )
        if observer is not None:
            observe(self, observer)

    @property
    def name(self) -> str:
        """The scheduler name whose pods this profile takes."""
        return self.profile.scheduler_name

    def at(self, point: str) -> tuple[PluginCall, ...]:
        """The plugins at an extension point, in order."""
        return self._calls.enabled.get(point, ())

    def has_outside(self, point: str) -> bool:
        """Whether a plugin that is not moorage's own is at an extension point."""
        return any(call.plugin in self._calls.outside for call in self.at(point))

    def plan(self, cycle: CycleState) -> ProfilePlan:
        """Which plugins run in a cycle, and why others do not."""
        return cycle.plan or self._plan

    def plan_of(self, pod: Pod, snapshot: Snapshot) -> ProfilePlan:
        """The plan for a pod in a cluster; runs its pre-filters and pre-scores, whose answers are in it."""
        cycle, nodes = CycleState(), Nodes(snapshot)
        cycle.equivalence_class = EquivalenceClasses().of(pod, len(snapshot))
        self._pre_filter(cycle, pod, nodes, Diagnosis(len(snapshot)))
        self._pre_score(cycle, pod, nodes)
        return self.plan(cycle)

    # Before the queue

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """The first pre-enqueue rejection of a pod, or None."""
        for call in self._gates:
            status = call.status(pod)
            if status is not None:
                return status
        return None

    def gate(self, pod: Pod, ask_first: str = "") -> str:
        """The plugin that gates a pod, or "". A plugin that fails gates the pod, too.

        ask_first: the plugin that gated the pod the last time, which is likely to do it again.
        """
        is_sampled = self._observer is not None and self._observer.samples_gate()
        calls: Sequence[PluginCall] = self.at("pre_enqueue") if is_sampled else self._gates
        if ask_first:
            calls = sorted(calls, key=lambda call: call.plugin != ask_first)
        for call in calls:
            try:
                answer = call(pod)
                status = None if answer is None else call.as_status(answer)
            except PluginError as error:
                message = "Unexpected error running PreEnqueue plugin"
                log.error(error, message, logger=UNHANDLED, pod=kobj(pod), plugin=call.plugin)
                return call.plugin
            if status is not None:
                if log.v >= 4:
                    message = "Status after running PreEnqueue plugin"
                    log.info(4, message, pod=kobj(pod), plugin=call.plugin, status=status.message)
                return call.plugin
        return ""

    def queue_rules(self, *, extenders: bool = False) -> QueueRules:
        """The queueing rules of this profile's plugins; with or without extenders that may reject nodes."""
        return QueueRules(self.gate, interests_of(self.plugins, extenders=extenders))

    def catch_up(self, snapshot: Snapshot) -> None:
        """Let plugins bring up to date what they keep about the cluster."""
        for name, plugin in self._catching_up.items():
            try:
                plugin.catch_up(Nodes(snapshot))
            except Exception as error:
                log.error(error, "Plugin failed to catch up with the cluster", logger=UNHANDLED, plugin=name)

    # The scheduling cycle

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis) -> Nodes | None:
        """The nodes left to filter, or None if a pre-filter rejected them all."""
        if self._observer is not None:
            cycle.is_sampled = self._observer.samples_cycle()
        return self._pre_filter(cycle, pod, nodes, diagnosis)

    def _pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis) -> Nodes | None:
        plan = cycle.plan = self._plan_for(cycle, pod, nodes)
        return run_pre_filters(plan, cycle, pod, nodes, diagnosis) if plan.pre_filters else nodes

    def _plan_for(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> ProfilePlan:
        """The plan for a pod's equivalence class, made if needed, without plugins left out by `skips_pod`."""
        if cycle.equivalence_class is None:
            return self._plan
        results = cycle.equivalence_class.read(self._results)
        is_hit = results is not None and results.holds(nodes.snapshot)
        if self._observer is not None:
            self._observer.used_result_cache(hit=is_hit)
        if results is None or not is_hit:
            results = self._result_caches.make(pod, nodes.snapshot, is_sampled=cycle.is_sampled)
            cycle.equivalence_class.write(self._results, results)
        cycle.results = results
        cycle.inherit(results.prepared)
        skipping = [call.plugin for call in self._calls.skipping if call(cycle, pod, nodes)]
        return results.plan.leaving_out(CallDecision.SKIPS_POD, skipping)

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis) -> Nodes:
        """The nodes that every filter lets pass, as they are and with the pods nominated to them."""
        plan = cycle.plan or self._plan
        filters = plan.filters
        calls = filters.active
        is_current = nodes.hypothetical_pods is None and not (filters.rest and nodes.snapshot.nominated)
        if cycle.results is not None and is_current:
            nodes = cycle.results.filters.filter(filters, cycle, pod, nodes, diagnosis)
            calls = filters.rest
        return run_filters(calls, self.plugins, cycle, pod, nodes, diagnosis) if calls else nodes

    def filters_by_node(self, cycle: CycleState, pod: Pod, nodes: Nodes, moving: Sequence[PodInfo]) -> bool:
        """Whether a node's answer depends on some pods only where they are on that node."""
        return filter_by_node(self.plan(cycle), self.plugins, cycle, pod, nodes, moving)

    def single_node_filters(self, cycle: CycleState) -> SingleNodeFilters | None:
        """The filters that run in a cycle, for one node at a time; None if that is not possible.

        Plugins with `add_pod` and `remove_pod` keep counts of their own and cannot be called in this way.
        """
        plan = cycle.plan or self._plan
        if cycle.results is None or self._follows_pods or plan.filters.rest:
            return None
        return SingleNodeFilters(cycle.results, plan.filters)

    def without_pods(
        self, cycle: CycleState, pod: Pod, snapshot: Snapshot, infos: Iterable[PodInfo]
    ) -> CycleState:
        """A copy of a cycle state in which filters that count pods do not count some of those on nodes."""
        plugins = {call.plugin: self.plugins[call.plugin] for call in self.plan(cycle).filters.active}
        return state_without(plugins, cycle, pod, snapshot, infos)

    def hypothetical_nodes(self) -> HypotheticalNodes:
        """Nodes that do not exist yet, which plugins of their own filter as this profile does."""
        return HypotheticalNodes(self._over, self.handle.snapshot)

    def _over(self, cache: Cache) -> Framework:
        """A framework of the same profile over another cache."""
        ours = self.handle
        handle = Handle(
            ours.objects,
            clock=ours.clock,
            random=Random(0),
            nominations=cache.nominations,
            pod_groups=cache.pod_groups,
            snapshot=cache.latest_snapshot,
            version=ours.version,
        )
        return Framework(self.profile, self._registry, handle)

    async def post_filter(
        self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis
    ) -> PostFilterResult:
        """The first success at making room, or the messages of all plugins; with all effects so far.

        It waits only where a plugin calls extenders.
        """
        reasons: list[str] = []
        effects: tuple[Effect, ...] = ()
        nominated: str | None = None
        first = ""
        for call in self.at("post_filter"):
            answer = await call.waited(cycle, pod, nodes, diagnosis)
            if isinstance(answer, Status):
                answer = PostFilterResult(answer)
            if not isinstance(answer, PostFilterResult):
                raise call.failed(f"returned {answer!r}; return a PostFilterResult or a status")
            effects += answer.effects
            if answer.nominated_node is not None:
                nominated = answer.nominated_node
            if answer.status.code in (Code.SUCCESS, Code.UNRESOLVABLE, Code.ERROR):
                status = call.signed(answer.status)
                return msgspec.structs.replace(
                    answer, status=status, nominated_node=nominated, effects=effects
                )
            if not answer.status.refused:
                raise call.errored(answer.status)
            reasons += answer.status.reasons
            first = first or call.plugin
        return PostFilterResult(unschedulable(*reasons).by(first), nominated, effects)

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> ScoreTable:
        """Every plugin's score of every node; without score plugins every node scores 1."""
        if not self._calls.enabled["score"]:
            return ScoreTable(np.ones(len(nodes), np.int64))
        self.pre_score(cycle, pod, nodes)
        return self.sum_scores(cycle, pod, nodes)

    def pre_score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> None:
        """Run pre_score of every score plugin; each prepares itself, or skips the pod."""
        self._pre_score(cycle, pod, nodes)

    def _pre_score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> None:
        plan = cycle.plan or self._plan
        if plan.pre_scores:
            skipped = [call.plugin for call in plan.pre_scores if call.skips(cycle, pod, nodes)]
            cycle.plan = plan.leaving_out(CallDecision.PRE_SCORE_SKIPPED, skipped)

    def sum_scores(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> ScoreTable:
        """The scores of each node by the score plugins that run."""
        plan = cycle.plan or self._plan
        if cycle.results is not None:
            return cycle.results.scores.score(plan.scores, cycle, pod, nodes)
        totals = np.zeros(len(nodes), np.int64)
        by_plugin: dict[str, Scores] = {}
        for call in plan.scores.active:
            scores = call.score(cycle, pod, nodes)
            weighted = call.weighted(self.plugins[call.plugin], cycle, pod, nodes, scores)
            by_plugin[call.plugin] = weighted
            totals += weighted
        return ScoreTable(totals, lambda: by_plugin)

    def reserve(self, cycle: CycleState, pod: Pod, node_name: str) -> Status:
        """Run reserve of every plugin; the caller un-reserves if the status is not a success."""
        for call in (cycle.plan or self._plan).reserves:
            status = call.status(cycle, pod, node_name)
            if status is not None:
                return status
        return SUCCESS

    def unreserve(self, cycle: CycleState, pod: Pod, node_name: str) -> list[PluginError]:
        """Run unreserve of every plugin, last first; failures are collected, none stops the rest."""
        failures = []
        for call in (cycle.plan or self._plan).unreserves:
            try:
                call(cycle, pod, node_name)
            except PluginError as error:
                failures.append(error)
        return failures

    def permit(self, cycle: CycleState, pod: Pod, node_name: str) -> Status:
        """Success, the first refusal, or WAIT; with WAIT the pod is held in `handle.waiting`."""
        timeouts: dict[str, float] = {}
        for call in self._calls.enabled["permit"]:
            status = call.status(cycle, pod, node_name, also=Code.WAIT)
            if status is None:
                continue
            if status.refused:
                return status
            timeouts[call.plugin] = status.timeout_seconds or 0.0
        if not timeouts:
            return SUCCESS
        self.handle.waiting.hold(pod, node_name, timeouts)
        reason = "one or more plugins asked to wait and no plugin rejected pod"
        return Status(Code.WAIT, (reason,), timeout_seconds=min(timeouts.values()))

    # The cycle of a group

    def placement_generate(
        self, cycle: CycleState, group: PodGroupInfo, nodes: Nodes
    ) -> list[Placement] | Status:
        """The placements of a group within some nodes, or why there is none."""
        return generate_placements(self.at("placement_generate"), cycle, group, nodes)

    def placement_feasible(
        self, cycle: CycleState, group: PodGroupInfo, progress: PlacementProgress
    ) -> Status:
        """Whether a group can run in a placement: success, WAIT (not yet), or a refusal."""
        return judge_placement(self.at("placement_feasible"), cycle, group, progress)

    def placement_score(
        self, cycle: CycleState, group: PodGroupInfo, placements: Sequence[PlacementAssignments]
    ) -> ScoreTable:
        """Every plugin's score of the feasible placements of a group."""
        return score_placements(self.at("placement_score"), self.plugins, cycle, group, placements)

    async def pod_group_post_filter(
        self, cycle: CycleState, group: PodGroupInfo, dry_run: GroupDryRun
    ) -> PodGroupPostFilterResult:
        """The first success at making room for a group, or the messages of all plugins."""
        return await make_room_for_group(self.at("pod_group_post_filter"), cycle, group, dry_run)

    # The binding cycle

    async def wait_on_permit(self, pod: Pod) -> Status:
        """Success once every plugin has allowed a held pod, or the refusal that ended the wait."""
        waiting, observer = self.handle.waiting, self._observer
        if observer is None or waiting.get(pod.uid) is None:
            return await waiting.wait_on(pod)
        began = perf_counter()
        status = await waiting.wait_on(pod)
        observer.waited_on_permit(status.code, perf_counter() - began)
        return status

    def pre_bind_pre_flight(self, cycle: CycleState, pod: Pod, node_name: str) -> bool:
        """Whether any pre-bind plugin has something to do for a pod; those that have not are left out."""
        plan = cycle.plan or self._plan
        ask_pre_flights(plan.pre_flights, cycle, pod, node_name)
        return len(cycle.skip_pre_bind) < len(plan.pre_binds)

    async def pre_bind(self, cycle: CycleState, pod: Pod, node_name: str) -> Status:
        """Run the pre-bind plugins that have something to do, up to the first that does not succeed."""
        calls = (cycle.plan or self._plan).pre_binds
        if len(cycle.skip_pre_bind) == len(calls):
            return SUCCESS
        with self.handle.pre_binding.of(pod.uid) as stoppable:
            return await stoppable.run(calls, cycle, pod, node_name)

    async def bind(self, cycle: CycleState, pod: Pod, node_name: str) -> Status:
        """Bind the pod by the first plugin that does not skip; SKIP if all of them skip."""
        for call in self._calls.enabled["bind"]:
            status = call.as_status(await call.waited(cycle, pod, node_name), also=Code.SKIP)
            if status is None:
                return SUCCESS
            if status.code is not Code.SKIP:
                return status
        return Status(Code.SKIP, (f"running Bind plugins: all of them skipped the pod: {self._binders()}",))

    def _binders(self) -> str:
        return ", ".join(call.plugin for call in self._calls.enabled["bind"])

    async def post_bind(self, cycle: CycleState, pod: Pod, node_name: str) -> None:
        """Run every post-bind plugin."""
        for call in self._calls.enabled["post_bind"]:
            await call.waited(cycle, pod, node_name)
