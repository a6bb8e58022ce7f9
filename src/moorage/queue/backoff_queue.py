"""Pods that were tried in vain and have to pause before the next attempt.

The pause doubles with every failure. Pauses after refusals and after errors are kept apart: the former keep
hopeless pods from wasting cycles, and may be cut short when there is nothing else to do; the latter spare
an API server in trouble, and may not.

Pauses end in whole seconds: all that end within one second are over together when that second is, and among
them the order is that of the active queue.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from moorage.clock import Clock
from moorage.queue.heap import PodHeap
from moorage.queue.queued_pod import QueuedPod

WINDOW_SECONDS = 1.0
_NEVER = -math.inf
_ENOUGH_DOUBLINGS = 60


def window(time: float) -> float:
    """The beginning of the second that a time is in."""
    return math.floor(time / WINDOW_SECONDS) * WINDOW_SECONDS


class BackoffQueue:
    """The pods that pause."""

    def __init__(
        self,
        clock: Clock,
        sort_key: Callable[[QueuedPod], Any],
        initial_seconds: float,
        max_seconds: float,
    ) -> None:
        self._clock = clock
        self._sort_key = sort_key
        self.initial_seconds = initial_seconds
        self.max_seconds = max_seconds
        self.after_rejection = PodHeap(self._by_window_and_sort_key)
        self.after_error = PodHeap(self.expiration)

    def _by_window_and_sort_key(self, queued: QueuedPod) -> tuple[float, Any]:
        return self.expiration(queued), self._sort_key(queued)

    def _heap_for(self, queued: QueuedPod) -> PodHeap:
        return self.after_rejection if queued.is_rejected else self.after_error

    def expiration(self, queued: QueuedPod) -> float:
        """The second in which a pod's pause ends; long ago, if it need not pause."""
        failures = queued.consecutive_errors or queued.unschedulable_count
        if self.max_seconds == 0 or failures == 0:
            return _NEVER
        if queued.backoff_expiration is None:
            queued.backoff_expiration = window(queued.timestamp + self.backoff_seconds(failures))
        return queued.backoff_expiration

    def backoff_seconds(self, failures: int) -> float:
        """How long the pause is after so many failures: 1, 2, 4, 8, 10, 10, ... seconds by default."""
        doubled: float = self.initial_seconds * 2.0 ** min(failures - 1, _ENOUGH_DOUBLINGS)
        return min(doubled, self.max_seconds)

    def is_backing_off(self, queued: QueuedPod) -> bool:
        """Whether a pod has to wait still; up to the end of the second in which its pause ends."""
        return self.expiration(queued) >= window(self._clock.now())

    def put(self, queued: QueuedPod) -> None:
        """Let a pod pause; or find its place anew if it does already."""
        self._heap_for(queued).put(queued)

    def remove(self, uid: str) -> QueuedPod | None:
        """Take a pod out; None if it is not here."""
        return self.after_rejection.remove(uid) or self.after_error.remove(uid)

    def pop_early(self) -> QueuedPod | None:
        """The pod whose pause ends first, before it does; never one that pauses after an error."""
        return self.after_rejection.pop()

    def pop_completed(self) -> Iterator[QueuedPod]:
        """Take out all pods whose pause is over."""
        for heap in (self.after_rejection, self.after_error):
            while (queued := heap.first()) is not None and not self.is_backing_off(queued):
                heap.pop()
                yield queued

    def reconfigure(
        self, sort_key: Callable[[QueuedPod], Any], initial_seconds: float, max_seconds: float
    ) -> None:
        """Go on with other rules, which count for pauses that have begun, too."""
        self._sort_key = sort_key
        self.initial_seconds, self.max_seconds = initial_seconds, max_seconds
        for queued in self:
            queued.backoff_expiration = None
        self.after_rejection.sort_by(self._by_window_and_sort_key)
        self.after_error.sort_by(self.expiration)

    def get(self, uid: str) -> QueuedPod | None:
        """A pod by its uid."""
        return self.after_rejection.get(uid) or self.after_error.get(uid)

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
