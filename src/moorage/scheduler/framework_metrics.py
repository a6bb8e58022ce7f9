"""The metrics of a profile: its extension points, its plugins' calls, and what plugins report themselves.

Extension points are timed, and evaluations counted, in every cycle. Plugins are timed in a sample of the
cycles, as in kube-scheduler. A plugin that is left out is not observed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any, Final

from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.extension_points import PostFilterResult, PreFlight
from moorage.framework.interface.filter_result import Reason
from moorage.framework.interface.pod_groups import PodGroupPostFilterResult
from moorage.framework.interface.status import Code, Status, point_name
from moorage.framework.runtime.observation import CallObserver, FrameworkObserver
from moorage.framework.runtime.plugin_metrics import LabelledMetric, PluginMetrics
from moorage.services.metric_values import MetricSpec, Number
from moorage.services.metrics import Metrics

_UNOBSERVED: Final = frozenset(("queue_sort", "skips_pod", "placement_feasible", "placement_score"))
_COUNTED: Final = frozenset(("pre_filter", "pre_score"))
"""Where each call is one evaluation."""
_COUNTED_BY_NODE: Final = frozenset(("filter", "score"))
"""Where each node that a plugin is asked about is one evaluation."""


class ProfilePluginMetrics(PluginMetrics):
    """Takes down what the plugins of a profile report."""

    def __init__(self, metrics: Metrics, profile: str) -> None:
        self._metrics = metrics
        self._profile = profile

    def counter(self, name: str, help: str, labels: Sequence[str] = ()) -> LabelledMetric:
        """A counter of a plugin."""
        return self._metrics.of_plugin(MetricSpec(name, "counter", "ALPHA", tuple(labels), help))

    def gauge(self, name: str, help: str, labels: Sequence[str] = ()) -> LabelledMetric:
        """A gauge of a plugin."""
        return self._metrics.of_plugin(MetricSpec(name, "gauge", "ALPHA", tuple(labels), help))

    def volumes_failed(self, stage: str) -> None:
        """Volumes could not be worked with, in a stage."""
        self._metrics.volume_stage_errors.labels(stage).inc()

    def claim_created(self, succeeded: bool) -> None:
        """A claim was created for a pod's extended resources, or could not be."""
        self._metrics.claim_created(succeeded)

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


class FrameworkMetrics(FrameworkObserver):
    """The extension points of a profile."""

    def __init__(self, metrics: Metrics, profile: str) -> None:
        self._metrics = metrics
        self._profile = profile
        self._cache_hits = metrics.plugin_result_cache.labels(profile, "hit")
        self._cache_misses = metrics.plugin_result_cache.labels(profile, "miss")
        self._durations: dict[tuple[str, Code], Callable[[float], None]] = {}

    def of_call(self, plugin: str, point: str, *, preempts: bool = False) -> CallObserver | None:
        """The observer of a plugin's calls."""
        if point in _UNOBSERVED:
            return None
        if point == "pre_enqueue":
            return _GateMetrics(self._metrics, plugin, point)
        if preempts and point in ("post_filter", "pod_group_post_filter"):
            return self._of_preemption(plugin, point)
        if point in _COUNTED | _COUNTED_BY_NODE:
            evaluations = self._metrics.plugin_evaluation.labels(plugin, point_name(point), self._profile)
            kind = _CountedCallMetrics if point in _COUNTED else _NodesCallMetrics
            return kind(self._metrics, plugin, point, evaluations)
        return _CallMetrics(self._metrics, plugin, point)

    def _of_preemption(self, plugin: str, point: str) -> CallObserver:
        if not self._metrics.version.features.generic_workload:
            return _CountedCallMetrics(self._metrics, plugin, point, self._metrics.preemption_attempts)
        kind = _PreemptionMetrics if point == "post_filter" else _GroupPreemptionMetrics
        return kind(self._metrics, plugin, point)

    def samples_gate(self) -> bool:
        """Whether the plugins that gate a pod are timed."""
        return self._metrics.samples_plugins()

    def samples_cycle(self) -> bool:
        """Whether the plugins are timed in a cycle that begins."""
        return self._metrics.samples_plugins()

    def used_result_cache(self, *, hit: bool) -> None:
        """A cycle uses the result cache of its pod's equivalence class."""
        (self._cache_hits if hit else self._cache_misses).value += 1

    def duration(self, point: str, code: Code) -> Callable[[float], None]:
        """Takes down how long an extension point took that ended with a status."""
        observe = self._durations.get((point, code))
        if observe is None:
            duration = self._metrics.framework_extension_point_duration
            observe = duration.labels(point_name(point), code.value, self._profile).observe
            self._durations[point, code] = observe
        return observe

    def waited_on_permit(self, code: Code, seconds: float) -> None:
        """A pod was held by permit plugins."""
        self._metrics.permit_wait_duration.labels(code.value).observe(seconds)


