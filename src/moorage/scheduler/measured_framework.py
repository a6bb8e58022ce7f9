"""A profile whose extension points and plugins are measured.

An extension point is timed in every cycle: that is a handful of observations a pod, each of them a value put
on a list. Its plugins are timed only in a sample of the cycles, for which other calls take the place of the
usual ones. The scheduling cycle does not wait, so all of it up to the permit is one pod's. What waits
(binding) looks at each pod whether its cycle was in the sample.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from time import perf_counter
from typing import Any, Final

from moorage.api.pod import Pod
from moorage.config.types import Plugins, Profile
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.extension_points import BINDING_POINTS, PostFilterResult
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SUCCESS, Code, PluginError, Status
from moorage.framework.loading.registry import Registry
from moorage.framework.runtime.framework import Framework
from moorage.framework.runtime.plugin_call import PluginCall
from moorage.framework.runtime.plugin_metrics import PluginMetrics
from moorage.framework.runtime.scores import ScoreTable
from moorage.scheduler.measured_steps import CountedStep, NodesStep, TimedStep, WaitingStep, code_of
from moorage.services.metrics import Metrics

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
    "pre_bind_pre_flight": "PreBindPreFlight",
    "pre_bind": "PreBind",
    "bind": "Bind",
    "post_bind": "PostBind",
}
"""What metrics call the extension points."""
_COUNTED: Final = {
    "pre_filter": CountedStep,
    "filter": NodesStep,
    "pre_score": CountedStep,
    "score": NodesStep,
}
"""Where it is counted how often each plugin was asked."""
_TIMED: Final = frozenset(
    ("pre_enqueue", "pre_filter", "filter", "post_filter", "pre_score", "score", "permit")
)
_PREEMPTION: Final = "DefaultPreemption"


class MeasuredReports(PluginMetrics):
    """Takes down what the plugins of a profile tell."""

    def __init__(self, metrics: Metrics, profile: str) -> None:
        self._metrics = metrics
        self._profile = profile

    def volumes_failed(self, stage: str) -> None:
        """Volumes could not be worked with, in a stage."""
        self._metrics.volume_stage_errors.labels(stage).inc()

    def claim_created(self, succeeded: bool) -> None:
        """A claim was created for a pod's extended resources, or could not be."""
        self._metrics.resourceclaim_creates.labels("success" if succeeded else "failure").inc()

    def devices_awaited(
        self, status: str, seconds: float, drivers: Iterable[str], slow_drivers: Iterable[str]
    ) -> None:
        """A pod has waited for its devices."""
        for driver in drivers:
            self._metrics.device_binding_wait_duration.labels(self._profile, driver, status).observe(seconds)
        for driver in slow_drivers:
            self._metrics.device_binding_allocations.labels(self._profile, driver, status).inc()

    def slow_call(self, plugin: str, point: str) -> None:
        """A plugin took too long at an extension point."""
        self._metrics.slow_plugin_calls.labels(plugin, point).inc()


