"""A profile at work: runs every extension point over its plugins, in order, by the framework's rules.

The scheduling-cycle half is synchronous and pure (pod + snapshot in, answers out); the binding half may
wait. A plugin that raises, or answers what it may not, becomes a PluginError that names it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

import numpy as np

from moorage.api.pod import Pod
from moorage.config.expansion import expand
from moorage.config.types import Plugins, Profile
from moorage.framework.cache.result_cache import Recall
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.effects import Effect
from moorage.framework.interface.events import interests_of
from moorage.framework.interface.extension_points import (
    BINDING_POINTS,
    Plugin,
    PodChangePlugin,
    PostFilterResult,
    Scores,
    implements,
)
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SUCCESS, Code, PluginError, Status, unresolvable, unschedulable
from moorage.framework.loading.registry import Registry, RegistryError, is_from_moorage
from moorage.framework.runtime.filtering import run_filters
from moorage.framework.runtime.per_node_adapter import filter_method, score_method
from moorage.framework.runtime.plugin_call import Step, acting
from moorage.framework.runtime.pre_binding import ask_pre_flights
from moorage.framework.runtime.queue_sorting import OutsideOrder
from moorage.framework.runtime.scores import ScoreTable
from moorage.framework.runtime.single_node_filters import RowFilters
from moorage.klog import UNHANDLED, Logger, kobj
from moorage.queue.entry import QueuedPod
from moorage.queue.rules import QueueRules

log = Logger(__name__)

_ONE_NODE = {"filter": "filter_node", "score": "score_node"}
"""Where there is a method for one node at a time, too."""


class Framework:
    """The plugins of one profile, ready to run."""

    def __init__(self, profile: Profile, registry: Registry, handle: Handle | None = None) -> None:
        self.profile = profile
        self.handle = (handle or Handle()).for_profile(profile.scheduler_name, self.filter, self.row_filters)
        self.plugins: dict[str, Plugin] = {}
        for name in profile.plugins.names():
            if name not in registry:
                raise RegistryError(
                    f"profile {profile.scheduler_name}: there is no plugin {name}; "
                    f"known are {', '.join(sorted(registry))}; for one of your own install its package, "
                    "write module:Class, or add --plugin FILE.py"
                )
            self.plugins[name] = registry.make(name, profile.args(name), self.handle)
        self._steps = self._arrange(profile.plugins)
        self._quiet = self._able_to_be_quiet()
        self._reserves = self._having("reserve", "reserve")
        self._unreserves = self._having("reserve", "unreserve")[::-1]
        self._pre_flights = self._having("pre_bind", "pre_bind_pre_flight")
        sorting = self.at("queue_sort")[0]
        is_own = is_from_moorage(self.plugins[sorting.plugin])
        self._order: Callable[[QueuedPod], Any] = sorting if is_own else OutsideOrder(sorting)
        self._follows_pods = any(
            isinstance(self.plugins[step.plugin], PodChangePlugin) for step in self.at("filter")
        )

    def _arrange(self, wanted: Plugins) -> dict[str, tuple[Step, ...]]:
        chosen = expand(
            wanted, lambda name, point: implements(self.plugins[name], point), self.profile.scheduler_name
        )
        return {
            point: tuple(self._step(ref.name, point, ref.weight or 1) for ref in refs)
            for point, refs in chosen.items()
        }

    def _step(self, name: str, point: str, weight: int) -> Step:
        plugin = self.plugins[name]
        one_node = getattr(plugin, _ONE_NODE.get(point, ""), None)
        return Step(
            name,
            point,
            self._watched(name, point, _method(plugin, point)),
            weight,
            None if one_node is None else self._watched(name, point, one_node),
        )

    def _watched(self, name: str, point: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """A plugin's method; what is not moorage's own must not hold the scheduler up, at least unnoticed."""
        if is_from_moorage(self.plugins[name]):
            return method
        threads = self.handle.threads
        if threads.limit and point in BINDING_POINTS and not inspect.iscoroutinefunction(method):
            return threads.called(method)
        return self.handle.slow_calls.watched(name, point, method, self.handle.reports.slow_call)

    def _having(self, point: str, method: str) -> tuple[Step, ...]:
        """Of the plugins at an extension point, those with a certain method."""
        return tuple(
            Step(step.plugin, method, self._watched(step.plugin, method, call))
            for step in self._steps.get(point, ())
            if (call := getattr(self.plugins[step.plugin], method, None)) is not None
        )

    def _able_to_be_quiet(self) -> tuple[Step, ...]:
        """The plugins that can step aside in pre-filter and pre-score at once: they must be at both."""
        preparing = {step.plugin for step in self._steps["pre_score"]}
        return tuple(step for step in self._having("pre_filter", "is_quiet") if step.plugin in preparing)

    @property
    def name(self) -> str:
        """The scheduler name whose pods this profile takes."""
        return self.profile.scheduler_name

    def at(self, point: str) -> tuple[Step, ...]:
        """The plugins at an extension point, in order."""
        return self._steps.get(point, ())

    # Before the queue

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """The first refusal to let a pod into the queue, or None."""
        for step in self.at("pre_enqueue"):
            status = step.status(pod)
            if status is not None:
                return status
        return None

    def gate(self, pod: Pod, ask_first: str = "") -> str:
        """The plugin that keeps a pod out of the queue, or "". One that fails at that keeps the pod out, too.

        ask_first: who did so the last time, and so is likely to do it again.
        """
        steps: Sequence[Step] = self.at("pre_enqueue")
        if ask_first:
            steps = sorted(steps, key=lambda step: step.plugin != ask_first)
        for step in steps:
            try:
                status = step.status(pod)
            except PluginError as error:
                message = "Unexpected error running PreEnqueue plugin"
                log.error(error, message, logger=UNHANDLED, pod=kobj(pod), plugin=step.plugin)
                return step.plugin
            if status is not None:
                if log.v >= 4:
                    message = "Status after running PreEnqueue plugin"
                    log.info(4, message, pod=kobj(pod), plugin=step.plugin, status=status.message)
                return step.plugin
        return ""

    def queue_rules(self, *, extenders: bool = False) -> QueueRules:
        """What this profile's plugins say about queueing; with or without extenders that may refuse nodes."""
        return QueueRules(self.gate, interests_of(self.plugins, extenders=extenders))

    def sort_key(self, queued: QueuedPod) -> Any:
        """A pod's place in the active queue: smaller keys first."""
        return self._order(queued)

    # The scheduling cycle

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis) -> Nodes | None:
        """The nodes left to filter, or None if a pre-filter refused them all."""
        recall = self._recalled(cycle, pod, nodes)
        wanted: AbstractSet[str] | None = None
        narrowed_by: list[str] = []
        refusal: Status | None = None
        for step in self._steps["pre_filter"]:
            if recall is not None and (step.plugin in recall.bases or step.plugin in cycle.skip_filter):
                continue
            answer = step(cycle, pod, nodes)
            if answer is None:
                continue
            if isinstance(answer, Status):
                if answer.code is Code.SKIP:
                    cycle.skip_filter.add(step.plugin)
                elif answer.code is Code.UNRESOLVABLE:
                    diagnosis.refuse_all(step.signed(answer))
                    self._stop_at(step, cycle, recall)
                    return None
                elif answer.code is Code.UNSCHEDULABLE:
                    refusal = step.signed(answer)
                elif answer.code is not Code.SUCCESS:
                    raise step.errored(answer)
            elif isinstance(answer, AbstractSet):
                narrowed_by.append(step.plugin)
                wanted = frozenset(answer) if wanted is None else wanted & answer
                if not wanted:
                    diagnosis.plugins.update(narrowed_by)
                    diagnosis.refuse_all(unresolvable(_nothing_left(narrowed_by)))
                    self._stop_at(step, cycle, recall)
                    return None
            else:
                raise step.failed(f"returned {answer!r}; return None, a status or a set of node names")
        diagnosis.plugins.update(narrowed_by)
        if refusal is not None:
            diagnosis.refuse_all(refusal)
            return None
        if wanted is None:
            return nodes
        diagnosis.left_out = unresolvable(f"node(s) didn't satisfy plugin(s) {_go_list(narrowed_by)}")
        return nodes.named(wanted)

    def _stop_at(self, last: Step, cycle: CycleState, recall: Recall | None) -> None:
        """A pre-filter ends the attempt: those after it have not seen the pod, whatever is remembered."""
        if recall is not None:
            steps = self.at("pre_filter")
            recall.take_back(cycle, {step.plugin for step in steps[steps.index(last) + 1 :]})

    def _memory(self, cycle: CycleState) -> Recall | None:
        """What `_recalled` found in this cycle."""
        return None if cycle.template is None else cycle.template.memory.get(self)

    def _recalled(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Recall | None:
        """What is remembered for pods like this one, made if need be; None where nothing may be."""
        if cycle.template is None:
            return None
        recall = self._memory(cycle)
        if recall is None or not recall.holds(nodes.snapshot):
            recall = cycle.template.memory[self] = Recall(self.plugins, pod, nodes.snapshot)
            recall.prepare(self.at("pre_filter"), self.at("pre_score"), pod)
        cycle.inherit(recall.prepared)
        for step in self._quiet:
            if not cycle.is_sampled and step(cycle, pod, nodes):
                cycle.skip_filter.add(step.plugin)
                cycle.skip_score.add(step.plugin)
        return recall

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis) -> Nodes:
        """The nodes that every filter lets pass, as they are and with the pods nominated to them."""
        steps: Sequence[Step] = self._steps["filter"]
        recall = self._memory(cycle)
        if recall is not None and nodes.changes is None:
            part = recall.filters.part(steps, cycle.skip_filter)
            if not part.rest or not nodes.snapshot.nominated:
                nodes = recall.filters.filter(part, cycle, pod, nodes, diagnosis)
                steps = part.rest
        return run_filters(steps, self.plugins, cycle, pod, nodes, diagnosis) if steps else nodes

    def row_filters(self, cycle: CycleState) -> RowFilters | None:
        """The filters that have a say in a cycle, for one node at a time; None if that cannot be asked.

        Plugins that keep count of pods coming and going follow what would be if on their own.
        """
        recall = self._memory(cycle)
        if recall is None or self._follows_pods:
            return None
        part = recall.filters.part(self._steps["filter"], cycle.skip_filter)
        return None if part.rest else RowFilters(recall, part)

    async def post_filter(
        self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis
    ) -> PostFilterResult:
        """The first success at making room, or what all plugins had to say; with all effects on the way.

        It waits only where a plugin asks extenders.
        """
        said: list[str] = []
        effects: list[Effect] = []
        nominated: str | None = None
        first = ""
        for step in self.at("post_filter"):
            answer = await step.waited(cycle, pod, nodes, diagnosis)
            if isinstance(answer, Status):
                answer = PostFilterResult(answer)
            if not isinstance(answer, PostFilterResult):
                raise step.failed(f"returned {answer!r}; return a PostFilterResult or a status")
            effects += answer.effects
            if answer.nominated_node is not None:
                nominated = answer.nominated_node
            if answer.status.code in (Code.SUCCESS, Code.UNRESOLVABLE, Code.ERROR):
                status = step.signed(answer.status)
                return replace(answer, status=status, nominated_node=nominated, effects=tuple(effects))
            if not answer.status.refused:
                raise step.errored(answer.status)
            said += answer.status.reasons
            first = first or step.plugin
        return PostFilterResult(unschedulable(*said).by(first), nominated, tuple(effects))

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> ScoreTable:
        """Every plugin's score of every node; without score plugins every node scores 1."""
        if not self._steps["score"]:
            return ScoreTable(np.ones(len(nodes), np.int64))
        self.pre_score(cycle, pod, nodes)
        return self.sum_scores(cycle, pod, nodes)

    def pre_score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> None:
        """Let every plugin that scores prepare itself, or step aside."""
        recall = self._memory(cycle)
        for step in self._steps["pre_score"]:
            if recall is not None and (step.plugin in recall.bases or step.plugin in cycle.skip_score):
                continue
            if step.skips(cycle, pod, nodes):
                cycle.skip_score.add(step.plugin)

    def sum_scores(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> ScoreTable:
        """What the plugins that did not step aside make of each node."""
        recall = self._memory(cycle)
        if recall is not None:
            return recall.scores.score(self._steps["score"], cycle, pod, nodes)
        steps = [step for step in self.at("score") if step.plugin not in cycle.skip_score]
        totals = np.zeros(len(nodes), np.int64)
        by_plugin: dict[str, Scores] = {}
        for step in steps:
            scores = step.scores(cycle, pod, nodes)
            weighted = step.weighted(self.plugins[step.plugin], cycle, pod, nodes, scores)
            by_plugin[step.plugin] = weighted
            totals += weighted
        return ScoreTable(totals, lambda: by_plugin)

    def reserve(self, cycle: CycleState, pod: Pod, node_name: str) -> Status:
        """Ask every plugin to reserve; the caller un-reserves if the answer is not a success."""
        for step in acting(self._reserves, cycle):
            status = step.status(cycle, pod, node_name)
            if status is not None:
                return status
        return SUCCESS

    def unreserve(self, cycle: CycleState, pod: Pod, node_name: str) -> list[PluginError]:
        """Let every plugin undo its reservation, last first; failures are gathered, none stops the rest."""
        failures = []
        for step in acting(self._unreserves, cycle):
            try:
                step(cycle, pod, node_name)
            except PluginError as error:
                failures.append(error)
        return failures

    def permit(self, cycle: CycleState, pod: Pod, node_name: str) -> Status:
        """Success, the first refusal, or WAIT; then the pod is held until `handle.waiting` says more."""
        timeouts: dict[str, float] = {}
        for step in self._steps["permit"]:
            status = step.status(cycle, pod, node_name, also=Code.WAIT)
            if status is None:
                continue
            if status.refused:
                return status
            timeouts[step.plugin] = status.timeout_seconds or 0.0
        if not timeouts:
            return SUCCESS
        self.handle.waiting.hold(pod, node_name, timeouts)
        reason = "one or more plugins asked to wait and no plugin rejected pod"
        return Status(Code.WAIT, (reason,), timeout_seconds=min(timeouts.values()))

    # The binding cycle

    async def wait_on_permit(self, pod: Pod) -> Status:
        """Success once every plugin has allowed a held pod, or the refusal that ended the wait."""
        return await self.handle.waiting.wait_on(pod)

    def pre_bind_pre_flight(self, cycle: CycleState, pod: Pod, node_name: str) -> bool:
        """Whether any pre-bind plugin has something to do for a pod; those that have not are left out."""
        return self._ask_pre_flights(self._pre_flights, cycle, pod, node_name)

    def _ask_pre_flights(self, steps: Sequence[Step], cycle: CycleState, pod: Pod, node_name: str) -> bool:
        ask_pre_flights(acting(steps, cycle), cycle, pod, node_name)
        return len(cycle.skip_pre_bind) < len(acting(self._steps["pre_bind"], cycle))

    async def pre_bind(self, cycle: CycleState, pod: Pod, node_name: str) -> Status:
        """Run the pre-bind plugins that have something to do, up to the first that does not succeed."""
        steps = acting(self._steps["pre_bind"], cycle)
        if len(cycle.skip_pre_bind) == len(steps):
            return SUCCESS
        with self.handle.pre_binding.of(pod.uid) as stoppable:
            return await stoppable.run(steps, cycle, pod, node_name)

    async def bind(self, cycle: CycleState, pod: Pod, node_name: str) -> Status:
        """Let the first plugin that does not skip bind the pod; SKIP if all of them skip."""
        for step in self._steps["bind"]:
            status = step.as_status(await step.waited(cycle, pod, node_name), also=Code.SKIP)
            if status is None:
                return SUCCESS
            if status.code is not Code.SKIP:
                return status
        return Status(Code.SKIP, (f"running Bind plugins: all of them skipped the pod: {self._binders()}",))

    def _binders(self) -> str:
        return ", ".join(step.plugin for step in self._steps["bind"])

    async def post_bind(self, cycle: CycleState, pod: Pod, node_name: str) -> None:
        """Tell every post-bind plugin."""
        for step in self._steps["post_bind"]:
            await step.waited(cycle, pod, node_name)


def _method(plugin: Plugin, point: str) -> Callable[..., Any]:
    if point == "filter":
        return filter_method(plugin)
    if point == "score":
        return score_method(plugin)
    method: Callable[..., Any] = getattr(plugin, point, None) or plugin.unreserve  # type: ignore[attr-defined]
    return method


def _go_list(names: list[str]) -> str:
    return f"[{' '.join(sorted(set(names)))}]"


def _nothing_left(plugins: list[str]) -> str:
    if len(set(plugins)) == 1:
        return f"node(s) didn't satisfy plugin {plugins[0]}"
    return f"node(s) didn't satisfy plugin(s) {_go_list(plugins)} simultaneously"
