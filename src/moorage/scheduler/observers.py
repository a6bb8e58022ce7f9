"""Observers of the scheduler: none, the metrics, or several.

State that can be read at any time (pending pods, cache size) is read when metrics are requested
(`read_gauges`); only the rest is recorded when it happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Final, Protocol

from moorage.client.informer import Informer
from moorage.cluster.cache import Cache
from moorage.config.types import Profile
from moorage.engine.decision import Decision
from moorage.engine.group_choices import GroupChoices
from moorage.engine.group_observer import GroupCycleObserver
from moorage.engine.group_result import GroupDecision, GroupResult
from moorage.framework.interface.effects import Effect, EvictPods
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.pod_groups import PodGroupInfo
from moorage.framework.loading.registry import Registry
from moorage.framework.runtime.framework import Framework
from moorage.queue.observer import QueueObserver
from moorage.queue.queued_group import QueuedGroup
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.scheduling_queue import SchedulingQueue
from moorage.scheduler.framework_metrics import FrameworkMetrics, ProfilePluginMetrics
from moorage.scheduler.measured_events import INFORMERS, time_events
from moorage.services.metric_values import Distribution, Metric, Number
from moorage.services.metrics import ERROR, SCHEDULED, UNSCHEDULABLE, WAITING_ON_PREEMPTION, Metrics

_MAX_ATTEMPTS_SHOWN: Final = 15
_VERSION_DIGITS: Final = 10**15
"""Resource versions are shown modulo this number."""


class Observer(GroupCycleObserver):
    """Receives the scheduler's events; does nothing itself."""

    def __init__(self, queue: QueueObserver | None = None) -> None:
        self.queue = queue or QueueObserver()
        """Receives the queue's events."""

    def framework(self, profile: Profile, registry: Registry, handle: Handle) -> Framework:
        """A profile's framework, with or without metrics."""
        return Framework(profile, registry, handle)

    def observe_informers(self, informers: Sequence[Informer[Any]]) -> None:
        """Informers were created."""

    def begins(self, queued: QueuedPod) -> None:
        """A pod's scheduling cycle begins."""

    def preempted(self, eviction: EvictPods, succeeded: bool, seconds: float) -> None:
        """Preemption has evicted its victims, or failed to."""

    def decided(self, queued: QueuedPod, decision: Decision) -> None:
        """The scheduling cycle found a node for a pod, or none."""

    def abandoned(self, queued: QueuedPod) -> None:
        """An attempt was abandoned: the pod is deleted, or the scheduler is stopping."""

    def bound(self, queued: QueuedPod, now: float) -> None:
        """A pod was bound; `now` is the queue's time."""

    def failed(self, queued: QueuedPod, reason: str, message: str = "") -> None:
        """An attempt failed: `Unschedulable` or `SchedulerError`."""

    def group_begins(self) -> None:
        """A group's attempt begins; there is one at a time."""

    def group_choices(self, choices: GroupChoices) -> GroupChoices:
        """What makes the choices of the next cycle of a group: these, or others that are shown its steps."""
        return choices

    def group_refused(self, root: PodGroupInfo, problem: str) -> None:
        """A group was refused before its cycle."""

    def group_decided(self, decision: GroupDecision) -> None:
        """The cycle found nodes for a group, or none."""

    def member_began(self, queued: QueuedPod, seconds: float) -> None:
        """A member goes on to be bound, or fails; its part of the cycle took some seconds."""

    def group_ended(self, queued: QueuedGroup, decision: GroupDecision) -> None:
        """A group's attempt ended: its members go on to be bound, or wait."""


