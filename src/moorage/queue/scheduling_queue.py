"""The scheduling queue: every pod without a node is in exactly one of five places.

```
 add ──► active ──pop──► in flight ──done──► (bound, or deleted)
           ▲  ▲                │ put_back: hints of the rejecting plugins for the events it missed
  activate │  │ backoff over   ├─ may help, backoff over ─► active
           │  └──── backoff ◄──┼─ may help, or an error
           │           ▲       └─ does not help ─┐
           └───────────┴── an event may help ── unschedulable ◄─► gated: a plugin's pre_enqueue rejects it
```

A pure state machine: calls in, places and counts out; time comes from a clock, and nothing here blocks.
`changed` is called when there may be something to pop. `validate` checks every invariant.

Invariants: a pod is in one place only. An unschedulable pod was rejected by a plugin, and no event since its
last attempt began may make it schedulable, by that plugin's hints. A gated pod is neither active nor in
backoff. With an empty active queue, pods in backoff are popped early, but never those after errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import chain
from typing import Any

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.api.pod_groups import GroupKey
from moorage.clock import Clock
from moorage.emulation.kubernetes_version import DEFAULT_VERSION
from moorage.queue import cluster_events as events
from moorage.queue import queue_log
from moorage.queue.backoff_queue import WINDOW_SECONDS, BackoffQueue
from moorage.queue.cluster_events import ClusterEvent
from moorage.queue.equivalent_pods import EquivalentPods
from moorage.queue.event_of_change import PodEvents
from moorage.queue.heap import PodHeap
from moorage.queue.in_flight_events import InFlightEvents
from moorage.queue.nominator import Nominator, NoNominator, update_nomination
from moorage.queue.observer import QueueObserver
from moorage.queue.queue_log import log
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.queueing_hints import QueueingHints, QueueingStrategy
from moorage.queue.queueing_rules import QueueRules
from moorage.queue.sub_queues import SharedSubQueueOrder, SubQueueOrder, SubQueues
from moorage.queue.unschedulable_pods import UnschedulablePods

INITIAL_BACKOFF_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 10.0
MAX_UNSCHEDULABLE_SECONDS = 300.0


class Place(StrEnum):
    """Where a pod can be; the values are the names in metrics."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in flight"
    INCOMPLETE = "incomplete"
    """A member of a group that is not known yet."""
    PENDING = "pending"
    """A member that waits for the end of its group's attempt."""


SortKey = Callable[[QueuedPod], Any]
"""Sorts pods: smaller keys first."""


def nothing_began() -> None:
    """In place of a callback: there is nothing to call."""


def _shared(sub_queues: SubQueueOrder | None) -> SharedSubQueueOrder | None:
    return None if sub_queues is None else SharedSubQueueOrder(sub_queues)


def _new_active(sort_key: SortKey, sub_queues: SharedSubQueueOrder | None) -> PodHeap | SubQueues:
    return PodHeap(sort_key) if sub_queues is None else sub_queues.place(sort_key)


