"""Allocations on their way: decided in reserve, not yet shown by the API server.

Until the server shows a claim as allocated its devices must count as taken, whatever else the server says of
the claim meanwhile. All profiles of a scheduler share one set of books: they belong to the live objects.

Invariant: a claim is in flight from `start` until it is either shown as allocated, or taken back.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary, ref

from moorage.api.devices import AllocationResult, ResourceClaim
from moorage.cluster.objects import Objects


class _Flight:
    __slots__ = ("claim", "landing", "seen")

    def __init__(self, claim: ResourceClaim) -> None:
        self.claim = claim
        self.landing = False
        self.seen = False


class Flights:
    """Claims in flight, by uid, each with the allocation it is going to have."""

    def __init__(self, objects: Objects) -> None:
        self._objects = ref(objects)  # they own these books, not the other way round
        self._unsubscribe: Callable[[], None] | None = None
        self._flights: dict[str, _Flight] = {}

    def claims(self) -> dict[str, ResourceClaim]:
        """The claims in flight."""
        return {uid: flight.claim for uid, flight in self._flights.items()}

    def allocation(self, uid: str) -> AllocationResult | None:
        """The allocation that a claim is going to have, if it is in flight."""
        flight = self._flights.get(uid)
        return None if flight is None else flight.claim.status.allocation

    def start(self, uid: str, claim: ResourceClaim) -> None:
        """An allocation is decided; `claim` shows it."""
        assert claim.status.allocation is not None, claim.key
        self._flights[uid] = _Flight(claim)

    def land(self, uid: str, claim: ResourceClaim) -> None:
        """The allocation is written, as `claim`: it counts here until the server shows it."""
        flight = self._flights.get(uid)
        if flight is None:
            return
        flight.claim, flight.landing = claim, True
        objects = self._objects()
        if self._unsubscribe is None and objects is not None:
            self._unsubscribe = objects.subscribe(self._look)
        self._look()

    def cancel(self, uid: str) -> None:
        """The allocation will not be written; one that is written counts until the server shows it."""
        flight = self._flights.get(uid)
        if flight is not None and not flight.landing:
            del self._flights[uid]

    def drop(self, uid: str) -> None:
        """The claim is gone from the server, and with it its allocation."""
        self._flights.pop(uid, None)

    def _look(self) -> None:
        """End the flights of claims that the server shows as allocated, or as gone."""
        objects = self._objects()
        if objects is None:
            return
        table = objects.of(ResourceClaim)
        landing = [(uid, flight) for uid, flight in self._flights.items() if flight.landing]
        for uid, flight in landing:
            shown = table.stored(flight.claim.namespace, flight.claim.name)
            if shown is None:
                over = flight.seen
            else:
                flight.seen = True
                mine, theirs = flight.claim.metadata.uid, shown.metadata.uid
                over = shown.status.allocation is not None or mine != theirs
            if over:
                del self._flights[uid]
        if self._unsubscribe is not None and not any(f.landing for f in self._flights.values()):
            self._unsubscribe()
            self._unsubscribe = None


_FLIGHTS: WeakKeyDictionary[Objects, Flights] = WeakKeyDictionary()


def flights_of(objects: Objects) -> Flights:
    """The books that go with these live objects."""
    flights = _FLIGHTS.get(objects)
    if flights is None:
        flights = _FLIGHTS[objects] = Flights(objects)
    return flights
