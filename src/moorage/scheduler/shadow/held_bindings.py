"""Bindings of another scheduler that are not decided yet: a pod's, or those of a group's members together."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import Any

import msgspec

from moorage.api.pod import Pod
from moorage.api.pod_groups import GroupKey, group_of
from moorage.client.informer import EventType
from moorage.queue.heap import PodHeap
from moorage.queue.queued_pod import QueuedPod


class Binding(msgspec.Struct, eq=False):
    """A pod before and after it was bound."""

    pending: Pod
    bound: Pod


class HeldAttempt(msgspec.Struct, eq=False):
    """The bindings of one attempt of the other scheduler: that of a pod, or those of a group's members.

    queued: its place in the queue's order. since: when the first binding was seen.
    root: the group; None: a pod that belongs to none.
    members: the pods of the group that had no node then, by uid.
    """

    queued: QueuedPod
    since: float
    root: GroupKey | None
    members: dict[str, Pod]
    bindings: dict[str, Binding] = msgspec.field(default_factory=dict)
    rejected: set[str] = msgspec.field(default_factory=set)
    """Uids of members that were found unschedulable since then."""
    deletions: list[tuple[EventType, Pod]] = msgspec.field(default_factory=list)
    """Bound members that were deleted or have finished since then."""

    @property
    def is_complete(self) -> bool:
        """Whether it is known of every member what became of it."""
        return self.members.keys() <= self.bindings.keys() | self.rejected

    @property
    def nodes(self) -> dict[str, str]:
        """The nodes that the other scheduler chose, by uid."""
        return {uid: binding.bound.spec.node_name for uid, binding in self.bindings.items()}

    def leave_out_late(self, rejected: Container[str]) -> None:
        """Leave out members that came too late for the attempt.

        rejected: the uids of pods that were found unschedulable.
        """
        self.members = {
            uid: self.bindings[uid].pending if uid in self.bindings else pod
            for uid, pod in self.members.items()
            if uid in self.bindings or uid in rejected
        }

    def members_of(self, key: GroupKey) -> list[Pod]:
        """The members of a PodGroup, in the order in which they are tried."""
        pods = [pod for pod in self.members.values() if group_of(pod) == key]
        return sorted(pods, key=lambda pod: -pod.priority)


class HeldAttempts:
    """Attempts that wait to be decided, in the queue's order."""

    def __init__(self, sort_key: Callable[[QueuedPod], Any]) -> None:
        self._order = PodHeap(sort_key)
        self._attempts: dict[str, HeldAttempt] = {}
        """By the uid of the entry in the queue."""
        self._by_pod: dict[str, HeldAttempt] = {}
        self._by_group: dict[GroupKey, HeldAttempt] = {}

    def add(self, attempt: HeldAttempt) -> None:
        """The first binding of an attempt was seen."""
        self._order.put(attempt.queued)
        self._attempts[attempt.queued.uid] = attempt
        if attempt.root is not None:
            self._by_group[attempt.root] = attempt

    def bind(self, attempt: HeldAttempt, binding: Binding) -> None:
        """One more binding was seen."""
        attempt.bindings[binding.bound.uid] = binding
        self._by_pod[binding.bound.uid] = attempt

    def remove(self, attempt: HeldAttempt) -> None:
        """An attempt is decided."""
        self._order.remove(attempt.queued.uid)
        del self._attempts[attempt.queued.uid]
        for uid in attempt.bindings:
            del self._by_pod[uid]
        if attempt.root is not None:
            del self._by_group[attempt.root]

    def first(self) -> HeldAttempt | None:
        """The attempt that is decided next; None if there is none."""
        queued = self._order.first()
        return None if queued is None else self._attempts[queued.uid]

    def of_pod(self, uid: str) -> HeldAttempt | None:
        """The attempt that a bound pod belongs to."""
        return self._by_pod.get(uid)

    def of_group(self, root: GroupKey) -> HeldAttempt | None:
        """The attempt of a group."""
        return self._by_group.get(root)

    def reject(self, uid: str) -> None:
        """A pod was found unschedulable."""
        for attempt in self._by_group.values():
            if uid in attempt.members:
                attempt.rejected.add(uid)

    def bound_pods(self) -> Iterator[Pod]:
        """The bound pods of all attempts, in the order in which they are decided."""
        for queued in self._order.in_order():
            for binding in self._attempts[queued.uid].bindings.values():
                yield binding.bound
