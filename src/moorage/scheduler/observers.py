"""Whoever looks on while the scheduler works: nobody, or the metrics.

What can be read off at any time (how many pods wait, how large the cache is) is read when somebody asks
(`gauges`); only what would be gone by then is taken down as it happens.
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
from moorage.framework.interface.effects import EvictPods
from moorage.framework.interface.handle import Handle
from moorage.framework.loading.registry import Registry
from moorage.framework.runtime.framework import Framework
from moorage.queue.entry import QueuedPod
from moorage.queue.observer import QueueObserver
from moorage.queue.scheduling_queue import SchedulingQueue
from moorage.scheduler.framework_metrics import FrameworkMetrics, ProfilePluginMetrics
from moorage.scheduler.measured_events import INFORMERS, time_events
from moorage.services.metric_values import Distribution, Metric, Number
from moorage.services.metrics import ERROR, SCHEDULED, UNSCHEDULABLE, Metrics

_MOST_ATTEMPTS_SHOWN: Final = 15
_VERSION_DIGITS: Final = 10**15
"""So much of a resource version is shown."""


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

    def let_go(self, queued: QueuedPod) -> None:
        """Nothing comes of an attempt, neither good nor bad: the pod is gone, or the scheduler ends."""

    def bound(self, queued: QueuedPod, now: float) -> None:
        """A pod is bound; `now` is the queue's time."""

    def failed(self, queued: QueuedPod, reason: str) -> None:
        """An attempt has come to nothing: `Unschedulable` or `SchedulerError`."""


class _QueueMetrics(QueueObserver):
    times_hints = True

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._incoming: dict[tuple[str, str], Number] = {}

    def incoming(self, queue: str, event: str) -> None:
        cell = self._incoming.get((queue, event))
        if cell is None:
            cell = self._incoming[queue, event] = self._metrics.queue_incoming_pods.labels(str(queue), event)
        cell.value += 1

    def hint_asked(self, plugin: str, event: str, outcome: str, seconds: float) -> None:
        self._metrics.queueing_hint_duration.labels(plugin, event, outcome).observe(seconds)


class MetricsObserver(Observer):
    """Takes everything down as kube-scheduler's metrics."""

    def __init__(self, metrics: Metrics) -> None:
        super().__init__(_QueueMetrics(metrics))
        self._metrics = metrics
        self._began: dict[str, float] = {}
        self._attempts: dict[tuple[str, str], tuple[Distribution, Number]] = {}
        self._by_attempts: dict[int, Distribution] = {}

    def framework(self, profile: Profile, registry: Registry, handle: Handle) -> Framework:
        """The plugins of a profile, measured."""
        name = profile.scheduler_name
        reporting = replace(handle, metrics=ProfilePluginMetrics(self._metrics, name))
        return Framework(profile, registry, reporting, FrameworkMetrics(self._metrics, name))

    def follow(self, informers: Sequence[Informer[Any]]) -> None:
        """From now on it is measured how long changes take to arrive in cache and queue."""
        time_events(informers, self._metrics)

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

    def let_go(self, queued: QueuedPod) -> None:
        """Nothing comes of an attempt."""
        self._began.pop(queued.uid, None)

    def bound(self, queued: QueuedPod, now: float) -> None:
        """A pod is bound; `now` is the queue's time."""
        attempts = queued.attempts
        self._ended(SCHEDULED, queued)
        self._metrics.pod_scheduling_attempts.observe(attempts)
        if queued.first_attempt is not None:
            cell = self._by_attempts.get(attempts) or self._cell_of(attempts)
            cell.observe(now - queued.first_attempt)
        if queued.flushed:
            self._metrics.pod_scheduled_after_flush.inc()

    def _cell_of(self, attempts: int) -> Distribution:
        label = str(attempts) if attempts < _MOST_ATTEMPTS_SHOWN else f"{_MOST_ATTEMPTS_SHOWN}+"
        cell = self._by_attempts[attempts] = self._metrics.pod_scheduling_sli_duration.labels(label)
        return cell

    def failed(self, queued: QueuedPod, reason: str) -> None:
        """An attempt has come to nothing: `Unschedulable` or `SchedulerError`."""
        self._ended(UNSCHEDULABLE if reason == "Unschedulable" else ERROR, queued)

    def _ended(self, result: str, queued: QueuedPod) -> None:
        """An attempt has ended."""
        key = (result, queued.profile)
        cells = self._attempts.get(key)
        if cells is None:
            metrics = self._metrics
            cells = self._attempts[key] = (
                metrics.scheduling_attempt_duration.labels(*key),
                metrics.schedule_attempts.labels(*key),
            )
        now = perf_counter()
        cells[0].observe(now - self._began.pop(queued.uid, now))
        cells[1].value += 1


class Observed(Protocol):
    """What gauges are read off."""

    cache: Cache
    queue: SchedulingQueue

    @property
    def under_way(self) -> int:
        """How much goes on beside the cycles."""

    @property
    def prioritizing(self) -> int | None:
        """How many extenders are being asked for scores; None: there are none."""

    @property
    def pre_binding(self) -> int:
        """How many pre-bind plugins are at work."""

    @property
    def informers(self) -> Sequence[Informer[Any]]:
        """What is followed."""


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
    metrics.goroutines.labels("PreBind").set(scheduler.pre_binding)
    if scheduler.prioritizing is not None:
        metrics.goroutines.labels("prioritizing_extender").set(scheduler.prioritizing)
    for cell in metrics.unschedulable_pods.cells.values():
        cell.set(0)
    for (plugin, profile), count in queue.unschedulable_by_plugin.items():
        metrics.unschedulable_pods.labels(plugin, profile).set(count)
    for informer in scheduler.informers:
        labels = (INFORMERS, informer.kind.group, informer.kind.version, informer.kind.plural)
        # A change is taken in as soon as it has come: nothing is ever queued.
        metrics.informer_queued.labels(*labels).set(0)
        metrics.informer_version.labels(*labels).set(informer.version % _VERSION_DIGITS)


def _set_all(metric: Metric[Number], values: Iterable[tuple[str, int]]) -> None:
    """Set the cells of a metric with one label; those of which nothing is said are zero."""
    for cell in metric.cells.values():
        cell.set(0)
    for label, value in values:
        metric.labels(label).set(value)
