"""Pods in sub-queues whose order changes while pods wait: such as one for each team, by what teams use.

Inside a sub-queue, pods are sorted by a key that does not change. The first pods of all sub-queues are in a
heap of their own, by keys of the sub-queues. Before a pod is popped, the keys that may have changed are
computed again; so a pop costs the logarithm of the number of sub-queues, and nothing is read of other pods.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple, Protocol

from moorage.queue.heap import PodHeap
from moorage.queue.queued_pod import QueuedPod

Firsts = Mapping[Any, QueuedPod]
"""The first pod of each sub-queue that is not empty."""


class SubQueueOrder(Protocol):
    """The order of sub-queues; the methods are described in `SubQueuesPlugin`."""

    def sub_queue(self, queued: QueuedPod) -> Hashable:
        """The sub-queue of a pod."""

    def sub_queue_sort(self, sub_queue: Any, first: QueuedPod) -> Any:
        """The key of a sub-queue with its first pod."""

    def changed_sub_queues(self, firsts: Firsts, popped: Any, failed: bool) -> Iterable[Hashable] | None:
        """The sub-queues whose keys may have changed since the last call; None: all."""


class _Popped(NamedTuple):
    """A pod that was popped, and its failures before."""

    sub_queue: Hashable
    queued: QueuedPod
    unschedulable_count: int
    consecutive_errors: int

    @property
    def has_failed(self) -> bool:
        """Whether its attempt has failed."""
        is_rejected = self.queued.unschedulable_count > self.unschedulable_count
        return is_rejected or self.queued.consecutive_errors > self.consecutive_errors


class SharedSubQueueOrder:
    """An order that several places of the queue have in common: a change of it applies to all of them."""

    def __init__(self, order: SubQueueOrder) -> None:
        self.sub_queue = order.sub_queue
        self.sort = order.sub_queue_sort
        self._changed = order.changed_sub_queues
        self._places: list[SubQueues] = []
        self._popped: _Popped | None = None

    def place(self, key: Callable[[QueuedPod], Any]) -> SubQueues:
        """A new place for pods, which are sorted by a key inside each sub-queue."""
        place = SubQueues(self, key)
        self._places.append(place)
        return place

    def popped(self, sub_queue: Hashable, queued: QueuedPod) -> None:
        """The first pod of a sub-queue was popped."""
        self._popped = _Popped(sub_queue, queued, queued.unschedulable_count, queued.consecutive_errors)

    def catch_up(self, firsts: Firsts) -> None:
        """Compute keys again that may have changed; a pod is to be popped from a place."""
        last, self._popped = self._popped, None
        popped, failed = (None, False) if last is None else (last.sub_queue, last.has_failed)
        changed = self._changed(firsts, popped, failed)
        for place in self._places:
            place.sort_again(changed)


class SubQueues:
    """The pods of one place of the queue."""

    def __init__(self, order: SharedSubQueueOrder, key: Callable[[QueuedPod], Any]) -> None:
        self._order = order
        self._key = key
        self._queues: dict[Hashable, PodHeap] = {}
        """The pods of each sub-queue that is not empty."""
        self._firsts: dict[Hashable, QueuedPod] = {}
        """The first pod of each of them."""
        self._turns = PodHeap(self._sub_queue_key)
        """The first pods, by the keys of their sub-queues."""
        self._unsorted: set[Hashable] = set()
        """The sub-queues whose first pod is not there yet, because the one before was popped."""
        self._name_of: dict[str, Hashable] = {}
        """The sub-queue of each pod, by uid."""

    def _sub_queue_key(self, first: QueuedPod) -> Any:
        return self._order.sort(self._name_of[first.uid], first)

    def put(self, queued: QueuedPod) -> None:
        """Add a pod, or update its position."""
        uid, name = queued.uid, self._order.sub_queue(queued)
        if uid in self._name_of and self._name_of[uid] != name:
            self.remove(uid)
        self._name_of[uid] = name
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = PodHeap(self._key)
        queue.put(queued)
        if self._firsts.get(name) is queued is queue.first():
            self._turns.put(queued)
        else:
            self._update_first(name, queue)

    def _update_first(self, name: Hashable, queue: PodHeap) -> None:
        first, former = queue.first(), self._firsts.get(name)
        assert first is not None
        if first is not former:
            if former is not None:
                self._turns.remove(former.uid)
            self._firsts[name] = first
            self._turns.put(first)

    def remove(self, uid: str) -> QueuedPod | None:
        """Remove a pod; None if it is not here."""
        if uid not in self._name_of:
            return None
        name = self._name_of[uid]
        queue = self._queues[name]
        queued = queue.remove(uid)
        if queue:
            self._update_first(name, queue)
        else:
            del self._queues[name], self._firsts[name]
            self._turns.remove(uid)
        del self._name_of[uid]
        return queued

    def pop(self) -> QueuedPod | None:
        """Remove and return the first pod of the first sub-queue."""
        if not self._queues:
            return None
        self._order.catch_up(self._firsts)
        queued = self._turns.pop()
        assert queued is not None
        name = self._name_of.pop(queued.uid)
        queue = self._queues[name]
        queue.pop()
        first = queue.first()
        if first is None:
            del self._queues[name], self._firsts[name]
        else:
            self._firsts[name] = first
            self._unsorted.add(name)
        self._order.popped(name, queued)
        return queued

    def sort_again(self, changed: Iterable[Hashable] | None) -> None:
        """Compute the keys of some sub-queues again; None: of all."""
        if not self._firsts:
            self._unsorted.clear()
            return
        if changed is None:
            self._turns.sort_by(self._sub_queue_key)
            changed = ()
        names, self._unsorted = self._unsorted.union(changed), set()
        for name in names:
            first = self._firsts.get(name)
            if first is not None:
                self._turns.put(first)

    def in_order(self) -> list[QueuedPod]:
        """All pods, in the order in which they would be popped if nothing changed meanwhile."""
        queues = (queue.in_order() for queue in self._queues.values())
        return list(heapq.merge(*queues, key=self._sub_queue_key))

    def __contains__(self, uid: str) -> bool:
        return uid in self._name_of

    def __iter__(self) -> Iterator[QueuedPod]:
        return chain.from_iterable(self._queues.values())

    def __len__(self) -> int:
        return len(self._name_of)

    def validate(self) -> None:
        """Raise AssertionError unless every pod is in its sub-queue, and the first of each has its turn."""
        self._order.catch_up(self._firsts)
        self._turns.validate()
        assert self._queues.keys() == self._firsts.keys()
        found: dict[str, Hashable] = {}
        for name, queue in self._queues.items():
            queue.validate()
            assert queue.first() is self._firsts[name], name
            found |= {queued.uid: name for queued in queue}
        assert found == self._name_of
        assert {each.uid for each in self._turns} == {each.uid for each in self._firsts.values()}
