"""Events are deleted an hour after they were last written, as with a lease in etcd.

All events have the same lifetime, so the order of their last writes is the order in which they expire: a
write moves an event to the end of the queue, and one timer waits for its head. No event is ever searched for.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from functools import partial
from typing import Final

from moorage.apimachinery.errors import ApiError
from moorage.clock import Clock
from moorage_cluster.apiserver.deferred_jobs import DeferredJobs
from moorage_cluster.apiserver.store import Change, Collection, Key, Store

EVENTS: Final = "/events"
EVENT_TTL_SECONDS: Final = 3600.0
_BATCH: Final = 200
"""Number of events that are deleted before requests are answered again."""
_MIN_WAIT_SECONDS: Final = 1.0
"""Minimum time between two batches: events that expire within it are deleted together."""

log = logging.getLogger(__name__)


class EventExpiry:
    """Deletes expired events; with a lifetime of 0 none expire."""

    def __init__(self, store: Store, work: DeferredJobs, clock: Clock, ttl_seconds: float) -> None:
        self._store = store
        self._work = work
        self._clock = clock
        self._ttl_seconds = ttl_seconds
        self._due: OrderedDict[Key, float] = OrderedDict()
        self._is_waiting = False

    def load(self) -> None:
        """Events from before a restart expire as if they were new, since their age is unknown."""
        self._work.soon(self._load)

    def _load(self) -> None:
        for key in self._store.collection(EVENTS).items:
            self._renew(key)

    def on_change(self, collection: Collection, change: Change) -> None:
        """Handle a write."""
        if collection.name != EVENTS:
            return
        if change.type == "DELETED":
            self._due.pop(change.stored.key, None)
        else:
            self._renew(change.stored.key)

    def _renew(self, key: Key) -> None:
        if not self._ttl_seconds:
            return
        self._due[key] = self._clock.now() + self._ttl_seconds
        self._due.move_to_end(key)
        if not self._is_waiting:
            self._is_waiting = True
            self._work.soon(self._wait)

    def _wait(self) -> None:
        if not self._due:
            self._is_waiting = False
            return
        seconds = next(iter(self._due.values())) - self._clock.now()
        self._clock.call_later(max(seconds, _MIN_WAIT_SECONDS), partial(self._work.soon, self._expire))

    def _expire(self) -> None:
        is_done = True
        try:
            is_done = self._delete_some()
        except ApiError as error:
            log.warning("cleaning up: %s", error)
        finally:  # If the journal fails, the deletion is retried.
            self._work.soon(self._wait if is_done else self._expire)

    def _delete_some(self) -> bool:
        """Delete expired events; returns whether all of them are deleted."""
        now, events = self._clock.now(), self._store.collection(EVENTS)
        for _ in range(_BATCH):
            key, due = next(iter(self._due.items()), (None, 0.0))
            if key is None or due > now:
                return True
            self._store.delete(events, key)
        return False
