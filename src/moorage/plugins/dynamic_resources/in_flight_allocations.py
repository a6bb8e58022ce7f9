"""In-flight allocations: decided in reserve, not yet shown by the API server.

Until the informer's cache has a claim as allocated its devices must count as allocated, regardless of other
updates of the claim. All profiles of a scheduler share them: they belong to the live objects
(`objects.shared(InFlightAllocations)`).

Invariant: a claim is in flight from `start` until it is either observed as allocated, or cancelled.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import ref

from moorage.api.devices import AllocationResult, ResourceClaim
from moorage.cluster.object_tables import Objects


class _InFlightAllocation:
    __slots__ = ("claim", "is_written", "seen")

    def __init__(self, claim: ResourceClaim) -> None:
        self.claim = claim
        self.is_written = False
        self.seen = False


class InFlightAllocations:
    """Claims in flight, by uid, each with the allocation it is going to have."""

    def __init__(self, objects: Objects) -> None:
        self._objects = ref(objects)  # a weak reference: the objects own this
        self._unsubscribe: Callable[[], None] | None = None
        self._in_flight: dict[str, _InFlightAllocation] = {}

    def claims(self) -> dict[str, ResourceClaim]:
        """The claims in flight."""
        return {uid: entry.claim for uid, entry in self._in_flight.items()}

    def allocation(self, uid: str) -> AllocationResult | None:
        """The allocation that a claim is going to have, if it is in flight."""
        entry = self._in_flight.get(uid)
        return None if entry is None else entry.claim.status.allocation

    def start(self, uid: str, claim: ResourceClaim) -> None:
        """Record an allocation that is decided; `claim` contains it."""
        assert claim.status.allocation is not None, claim.key
        self._in_flight[uid] = _InFlightAllocation(claim)

    def mark_written(self, uid: str, claim: ResourceClaim) -> None:
        """The allocation is written, as `claim`: it counts here until the server shows it."""
        entry = self._in_flight.get(uid)
        if entry is None:
            return
        entry.claim, entry.is_written = claim, True
        objects = self._objects()
        if self._unsubscribe is None and objects is not None:
            self._unsubscribe = objects.subscribe(self._drop_finished)
        self._drop_finished()

    def cancel(self, uid: str) -> None:
        """The allocation will not be written; one that is written counts until the server shows it."""
        entry = self._in_flight.get(uid)
        if entry is not None and not entry.is_written:
            del self._in_flight[uid]

    def drop(self, uid: str) -> None:
        """The claim is gone from the server, and with it its allocation."""
        self._in_flight.pop(uid, None)

    def _drop_finished(self) -> None:
        """Remove claims that the server shows as allocated, or as gone."""
        objects = self._objects()
        if objects is None:
            return
        table = objects.of(ResourceClaim)
        is_written = [(uid, entry) for uid, entry in self._in_flight.items() if entry.is_written]
        for uid, entry in is_written:
            shown = table.stored(entry.claim.namespace, entry.claim.name)
            if shown is None:
                over = entry.seen
            else:
                entry.seen = True
                mine, theirs = entry.claim.metadata.uid, shown.metadata.uid
                over = shown.status.allocation is not None or mine != theirs
            if over:
                del self._in_flight[uid]
        if self._unsubscribe is not None and not any(f.is_written for f in self._in_flight.values()):
            self._unsubscribe()
            self._unsubscribe = None
