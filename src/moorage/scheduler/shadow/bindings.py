"""Event handlers that decide a pod when another scheduler binds it, in the state that the other one saw.

Bindings arrive in the order in which they were written, not in that of the decisions: a scheduler binds
several pods at a time. A binding therefore waits until all pods that come before the pod in the queue's order
have been bound or found unschedulable, for a short time at most; until then it does not count in the cache.
Likewise, what a scheduler writes for a pod before it binds it (allocated claims, volumes reserved for a
claim, the node that it expects the pod to get) does not count before the pod has been decided. Nominations of
preemption do count: those come with a condition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.devices import ResourceClaim
from moorage.api.persistent_volumes import SELECTED_NODE, WAIT_FOR_FIRST_CONSUMER, volume_class
from moorage.api.pod import Pod
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from moorage.client.informer import EventType
from moorage.clock import Clock
from moorage.cluster.cache import Cache
from moorage.plugins.dynamic_resources.extended_resources import CLAIM_ANNOTATION
from moorage.queue.heap import PodHeap
from moorage.queue.queued_pod import QueuedPod
from moorage.scheduler.event_handlers import EventHandlers

HOLD_SECONDS: Final = 1.0
"""Longest time that a binding waits for those of pods that come before it, in seconds."""

_MAX_DELETED: Final = 64

Change = tuple[EventType, Object, Object | None]
Listener = Callable[[EventType, Object, Object | None], None]


class _Held(msgspec.Struct, eq=False):
    """A binding that has not been decided: the pod before and after, and when that was seen."""

    queued: QueuedPod
    pending: Pod
    bound: Pod
    since: float


class ShadowHandlers(EventHandlers):
    """Applies changes to the cache, and calls `decide` for each binding before it is applied.

    applied: called with every change that was applied.
    """

    decide: Callable[[Pod, str], None]
    applied: Listener
    clock: Clock
    sort_key: Callable[[QueuedPod], Any]

    def follow(
        self,
        decide: Callable[[Pod, str], None],
        applied: Listener,
        clock: Clock,
        sort_key: Callable[[QueuedPod], Any],
    ) -> None:
        """Begin; to be called once, before the first change."""
        self.decide, self.applied, self.clock, self.sort_key = decide, applied, clock, sort_key
        self._numbers = count()
        self._undecided = PodHeap(sort_key)
        """Pods that the other scheduler has not attempted yet."""
        self._held_bindings: dict[str, _Held] = {}
        self._order = PodHeap(sort_key)
        """The pods of held bindings."""
        self._reserved = ReservedObjects(self._cache)
        self._recently_deleted: deque[tuple[float, Pod]] = deque(maxlen=_MAX_DELETED)
        """The pods that were deleted from nodes last, and when."""
        self._expected: set[str] = set()
        """Uids of pods whose nomination only announces their binding."""

    def pod(self, type: EventType, obj: Object, before: Object | None) -> None:
        """A pod was added, updated or deleted."""
        assert isinstance(obj, Pod)
        obj, before = self._without_expectation(obj, before)
        held = self._held_bindings.get(obj.uid)
        is_gone = type == "DELETED" or obj.finished
        if held is not None and not is_gone:
            held.bound = obj
            return
        if held is not None:
            self._settle(held)
            before = held.bound
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
            self._undecided.remove(pod.uid)
            self._release(pod.uid)
            return
        self._reserved.follow(pod)
        if pod.spec.scheduling_gates or _was_rejected(pod):
            self._undecided.remove(pod.uid)
        elif old is None or old.spec.scheduling_gates:
            self._undecided.put(QueuedPod(pod, float(next(self._numbers))))

    def _hold(self, pending: Pod, bound: Pod) -> None:
        queued = self._undecided.remove(bound.uid) or QueuedPod(pending, float(next(self._numbers)))
        self._held_bindings[bound.uid] = _Held(queued, pending, bound, self.clock.now())
        self._order.put(queued)
        self.drain()
        if bound.uid in self._held_bindings:
            self.clock.call_later(HOLD_SECONDS, self.drain)

    def drain(self) -> None:
        """Decide the pods of held bindings that need not wait any more."""
        while (first := self._order.first()) is not None:
            held = self._held_bindings[first.uid]
            earlier = self._undecided.first()
            waits = earlier is not None and self.sort_key(earlier) < self.sort_key(first)
            if waits and self.clock.now() - held.since < HOLD_SECONDS:
                return
            self._settle(held)

    def _settle(self, held: _Held) -> None:
        """Decide the pod of a binding, and apply the binding."""
        uid = held.bound.uid
        del self._held_bindings[uid]
        self._order.remove(uid)
        self.decide(held.pending, held.bound.spec.node_name)
        self._release(uid)
        super().pod("MODIFIED", held.bound, held.pending)
        self.applied("MODIFIED", held.bound, held.pending)

    def _release(self, uid: str) -> None:
        for change in self._reserved.release(uid):
            super().other(*change)
            self.applied(*change)

    def deleted_since(self, time: float) -> list[Pod]:
        """The pods that were deleted from nodes, last ones first."""
        return [pod for when, pod in reversed(self._recently_deleted) if when >= time]

    def held_bindings(self) -> Iterator[Pod]:
        """The pods of held bindings, in the order in which they are decided."""
        return (self._held_bindings[queued.uid].bound for queued in self._order.in_order())


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


class ReservedObjects:
    """Changes that the other scheduler made for a pod before binding it, applied after its decision."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._users: dict[tuple[str, str], str] = {}
        """Uids of pending pods by the volume claims that they use."""
        self._pending: dict[str, list[tuple[str, str]]] = {}
        """The volume claims of pending pods by uid."""
        self._held_bindings: dict[str, dict[tuple[type[Object], str], Change]] = {}
        """Held changes by the uid of the pod, then by object."""
        self._holder: dict[tuple[type[Object], str], str] = {}

    def follow(self, pod: Pod) -> None:
        """A pod is pending."""
        if pod.uid in self._pending:
            return
        claims = [
            (pod.namespace, volume.persistent_volume_claim.claim_name)
            for volume in pod.spec.volumes
            if volume.persistent_volume_claim is not None
        ]
        self._pending[pod.uid] = claims
        self._users.update(dict.fromkeys(claims, pod.uid))

    def hold(self, type: EventType, obj: Object, before: Object | None) -> bool:
        """Whether a change is held; the last change of an object counts."""
        key = (obj.__class__, obj.key)
        uid = self._holder.get(key) or self._reserved_for(obj)
        if uid is None or uid not in self._pending:
            return False
        known = self._held_bindings.setdefault(uid, {}).get(key)
        self._held_bindings[uid][key] = (type, obj, before if known is None else known[2])
        self._holder[key] = uid
        return True

    def release(self, uid: str) -> list[Change]:
        """A pod was decided or is gone: the changes that were held for it."""
        for claim in self._pending.pop(uid, ()):
            if self._users.get(claim) == uid:
                del self._users[claim]
        held = self._held_bindings.pop(uid, {})
        for key in held:
            del self._holder[key]
        return list(held.values())

    def _reserved_for(self, obj: Object) -> str | None:
        """The uid of the pod for which an object was changed by a scheduler."""
        if isinstance(obj, ResourceClaim):
            users = [each.uid for each in obj.status.reserved_for]
            if CLAIM_ANNOTATION in obj.metadata.annotations:
                users += [each.uid for each in obj.metadata.owner_references]
            return next((uid for uid in users if uid in self._pending), None)
        if isinstance(obj, PersistentVolumeClaim) and SELECTED_NODE in obj.metadata.annotations:
            return self._users.get((obj.namespace, obj.name))
        if isinstance(obj, PersistentVolume) and obj.spec.claim_ref is not None:
            claim = obj.spec.claim_ref
            storage_class = self._cache.objects.of(StorageClass).get("", volume_class(obj))
            if storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
                return self._users.get((claim.namespace, claim.name))
        return None
