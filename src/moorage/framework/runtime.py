"""A profile at work: runs every extension point over its plugins, in order, by the framework's rules.

The scheduling-cycle half is synchronous and pure (pod + snapshot in, answers out); the binding half may
wait. A plugin that raises, or answers what it may not, becomes a PluginError that names it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.config.expansion import expand
from moorage.config.types import Plugins, Profile
from moorage.framework.cycle import CycleState
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.effects import Effect
from moorage.framework.events import interests_of
from moorage.framework.filtering import run_filters
from moorage.framework.handle import Handle
from moorage.framework.nodes import Nodes
from moorage.framework.pernode import filter_method, score_method
from moorage.framework.points import (
    MAX_SCORE,
    MIN_SCORE,
    Plugin,
    PostFilterResult,
    Scores,
    implements,
)
from moorage.framework.prebinding import Stopped
from moorage.framework.registry import Registry, RegistryError
from moorage.framework.status import SKIP, SUCCESS, Code, PluginError, Status, unresolvable, unschedulable
from moorage.framework.step import Step
from moorage.queue.entry import QueuedPod
from moorage.queue.rules import QueueRules

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTable:
    """What each plugin made of each node: normalised and weighted. Arrays have shape (nodes,)."""

    by_plugin: dict[str, Scores]
    totals: Scores


class Framework:
    """The plugins of one profile, ready to run."""

    def __init__(self, profile: Profile, registry: Registry, handle: Handle | None = None) -> None:
        self.profile = profile
        self.handle = (handle or Handle()).for_profile(self.filter)
        self.plugins: dict[str, Plugin] = {}
        for name in profile.plugins.names():
            if name not in registry:
                raise RegistryError(
                    f"profile {profile.scheduler_name}: there is no plugin {name}; "
                    f"known are {', '.join(sorted(registry))}"
                )
            self.plugins[name] = registry.make(name, profile.args(name), self.handle)
        self._steps = self._arrange(profile.plugins)

    def _arrange(self, wanted: Plugins) -> dict[str, tuple[Step, ...]]:
        chosen = expand(
            wanted, lambda name, point: implements(self.plugins[name], point), self.profile.scheduler_name
        )
        return {
            point: tuple(
                Step(ref.name, point, _method(self.plugins[ref.name], point), ref.weight or 1) for ref in refs
            )
            for point, refs in chosen.items()
        }

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
            if status is not None and status.code is not Code.SUCCESS:
                return status
        return None

    def gate(self, pod: Pod, ask_first: str = "") -> str:
        """The plugin that keeps a pod out of the queue, or "". One that fails at that keeps the pod out, too.

        ask_first: who did so the last time, and so is likely to do it again.
        """
        for step in sorted(self.at("pre_enqueue"), key=lambda step: step.plugin != ask_first):
            try:
                status = step.status(pod)
            except PluginError as error:
                log.error("pod %s: %s", pod.key, error)
                return step.plugin
            if status is not None and status.code is not Code.SUCCESS:
                return step.plugin
        return ""

    def queue_rules(self, *, extenders: bool = False) -> QueueRules:
        """What this profile's plugins say about queueing; with or without extenders that may refuse nodes."""
        return QueueRules(self.gate, interests_of(self.plugins, extenders=extenders))

    def sort_key(self, queued: QueuedPod) -> Any:
        """A pod's place in the active queue: smaller keys first."""
        return self.at("queue_sort")[0](queued)

    # The scheduling cycle

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis) -> Nodes | None:
        """The nodes left to filter, or None if a pre-filter refused them all."""
        wanted: AbstractSet[str] | None = None
        narrowed_by: list[str] = []
        refusal: Status | None = None
        for step in self.at("pre_filter"):
            answer = step(cycle, pod, nodes)
            if answer is None:
                continue
            if isinstance(answer, Status):
                if answer.code is Code.SKIP:
                    cycle.skip_filter.add(step.plugin)
                elif answer.code is Code.UNRESOLVABLE:
                    diagnosis.refuse_all(step.signed(answer))
                    return None
                elif answer.code is Code.UNSCHEDULABLE:
                    refusal = step.signed(answer)
                elif answer.code is not Code.SUCCESS:
                    raise step.failed(answer.message or answer.code.value)
            elif isinstance(answer, AbstractSet):
                narrowed_by.append(step.plugin)
                wanted = frozenset(answer) if wanted is None else wanted & answer
                if not wanted:
                    diagnosis.plugins.update(narrowed_by)
                    diagnosis.refuse_all(unresolvable(_nothing_left(narrowed_by)))
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

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis) -> Nodes:
        """The nodes that every filter lets pass, as they are and with the pods nominated to them."""
        return run_filters(self.at("filter"), self.plugins, cycle, pod, nodes, diagnosis)

    def post_filter(
        self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis
    ) -> PostFilterResult:
        """The first success at making room, or what all plugins had to say; with all effects on the way."""
        said: list[str] = []
        effects: list[Effect] = []
        nominated: str | None = None
        first = ""
        for step in self.at("post_filter"):
            answer = step(cycle, pod, nodes, diagnosis)
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
                raise step.failed(answer.status.message or answer.status.code.value)
            said += answer.status.reasons
            first = first or step.plugin
        return PostFilterResult(unschedulable(*said).by(first), nominated, tuple(effects))

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> ScoreTable:
        """Every plugin's score of every node; without score plugins every node scores 1."""
        if not self.at("score"):
            return ScoreTable({}, np.ones(len(nodes), np.int64))
        self.pre_score(cycle, pod, nodes)
        return self.sum_scores(cycle, pod, nodes)

    def pre_score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> None:
        """Let every plugin that scores prepare itself, or step aside."""
        for step in self.at("pre_score"):
            status = step.status(cycle, pod, nodes)
            if status is not None and status.code is Code.SKIP:
                cycle.skip_score.add(step.plugin)
            elif status is not None and status.code is not Code.SUCCESS:
                raise step.failed(status.message or status.code.value)

    def sum_scores(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> ScoreTable:
        """What the plugins that did not step aside make of each node."""
        totals = np.zeros(len(nodes), np.int64)
        by_plugin: dict[str, Scores] = {}
        for step in self.at("score"):
            if step.plugin in cycle.skip_score:
                continue
            scores = _integers(step, step(cycle, pod, nodes), len(nodes))
            normalize = getattr(self.plugins[step.plugin], "normalize_score", None)
            if normalize is not None:
                normalizing = Step(step.plugin, "normalize_score", normalize)
                scores = _integers(normalizing, normalizing(cycle, pod, nodes, scores), len(nodes))
            _check_bounds(step, scores)
            weighted = by_plugin[step.plugin] = scores * step.weight if step.weight != 1 else scores
            totals += weighted
        return ScoreTable(by_plugin, totals)

    def reserve(self, cycle: CycleState, pod: Pod, node_name: str) -> Status:
        """Ask every plugin to reserve; the caller un-reserves if the answer is not a success."""
        for step in self.at("reserve"):
            reserve = getattr(self.plugins[step.plugin], "reserve", None)
            if reserve is None:
                continue
            status = Step(step.plugin, "reserve", reserve).status(cycle, pod, node_name)
            if status is not None and status.code is not Code.SUCCESS:
                return status
        return SUCCESS

    def unreserve(self, cycle: CycleState, pod: Pod, node_name: str) -> list[PluginError]:
        """Let every plugin undo its reservation, last first; failures are gathered, none stops the rest."""
        failures = []
        for step in reversed(self.at("reserve")):
            unreserve = getattr(self.plugins[step.plugin], "unreserve", None)
            if unreserve is None:
                continue
            try:
                Step(step.plugin, "unreserve", unreserve)(cycle, pod, node_name)
            except PluginError as error:
                failures.append(error)
        return failures

    def permit(self, cycle: CycleState, pod: Pod, node_name: str) -> Status:
        """Success, the first refusal, or WAIT; then the pod is held until `handle.waiting` says more."""
        timeouts: dict[str, float] = {}
        for step in self.at("permit"):
            status = step.status(cycle, pod, node_name)
            if status is None or status.code is Code.SUCCESS:
                continue
            if status.refused:
                return status
            if status.code is not Code.WAIT:
                raise step.failed(status.message or status.code.value)
            timeouts[step.plugin] = status.timeout_seconds or 0.0
        if not timeouts:
            return SUCCESS
        assert self.handle.waiting is not None
        self.handle.waiting.hold(pod, node_name, timeouts)
        reason = "one or more plugins asked to wait and no plugin rejected pod"
        return Status(Code.WAIT, (reason,), timeout_seconds=min(timeouts.values()))

    # The binding cycle

    async def wait_on_permit(self, pod: Pod) -> Status:
        """Success once every plugin has allowed a held pod, or the refusal that ended the wait."""
        assert self.handle.waiting is not None
        return await self.handle.waiting.wait_on(pod)

    def pre_bind_pre_flight(self, cycle: CycleState, pod: Pod, node_name: str) -> bool:
        """Whether any pre-bind plugin has something to do for a pod; those that have not are left out."""
        for step in self.at("pre_bind"):
            ask = getattr(self.plugins[step.plugin], "pre_bind_pre_flight", None)
            if ask is None:
                continue
            asking = Step(step.plugin, "pre_bind_pre_flight", ask)
            status = asking.status(cycle, pod, node_name)
            if status is not None and status.code is Code.SKIP:
                cycle.skip_pre_bind.add(step.plugin)
            elif status is not None and status.code is not Code.SUCCESS:
                raise asking.failed(status.message or status.code.value)
        return len(cycle.skip_pre_bind) < len(self.at("pre_bind"))

    async def pre_bind(self, cycle: CycleState, pod: Pod, node_name: str) -> Status:
        """Run the pre-bind plugins that have something to do, up to the first that does not succeed."""
        steps = [step for step in self.at("pre_bind") if step.plugin not in cycle.skip_pre_bind]
        if not steps:
            return SUCCESS
        with self.handle.pre_binding.of(pod.uid) as stoppable:
            for step in steps:
                try:
                    answer = await stoppable.run(step.waited(cycle, pod, node_name))
                except Stopped as stopped:
                    raise step.failed(str(stopped)) from None
                status = step.as_status(answer)
                if status is not None and status.code not in (Code.SUCCESS, Code.SKIP):
                    return status
        return SUCCESS

    async def bind(self, cycle: CycleState, pod: Pod, node_name: str) -> Status:
        """Let the first plugin that does not skip bind the pod; SKIP if all of them skip."""
        for step in self.at("bind"):
            status = step.as_status(await step.waited(cycle, pod, node_name))
            if status is None or status.code is not Code.SKIP:
                return SUCCESS if status is None else status
        return SKIP

    async def post_bind(self, cycle: CycleState, pod: Pod, node_name: str) -> None:
        """Tell every post-bind plugin."""
        for step in self.at("post_bind"):
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


def _integers(step: Step, scores: Any, count: int) -> Scores:
    array: NDArray[Any] = np.asarray(scores)
    if array.shape != (count,):
        raise step.failed(f"returned scores of shape {array.shape} for {count} nodes")
    if array.dtype.kind not in "iub":
        raise step.failed(f"returned scores of type {array.dtype}; scores are integers")
    return array.astype(np.int64, copy=False)


def _check_bounds(step: Step, scores: Scores) -> None:
    # Seen as unsigned, negative scores are larger than all others: one comparison finds both.
    if (scores.view(np.uint64) > MAX_SCORE).any():
        low, high = int(scores.min()), int(scores.max())
        wrong = low if low < MIN_SCORE else high
        raise step.failed(
            f"invalid score {wrong}, it should in the range of [{MIN_SCORE}, {MAX_SCORE}] after normalizing"
        )
