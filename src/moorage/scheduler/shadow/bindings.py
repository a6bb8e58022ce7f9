"""Event handlers that decide a pod, or a group, when another scheduler binds it, in the state that it saw.

Bindings arrive in the order in which they were written, not in that of the decisions: a scheduler binds
several pods at a time. A binding therefore waits until all pods that come before the pod in the queue's order
have been bound or found unschedulable, for a short time at most; until then it does not count in the cache.
The members of a group are bound one by one, and were decided in one cycle: the first binding waits for the
others, and none of them counts before the group is decided. Members that were neither bound nor found
unschedulable by then came too late for the cycle.

Likewise, what a scheduler writes for a pod before it binds it (allocated claims, volumes reserved for a
claim, the node that it expects the pod to get) does not count before the pod has been decided. Nominations of
preemption do count: those come with a condition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Final

from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.api.pod_groups import Group, GroupKey, group_of
from moorage.client.informer import EventType
from moorage.clock import Clock
from moorage.queue.heap import PodHeap
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.scheduling_queue import Place
from moorage.scheduler.event_handlers import EventHandlers
from moorage.scheduler.shadow.held_bindings import Binding, HeldAttempt, HeldAttempts
from moorage.scheduler.shadow.reserved_objects import ReservedObjects

HOLD_SECONDS: Final = 1.0
"""Longest time that a binding waits for those of pods that come before it, in seconds."""
GROUP_HOLD_SECONDS: Final = 5.0
"""Longest time that the first binding of a group waits for what becomes of other members, in seconds."""

_MAX_DELETED: Final = 64
"""Number of deleted pods that are known."""
_MAX_NOMINATED: Final = 1024
"""Number of nominated pods that are known."""
_NOT_TRIED: Final = (Place.GATED, Place.INCOMPLETE)

Listener = Callable[[EventType, Object, Object | None], None]


class ShadowHandlers(EventHandlers):
    """Applies changes to the cache, and calls `decide` for each attempt before its bindings are applied.

    applied: called with every change that was applied.
    """

    decide: Callable[[HeldAttempt], None]
    applied: Listener
    clock: Clock
    sort_key: Callable[[QueuedPod], Any]

    def follow(
        self,
        decide: Callable[[HeldAttempt], None],
        applied: Listener,
        clock: Clock,
        sort_key: Callable[[QueuedPod], Any],
    ) -> None:
        """Begin; to be called once, before the first change."""
        self.decide, self.applied, self.clock, self.sort_key = decide, applied, clock, sort_key
        self._numbers = count()
        self._undecided = PodHeap(sort_key)
        """Pods that the other scheduler has not attempted yet."""
        self._untried: dict[str, QueuedPod] = {}
        """Members of groups that are not attempted before others of their group are there, by uid."""
        self._attempts = HeldAttempts(sort_key)
        self._reserved = ReservedObjects(self._cache)
        self._recently_deleted: deque[tuple[float, Pod]] = deque(maxlen=_MAX_DELETED)
        """The pods that were deleted from nodes last, and when."""
        self._recently_nominated: deque[tuple[float, Pod]] = deque(maxlen=_MAX_NOMINATED)
        """The pods that preemption nominated last, and when."""
        self._expected: set[str] = set()
        """Uids of pods whose nomination only announces their binding."""

    def pod(self, type: EventType, obj: Object, before: Object | None) -> None:
        """A pod was added, updated or deleted."""
        assert isinstance(obj, Pod)
        obj, before = self._without_expectation(obj, before)
        held = self._attempts.of_pod(obj.uid)
        is_gone = type == "DELETED" or obj.finished
        if held is not None and not is_gone:
            held.bindings[obj.uid].bound = obj
            return
        if held is not None and held.root is not None:
            held.deletions.append((type, obj))
            return
        if held is not None:
            self._settle(held)
            before = held.bindings[obj.uid].bound
        old = before if isinstance(before, Pod) and before.uid == obj.uid else None
        if not is_gone and obj.spec.node_name and self._is_ours_to_decide(old):
            assert old is not None
            self._hold(old, obj)
            return
        if is_gone and (counted := self._cache.pod(obj.uid)) is not None:
            self._recently_deleted.append((self.clock.now(), counted))
        self._follow_pending(obj, old, is_gone=is_gone)
        super().pod(type, obj, before)
        self.applied(type, obj, before)
        if obj.spec.scheduling_group is not None:
            self._try_again()
        self.drain()

    def node(self, type: EventType, obj: Object, before: Object | None) -> None:
        """A node was added, updated or deleted."""
        super().node(type, obj, before)
        self.applied(type, obj, before)

    def other(self, type: EventType, obj: Object, before: Object | None) -> None:
        """Another object was added, updated or deleted."""
        if not self._reserved.hold(type, obj, before):
            super().other(type, obj, before)
            self.applied(type, obj, before)
            if isinstance(obj, Group):
                self._try_again()

    def _without_expectation(self, pod: Pod, before: Object | None) -> tuple[Pod, Object | None]:
        """A pod before and after a change, without a nomination that only announces its binding."""
        old = before if isinstance(before, Pod) and before.uid == pod.uid else None
        if old is not None and old.uid in self._expected:
            old = _unnominated(old)
        nominated = pod.status.nominated_node_name
        if not nominated or old is None or pod.spec.node_name:
            self._expected.discard(pod.uid)
        elif nominated != old.status.nominated_node_name and pod.status.conditions == old.status.conditions:
            self._expected.add(pod.uid)
        elif pod.status.conditions != old.status.conditions:
            self._expected.discard(pod.uid)
        if pod.uid in self._expected:
            pod = _unnominated(pod)
        return _unclaimed(pod), before if old is None else _unclaimed(old)

    def _is_ours_to_decide(self, old: Pod | None) -> bool:
        """Whether a pod that is bound now was waiting for one of our profiles' namesakes."""
        return old is not None and not old.spec.node_name and self.profiles.of(old) is not None

    def _follow_pending(self, pod: Pod, old: Pod | None, *, is_gone: bool) -> None:
        if is_gone or pod.spec.node_name or self.profiles.of(pod) is None:
            self._take(pod.uid)
            self._release(pod.uid)
            return
        self._reserved.follow(pod)
        nominated = pod.status.nominated_node_name
        if nominated and old is not None and nominated != old.status.nominated_node_name:
            self._recently_nominated.append((self.clock.now(), pod))
        if pod.spec.scheduling_gates or _was_rejected(pod):
            self._take(pod.uid)
            if old is not None and old.status.conditions != pod.status.conditions:
                self._attempts.reject(pod.uid)
        elif old is None or old.spec.scheduling_gates:
            self._undecided.put(QueuedPod(pod, float(next(self._numbers))))

    def _take(self, uid: str) -> QueuedPod | None:
        """Remove a pod from those that have not been attempted; None if it is not one of them."""
        return self._undecided.remove(uid) or self._untried.pop(uid, None)

    def _hold(self, pending: Pod, bound: Pod) -> None:
        root = self._root_of(pending)
        held = None if root is None else self._attempts.of_group(root)
        if held is None:
            held = self._new_attempt(pending, root)
            self._attempts.add(held)
        held.members.setdefault(bound.uid, pending)
        self._attempts.bind(held, Binding(pending, bound))
        self.drain()
        if self._attempts.of_pod(bound.uid) is not None:
            self.clock.call_later(_hold_seconds(held), self.drain)

    def _root_of(self, pod: Pod) -> GroupKey | None:
        """The root of a pod's group, if it is scheduled as one."""
        key = group_of(pod) if self._groups.is_enabled else None
        return None if key is None else self._groups.root_of(key)

    def _new_attempt(self, pending: Pod, root: GroupKey | None) -> HeldAttempt:
        """An attempt at the place of the first of its pods in the queue's order."""
        pods = [pending] if root is None else self._groups.unscheduled(root)
        taken = [queued for pod in pods if (queued := self._take(pod.uid)) is not None]
        first = min(taken, key=self.sort_key) if taken else QueuedPod(pending, float(next(self._numbers)))
        return HeldAttempt(first, self.clock.now(), root, {pod.uid: pod for pod in pods})

    def drain(self) -> None:
        """Decide the attempts that need not wait any more."""
        while (held := self._attempts.first()) is not None:
            if self._waits(held) and self.clock.now() - held.since < _hold_seconds(held):
                return
            self._settle(held)

    def settle_all(self) -> None:
        """Decide all attempts that wait: there is no more time."""
        while (held := self._attempts.first()) is not None:
            self._settle(held)

    def _waits(self, held: HeldAttempt) -> bool:
        if not held.is_complete:
            return True
        earlier = self._first_undecided()
        return earlier is not None and self.sort_key(earlier) < self.sort_key(held.queued)

    def _first_undecided(self) -> QueuedPod | None:
        """The first pod that the other scheduler has yet to attempt; members of gated groups are left out."""
        while (first := self._undecided.first()) is not None:
            if first.pod.spec.scheduling_group is None or not self._is_untried(first.uid):
                return first
            self._undecided.remove(first.uid)
            self._untried[first.uid] = first
        return None

    def _is_untried(self, uid: str) -> bool:
        return self._queue.place_of(uid) in _NOT_TRIED

    def _try_again(self) -> None:
        """A group has changed, or a pod of one: members may not be gated any more."""
        for uid in [uid for uid in self._untried if not self._is_untried(uid)]:
            self._undecided.put(self._untried.pop(uid))

    def _settle(self, held: HeldAttempt) -> None:
        """Decide the pods of an attempt, and apply their bindings."""
        self._attempts.remove(held)
        if held.root is not None:
            unscheduled = self._groups.unscheduled(held.root)
            held.leave_out_late({pod.uid for pod in unscheduled if _was_rejected(pod)})
        self.decide(held)
        for uid, binding in held.bindings.items():
            self._release(uid)
            super().pod("MODIFIED", binding.bound, binding.pending)
            self.applied("MODIFIED", binding.bound, binding.pending)
        for type, pod in held.deletions:
            self.pod(type, pod, held.bindings[pod.uid].bound)

    def _release(self, uid: str) -> None:
        for change in self._reserved.release(uid):
            super().other(*change)
            self.applied(*change)

    def deleted_since(self, time: float) -> list[Pod]:
        """The pods that were deleted from nodes since a time, last ones first."""
        return [pod for when, pod in reversed(self._recently_deleted) if when >= time]

    def nominated_since(self, time: float) -> list[Pod]:
        """The pods that preemption nominated to nodes."""
        return [pod for when, pod in self._recently_nominated if when >= time]

    def held_bindings(self) -> Iterator[Pod]:
        """The pods of held bindings, in the order in which they are decided."""
        return self._attempts.bound_pods()


def _hold_seconds(held: HeldAttempt) -> float:
    return HOLD_SECONDS if held.is_complete else GROUP_HOLD_SECONDS


def _unnominated(pod: Pod) -> Pod:
    return replace(pod, status=replace(pod.status, nominated_node_name=""))


def _unclaimed(pod: Pod) -> Pod:
    """A pod without the claim that a scheduler creates for extended resources before it binds the pod."""
    if pod.spec.node_name or pod.status.extended_resource_claim_status is None:
        return pod
    return replace(pod, status=replace(pod.status, extended_resource_claim_status=None))


def _was_rejected(pod: Pod) -> bool:
    """Whether the other scheduler has attempted a pod, and found no node."""
    return any(each.type == "PodScheduled" and each.status == "False" for each in pod.status.conditions)
