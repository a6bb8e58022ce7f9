"""What runs on simulated nodes: pods end after their run time, and stop soon after they are deleted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Final

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.client.informer import EventType
from moorage.client.kinds import POD
from moorage.clock import Clock, Timer
from moorage.sim.object_store import ObjectStore, grace_seconds_of

STOP_SECONDS: Final = 1.0
"""How long a pod takes to stop once it is deleted, as on the simulated nodes of `moorage up`; in seconds."""

DurationOf = Callable[[Pod], float | None]


class Kubelets:
    """The kubelets of all nodes.

    duration_of: how long a pod runs; None: until it is deleted.
    """

    def __init__(self, store: ObjectStore, clock: Clock, duration_of: DurationOf) -> None:
        self._store = store
        self._clock = clock
        self._duration_of = duration_of
        self._finite: set[str] = set()
        self._completions: list[tuple[float, int, str, str, str]] = []
        """A heap of the ends of run times, each with a number, namespace, name and uid.

        A hundred thousand timers of the loop would take more memory than the pods, and be slower to order.
        """
        self._numbers = count()
        self._next_timer: Timer | None = None
        self._next_at = inf
        self._completing = ""

    @property
    def has_finite_pods(self) -> bool:
        """Whether there are pods on nodes that will complete."""
        return bool(self._finite)

    def has_completed(self, pod: Pod) -> bool:
        """Whether a pod that is being deleted has completed."""
        return pod.uid == self._completing

    def pod_changed(self, type: EventType, obj: Object, before: Object | None) -> None:
        """A pod was created, changed or deleted."""
        assert isinstance(obj, Pod)
        if type == "DELETED":
            self._finite.discard(obj.uid)
            return
        if not obj.spec.node_name:
            return
        is_new = not isinstance(before, Pod) or not before.spec.node_name
        if is_new and (seconds := self._duration_of(obj)) is not None:
            self._finite.add(obj.uid)
            ends_at = self._clock.now() + seconds
            heappush(self._completions, (ends_at, next(self._numbers), obj.namespace, obj.name, obj.uid))
            self._set_timer()
        was_deleted = isinstance(before, Pod) and before.metadata.deletion_timestamp is not None
        if obj.metadata.deletion_timestamp is not None and not was_deleted:
            seconds = min(STOP_SECONDS, grace_seconds_of(obj))
            self._clock.call_later(seconds, partial(self._remove, obj.namespace, obj.name, obj.uid))

    def _set_timer(self) -> None:
        """Have the next pod complete at its time."""
        if not self._completions or (ends_at := self._completions[0][0]) >= self._next_at:
            return
        if self._next_timer is not None:
            self._next_timer.cancel()
        self._next_at = ends_at
        self._next_timer = self._clock.call_later(ends_at - self._clock.now(), self._complete)

    def _complete(self) -> None:
        """Complete the pods that have run for their time."""
        now, self._next_timer, self._next_at = self._next_at, None, inf
        while self._completions and self._completions[0][0] <= now:
            _, _, namespace, name, uid = heappop(self._completions)
            self._completing = uid
            self._remove(namespace, name, uid)
            self._completing = ""
        self._set_timer()

    def _remove(self, namespace: str, name: str, uid: str) -> None:
        """Remove a pod that has ended, if it is still there: a pod of the same name may have replaced it."""
        pod = self._store.table(POD).get((namespace, name))
        if pod is not None and pod.uid == uid:
            self._store.delete(POD, namespace, name, uid, grace_seconds=0)
