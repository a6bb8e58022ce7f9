"""Pods that are being tried, and what has happened since each attempt began.

An attempt decides by a snapshot. What happened after it was taken may be just what a pod needs that comes
back refused, so events are kept for as long as any attempt is older than they are. Most attempts last for a
moment; one that waits for a permit can outlast more events than are worth keeping, and is then taken to have
missed what may help it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from moorage.api.base import Object
from moorage.queue.cluster_events import UNSCHEDULABLE_TIMEOUT, ClusterEvent
from moorage.queue.queued_pod import QueuedPod

POD_POPPED = "PodPopped"
"""What metrics call a pod's own entry among the events."""

MAX_EVENTS = 16_384
"""No more are kept: they keep objects that have changed since."""


class InFlightEvent(NamedTuple):
    """An event, with the object before and after it; `only` is the uid of the one pod it is about, if any."""

    event: ClusterEvent
    old: Object | None
    new: Object | None
    only: str = ""


class InFlightEvents:
    """The pods in flight, oldest attempt first, and the events since the first of those began."""

    def __init__(self) -> None:
        self._pods: dict[str, tuple[QueuedPod, int]] = {}
        """Each with the number of the first event that its attempt missed; numbers only grow."""
        self._events: deque[InFlightEvent] = deque()
        self._forgotten = 0
        """How many events there were before those that are kept."""

    def begin(self, queued: QueuedPod) -> None:
        """An attempt begins."""
        self._pods[queued.uid] = (queued, self._forgotten + len(self._events))

    def note(self, event: ClusterEvent, old: Object | None, new: Object | None, only: str = "") -> None:
        """Something has happened; it matters only if any attempt is under way."""
        if not self._pods:
            return
        self._events.append(InFlightEvent(event, old, new, only))
        if len(self._events) > MAX_EVENTS:
            self._forget_until(self._forgotten + MAX_EVENTS // 2)

    def missed(self, uid: str) -> Iterator[InFlightEvent]:
        """What has happened since a pod's attempt began, in order."""
        kept = self._pods[uid][1] - self._forgotten
        if kept < 0:
            # Among those that are forgotten may have been any event: as good as none that nobody waited for.
            yield InFlightEvent(UNSCHEDULABLE_TIMEOUT, None, None)
        for in_flight_event in islice(self._events, max(kept, 0), None):
            if in_flight_event.only in ("", uid):
                yield in_flight_event

    def end(self, uid: str) -> None:
        """An attempt has ended; what only it had missed is forgotten. Ending it twice does nothing."""
        if self._pods.pop(uid, None) is None or not self._events:
            return
        self._forget_until(next((since for _, since in self._pods.values()), self._noted))

    @property
    def event_count(self) -> int:
        """How many events are kept."""
        return len(self._events)

    @property
    def _noted(self) -> int:
        """How many events there were."""
        return self._forgotten + len(self._events)

    def _forget_until(self, number: int) -> None:
        while self._forgotten < number:
            self._events.popleft()
            self._forgotten += 1

    def tally(self) -> Counter[str]:
        """How many events are kept, by label, and how many pods."""
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
        """Raise AssertionError unless exactly the events are kept that some attempt has missed."""
        starts = [since for _, since in self._pods.values()]
        assert starts == sorted(starts)
        assert all(since <= self._noted for since in starts)
        assert len(self._events) <= MAX_EVENTS
        assert not self._events or (starts and starts[0] <= self._forgotten)
