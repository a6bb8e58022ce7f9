"""Whoever looks on while the scheduler works: nobody, or the metrics.

What can be read off at any time (how many pods wait, how large the cache is) is read when somebody asks
(`gauges`); only what would be gone by then is taken down as it happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import Any, Final, Protocol

from moorage.api.pod import Pod
from moorage.client.informer import EventType, Informer, Listener
from moorage.cluster.cache import Cache
from moorage.config.types import Profile
from moorage.engine.decision import Decision
from moorage.framework.effects import EvictPods
from moorage.framework.handle import Handle
from moorage.framework.registry import Registry
from moorage.framework.runtime import Framework
from moorage.queue.entry import QueuedPod
from moorage.queue.observer import QueueObserver
from moorage.queue.scheduling_queue import SchedulingQueue
from moorage.scheduler.measured_framework import MeasuredFramework
from moorage.services.metric_values import Metric, Number
from moorage.services.metrics import ERROR, SCHEDULED, UNSCHEDULABLE, Metrics

_MOST_ATTEMPTS_SHOWN: Final = 15
_ACTIONS: Final = {"ADDED": "Add", "MODIFIED": "Update", "DELETED": "Delete"}


class Observer:
    """Is told what the scheduler does; does nothing itself."""

    def __init__(self, queue: QueueObserver | None = None) -> None:
        self.queue = queue or QueueObserver()
        """Who is told what happens in the queue."""

    def framework(self, profile: Profile, registry: Registry, handle: Handle) -> Framework:
        """The plugins of a profile, ready to run and perhaps to be measured."""
        return Framework(profile, registry, handle)

    def follow(self, informers: Sequence[Informer[Any]]) -> None:
        """These informers tell the scheduler what happens in the cluster."""

    def begins(self, queued: QueuedPod) -> None:
        """A pod's cycle begins."""

    def made_room(self, succeeded: bool, seconds: float) -> None:
        """Victims of preemption are gone or going, or could not be made to."""

    def decided(self, queued: QueuedPod, decision: Decision) -> None:
        """It is known where a pod goes, or that it goes nowhere."""

    def bound(self, queued: QueuedPod, now: float) -> None:
        """A pod is bound; `now` is the queue's time."""

    def failed(self, queued: QueuedPod, reason: str) -> None:
        """An attempt has come to nothing: `Unschedulable` or `SchedulerError`."""


class _QueueMetrics(QueueObserver):
    times_hints = True

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def incoming(self, queue: str, event: str) -> None:
        self._metrics.queue_incoming_pods.labels(str(queue), event).inc()

    def hint_asked(self, plugin: str, event: str, outcome: str, seconds: float) -> None:
        self._metrics.queueing_hint_duration.labels(plugin, event, outcome).observe(seconds)


class MetricsObserver(Observer):
    """Takes everything down as kube-scheduler's metrics."""

    def __init__(self, metrics: Metrics) -> None:
        super().__init__(_QueueMetrics(metrics))
        self._metrics = metrics
        self._began: dict[str, float] = {}

    def framework(self, profile: Profile, registry: Registry, handle: Handle) -> Framework:
        """The plugins of a profile, measured."""
        return MeasuredFramework(profile, registry, handle, self._metrics)

    def follow(self, informers: Sequence[Informer[Any]]) -> None:
        """From now on it is measured how long changes take to arrive in cache and queue."""
        for informer in informers:
            informer.listeners[:] = [self._timed(listener) for listener in informer.listeners]

    def _timed(self, listener: Listener[Any]) -> Listener[Any]:
        durations = self._metrics.event_handling_duration

        def listen(type: EventType, obj: Any, before: Any | None) -> None:
            began = perf_counter()
            listener(type, obj, before)
            durations.labels(_subject(obj) + _ACTIONS[type]).observe(perf_counter() - began)

        return listen

    def made_room(self, succeeded: bool, seconds: float) -> None:
        """Victims of preemption are gone or going, or could not be made to."""
        result = "success" if succeeded else "error"
        self._metrics.preemption_goroutines.labels(result).inc()
        self._metrics.preemption_goroutines_duration.labels(result).observe(seconds)

    def begins(self, queued: QueuedPod) -> None:
        """A pod's cycle begins."""
        self._began[queued.uid] = perf_counter()

    def decided(self, queued: QueuedPod, decision: Decision) -> None:
        """It is known where a pod goes, or that it goes nowhere."""
        self._metrics.scheduling_algorithm_duration.observe(perf_counter() - self._began[queued.uid])
        if decision.post_filter is not None:
            for effect in decision.post_filter.effects:
                if isinstance(effect, EvictPods):
                    self._metrics.preemption_victims.observe(len(effect.victims))

    def bound(self, queued: QueuedPod, now: float) -> None:
        """A pod is bound; `now` is the queue's time."""
        metrics, attempts = self._metrics, queued.attempts
        metrics.attempted(SCHEDULED, queued.profile, self._seconds(queued))
        metrics.pod_scheduling_attempts.observe(attempts)
        if queued.first_attempt is not None:
            label = str(attempts) if attempts < _MOST_ATTEMPTS_SHOWN else f"{_MOST_ATTEMPTS_SHOWN}+"
            metrics.pod_scheduling_sli_duration.labels(label).observe(now - queued.first_attempt)
        if queued.flushed:
            metrics.pod_scheduled_after_flush.inc()

    def failed(self, queued: QueuedPod, reason: str) -> None:
        """An attempt has come to nothing: `Unschedulable` or `SchedulerError`."""
        result = UNSCHEDULABLE if reason == "Unschedulable" else ERROR
        self._metrics.attempted(result, queued.profile, self._seconds(queued))

    def _seconds(self, queued: QueuedPod) -> float:
        """How long the attempt took that ends now."""
        now = perf_counter()
        return now - self._began.pop(queued.uid, now)


def _subject(obj: Any) -> str:
    """What metrics call an object that has changed."""
    if isinstance(obj, Pod):
        return "AssignedPod" if obj.spec.node_name else "UnschedulablePod"
    return type(obj).__name__


class Observed(Protocol):
    """What gauges are read off."""

    cache: Cache
    queue: SchedulingQueue

    @property
    def under_way(self) -> int:
        """How much goes on beside the cycles."""


def read_gauges(metrics: Metrics, scheduler: Observed) -> None:
    """Set what can be read off a scheduler at any time, for whoever asks now."""
    queue, cache = scheduler.queue, scheduler.cache
    _set_all(metrics.pending_pods, ((str(place), count) for place, count in queue.pending().items()))
    _set_all(metrics.inflight_events, queue.events_in_flight().items())
    _set_all(
        metrics.cache_size,
        (
            ("nodes", cache.node_count),
            ("pods", cache.pod_count),
            ("assumed_pods", cache.assumed_count),
        ),
    )
    metrics.goroutines.labels("binding").set(scheduler.under_way)
    for cell in metrics.unschedulable_pods.cells.values():
        cell.set(0)
    for (plugin, profile), count in queue.unschedulable_by_plugin.items():
        metrics.unschedulable_pods.labels(plugin, profile).set(count)


def _set_all(metric: Metric[Number], values: Iterable[tuple[str, int]]) -> None:
    """Set the cells of a metric with one label; those of which nothing is said are zero."""
    for cell in metric.cells.values():
        cell.set(0)
    for label, value in values:
        metric.labels(label).set(value)
