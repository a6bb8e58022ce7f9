"""Queueing hints: whether an event may make a pod schedulable, evaluated for the plugins that rejected it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from time import perf_counter
from typing import Any

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.klog import UNHANDLED, Logger, kobj
from moorage.queue.cluster_events import ClusterEvent, Interest
from moorage.queue.equivalent_pods import EquivalentPods
from moorage.queue.in_flight_events import InFlightEvent
from moorage.queue.observer import QueueObserver
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.queueing_rules import Interested, InterestTable, QueueRules

log = Logger(__name__)


class QueueingStrategy(IntEnum):
    """What to do with a pod after an event; ordered by how soon it is scheduled."""

    SKIP = 0
    """The event does not help the pod."""
    AFTER_BACKOFF = 1
    """Requeue the pod; it completes its backoff first."""
    IMMEDIATELY = 2
    """The pod was pending on this event: requeue it without backoff."""


class QueueingHints:
    """Evaluates the hints of the plugins that rejected a pod."""

    def __init__(self, rules: Mapping[str, QueueRules], observer: QueueObserver) -> None:
        self._table = InterestTable(rules)
        self._observer = observer

    def interested_in(self, event: ClusterEvent) -> Interested:
        """The plugins interested in an event; a wildcard applies to all pods without evaluating hints."""
        return self._table.about(event)

    def strategy(
        self, queued: QueuedPod, event: ClusterEvent, old: Object | None, new: Object | None
    ) -> QueueingStrategy:
        """The strategy for a pod after an event; a pod that no plugin rejected is requeued by any event."""
        if event.is_wildcard or not queued.is_rejected:
            if log.v >= 6:
                _log_worth_requeuing(queued, event)
            return QueueingStrategy.AFTER_BACKOFF
        interests, profile = self._table.about(event).interests, queued.profile
        for plugin in queued.rejector_plugins():
            for interest in interests.get((profile, plugin), ()):
                if self._helps(plugin, interest, queued.pod, event, old, new):
                    # Pending plugins come first, so no later plugin yields a sooner strategy.
                    return (
                        QueueingStrategy.IMMEDIATELY
                        if plugin in queued.pending_plugins
                        else QueueingStrategy.AFTER_BACKOFF
                    )
        return QueueingStrategy.SKIP

    def same_for_all(self, group: EquivalentPods, event: ClusterEvent) -> bool:
        """Whether an event has the same strategy for all pods of a group: one is evaluated for all."""
        return self._table.about(event).one_by_one.isdisjoint(group.rejectors)

    def concerned(
        self, group: EquivalentPods, event: ClusterEvent, old: Object | None, new: Object | None
    ) -> list[QueuedPod]:
        """The pods of a group for which hints are called one by one."""
        interests = self._table.about(event).interests
        uids: dict[str, None] = {}
        for plugin in group.rejectors:
            for interest in interests.get(plugin, ()):
                subjects = _subjects(interest, group, old, new)
                if subjects is None:
                    return list(group.pods.values())
                uids |= subjects
        return [group.pods[uid] for uid in uids if uid in group.pods]

    def strategy_for_events(self, queued: QueuedPod, missed: Iterable[InFlightEvent]) -> QueueingStrategy:
        """The strategy for a pod after several events: the soonest of them."""
        best = QueueingStrategy.SKIP
        # Without pending plugins no event yields more than a retry after backoff.
        highest = QueueingStrategy.IMMEDIATELY if queued.pending_plugins else QueueingStrategy.AFTER_BACKOFF
        for in_flight_event in missed:
            if log.v >= 5:
                message = "Checking event for in-flight pod"
                log.info(5, message, pod=kobj(queued.pod), event=in_flight_event.event.label)
            best = max(
                best, self.strategy(queued, in_flight_event.event, in_flight_event.old, in_flight_event.new)
            )
            if best >= highest:
                break
        return best

    def _helps(
        self,
        plugin: str,
        interest: Interest,
        pod: Pod,
        event: ClusterEvent,
        old: Object | None,
        new: Object | None,
    ) -> bool:
        timed = self._observer.times_hints
        start = perf_counter() if timed else 0.0
        outcome = "Error"
        try:
            helps = interest.helps(pod, old, new)
            outcome = "Queue" if helps else "QueueSkip"
        except Exception as error:
            # A needless attempt is better than a pod that waits forever because of a broken hint.
            values: dict[str, Any] = {"event": event.shown(), "plugin": plugin, "pod": kobj(pod)}
            log.exception(error, "QueueingHintFn returns error", logger=UNHANDLED, **values)
            helps = True
        if timed:
            self._observer.hint_asked(plugin, event.label, outcome, perf_counter() - start)
        return helps


def _subjects(
    interest: Interest, group: EquivalentPods, old: Object | None, new: Object | None
) -> dict[str, None] | None:
    """The uids of the pods that an event can concern; None if unknown. An error is left to the hint."""
    if interest.subjects is None:
        return None
    try:
        uids = interest.subjects(group.any_pod().pod, old, new)
        return None if uids is None else dict.fromkeys(uids)
    except Exception:
        return None


def _log_worth_requeuing(queued: QueuedPod, event: ClusterEvent) -> None:
    if queued.is_rejected:
        message = "Worth requeuing because the event is wildcard"
        log.info(6, message, pod=kobj(queued.pod), event=event.label)
    else:
        log.info(6, "Worth requeuing because no failed plugins", pod=kobj(queued.pod))