class _CallMetrics(CallObserver):
    """A plugin at an extension point, timed in the cycles of the sample."""

    __slots__ = ("_duration", "_labels")

    def __init__(self, metrics: Metrics, plugin: str, point: str) -> None:
        self._duration = metrics.plugin_execution_duration
        self._labels = (plugin, point_name(point))

    def begin(self, arguments: tuple[Any, ...]) -> float | None:
        """A call begins."""
        return perf_counter() if arguments[0].is_sampled else None

    def begin_node(self, cycle: CycleState) -> float | None:
        """A call of the one-node form begins."""
        return perf_counter() if cycle.is_sampled else None

    def end(self, began: float, answer: Any) -> None:
        """A call that is timed has ended."""
        seconds = perf_counter() - began
        self._duration.labels(*self._labels, _code_of(answer).value).observe(seconds)


class _CountedCallMetrics(_CallMetrics):
    """A plugin whose calls are counted."""

    __slots__ = ("_evaluations",)

    def __init__(self, metrics: Metrics, plugin: str, point: str, evaluations: Number) -> None:
        super().__init__(metrics, plugin, point)
        self._evaluations = evaluations

    def begin(self, arguments: tuple[Any, ...]) -> float | None:
        """A call begins."""
        self._evaluations.value += 1
        return perf_counter() if arguments[0].is_sampled else None


class _PreemptionMetrics(_CallMetrics):
    """The plugin that preempts, where pods may belong to groups: every call is timed."""

    __slots__ = ("_is_sampled", "_metrics")

    def __init__(self, metrics: Metrics, plugin: str, point: str) -> None:
        super().__init__(metrics, plugin, point)
        self._metrics = metrics
        self._is_sampled = False

    def begin(self, arguments: tuple[Any, ...]) -> float | None:
        """A call begins."""
        self._is_sampled = arguments[0].is_sampled
        return perf_counter()

    def end(self, began: float, answer: Any) -> None:
        """A call has ended."""
        seconds = perf_counter() - began
        if self._is_sampled:
            super().end(began, answer)
        self._attempted(answer, seconds)

    def _attempted(self, answer: Any, seconds: float) -> None:
        self._metrics.preemption_attempts.inc()
        self._evaluated("pod", answer, seconds)

    def _evaluated(self, preemptor: str, answer: Any, seconds: float) -> None:
        code = _code_of(answer)
        self._metrics.preemption_evaluation_duration.labels(preemptor, code.value).observe(seconds)


class _GroupPreemptionMetrics(_PreemptionMetrics):
    """The plugin that preempts, asked to make room for a group."""

    __slots__ = ()

    def _attempted(self, answer: Any, seconds: float) -> None:
        self._metrics.workload_preemption_attempts.labels(_code_of(answer).value).inc()
        if isinstance(answer, PodGroupPostFilterResult) and answer.is_evaluated:
            self._evaluated("podgroup", answer, seconds)  # Of composite groups, too.


class _NodesCallMetrics(_CountedCallMetrics):
    """A plugin that is asked about nodes, many at a time or one by one, which are counted."""

    __slots__ = ()

    def begin(self, arguments: tuple[Any, ...]) -> float | None:
        """A call begins."""
        self._evaluations.value += len(arguments[2])
        return perf_counter() if arguments[0].is_sampled else None

    def begin_node(self, cycle: CycleState) -> float | None:
        """A call of the one-node form begins."""
        self._evaluations.value += 1
        return perf_counter() if cycle.is_sampled else None


class _GateMetrics(_CallMetrics):
    """A plugin that gates pods: there is no cycle yet, and it is observed only where it is timed."""

    __slots__ = ()

    def begin(self, arguments: tuple[Any, ...]) -> float | None:
        """A call begins."""
        return perf_counter()


def _code_of(answer: Any) -> Code:
    """The status that an answer stands for; one that is no status is a success."""
    if isinstance(answer, PreFlight):
        answer = answer.status
    if isinstance(answer, Status):
        return answer.code
    if isinstance(answer, PostFilterResult | PodGroupPostFilterResult):
        return answer.status.code
    if isinstance(answer, Reason):
        return answer.code
    return Code.ERROR if isinstance(answer, Exception) else Code.SUCCESS