class Observers(Observer):
    """Several observers; frameworks and the queue's observer are those of the first.

    Calls go only to those that do something.
    """

    def __init__(self, first: Observer, *others: Observer) -> None:
        super().__init__(first.queue)
        self._first = first
        self._every = every = (first, *others)
        self._informers = [each.observe_informers for each in every if _has(each, "observe_informers")]
        self._begins = [each.begins for each in every if _has(each, "begins")]
        self._preempted = [each.preempted for each in every if _has(each, "preempted")]
        self._decided = [each.decided for each in every if _has(each, "decided")]
        self._abandoned = [each.abandoned for each in every if _has(each, "abandoned")]
        self._bound = [each.bound for each in every if _has(each, "bound")]
        self._failed = [each.failed for each in every if _has(each, "failed")]

    def framework(self, profile: Profile, registry: Registry, handle: Handle) -> Framework:
        """A profile's framework, as the first observer makes it."""
        return self._first.framework(profile, registry, handle)

    def observe_informers(self, informers: Sequence[Informer[Any]]) -> None:
        """Informers were created."""
        for observe in self._informers:
            observe(informers)

    def begins(self, queued: QueuedPod) -> None:
        """A pod's scheduling cycle begins."""
        for observe in self._begins:
            observe(queued)

    def preempted(self, eviction: EvictPods, succeeded: bool, seconds: float) -> None:
        """Preemption has evicted its victims, or failed to."""
        for observe in self._preempted:
            observe(eviction, succeeded, seconds)

    def decided(self, queued: QueuedPod, decision: Decision) -> None:
        """The scheduling cycle found a node for a pod, or none."""
        for observe in self._decided:
            observe(queued, decision)

    def abandoned(self, queued: QueuedPod) -> None:
        """An attempt was abandoned."""
        for observe in self._abandoned:
            observe(queued)

    def bound(self, queued: QueuedPod, now: float) -> None:
        """A pod was bound; `now` is the queue's time."""
        for observe in self._bound:
            observe(queued, now)

    def failed(self, queued: QueuedPod, reason: str, message: str = "") -> None:
        """An attempt failed: `Unschedulable` or `SchedulerError`."""
        for observe in self._failed:
            observe(queued, reason, message)

    def group_begins(self) -> None:
        """A group's attempt begins."""
        for each in self._every:
            each.group_begins()

    def group_choices(self, choices: GroupChoices) -> GroupChoices:
        """What makes the choices of the next cycle of a group."""
        for each in self._every:
            choices = each.group_choices(choices)
        return choices

    def group_refused(self, root: PodGroupInfo, problem: str) -> None:
        """A group was refused before its cycle."""
        for each in self._every:
            each.group_refused(root, problem)

    def group_decided(self, decision: GroupDecision) -> None:
        """The cycle found nodes for a group, or none."""
        for each in self._every:
            each.group_decided(decision)

    def member_began(self, queued: QueuedPod, seconds: float) -> None:
        """A member goes on to be bound, or fails."""
        for each in self._every:
            each.member_began(queued, seconds)

    def group_ended(self, queued: QueuedGroup, decision: GroupDecision) -> None:
        """A group's attempt ended."""
        for each in self._every:
            each.group_ended(queued, decision)

    def member_tried(self, seconds: float) -> None:
        """A node was looked for, for a member."""
        for each in self._every:
            each.member_tried(seconds)

    def group_algorithm_ended(self) -> None:
        """Nodes were looked for, for all members."""
        for each in self._every:
            each.group_algorithm_ended()

    def placements_generated(self, profile: str, count: int) -> None:
        """A PodGroup has placements."""
        for each in self._every:
            each.placements_generated(profile, count)

    def placement_evaluated(self, profile: str, *, is_feasible: bool, seconds: float) -> None:
        """A placement was tried for a PodGroup."""
        for each in self._every:
            each.placement_evaluated(profile, is_feasible=is_feasible, seconds=seconds)


def _has(observer: Observer, name: str) -> bool:
    """Whether an observer does something at an event."""
    return getattr(type(observer), name) is not getattr(Observer, name)


class _QueueMetrics(QueueObserver):
    times_hints = True

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._incoming: dict[tuple[str, str], Number] = {}

    def incoming(self, queue: str, event: str, queued: QueuedPod) -> None:
        cell = self._incoming.get((queue, event))
        if cell is None:
            cell = self._incoming[queue, event] = self._metrics.queue_incoming_pods.labels(str(queue), event)
        if queued.__class__ is QueuedGroup:
            cell.value += queued.pod_count
            self._metrics.count_incoming(str(queue), event, queued.pod_count, int(queued.is_entity))
        else:
            cell.value += 1

    def stayed(self, queue: str, event: str, queued: QueuedPod) -> None:
        if queued.__class__ is not QueuedGroup:
            self._metrics.count_incoming(str(queue), event, 1, 0)
        elif queued.is_entity:
            self._metrics.count_incoming(str(queue), event, 0, -1)

    def hint_asked(self, plugin: str, event: str, outcome: str, seconds: float) -> None:
        self._metrics.queueing_hint_duration.labels(plugin, event, outcome).observe(seconds)


