"""Pods in flight, and the events that occurred since each attempt began.

An attempt is based on a snapshot. An event after that snapshot may make a pod schedulable that the attempt
rejects, so events are kept as long as any attempt is older. Most attempts are short; one that waits for a
permit can outlast `MAX_EVENTS` events, and is then treated as if an event that helps it was among them.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from itertools import islice

import msgspec

from moorage.api.base import Object
from moorage.queue.cluster_events import UNSCHEDULABLE_TIMEOUT, ClusterEvent
from moorage.queue.queued_pod import QueuedPod

POD_POPPED = "PodPopped"
"""The name in metrics of a pod's own entry among the events."""

MAX_EVENTS = 16_384
"""Maximum number of kept events; they keep old versions of objects in memory."""


class InFlightEvent(msgspec.Struct, frozen=True):
    """An event with the object before and after it; `only`: the uid of the one pod it concerns, if any."""

    event: ClusterEvent
    old: Object | None
    new: Object | None
    only: str = ""


class InFlightEvents:
    """The pods in flight, oldest attempt first, and the events since the first of these attempts began."""

    def __init__(self) -> None:
        self._pods: dict[str, tuple[QueuedPod, int]] = {}
        """By uid, with the number of the first event after the attempt began; numbers only grow."""
        self._events: deque[InFlightEvent] = deque()
        self._forgotten = 0
        """Number of events dropped before those that are kept."""

    def begin(self, queued: QueuedPod) -> None:
        """An attempt begins."""
        self._pods[queued.uid] = (queued, self._forgotten + len(self._events))

    def note(self, event: ClusterEvent, old: Object | None, new: Object | None, only: str = "") -> None:
        """An event occurred; it is kept only if any attempt is in flight."""
        if not self._pods:
            return
        self._events.append(InFlightEvent(event, old, new, only))
        if len(self._events) > MAX_EVENTS:
            self._forget_until(self._forgotten + MAX_EVENTS // 2)

    def missed(self, uid: str) -> Iterator[InFlightEvent]:
        """The events since a pod's attempt began, in order."""
        kept = self._pods[uid][1] - self._forgotten
        if kept < 0:
            # Some events were dropped, and any of them may have helped: the pod is requeued without a check.
            yield InFlightEvent(UNSCHEDULABLE_TIMEOUT, None, None)
        for in_flight_event in islice(self._events, max(kept, 0), None):
            if in_flight_event.only in ("", uid):
                yield in_flight_event

    def end(self, uid: str) -> None:
        """An attempt ended; events that no other attempt needs are dropped. Ending it twice does nothing."""
        if self._pods.pop(uid, None) is None or not self._events:
            return
        oldest = next(iter(self._pods.values()), None)
        self._forget_until(self._noted if oldest is None else oldest[1])

    @property
    def event_count(self) -> int:
        """Number of kept events."""
        return len(self._events)

    @property
    def _noted(self) -> int:
        """Number of events so far."""
        return self._forgotten + len(self._events)

    def _forget_until(self, number: int) -> None:
        while self._forgotten < number:
            self._events.popleft()
            self._forgotten += 1

    def tally(self) -> Counter[str]:
        """Number of kept events by label, and of pods in flight."""
        tally = Counter(in_flight_event.event.label for in_flight_event in self._events)
        tally[POD_POPPED] = len(self._pods)
        return tally

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[QueuedPod]:
        return (queued for queued, _ in self._pods.values())

    def __len__(self) -> int:
        return len(self._pods)

    def validate(self) -> None:
        """Raise AssertionError unless exactly the events are kept that some attempt needs."""
        starts = [since for _, since in self._pods.values()]
        assert starts == sorted(starts)
        assert all(since <= self._noted for since in starts)
        assert len(self._events) <= MAX_EVENTS
        assert not self._events or (starts and starts[0] <= self._forgotten)
