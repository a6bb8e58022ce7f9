"""A profile whose extension points and plugins are timed.

An extension point is timed in every cycle: that is a handful of observations a pod. Its plugins are timed
only in a sample of the cycles; in all others they are called as if nobody looked on. What waits (binding) is
slow anyway: there the plugins look at each call whether theirs is in the sample.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, TypeVar

from moorage.api.pod import Pod
from moorage.config.types import Plugins, Profile
from moorage.framework.cycle import CycleState
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.handle import Handle
from moorage.framework.nodes import Nodes
from moorage.framework.points import PostFilterResult
from moorage.framework.registry import Registry
from moorage.framework.runtime import Framework, ScoreTable
from moorage.framework.status import Code, PluginError, Status
from moorage.framework.step import Step
from moorage.services.metric_values import Distribution, Number
from moorage.services.metrics import Metrics

T = TypeVar("T")

_NAMES: Final = {
    "pre_enqueue": "PreEnqueue",
    "pre_filter": "PreFilter",
    "filter": "Filter",
    "post_filter": "PostFilter",
    "pre_score": "PreScore",
    "score": "Score",
    "reserve": "Reserve",
    "unreserve": "Unreserve",
    "permit": "Permit",
    "pre_bind": "PreBind",
    "bind": "Bind",
    "post_bind": "PostBind",
}
"""What metrics call the extension points."""
_COUNTED: Final = ("pre_filter", "filter", "pre_score", "score")
"""Where it is counted how often each plugin was asked."""
_TIMED: Final = frozenset(("pre_filter", "filter", "post_filter", "pre_score", "score", "permit"))
_WAITING: Final = frozenset(("pre_bind", "bind", "post_bind"))
_PREEMPTION: Final = "DefaultPreemption"


@dataclass(frozen=True, slots=True)
class _TimedStep(Step):
    """One plugin at one extension point, timed."""

    observe: Callable[[Any, float], None] = lambda answer, began: None
    """Takes the answer (an exception, if that is what came) and when the call began."""

    def __call__(self, *arguments: Any) -> Any:
        """Call the plugin; whatever it raises becomes a PluginError."""
        began = perf_counter()
        try:
            answer = Step.__call__(self, *arguments)
        except PluginError as error:
            self.observe(error, began)
            raise
        self.observe(answer, began)
        return answer


@dataclass(frozen=True, slots=True)
class _WaitingStep(Step):
    """One plugin that may wait, timed in the cycles that are in the sample."""

    observe: Callable[[Any, float], None] = lambda answer, began: None

    async def waited(self, *arguments: Any) -> Any:
        """Call the plugin, and wait if it is async."""
        if not arguments[0].is_sampled:
            return await Step.waited(self, *arguments)
        began = perf_counter()
        try:
            answer = await Step.waited(self, *arguments)
        except PluginError as error:
            self.observe(error, began)
            raise
        self.observe(answer, began)
        return answer


class MeasuredFramework(Framework):
    """A framework that takes down how long everything takes."""

    def __init__(self, profile: Profile, registry: Registry, handle: Handle, metrics: Metrics) -> None:
        self._metrics = metrics
        self._is_sampled = False
        self._timed: dict[str, tuple[Step, ...]] = {}
        self._durations: dict[tuple[str, Code], Distribution] = {}
        self._evaluations: dict[str, list[tuple[str, Number]]] = {}
        super().__init__(profile, registry, handle)
        # What a plugin tries out (who would fit if others left) is that plugin's time, not the filters'.
        self.handle.run_filters = super().filter

    def _arrange(self, wanted: Plugins) -> dict[str, tuple[Step, ...]]:
        steps = super()._arrange(wanted)
        for point in _COUNTED:
            self._evaluations[point] = [
                (step.plugin, self._metrics.plugin_evaluation.labels(step.plugin, _NAMES[point], self.name))
                for step in steps.get(point, ())
            ]
        self._timed = {
            point: tuple(self._as(_TimedStep, each) for each in some) if point in _TIMED else some
            for point, some in steps.items()
        }
        return {
            point: tuple(self._as(_WaitingStep, each) for each in some) if point in _WAITING else some
            for point, some in steps.items()
        }

    def _as(self, kind: type[_TimedStep] | type[_WaitingStep], step: Step) -> Step:
        plugin, point, duration = step.plugin, _NAMES[step.point], self._metrics.plugin_execution_duration

        def observe(answer: Any, began: float) -> None:
            duration.labels(plugin, point, _code(answer).value).observe(perf_counter() - began)

        return kind(step.plugin, step.point, step.method, step.weight, observe)

    def at(self, point: str) -> tuple[Step, ...]:
        """The plugins at an extension point, in order; timed ones in a cycle that is in the sample."""
        return (self._timed if self._is_sampled and point not in _WAITING else self._steps).get(point, ())

    def _took(self, point: str, code: Code, began: float) -> None:
        cell = self._durations.get((point, code))
        if cell is None:
            duration = self._metrics.framework_extension_point_duration
            cell = self._durations[point, code] = duration.labels(_NAMES[point], code.value, self.name)
        cell.observe(perf_counter() - began)

    def _timing(self, point: str, run: Callable[[], T], code: Callable[[T], Code]) -> T:
        began = perf_counter()
        try:
            answer = run()
        except PluginError:
            self._took(point, Code.ERROR, began)
            raise
        self._took(point, code(answer), began)
        return answer

    # -- the extension points

    def gate(self, pod: Pod, ask_first: str = "") -> str:
        """The plugin that keeps a pod out of the queue, or ""."""
        began = perf_counter()
        plugin = super().gate(pod, ask_first)
        self._took("pre_enqueue", Code.UNRESOLVABLE if plugin else Code.SUCCESS, began)
        return plugin

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis) -> Nodes | None:
        """The nodes left to filter, or None if a pre-filter refused them all."""
        # The scheduling cycle does not wait, so all of it up to the permit is this pod's.
        self._is_sampled = cycle.is_sampled = self._metrics.samples_plugins()
        self._count("pre_filter", frozenset(), 1)
        return self._timing(
            "pre_filter",
            lambda: Framework.pre_filter(self, cycle, pod, nodes, diagnosis),
            lambda left: Code.UNSCHEDULABLE if left is None else Code.SUCCESS,
        )

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis) -> Nodes:
        """The nodes that every filter lets pass, as they are and with the pods nominated to them."""
        self._count("filter", cycle.skip_filter, len(nodes))
        return self._timing(
            "filter",
            lambda: Framework.filter(self, cycle, pod, nodes, diagnosis),
            lambda passed: Code.SUCCESS if len(passed) else Code.UNSCHEDULABLE,
        )

    def post_filter(
        self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis
    ) -> PostFilterResult:
        """The first success at making room, or what all plugins had to say."""
        result = self._timing(
            "post_filter",
            lambda: Framework.post_filter(self, cycle, pod, nodes, diagnosis),
            lambda result: result.status.code,
        )
        if self._came_to_preemption(result.status):
            self._metrics.preemption_attempts.inc()
        return result

    def _came_to_preemption(self, status: Status) -> bool:
        """Whether no plugin before preemption settled the matter."""
        names = [step.plugin for step in self.at("post_filter")]
        if _PREEMPTION not in names:
            return False
        is_settled = status.code is not Code.UNSCHEDULABLE and status.plugin in names
        return not is_settled or names.index(status.plugin) >= names.index(_PREEMPTION)

    def pre_score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> None:
        """Let every plugin that scores prepare itself, or step aside."""
        self._count("pre_score", frozenset(), 1)
        self._timing(
            "pre_score", lambda: Framework.pre_score(self, cycle, pod, nodes), lambda _: Code.SUCCESS
        )

    def sum_scores(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> ScoreTable:
        """What the plugins that did not step aside make of each node."""
        self._count("score", cycle.skip_score, len(nodes))
        return self._timing(
            "score", lambda: Framework.sum_scores(self, cycle, pod, nodes), lambda _: Code.SUCCESS
        )

    def reserve(self, cycle: CycleState, pod: Pod, node_name: str) -> Status:
        """Ask every plugin to reserve."""
        return self._timing("reserve", lambda: Framework.reserve(self, cycle, pod, node_name), _status_code)

    def unreserve(self, cycle: CycleState, pod: Pod, node_name: str) -> list[PluginError]:
        """Let every plugin undo its reservation."""
        return self._timing(
            "unreserve", lambda: Framework.unreserve(self, cycle, pod, node_name), lambda _: Code.SUCCESS
        )

    def permit(self, cycle: CycleState, pod: Pod, node_name: str) -> Status:
        """Success, the first refusal, or WAIT."""
        return self._timing("permit", lambda: Framework.permit(self, cycle, pod, node_name), _status_code)

    async def wait_on_permit(self, pod: Pod) -> Status:
        """Success once every plugin has allowed a held pod, or the refusal that ended the wait."""
        waiting = self.handle.waiting
        if waiting is None or waiting.get(pod.uid) is None:
            return await super().wait_on_permit(pod)
        began = perf_counter()
        status = await super().wait_on_permit(pod)
        self._metrics.permit_wait_duration.labels(status.code.value).observe(perf_counter() - began)
        return status

    async def pre_bind(self, cycle: CycleState, pod: Pod, node_name: str) -> Status:
        """Run every pre-bind plugin, up to the first that does not succeed."""
        return await self._timing_wait("pre_bind", super().pre_bind(cycle, pod, node_name))

    async def bind(self, cycle: CycleState, pod: Pod, node_name: str) -> Status:
        """Let the first plugin that does not skip bind the pod."""
        return await self._timing_wait("bind", super().bind(cycle, pod, node_name))

    async def post_bind(self, cycle: CycleState, pod: Pod, node_name: str) -> None:
        """Tell every post-bind plugin."""
        await self._timing_wait("post_bind", super().post_bind(cycle, pod, node_name))

    async def _timing_wait(self, point: str, running: Awaitable[T]) -> T:
        began = perf_counter()
        code = Code.ERROR
        try:
            answer = await running
            code = _code(answer)
            return answer
        finally:
            self._took(point, code, began)

    def _count(self, point: str, skipped: set[str] | frozenset[str], times: int) -> None:
        for plugin, count in self._evaluations[point]:
            if plugin not in skipped:
                count.inc(times)


def _status_code(status: Status) -> Code:
    return status.code


def _code(answer: Any) -> Code:
    """What an answer says; one that is no status is a good one."""
    if isinstance(answer, Status):
        return answer.code
    if isinstance(answer, PostFilterResult):
        return answer.status.code
    return Code.ERROR if isinstance(answer, Exception) else Code.SUCCESS
