"""Watch: reads a collection's log, from a revision or from the current state.

A watcher holds a position in the log and nothing else. When its client is slow the position falls behind;
once the log has moved past it the watch ends with 410, and the client lists again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from moorage.api.manifests import Manifest
from moorage.apimachinery import errors
from moorage.clock import Clock
from moorage.http.transport import Stream
from moorage_cluster.apiserver.options import ListOptions
from moorage_cluster.apiserver.resources import APIResource
from moorage_cluster.apiserver.rest.reads import matches
from moorage_cluster.apiserver.store import Change, ChangeType, Collection, Store, Stored, encode

BOOKMARK_SECONDS: Final = 60.0
_BATCH: Final = 500
"""Maximum changes in a batch, so that one watcher does not delay the others."""
_BATCH_BYTES: Final = 256 * 1024
"""Bytes after which a batch is sent: so a slow client holds at most this and one event."""
_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"

_Item = TypeVar("_Item", Change, Stored)
Show = Callable[[Stored], bytes]
"""Converts a stored object to this watcher's resource."""
Form = Callable[[bytes], bytes]
"""Converts an encoded object to the form that this watcher's client negotiated."""


class Watch(Stream):
    """One client's watch: an iterator of encoded events."""

    def __init__(
        self,
        store: Store,
        resource: APIResource,
        namespace: str | None,
        options: ListOptions,
        show: Show,
        form: Form | None,
        clock: Clock,
        *,
        timeout_seconds: float,
        bookmarks: bool = False,
        initial_events: bool | None = None,
    ) -> None:
        self._store = store
        self._collection: Collection = store.collection(resource.storage)
        self._resource = resource
        self._namespace = namespace
        self._options = options
        self._show = show
        self._form = form
        self._bookmarks = bookmarks
        self._marks_initial_end = bool(initial_events) and bookmarks
        self._clock = clock
        self._timer = clock.call_later(timeout_seconds, self.close)
        self._wakeup = asyncio.Event()
        self._is_closed = False
        self._mark_due = False
        self._initial: list[Stored] = []
        self._initial_revision = store.revision
        revision = options.revision
        if initial_events or not revision:
            if initial_events is not False:
                self._initial = [stored for stored in self._within().values() if matches(stored, options)]
            self._position = self._collection.log.end
        else:
            position = self._collection.log.position_after(revision)
            if position is None:
                oldest = self._collection.log.oldest
                raise errors.expired(f"too old resource version: {revision} ({oldest})")
            self._position = position

    def _within(self) -> dict[tuple[str, str], Stored]:
        if self._namespace is None:
            return self._collection.items
        return self._collection.within(self._namespace)

    def close(self) -> None:
        """End the iteration: the client is gone, or the watch has timed out."""
        self._is_closed = True
        self._timer.cancel()
        self._wakeup.set()

    @property
    def is_behind(self) -> bool:
        """Whether the log has moved past this watcher."""
        return self._collection.log.read(self._position, 0) is None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self._initial:
            batch, count = _batch(partial(self._encoded_event, "ADDED"), self._initial[:_BATCH])
            del self._initial[:count]
            yield batch
        if self._marks_initial_end:
            yield self._bookmark(self._initial_revision, {_INITIAL_EVENTS_END: "true"})
        mark = self._clock.call_later(BOOKMARK_SECONDS, self._mark) if self._bookmarks else None
        try:
            while not self._is_closed:
                changes = self._collection.log.read(self._position, _BATCH)
                if changes is None:
                    gone = errors.expired(f"too old resource version ({self._collection.log.oldest})")
                    yield _event("ERROR", encode(gone.status))
                    return
                if changes:
                    events, count = _batch(self._seen, changes)
                    self._position += count
                    if events:
                        yield events
                    continue
                if self._mark_due:
                    self._mark_due = False
                    mark = self._clock.call_later(BOOKMARK_SECONDS, self._mark)
                    yield self._bookmark(self._store.revision, {})
                    continue
                self._wakeup.clear()
                self._collection.waiting[self._wakeup] = None
                await self._wakeup.wait()
        finally:
            self._collection.waiting.pop(self._wakeup, None)
            self._timer.cancel()
            if mark is not None:
                mark.cancel()

    def _mark(self) -> None:
        self._mark_due = True
        self._wakeup.set()

    def _seen(self, change: Change) -> bytes:
        """A change as a watch event: ADDED when an object starts to match, DELETED when it stops to match."""
        stored, previous = change.stored, change.previous
        if self._namespace is not None and stored.key[0] != self._namespace:
            return b""
        options = self._options
        if not options.labels and not options.fields:
            return self._encoded_event(change.type, stored)
        was = previous is not None and matches(previous, options)
        now = change.type != "DELETED" and matches(stored, options)
        if now:
            return self._encoded_event("MODIFIED" if was else "ADDED", stored)
        return self._encoded_event("DELETED", stored) if was else b""

    def _encoded_event(self, kind: ChangeType, stored: Stored) -> bytes:
        raw = self._show(stored)
        return _event(kind, self._form(raw) if self._form else raw)

    def _bookmark(self, revision: int, annotations: dict[str, str]) -> bytes:
        metadata: Manifest = {"resourceVersion": str(revision), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        mark = {"kind": self._resource.kind, "apiVersion": self._resource.api_version, "metadata": metadata}
        raw = encode(mark)
        return _event("BOOKMARK", self._form(raw) if self._form else raw)


def _batch(encode_item: Callable[[_Item], bytes], items: Sequence[_Item]) -> tuple[bytes, int]:
    """The events of the first items that fit into a batch, and the number of these items."""
    events: list[bytes] = []
    size = count = 0
    for item in items:
        event = encode_item(item)
        events.append(event)
        size += len(event)
        count += 1
        if size >= _BATCH_BYTES:
            break
    return b"".join(events), count


_BEGINNINGS: Final = {
    kind: b'{"type":"%b","object":' % kind.encode()
    for kind in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")
}


def _event(kind: str, raw: bytes) -> bytes:
    return b"".join((_BEGINNINGS[kind], raw, b"}\n"))
