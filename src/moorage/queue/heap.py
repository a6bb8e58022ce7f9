"""Pods in order, with removal by uid.

Most pods are added in their order: a pod that is not smaller than the last one is appended to a run, which is
sorted by itself, and only others go to a heap. The first pod is the first of the two.

Removal marks a pod's slot as empty, at constant cost; empty slots are dropped when they become the first, or
all at once when they are most of the slots.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from itertools import count, pairwise
from typing import Any

from moorage.queue.queued_pod import QueuedPod

_Slot = list[Any]
"""[key, insertion order, pod or None]; the insertion order breaks ties, so pods are never compared."""

_MAX_EMPTY_SLOTS = 64


class PodHeap:
    """Pods by key, the smallest first; equal keys in insertion order."""

    def __init__(self, key: Callable[[QueuedPod], Any]) -> None:
        self._key = key
        self._run: deque[_Slot] = deque()
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
        if self._run and key < self._run[-1][0]:
            heapq.heappush(self._heap, slot)
        else:
            self._run.append(slot)

    def remove(self, uid: str) -> QueuedPod | None:
        """Remove a pod; None if it is not here."""
        slot = self._slots.pop(uid, None)
        if slot is None:
            return None
        queued: QueuedPod = slot[2]
        slot[2] = None
        if len(self._run) + len(self._heap) > 2 * len(self._slots) + _MAX_EMPTY_SLOTS:
            self._run = deque([slot for slot in self._run if slot[2] is not None])
            self._heap = [slot for slot in self._heap if slot[2] is not None]
            heapq.heapify(self._heap)
        return queued

    def first(self) -> QueuedPod | None:
        """The first pod; None if there is none."""
        while self._run or self._heap:
            is_in_run = self._is_first_in_run()
            queued: QueuedPod | None = (self._run if is_in_run else self._heap)[0][2]
            if queued is not None:
                return queued
            self._pop_slot(is_in_run)
        return None

    def pop(self) -> QueuedPod | None:
        """Remove and return the first pod."""
        while self._run or self._heap:
            queued: QueuedPod | None = self._pop_slot(self._is_first_in_run())[2]
            if queued is not None:
                del self._slots[queued.uid]
                return queued
        return None

    def _is_first_in_run(self) -> bool:
        return not self._heap or (bool(self._run) and self._run[0] < self._heap[0])

    def _pop_slot(self, is_in_run: bool) -> _Slot:
        return self._run.popleft() if is_in_run else heapq.heappop(self._heap)

    def get(self, uid: str) -> QueuedPod | None:
        """A pod by its uid."""
        slot = self._slots.get(uid)
        return None if slot is None else slot[2]

    def in_order(self) -> list[QueuedPod]:
        """All pods, in the order in which they would be popped."""
        return [slot[2] for slot in self._sorted_slots()]

    def _sorted_slots(self) -> list[_Slot]:
        return sorted(self._slots.values(), key=lambda slot: slot[:2])

    def sort_by(self, key: Callable[[QueuedPod], Any]) -> None:
        """Sort all pods by another key."""
        self._key = key
        for slot in self._slots.values():
            slot[0] = key(slot[2])
        self._run, self._heap = deque(self._sorted_slots()), []

    def __contains__(self, uid: str) -> bool:
        return uid in self._slots

    def __iter__(self) -> Iterator[QueuedPod]:
        for slot in self._slots.values():
            yield slot[2]

    def __len__(self) -> int:
        return len(self._slots)

    def validate(self) -> None:
        """Raise AssertionError unless every pod is here once, at the position of its key."""
        full = [slot for slot in (*self._run, *self._heap) if slot[2] is not None]
        assert len(full) == len(self._slots)
        for slot in full:
            queued = slot[2]
            assert self._slots[queued.uid] is slot, queued.uid
            assert slot[0] == self._key(queued), queued.uid
        for one, next_one in pairwise(self._run):
            assert not next_one[:2] < one[:2]
        for child in range(1, len(self._heap)):
            assert not self._heap[child][:2] < self._heap[(child - 1) // 2][:2]
