"""A heap of pods with removal by uid.

Removal marks a pod's slot as empty, at constant cost; empty slots are dropped when they reach the top, or all
at once when they are most of the heap.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from moorage.queue.queued_pod import QueuedPod

_Slot = list[Any]
"""[key, insertion order, pod or None]; the insertion order breaks ties, so pods are never compared."""

_MAX_EMPTY_SLOTS = 64


class PodHeap:
    """Pods by key, the smallest first; equal keys in insertion order."""

    def __init__(self, key: Callable[[QueuedPod], Any]) -> None:
        self._key = key
        self._heap: list[_Slot] = []
        self._slots: dict[str, _Slot] = {}
        self._order = count()

    def put(self, queued: QueuedPod) -> None:
        """Add a pod, or update its position."""
        key = self._key(queued)
        slot = self._slots.get(queued.uid)
        if slot is not None:
            if slot[0] == key and slot[2] is queued:
                return
            self.remove(queued.uid)
        slot = self._slots[queued.uid] = [key, next(self._order), queued]
        heapq.heappush(self._heap, slot)

    def remove(self, uid: str) -> QueuedPod | None:
        """Remove a pod; None if it is not here."""
        slot = self._slots.pop(uid, None)
        if slot is None:
            return None
        queued: QueuedPod = slot[2]
        slot[2] = None
        if len(self._heap) > 2 * len(self._slots) + _MAX_EMPTY_SLOTS:
            self._heap = [slot for slot in self._heap if slot[2] is not None]
            heapq.heapify(self._heap)
        return queued

    def first(self) -> QueuedPod | None:
        """The first pod; None if there is none."""
        while self._heap and self._heap[0][2] is None:
            heapq.heappop(self._heap)
        return self._heap[0][2] if self._heap else None

    def pop(self) -> QueuedPod | None:
        """Remove and return the first pod."""
        while self._heap:
            queued: QueuedPod | None = heapq.heappop(self._heap)[2]
            if queued is not None:
                del self._slots[queued.uid]
                return queued
        return None

    def get(self, uid: str) -> QueuedPod | None:
        """A pod by its uid."""
        slot = self._slots.get(uid)
        return None if slot is None else slot[2]

    def in_order(self) -> list[QueuedPod]:
        """All pods, in the order in which they would be popped."""
        return [slot[2] for slot in sorted(self._slots.values(), key=lambda slot: slot[:2])]

    def sort_by(self, key: Callable[[QueuedPod], Any]) -> None:
        """Sort all pods by another key."""
        self._key = key
        for slot in self._slots.values():
            slot[0] = key(slot[2])
        self._heap = list(self._slots.values())
        heapq.heapify(self._heap)

    def __contains__(self, uid: str) -> bool:
        return uid in self._slots

    def __iter__(self) -> Iterator[QueuedPod]:
        for slot in self._slots.values():
            yield slot[2]

    def __len__(self) -> int:
        return len(self._slots)

    def validate(self) -> None:
        """Raise AssertionError unless every pod is in the heap once, at the position of its key."""
        full = [slot for slot in self._heap if slot[2] is not None]
        assert len(full) == len(self._slots)
        for slot in full:
            queued = slot[2]
            assert self._slots[queued.uid] is slot, queued.uid
            assert slot[0] == self._key(queued), queued.uid
        for child in range(1, len(self._heap)):
            assert self._heap[(child - 1) // 2][:2] <= self._heap[child][:2]