class MeasuredFramework(Framework):
    """A framework that takes down how long everything takes."""

    def __init__(self, profile: Profile, registry: Registry, handle: Handle, metrics: Metrics) -> None:
        self._metrics = metrics
        self._profile_name = profile.scheduler_name
        self._is_sampled = False
        reports = MeasuredReports(metrics, profile.scheduler_name)
        super().__init__(profile, registry, replace(handle, metrics=reports))
        # What a plugin tries out (who would fit if others left) is that plugin's time, not the filters'.
        self.handle.run_filters = super().filter
        self._usual = (self._calls, self._reserves)
        self._sampled = (
            {
                point: self._all_timed(calls) if point in _TIMED else calls
                for point, calls in self._calls.items()
            },
            self._all_timed(self._reserves),
        )
        self._timed_pre_flights = self._all_timed(self._pre_flights)
        duration = metrics.framework_extension_point_duration
        self._succeeded = {
            point: duration.labels(name, Code.SUCCESS.value, self.name).observe
            for point, name in _NAMES.items()
        }
        """By extension point, who takes down how long a success took: what happens to most pods."""
        skipped = duration.labels(_NAMES["pre_bind_pre_flight"], Code.SKIP.value, self.name)
        self._skipped_pre_flight = skipped.observe
        names = [call.plugin for call in self.at("post_filter")]
        self._before_preemption = (
            frozenset(names[: names.index(_PREEMPTION)]) if _PREEMPTION in names else None
        )

    def _arrange(self, wanted: Plugins) -> dict[str, tuple[PluginCall, ...]]:
        return {
            point: tuple(self._measured(call) for call in calls)
            for point, calls in super()._arrange(wanted).items()
        }

    def _measured(self, call: PluginCall) -> PluginCall:
        """A call as it is in most cycles."""
        given = (call.plugin, call.point, call.method, call.weight, call.one_node)
        if call.point in BINDING_POINTS:
            return WaitingStep(*given, observe=_Observe(self._metrics, call))
        counted = _COUNTED.get(call.point)
        if counted is None:
            return call
        asked = self._metrics.plugin_evaluation.labels(call.plugin, _NAMES[call.point], self._profile_name)
        return counted(*given, asked=asked)

    def _all_timed(self, calls: Iterable[PluginCall]) -> tuple[PluginCall, ...]:
        """Steps as they are in a cycle that is in the sample."""
        return tuple(
            TimedStep(
                call.plugin,
                call.point,
                call.method,
                call.weight,
                call.one_node,
                call=call,
                observe=_Observe(self._metrics, call),
            )
            for call in calls
        )

    def _sample(self, is_sampled: bool) -> None:
        """Time every plugin from now on, or none."""
        if is_sampled is not self._is_sampled:
            self._is_sampled = is_sampled
            self._calls, self._reserves = self._sampled if is_sampled else self._usual

    def _took(self, point: str, code: Code, began: float) -> None:
        """An extension point came to something else than success."""
        seconds = perf_counter() - began
        duration = self._metrics.framework_extension_point_duration
        duration.labels(_NAMES[point], code.value, self._profile_name).observe(seconds)

    def _ended(self, point: str, status: Status, began: float) -> Status:
        """An extension point came to a status."""
        if status is SUCCESS:
            self._succeeded[point](perf_counter() - began)
        else:
            self._took(point, status.code, began)
        return status

    # -- the extension points

    def gate(self, pod: Pod, ask_first: str = "") -> str:
        """The plugin that keeps a pod out of the queue, or ""."""
        began = perf_counter()
        self._sample(self._metrics.samples_plugins())
        plugin = Framework.gate(self, pod, ask_first)
        if plugin:
            self._took("pre_enqueue", Code.UNRESOLVABLE, began)
        else:
            self._succeeded["pre_enqueue"](perf_counter() - began)
        return plugin

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis) -> Nodes | None:
        """The nodes left to filter, or None if a pre-filter refused them all."""
        began = perf_counter()
        cycle.is_sampled = is_sampled = self._metrics.samples_plugins()
        self._sample(is_sampled)
        try:
            left = Framework.pre_filter(self, cycle, pod, nodes, diagnosis)
        except PluginError:
            self._took("pre_filter", Code.ERROR, began)
            raise
        if left is None:
            self._took("pre_filter", Code.UNSCHEDULABLE, began)
        else:
            self._succeeded["pre_filter"](perf_counter() - began)
        return left

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis) -> Nodes:
        """The nodes that every filter lets pass, as they are and with the pods nominated to them."""
        began = perf_counter()
        try:
            passed = Framework.filter(self, cycle, pod, nodes, diagnosis)
        except PluginError:
            self._took("filter", Code.ERROR, began)
            raise
        if len(passed):
            self._succeeded["filter"](perf_counter() - began)
        else:
            self._took("filter", Code.UNSCHEDULABLE, began)
        return passed

    async def post_filter(
        self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis
    ) -> PostFilterResult:
        """The first success at making room, or what all plugins had to say."""
        began = perf_counter()
        code = Code.ERROR
        try:
            result = await Framework.post_filter(self, cycle, pod, nodes, diagnosis)
            code = result.status.code
        finally:
            self._took("post_filter", code, began)
        if self._came_to_preemption(result.status):
            self._metrics.preemption_attempts.inc()
        return result

    def _came_to_preemption(self, status: Status) -> bool:
        """Whether no plugin before preemption settled the matter."""
        if self._before_preemption is None:
            return False
        return status.code is Code.UNSCHEDULABLE or status.plugin not in self._before_preemption

    def pre_score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> None:
        """Let every plugin that scores prepare itself, or step aside."""
        began = perf_counter()
        try:
            Framework.pre_score(self, cycle, pod, nodes)
        except PluginError:
            self._took("pre_score", Code.ERROR, began)
            raise
        self._succeeded["pre_score"](perf_counter() - began)

    def sum_scores(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> ScoreTable:
        """What the plugins that did not step aside make of each node."""
        began = perf_counter()
        try:
            table = Framework.sum_scores(self, cycle, pod, nodes)
        except PluginError:
            self._took("score", Code.ERROR, began)
            raise
        self._succeeded["score"](perf_counter() - began)
        return table

    def reserve(self, cycle: CycleState, pod: Pod, node_name: str) -> Status:
        """Ask every plugin to reserve."""
        began = perf_counter()
        try:
            status = Framework.reserve(self, cycle, pod, node_name)
        except PluginError:
            self._took("reserve", Code.ERROR, began)
            raise
        return self._ended("reserve", status, began)

    def unreserve(self, cycle: CycleState, pod: Pod, node_name: str) -> list[PluginError]:
        """Let every plugin undo its reservation."""
        began = perf_counter()
        failures = Framework.unreserve(self, cycle, pod, node_name)
        self._succeeded["unreserve"](perf_counter() - began)
        return failures

    def permit(self, cycle: CycleState, pod: Pod, node_name: str) -> Status:
        """Success, the first refusal, or WAIT."""
        began = perf_counter()
        try:
            status = Framework.permit(self, cycle, pod, node_name)
        except PluginError:
            self._took("permit", Code.ERROR, began)
            raise
        return self._ended("permit", status, began)

    async def wait_on_permit(self, pod: Pod) -> Status:
        """Success once every plugin has allowed a held pod, or the refusal that ended the wait."""
        waiting = self.handle.waiting
        if waiting.get(pod.uid) is None:
            return await Framework.wait_on_permit(self, pod)
        began = perf_counter()
        status = await Framework.wait_on_permit(self, pod)
        self._metrics.permit_wait_duration.labels(status.code.value).observe(perf_counter() - began)
        return status

    def pre_bind_pre_flight(self, cycle: CycleState, pod: Pod, node_name: str) -> bool:
        """Whether any pre-bind plugin has something to do for a pod; those that have not are left out."""
        began = perf_counter()
        try:
            calls = self._timed_pre_flights if cycle.is_sampled else self._pre_flights
            is_needed = self._ask_pre_flights(calls, cycle, pod, node_name)
        except PluginError:
            self._took("pre_bind_pre_flight", Code.ERROR, began)
            raise
        if is_needed:
            self._succeeded["pre_bind_pre_flight"](perf_counter() - began)
        else:
            self._skipped_pre_flight(perf_counter() - began)
        return is_needed

    async def pre_bind(self, cycle: CycleState, pod: Pod, node_name: str) -> Status:
        """Run every pre-bind plugin, up to the first that does not succeed."""
        began = perf_counter()
        try:
            status = await Framework.pre_bind(self, cycle, pod, node_name)
        except BaseException:
            self._took("pre_bind", Code.ERROR, began)
            raise
        return self._ended("pre_bind", status, began)

    async def bind(self, cycle: CycleState, pod: Pod, node_name: str) -> Status:
        """Let the first plugin that does not skip bind the pod."""
        began = perf_counter()
        try:
            status = await Framework.bind(self, cycle, pod, node_name)
        except BaseException:
            self._took("bind", Code.ERROR, began)
            raise
        return self._ended("bind", status, began)

    async def post_bind(self, cycle: CycleState, pod: Pod, node_name: str) -> None:
        """Tell every post-bind plugin."""
        began = perf_counter()
        try:
            await Framework.post_bind(self, cycle, pod, node_name)
        finally:
            self._succeeded["post_bind"](perf_counter() - began)


class _Observe:
    """Takes down how long a plugin took at an extension point, by what it answered."""

    __slots__ = ("_duration", "_labels")

    def __init__(self, metrics: Metrics, call: PluginCall) -> None:
        self._duration = metrics.plugin_execution_duration
        self._labels = (call.plugin, _NAMES[call.point])

    def __call__(self, answer: Any, began: float) -> None:
        seconds = perf_counter() - began
        self._duration.labels(*self._labels, code_of(answer).value).observe(seconds)
