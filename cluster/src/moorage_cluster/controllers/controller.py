"""The base of all controllers: a queue of objects, and one method that reconciles one.

`reconcile` compares the desired state of an object with the actual one and does what is missing; it is called
again whenever something it depends on has changed, and after failures with backoff. So it keeps no state, and
a missed or repeated call does no harm.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Final

from moorage.api.manifests import Manifest
from moorage.backoff import backoff_seconds
from moorage.client.informer import EventType
from moorage.client.kinds import Kind
from moorage.clock import Timer
from moorage.http.errors import ConnectionFailed, RequestError
from moorage_cluster.controllers.cluster import Cluster, controller_of

Key = tuple[str, str]
_INITIAL_BACKOFF_SECONDS: Final = 0.1
_MAX_BACKOFF_SECONDS: Final = 60.0
_SLOW_SECONDS: Final = 0.005
_DELAY_FACTOR: Final = 9
_MAX_DELAY_SECONDS: Final = 1.0

log = logging.getLogger(__name__)


class Controller(ABC):
    """Reconciles objects of one kind, one at a time."""

    name: ClassVar[str]
    """The name in events and logs, such as `replicaset-controller`."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._queue: dict[Key, None] = {}
        self._wakeup = asyncio.Event()
        self._timers: dict[Key, tuple[float, Timer]] = {}
        self._failures: dict[Key, int] = {}
        self._delayed_until: dict[Key, float] = {}
        """Objects that took long to reconcile: their changes meanwhile are reconciled once."""
        self.is_busy = False

    @abstractmethod
    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Reconcile one object, which may be deleted; returns the seconds until it is requeued, if at all."""

    # -- the queue

    def enqueue(self, namespace: str, name: str) -> None:
        """Enqueue an object, unless it is queued already."""
        until = self._delayed_until.get((namespace, name))
        if until is not None:
            rest = until - self.cluster.clock.now()
            if rest > 0:
                self.enqueue_after(namespace, name, rest)
                return
            del self._delayed_until[namespace, name]
        self._queue[namespace, name] = None
        self._wakeup.set()

    def enqueue_after(self, namespace: str, name: str, seconds: float) -> None:
        """Enqueue an object after a delay; the earliest such request counts."""
        key, due = (namespace, name), self.cluster.clock.now() + seconds
        known = self._timers.get(key)
        if known is not None:
            if known[0] <= due:
                return
            known[1].cancel()

        def enqueue() -> None:
            self._timers.pop(key, None)
            self.enqueue(*key)

        self._timers[key] = (due, self.cluster.clock.call_later(seconds, enqueue))

    def watch(
        self, kind: Kind, also: Callable[[EventType, Manifest, Manifest | None], None] | None = None
    ) -> None:
        """Enqueue objects of a kind whenever they change (or call `also` instead)."""

        def enqueue(type: EventType, obj: Manifest, before: Manifest | None) -> None:
            self.enqueue(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])

        self.cluster.informer(kind).listeners.append(also or enqueue)

    def watch_owned(self, kind: Kind, owner_kind: str) -> None:
        """Enqueue the controller of an object, if it is of a kind, whenever the object changes."""
        self.cluster.owned(kind)

        def enqueue(type: EventType, obj: Manifest, before: Manifest | None) -> None:
            for each in (obj, before):
                owner = each and controller_of(each)
                if each and owner and owner["kind"] == owner_kind:
                    self.enqueue(each["metadata"].get("namespace", ""), owner["name"])

        self.cluster.informer(kind).listeners.append(enqueue)

    # -- reconciling

    async def run(self) -> None:
        """Reconcile queued objects, until cancelled."""
        while True:
            while self._queue:
                key = next(iter(self._queue))
                del self._queue[key]
                self.is_busy = True
                began = self.cluster.clock.now()
                await self._attempt(key)
                self._delay_slow_key(key, self.cluster.clock.now() - began)
                self.is_busy = False
            self._wakeup.clear()
            await self._wakeup.wait()

    def _delay_slow_key(self, key: Key, seconds: float) -> None:
        """Delay the next reconciliation of an object that takes long, so that others get their turn."""
        if seconds > _SLOW_SECONDS:
            now = self.cluster.clock.now()
            self._drop_expired_delays(now)
            self._delayed_until[key] = now + min(seconds * _DELAY_FACTOR, _MAX_DELAY_SECONDS)
            if key in self._queue:
                del self._queue[key]
                self.enqueue(*key)

    def _drop_expired_delays(self, now: float) -> None:
        """Drop the entries of expired delays: deleted objects are never reconciled again."""
        for key in [key for key, until in self._delayed_until.items() if until <= now]:
            del self._delayed_until[key]

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do now."""
        return not self._queue and not self.is_busy

    @property
    def is_delayed(self) -> bool:
        """Whether there will be something to do after a delay."""
        return bool(self._timers)

    async def _attempt(self, key: Key) -> None:
        try:
            again = await self.reconcile(*key)
        except (RequestError, ConnectionFailed) as error:
            self._failed(key, error)
            return
        except Exception as error:
            log.exception("%s: %s/%s", self.name, *key)
            self._failed(key, error)
            return
        self._failures.pop(key, None)
        if again is not None:
            self.enqueue_after(*key, again)

    def _failed(self, key: Key, error: Exception) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        # Another client has written first; the next reconciliation reads what it wrote.
        if not (isinstance(error, RequestError) and error.is_conflict):
            log.warning("%s: %s/%s: %s", self.name, *key, error)
        self.enqueue_after(*key, backoff_seconds(failures, _INITIAL_BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS))