class SchedulingQueue:
    """The pods without a node.

    rules: what the plugins register, by scheduler name.
    sort_key: the order of pods; sub_queues: that of sub-queues, each of which has that order inside.
    nominations: updated as pods are added, updated and deleted.
    pod_events: the names of pods' events; by default those of the default version.
    """

    def __init__(
        self,
        rules: Mapping[str, QueueRules],
        sort_key: SortKey,
        clock: Clock,
        *,
        initial_backoff_seconds: float = INITIAL_BACKOFF_SECONDS,
        max_backoff_seconds: float = MAX_BACKOFF_SECONDS,
        max_unschedulable_seconds: float = MAX_UNSCHEDULABLE_SECONDS,
        sub_queues: SubQueueOrder | None = None,
        nominations: Nominator | None = None,
        observer: QueueObserver | None = None,
        pod_events: PodEvents | None = None,
    ) -> None:
        self.pod_events = pod_events or PodEvents(DEFAULT_VERSION.target_pod_events)
        self._new_pod_events = (self.pod_events.added.label, self.pod_events.updated.label)
        self.changed: Callable[[], None] = nothing_began
        """Called when there may be a pod to pop."""
        self.backoff_began: Callable[[], None] = nothing_began
        """Called when a pod begins backoff."""
        self.unschedulable_by_plugin: Counter[tuple[str, str]] = Counter()
        """Number of queued pods by the plugins that rejected them last, and by scheduler name."""
        self._rules = rules
        self._clock = clock
        self._max_unschedulable_seconds = max_unschedulable_seconds
        self._nominations = NoNominator() if nominations is None else nominations
        self._observer = observer or QueueObserver()
        self._hints = QueueingHints(rules, self._observer)
        self._waiting: dict[str, QueuedPod] = {}
        """All pods but those in flight, by uid; each is in one of the next three, too."""
        shared = _shared(sub_queues)
        self._active = _new_active(sort_key, shared)
        self._backoff = BackoffQueue(clock, sort_key, initial_backoff_seconds, max_backoff_seconds, shared)
        self._unschedulable = UnschedulablePods()
        self._in_flight = InFlightEvents()
        self._scheduling_cycle = 0
        """Number of pods popped so far."""

    # Changes of pods

    def add(self, pod: Pod) -> None:
        """A pod without a node was added."""
        if pod.uid not in self:
            self._to_active(QueuedPod(pod, self._clock.now()), self.pod_events.added.label)

    def update(self, old: Pod, new: Pod) -> None:
        """A pod without a node was updated, which may make it schedulable; an unknown pod is added.

        Updates of a pod in flight are evaluated when it is put back.
        """
        uid = new.uid
        if old.uid != uid:
            self.delete(old)
            self.add(new)
            return
        if uid in self._in_flight:
            for event in self.pod_events.of_update(old, new, is_target=True):
                self._in_flight.note(event, old, new, only=uid)
            if log.v >= 6:
                queue_log.updated_in_flight(new)
        elif (queued := self.get(uid)) is None:
            self._to_active(QueuedPod(new, self._clock.now()), self.pod_events.updated.label)
        else:
            queued.pod = new
            update_nomination(self._nominations, old, new)
            if uid in self._active:
                self._active.put(queued)
            elif uid in self._backoff:
                self._backoff.put(queued)
            else:
                self._requeue_after_update(queued, old, new)

    def _requeue_after_update(self, queued: QueuedPod, old: Pod, new: Pod) -> None:
        for event in self.pod_events.of_update(old, new, is_target=True):
            strategy = self._hints.strategy(queued, event, old, new)
            place = self._place(queued, strategy, event.label)
            if place in (Place.ACTIVE, Place.BACKOFF):
                if log.v >= 5:
                    queue_log.moved(queued, event.label, place, " because the Pod is updated")
                return

    def delete(self, pod: Pod) -> None:
        """A pod was deleted or bound. An attempt in flight continues until `done` or `put_back`."""
        uid = pod.uid
        self._nominations.remove(uid)
        queued = self._waiting.pop(uid, None)
        if queued is not None:
            _ = self._active.remove(uid) or self._backoff.remove(uid) or self._unschedulable.remove(uid)
            self._count_rejections(queued, -1)

    def groups_changed(self, keys: Iterable[GroupKey]) -> None:
        """Groups that pods name were added or deleted: nothing changes where pods are queued one by one."""

    # Attempts

    def pop_now(self) -> QueuedPod | None:
        """The first pod, which is in flight from now on; None if there is nothing to schedule."""
        queued = self._active.pop()
        if queued is None:
            queued = self._backoff.pop_early()
            if queued is None:
                return None
            self._observer.incoming(Place.ACTIVE, events.POP_FROM_BACKOFF, queued)
        del self._waiting[queued.uid]
        queued.attempts += 1
        self._scheduling_cycle += 1
        if queued.is_rejected:
            self._count_rejections(queued, -1)
        self._in_flight.begin(queued)
        return queued

    def done(self, uid: str) -> None:
        """A pod needs no more attempts, or cannot be rejected any more: drop its in-flight events."""
        self._in_flight.end(uid)

    def put_back(
        self,
        queued: QueuedPod,
        pod: Pod,
        *,
        unschedulable_plugins: Iterable[str] = (),
        pending_plugins: Iterable[str] = (),
    ) -> Place:
        """An attempt failed: queue the pod again, in its current version; returns where.

        Without rejecting plugins it was an error: the pod is retried after backoff. Otherwise it waits for an
        event that may help it, unless one occurred while it was in flight.
        """
        if (place := self.place_of(queued.uid)) not in (None, Place.IN_FLIGHT):
            self._in_flight.end(queued.uid)
            return place
        queued.pod = pod
        self._note_failure(queued, frozenset(unschedulable_plugins), frozenset(pending_plugins))
        strategy = self._strategy_for_missed_events(queued)
        self._in_flight.end(queued.uid)
        event = events.SCHEDULE_ATTEMPT_FAILURE
        place = self._place(queued, strategy, event)
        if log.v >= 3:
            queue_log.put_back(queued, event, place, self._scheduling_cycle, strategy)
        return place

    def _note_failure(
        self, queued: QueuedPod, unschedulable_plugins: frozenset[str], pending_plugins: frozenset[str]
    ) -> None:
        queued.unschedulable_plugins = unschedulable_plugins
        queued.pending_plugins = pending_plugins
        queued.gating_plugin = ""
        if queued.is_rejected:
            queued.unschedulable_count += 1
            queued.consecutive_errors = 0
        else:
            queued.consecutive_errors += 1
        queued.timestamp = self._clock.now()
        queued.backoff_expiration = None
        queued.was_flushed, queued.flush_timestamp = False, None
        self._count_rejections(queued, 1)

    def _strategy_for_missed_events(self, queued: QueuedPod) -> QueueingStrategy:
        if not queued.is_rejected or queued.uid not in self._in_flight:
            return QueueingStrategy.AFTER_BACKOFF
        if log.v >= 5:
            queue_log.in_flight(queued, self._in_flight.event_count, len(self._in_flight))
        return self._hints.strategy_for_events(queued, self._in_flight.missed(queued.uid))

    # Events

    def move_all(
        self,
        event: ClusterEvent,
        old: Object | None = None,
        new: Object | None = None,
        precheck: Callable[[Pod], bool] | None = None,
    ) -> None:
        """An event occurred: pods that it may help are requeued; those in flight if their attempt fails.

        precheck: which of the waiting pods the event can concern; not applied to pods in flight.
        """
        interested = self._hints.interested_in(event)
        if not interested.interests and not event.is_wildcard:
            if log.v >= 6:
                queue_log.unwanted(event)
            return
        if self._unschedulable:
            requeued: Iterable[tuple[QueuedPod, QueueingStrategy]] = ()
            if event.is_wildcard:
                requeued = ((queued, QueueingStrategy.AFTER_BACKOFF) for queued in self._unschedulable)
            elif groups := self._unschedulable.interested_groups(interested, old, new):
                requeued = self._pods_to_requeue(event, old, new, groups)
            helped = (
                [each for each in requeued if precheck is None or precheck(each[0].pod)] if requeued else []
            )
            if log.v >= 5:
                queue_log.unhelped(
                    self._unschedulable, [queued for queued, _ in helped], event, interested, precheck
                )
            if helped:
                self._requeue(helped, event)
        self._in_flight.note(event, old, new)
        if log.v >= 5 and len(self._in_flight):
            queue_log.noted(event)

    def _pods_to_requeue(
        self, event: ClusterEvent, old: Object | None, new: Object | None, groups: Iterable[EquivalentPods]
    ) -> Iterator[tuple[QueuedPod, QueueingStrategy]]:
        """The pods of some groups that an event requeues, with the strategy for each."""
        subjects = {each.uid for each in (old, new) if isinstance(each, Pod)}
        for group in groups:
            if group.pods.keys().isdisjoint(subjects) and self._hints.same_for_all(group, event):
                strategy = self._hints.strategy(group.any_pod(), event, old, new)
                if strategy is not QueueingStrategy.SKIP:
                    yield from ((queued, strategy) for queued in group.pods.values())
            else:
                for queued in self._hints.concerned(group, event, old, new):
                    strategy = self._hints.strategy(queued, event, old, new)
                    if strategy is not QueueingStrategy.SKIP:
                        yield queued, strategy

    def _requeue(self, requeued: Iterable[tuple[QueuedPod, QueueingStrategy]], event: ClusterEvent) -> None:
        for queued, strategy in requeued:
            # Removed first: if a gate rejects it again, that counts as a new incoming pod.
            self._unschedulable.remove(queued.uid)
            self._place(queued, strategy, event.label)

    def nomination_removed(self, pod: Pod) -> None:
        """A pod lost its nomination: pods of lower or equal priority may use the node's resources now."""
        self.move_all(events.ASSIGNED_POD_DELETE, pod, None, lambda other: other.priority <= pod.priority)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Schedule pods now, as a plugin requests: without backoff and without an event.

        A pod in flight is retried if its attempt fails. Unknown pods are ignored.
        """
        for pod in pods:
            uid = pod.uid
            if uid in self._in_flight:
                self._in_flight.note(events.FORCE_ACTIVATE, None, pod, only=uid)
            elif (queued := self._backoff.remove(uid)) is not None:
                self._into_active(queued, events.FORCE_ACTIVATE.label)
            elif (queued := self._unschedulable.get(uid)) is not None:
                self._to_active(queued, events.FORCE_ACTIVATE.label)

    def activate_group(self, root: GroupKey) -> None:
        """Schedule a group now; where groups are not scheduled together, there is none."""

    # Time

    @property
    def has_backoff(self) -> bool:
        """Whether pods are in backoff."""
        return len(self._backoff) > 0

    def flush_backoff(self) -> None:
        """Move pods whose backoff expired to the active queue; called at the start of every second."""
        for queued in self._backoff.pop_completed():
            self._into_active(queued, events.BACKOFF_COMPLETE)

    def flush_unschedulable(self) -> None:
        """Requeue pods that were unschedulable for the maximum time, in case a hint was wrong."""
        now = self._clock.now()
        overdue = []
        for queued in self._unschedulable:
            since = max(queued.timestamp, queued.flush_timestamp or queued.timestamp)
            if now - since > self._max_unschedulable_seconds:
                queued.was_flushed, queued.flush_timestamp = True, now
                overdue.append((queued, QueueingStrategy.AFTER_BACKOFF))
        if overdue:
            self._requeue(overdue, events.UNSCHEDULABLE_TIMEOUT)
            self._in_flight.note(events.UNSCHEDULABLE_TIMEOUT, None, None)

    # Moves between queues

    def _place(self, queued: QueuedPod, strategy: QueueingStrategy, event: str) -> Place:
        if strategy is QueueingStrategy.SKIP:
            is_new = queued.uid not in self._unschedulable
            place = self._to_unschedulable(queued, event)
            if is_new:
                self._observer.stayed(Place.UNSCHEDULABLE, event, queued)
            return place
        if strategy is QueueingStrategy.IMMEDIATELY:
            return self._stayed(Place.ACTIVE, self._to_active(queued, event), event, queued)
        if self._backoff.is_backing_off(queued):
            return self._stayed(Place.BACKOFF, self._to_backoff(queued, event), event, queued)
        return self._to_active(queued, event)

    def _stayed(self, expected: Place, place: Place, event: str, queued: QueuedPod) -> Place:
        if place is expected:
            self._observer.stayed(place, event, queued)
        return place

    def _to_active(self, queued: QueuedPod, event: str) -> Place:
        if not self._gated(queued):
            return self._into_active(queued, event)
        if log.v >= 5 and queued.uid not in self._unschedulable:
            queue_log.moved(queued, event, Place.GATED, ", because the pod is gated")
        return self._to_unschedulable(queued, event)

    def _to_backoff(self, queued: QueuedPod, event: str) -> Place:
        if self._gated(queued):
            if log.v >= 5 and queued.uid not in self._unschedulable:
                queue_log.moved(queued, event, Place.GATED)
            return self._to_unschedulable(queued, event)
        self._unschedulable.remove(queued.uid)
        self._waiting[queued.uid] = queued
        self._backoff.put(queued)
        if log.v >= 5:
            queue_log.moved(queued, event, Place.BACKOFF)
        self._observer.incoming(Place.BACKOFF, event, queued)
        self.changed()
        self.backoff_began()
        return Place.BACKOFF

    def _into_active(self, queued: QueuedPod, event: str) -> Place:
        """Does not call pre_enqueue: callers have done so."""
        if queued.first_attempt is None:
            queued.first_attempt = self._clock.now()
        if queued.uid in self._waiting:
            self._unschedulable.remove(queued.uid)
        else:
            self._waiting[queued.uid] = queued
        self._active.put(queued)
        if log.v >= 5:
            queue_log.moved(queued, event, Place.ACTIVE)
        self._observer.incoming(Place.ACTIVE, event, queued)
        if event in self._new_pod_events and queued.uid == queued.pod.uid:
            self._nominations.put(queued.pod, queued.pod.status.nominated_node_name)
        self.changed()
        return Place.ACTIVE

    def _to_unschedulable(self, queued: QueuedPod, event: str) -> Place:
        if queued.gating_plugin:
            queued.was_flushed = False
        if queued.uid not in self._unschedulable:
            self._observer.incoming(Place.UNSCHEDULABLE, event, queued)
        self._waiting[queued.uid] = queued
        self._unschedulable.put(queued)
        return Place.GATED if queued.gating_plugin else Place.UNSCHEDULABLE

    def _gated(self, queued: QueuedPod) -> bool:
        """Whether a plugin's pre_enqueue rejects a pod now; it then counts as a rejecting plugin."""
        rules = self._rules.get(queued.profile)
        plugin = rules.gate(queued.pod, queued.gating_plugin) if rules is not None else ""
        queued.gating_plugin = plugin
        if plugin and plugin not in queued.unschedulable_plugins:
            if plugin not in queued.pending_plugins:
                self.unschedulable_by_plugin[plugin, queued.profile] += 1
            queued.unschedulable_plugins |= {plugin}
        return bool(plugin)

    def _count_rejections(self, queued: QueuedPod, change: int) -> None:
        if not queued.is_rejected:
            return
        for plugin in queued.rejector_plugins():
            key = plugin, queued.profile
            self.unschedulable_by_plugin[key] += change
            if not self.unschedulable_by_plugin[key]:
                del self.unschedulable_by_plugin[key]

    # Reading

    def place_of(self, uid: str) -> Place | None:
        """Where a pod is; None if it is not here."""
        if uid in self._active:
            return Place.ACTIVE
        if uid in self._backoff:
            return Place.BACKOFF
        if (queued := self._unschedulable.get(uid)) is not None:
            return Place.GATED if queued.gating_plugin else Place.UNSCHEDULABLE
        return Place.IN_FLIGHT if uid in self._in_flight else None

    def get(self, uid: str) -> QueuedPod | None:
        """A waiting pod, in any queue; not one in flight."""
        return self._waiting.get(uid)

    def pods_in(self, place: Place) -> list[QueuedPod]:
        """All pods in a place, in the order of popping where that is defined."""
        match place:
            case Place.ACTIVE:
                return self._active.in_order()
            case Place.BACKOFF:
                return self._backoff.after_rejection.in_order() + self._backoff.after_error.in_order()
            case Place.IN_FLIGHT:
                return list(self._in_flight)
            case Place.UNSCHEDULABLE | Place.GATED:
                gated = place is Place.GATED
                return [queued for queued in self._unschedulable if bool(queued.gating_plugin) == gated]
            case Place.INCOMPLETE | Place.PENDING:
                return []

    def awaited_events(self, queued: QueuedPod) -> dict[str, list[ClusterEvent]]:
        """The events that may requeue a pod, by the plugins that rejected it."""
        rules = self._rules.get(queued.profile)
        if rules is None:
            return {}
        return {
            plugin: [interest.event for interest in rules.interests.get(plugin, ())]
            for plugin in sorted(queued.rejector_plugins())
        }

    def next_attempt(self, queued: QueuedPod) -> float | None:
        """When a waiting pod is retried without any event; None: now, or not at all."""
        match self.place_of(queued.uid):
            case Place.BACKOFF:
                return self._backoff.expiration(queued) + WINDOW_SECONDS
            case Place.UNSCHEDULABLE:
                since = max(queued.timestamp, queued.flush_timestamp or queued.timestamp)
                return since + self._max_unschedulable_seconds
        return None

    def pending(self) -> dict[Place, int]:
        """Number of pods in each queue."""
        return {
            Place.ACTIVE: len(self._active),
            Place.BACKOFF: len(self._backoff),
            Place.UNSCHEDULABLE: len(self._unschedulable) - self._unschedulable.gated_count,
            Place.GATED: self._unschedulable.gated_count,
        }

    def groups_by_queue(self) -> dict[str, tuple[int, int]]:
        """By queue, how many PodGroups there are, and how many pods in groups."""
        return {}

    def events_in_flight(self) -> Counter[str]:
        """Number of events kept for pods in flight, by label, and of these pods."""
        return self._in_flight.tally()

    def __contains__(self, uid: str) -> bool:
        return uid in self._waiting or uid in self._in_flight

    def __iter__(self) -> Iterator[QueuedPod]:
        """All waiting pods."""
        return chain(self._active, self._backoff, self._unschedulable)

    def __len__(self) -> int:
        return len(self._waiting)

    # Configuration

    def reconfigure(
        self,
        rules: Mapping[str, QueueRules],
        sort_key: SortKey,
        *,
        initial_backoff_seconds: float = INITIAL_BACKOFF_SECONDS,
        max_backoff_seconds: float = MAX_BACKOFF_SECONDS,
        sub_queues: SubQueueOrder | None = None,
    ) -> None:
        """Continue with other plugins. Pods that the old ones rejected are requeued."""
        self._rules = rules
        self._hints = QueueingHints(rules, self._observer)
        self._unschedulable.clear_indexes()
        shared = _shared(sub_queues)
        former, self._active = self._active, _new_active(sort_key, shared)
        for queued in former:
            self._active.put(queued)
        self._backoff.reconfigure(sort_key, initial_backoff_seconds, max_backoff_seconds, shared)
        self.move_all(events.FORCE_ACTIVATE)

    def validate(self) -> None:
        """Raise AssertionError unless every invariant of the state holds."""
        for part in (self._active, self._backoff, self._unschedulable, self._in_flight):
            part.validate()
        self._check_waiting()
        found = Counter(queued.uid for queued in chain(self, self._in_flight))
        assert all(times == 1 for times in found.values()), found.most_common(1)
        assert not any(queued.gating_plugin for queued in chain(self._active, self._backoff))
        rejected = Counter(
            (plugin, queued.profile) for queued in self for plugin in queued.rejector_plugins()
        )
        assert self.unschedulable_by_plugin == rejected

    def _check_waiting(self) -> None:
        assert self._waiting == {queued.uid: queued for queued in self}