class MetricsObserver(Observer):
    """Records kube-scheduler's metrics."""

    def __init__(self, metrics: Metrics) -> None:
        super().__init__(_QueueMetrics(metrics))
        self._metrics = metrics
        self._began: dict[str, float] = {}
        self._group_began = 0.0
        self._attempts: dict[tuple[str, str], tuple[Distribution, Number]] = {}
        self._by_attempts: dict[int, Distribution] = {}

    def framework(self, profile: Profile, registry: Registry, handle: Handle) -> Framework:
        """A profile's framework, with metrics."""
        name = profile.scheduler_name
        reporting = replace(handle, metrics=ProfilePluginMetrics(self._metrics, name))
        return Framework(profile, registry, reporting, FrameworkMetrics(self._metrics, name))

    def observe_informers(self, informers: Sequence[Informer[Any]]) -> None:
        """Measure how long changes take to reach cache and queue."""
        time_events(informers, self._metrics)

    def preempted(self, eviction: EvictPods, succeeded: bool, seconds: float) -> None:
        """Preemption has evicted its victims, or failed to."""
        result = "success" if succeeded else "error"
        self._metrics.preemption_goroutines.labels(result).inc()
        self._metrics.preemption_goroutines_duration.labels(result).observe(seconds)
        duration = self._metrics.preemption_execution_duration
        duration.labels(eviction.preemptor_type, result).observe(seconds)

    def begins(self, queued: QueuedPod) -> None:
        """A pod's scheduling cycle begins."""
        self._began[queued.uid] = perf_counter()

    def decided(self, queued: QueuedPod, decision: Decision) -> None:
        """The scheduling cycle found a node for a pod, or none."""
        self._metrics.scheduling_algorithm_duration.observe(perf_counter() - self._began[queued.uid])
        if decision.post_filter is not None:
            self._count_victims(decision.post_filter.effects)

    def _count_victims(self, effects: Iterable[Effect]) -> None:
        metrics = self._metrics
        for effect in effects:
            if not isinstance(effect, EvictPods):
                continue
            is_for_pod, preemptor = effect.group is None, effect.preemptor_type
            victims = metrics.preemption_victims if is_for_pod else metrics.workload_preemption_victims
            victims.observe(effect.victim_count)
            if effect.disrupted_units:
                metrics.preemption_workload_disruptions.labels(preemptor).observe(effect.disrupted_units)
            if effect.pdb_violations:
                metrics.preemption_pdb_violations.labels(preemptor).inc(effect.pdb_violations)

    def abandoned(self, queued: QueuedPod) -> None:
        """An attempt was abandoned."""
        self._began.pop(queued.uid, None)

    def bound(self, queued: QueuedPod, now: float) -> None:
        """A pod was bound; `now` is the queue's time."""
        attempts = queued.attempts
        self.ended(SCHEDULED, queued)
        self._metrics.pod_scheduling_attempts.observe(attempts)
        if queued.first_attempt is not None:
            cell = self._by_attempts.get(attempts) or self._cell_of(attempts)
            cell.observe(now - queued.first_attempt)
        if queued.was_flushed:
            self._metrics.pod_scheduled_after_flush.inc()

    def _cell_of(self, attempts: int) -> Distribution:
        label = str(attempts) if attempts < _MAX_ATTEMPTS_SHOWN else f"{_MAX_ATTEMPTS_SHOWN}+"
        cell = self._by_attempts[attempts] = self._metrics.pod_scheduling_sli_duration.labels(label)
        return cell

    def failed(self, queued: QueuedPod, reason: str, message: str = "") -> None:
        """An attempt failed: `Unschedulable` or `SchedulerError`."""
        self.ended(UNSCHEDULABLE if reason == "Unschedulable" else ERROR, queued)

    def group_begins(self) -> None:
        """A group's attempt begins."""
        self._group_began = perf_counter()

    def group_algorithm_ended(self) -> None:
        """Nodes were looked for, for all members."""
        self._metrics.podgroup_algorithm_duration.observe(perf_counter() - self._group_began)

    def member_tried(self, seconds: float) -> None:
        """A node was looked for, for a member."""
        self._metrics.scheduling_algorithm_duration.observe(seconds)

    def placements_generated(self, profile: str, count: int) -> None:
        """A PodGroup has placements."""
        self._metrics.generated_placements.labels(profile).inc(count)

    def placement_evaluated(self, profile: str, *, is_feasible: bool, seconds: float) -> None:
        """A placement was tried for a PodGroup."""
        labels = ("feasible" if is_feasible else "infeasible", profile)
        self._metrics.placement_evaluations.labels(*labels).inc()
        self._metrics.placement_evaluation_duration.labels(*labels).observe(seconds)

    def group_decided(self, decision: GroupDecision) -> None:
        """The cycle found nodes for a group, or none."""
        if decision.post_filter is not None:
            self._count_victims(decision.post_filter.effects)

    def member_began(self, queued: QueuedPod, seconds: float) -> None:
        """A member's attempt began some seconds ago."""
        self._began[queued.uid] = perf_counter() - seconds

    def group_ended(self, queued: QueuedGroup, decision: GroupDecision) -> None:
        """A group's attempt ended: its members go on to be bound, or wait."""
        labels = (_result_of_group(decision.result), queued.profile)
        seconds = perf_counter() - self._group_began
        self._metrics.podgroup_schedule_attempts.labels(*labels).inc()
        self._metrics.podgroup_attempt_duration.labels(*labels).observe(seconds)

    def ended(self, result: str, queued: QueuedPod) -> float:
        """An attempt ended; returns how long it took, in seconds."""
        key = (result, queued.profile)
        cells = self._attempts.get(key)
        if cells is None:
            metrics = self._metrics
            cells = self._attempts[key] = (
                metrics.scheduling_attempt_duration.labels(*key),
                metrics.schedule_attempts.labels(*key),
            )
        now = perf_counter()
        seconds = now - self._began.pop(queued.uid, now)
        cells[0].observe(seconds)
        cells[1].value += 1
        return seconds


