"""Pods whose last attempt failed and that wait for the end of their backoff.

The backoff doubles with every failure, up to a maximum, which is longer for groups of pods. Backoff after
rejections and after errors is kept in separate heaps: the former limits cycles spent on unschedulable pods
and may be cut short when the active queue is empty; the latter protects an API server in trouble and may not.

Backoff expires in windows of one second: all pods of a window are moved together when the window has ended,
in the order of the active queue. Where that has sub-queues, pods that may be popped early are in such, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from moorage.backoff import backoff_seconds
from moorage.clock import Clock
from moorage.queue.heap import PodHeap
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.sub_queues import SharedSubQueueOrder, SubQueues

WINDOW_SECONDS = 1.0
_NO_BACKOFF = -math.inf


def window(time: float) -> float:
    """The start of the one-second window that contains a time."""
    return math.floor(time / WINDOW_SECONDS) * WINDOW_SECONDS


class BackoffQueue:
    """Pods in backoff (upstream: podBackoffQ and podErrorBackoffQ)."""

    def __init__(
        self,
        clock: Clock,
        sort_key: Callable[[QueuedPod], Any],
        initial_seconds: float,
        max_seconds: float,
        sub_queues: SharedSubQueueOrder | None = None,
    ) -> None:
        self._clock = clock
        self._sort_key = sort_key
        self.initial_seconds = initial_seconds
        self.max_seconds = max_seconds
        self.after_rejection = PodHeap(self._by_window_and_sort_key)
        self.after_error = PodHeap(self.expiration)
        self._early = self._new_early(sub_queues)
        """The pods of `after_rejection` in sub-queues, if there are any."""

    def _new_early(self, order: SharedSubQueueOrder | None) -> SubQueues | None:
        return None if order is None else order.place(self._by_window_and_sort_key)

    def _by_window_and_sort_key(self, queued: QueuedPod) -> tuple[float, Any]:
        return self.expiration(queued), self._sort_key(queued)

    def _heap_for(self, queued: QueuedPod) -> PodHeap:
        return self.after_rejection if queued.is_rejected else self.after_error

    def expiration(self, queued: QueuedPod) -> float:
        """The start of the window in which a pod's backoff expires; -inf if it has no backoff."""
        failures = queued.consecutive_errors or queued.unschedulable_count
        if self.max_seconds == 0 or failures == 0:
            return _NO_BACKOFF
        if queued.backoff_expiration is None:
            max_seconds = self.max_seconds * math.sqrt(queued.pod_count)
            queued.backoff_expiration = window(
                queued.timestamp + backoff_seconds(failures, self.initial_seconds, max_seconds)
            )
        return queued.backoff_expiration

    def is_backing_off(self, queued: QueuedPod) -> bool:
        """Whether a pod is in backoff; it is until the end of the window in which its backoff expires."""
        return self.expiration(queued) >= window(self._clock.now())

    def put(self, queued: QueuedPod) -> None:
        """Add a pod, or update its position."""
        heap = self._heap_for(queued)
        heap.put(queued)
        if self._early is not None and heap is self.after_rejection:
            self._early.put(queued)

    def remove(self, uid: str) -> QueuedPod | None:
        """Remove a pod; None if it is not here."""
        if self._early is not None:
            self._early.remove(uid)
        return self.after_rejection.remove(uid) or self.after_error.remove(uid)

    def pop_early(self) -> QueuedPod | None:
        """The pod whose backoff expires first, before it does; never one in backoff after an error.

        Where there are sub-queues, it is the first such pod of the first of them.
        """
        if self._early is None:
            return self.after_rejection.pop()
        queued = self._early.pop()
        return None if queued is None else self.after_rejection.remove(queued.uid)

    def pop_completed(self) -> Iterator[QueuedPod]:
        """Remove and return all pods whose backoff has expired."""
        for heap in (self.after_rejection, self.after_error):
            while (queued := heap.first()) is not None and not self.is_backing_off(queued):
                heap.pop()
                if self._early is not None:
                    self._early.remove(queued.uid)
                yield queued

    def reconfigure(
        self,
        sort_key: Callable[[QueuedPod], Any],
        initial_seconds: float,
        max_seconds: float,
        sub_queues: SharedSubQueueOrder | None = None,
    ) -> None:
        """Apply another order and other durations, to backoff that has already started as well."""
        self._sort_key = sort_key
        self.initial_seconds, self.max_seconds = initial_seconds, max_seconds
        for queued in self:
            queued.backoff_expiration = None
        self.after_rejection.sort_by(self._by_window_and_sort_key)
        self.after_error.sort_by(self.expiration)
        self._early = self._new_early(sub_queues)
        if self._early is not None:
            for queued in self.after_rejection:
                self._early.put(queued)

    def __contains__(self, uid: str) -> bool:
        return uid in self.after_rejection or uid in self.after_error

    def __iter__(self) -> Iterator[QueuedPod]:
        return chain(self.after_rejection, self.after_error)

    def __len__(self) -> int:
        return len(self.after_rejection) + len(self.after_error)

    def validate(self) -> None:
        """Raise AssertionError unless every pod is in the right one of the two heaps."""
        self.after_rejection.validate()
        self.after_error.validate()
        assert all(queued.is_rejected for queued in self.after_rejection)
        assert not any(queued.is_rejected for queued in self.after_error)
        if self._early is not None:
            self._early.validate()
            assert {each.uid for each in self._early} == {each.uid for each in self.after_rejection}
