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


class Backoff:
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
        self.refused = PodHeap(self._by_window_and_turn)
        self.failed = PodHeap(self.ends)

    def _by_window_and_turn(self, queued: QueuedPod) -> tuple[float, Any]:
        return self.ends(queued), self._sort_key(queued)

    def _heap_for(self, queued: QueuedPod) -> PodHeap:
        return self.refused if queued.refused else self.failed

    def ends(self, queued: QueuedPod) -> float:
        """The second in which a pod's pause ends; long ago, if it need not pause."""
        failures = queued.errors or queued.refusals
        if self.max_seconds == 0 or failures == 0:
            return _NEVER
        if queued.backoff_until is None:
            queued.backoff_until = window(queued.timestamp + self.pause_seconds(failures))
        return queued.backoff_until

    def pause_seconds(self, failures: int) -> float:
        """How long the pause is after so many failures: 1, 2, 4, 8, 10, 10, ... seconds by default."""
        doubled: float = self.initial_seconds * 2.0 ** min(failures - 1, _ENOUGH_DOUBLINGS)
        return min(doubled, self.max_seconds)

    def pausing(self, queued: QueuedPod) -> bool:
        """Whether a pod has to wait still; up to the end of the second in which its pause ends."""
        return self.ends(queued) >= window(self._clock.now())

    def put(self, queued: QueuedPod) -> None:
        """Let a pod pause; or find its place anew if it does already."""
        self._heap_for(queued).put(queued)

    def remove(self, uid: str) -> QueuedPod | None:
        """Take a pod out; None if it is not here."""
        return self.refused.remove(uid) or self.failed.remove(uid)

    def pop_early(self) -> QueuedPod | None:
        """The pod whose pause ends first, before it does; never one that pauses after an error."""
        return self.refused.pop()

    def pop_finished(self) -> Iterator[QueuedPod]:
        """Take out all pods whose pause is over."""
        for heap in (self.refused, self.failed):
            while (queued := heap.first()) is not None and not self.pausing(queued):
                heap.pop()
                yield queued

    def reconfigure(
        self, sort_key: Callable[[QueuedPod], Any], initial_seconds: float, max_seconds: float
    ) -> None:
        """Go on with other rules, which count for pauses that have begun, too."""
        self._sort_key = sort_key
        self.initial_seconds, self.max_seconds = initial_seconds, max_seconds
        for queued in self:
            queued.backoff_until = None
        self.refused.sort_by(self._by_window_and_turn)
        self.failed.sort_by(self.ends)

    def get(self, uid: str) -> QueuedPod | None:
        """A pod by its uid."""
        return self.refused.get(uid) or self.failed.get(uid)

    def __contains__(self, uid: str) -> bool:
        return uid in self.refused or uid in self.failed

    def __iter__(self) -> Iterator[QueuedPod]:
        return chain(self.refused, self.failed)

    def __len__(self) -> int:
        return len(self.refused) + len(self.failed)

    def validate(self) -> None:
        """Raise AssertionError unless every pod is in the right one of the two heaps."""
        self.refused.validate()
        self.failed.validate()
        assert all(queued.refused for queued in self.refused)
        assert not any(queued.refused for queued in self.failed)