def _result_of_group(result: GroupResult) -> str:
    if result.status.is_success:
        return SCHEDULED
    if result.status.is_error:
        return ERROR
    return WAITING_ON_PREEMPTION if result.is_waiting_on_preemption else UNSCHEDULABLE


class ObservedScheduler(Protocol):
    """What gauges are read from."""

    cache: Cache
    queue: SchedulingQueue

    @property
    def background_task_count(self) -> int:
        """Number of running background tasks."""

    @property
    def prioritizing(self) -> int | None:
        """Number of running prioritize calls to extenders; None: there are no extenders."""

    @property
    def pre_binding(self) -> int:
        """Number of running pre-bind plugins."""

    @property
    def informers(self) -> Sequence[Informer[Any]]:
        """All informers."""


def read_gauges(metrics: Metrics, scheduler: ObservedScheduler) -> None:
    """Set the gauges that are read from a scheduler when metrics are requested."""
    queue, cache = scheduler.queue, scheduler.cache
    _set_all(metrics.pending_pods, ((str(place), count) for place, count in queue.pending().items()))
    metrics.count_entities(queue.groups_by_queue())
    _set_all(metrics.inflight_events, queue.events_in_flight().items())
    _set_all(
        metrics.cache_size,
        (
            ("nodes", cache.node_count),
            ("pods", cache.pod_count),
            ("assumed_pods", cache.assumed_count),
        ),
    )
    metrics.goroutines.labels("binding").set(scheduler.background_task_count)
    metrics.goroutines.labels("PreBind").set(scheduler.pre_binding)
    if scheduler.prioritizing is not None:
        metrics.goroutines.labels("prioritizing_extender").set(scheduler.prioritizing)
    for cell in metrics.unschedulable_pods.cells.values():
        cell.set(0)
    for (plugin, profile), count in queue.unschedulable_by_plugin.items():
        metrics.unschedulable_pods.labels(plugin, profile).set(count)
    for informer in scheduler.informers:
        labels = (INFORMERS, informer.kind.group, informer.kind.version, informer.kind.plural)
        # Changes are applied as they arrive: nothing is ever queued.
        metrics.informer_queued.labels(*labels).set(0)
        metrics.informer_version.labels(*labels).set(informer.version % _VERSION_DIGITS)


def _set_all(metric: Metric[Number], values: Iterable[tuple[str, int]]) -> None:
    """Set the cells of a metric with one label; those without a value are set to zero."""
    for cell in metric.cells.values():
        cell.set(0)
    for label, value in values:
        metric.labels(label).set(value)
