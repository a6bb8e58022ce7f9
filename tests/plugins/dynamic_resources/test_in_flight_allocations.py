"""Allocations on their way: when they begin and end to count."""

from __future__ import annotations

import gc
import weakref

from moorage.api.devices import ResourceClaim
from moorage.cluster.object_tables import Objects
from moorage.plugins.dynamic_resources.in_flight_allocations import (
    InFlightAllocations,
)
from tests.plugins.dynamic_resources.device_objects import allocated, claim

BEFORE = claim("c", metadata={"uid": "u"})
AFTER = claim("c", metadata={"uid": "u"}, status=allocated("p/a"))


def books(*shown: ResourceClaim) -> tuple[InFlightAllocations, Objects]:
    objects = Objects()
    for each in shown:
        objects.put(each)
    return objects.shared(InFlightAllocations), objects


def test_a_flight_begins_and_is_cancelled() -> None:
    in_flight, _ = books(BEFORE)
    in_flight.start("u", AFTER)
    assert in_flight.claims() == {"u": AFTER}
    assert in_flight.allocation("u") == AFTER.status.allocation
    in_flight.cancel("u")
    in_flight.cancel("u")
    assert in_flight.claims() == {}
    assert in_flight.allocation("u") is None


def test_a_flight_ends_when_the_server_shows_the_allocation() -> None:
    in_flight, objects = books(BEFORE)
    in_flight.start("u", AFTER)
    objects.put(AFTER)  # before it was written, somebody else's
    assert "u" in in_flight.claims()
    objects.put(BEFORE)
    in_flight.mark_written("u", AFTER)
    in_flight.cancel("u")  # too late
    objects.put(BEFORE)
    assert "u" in in_flight.claims()
    objects.of(ResourceClaim).assume(AFTER)  # our own word is not the server's
    assert "u" in in_flight.claims()
    objects.put(AFTER)
    assert in_flight.claims() == {}
    objects.put(BEFORE)
    assert in_flight.claims() == {}


def test_a_flight_ends_when_the_claim_is_gone_or_replaced() -> None:
    for change in ("gone", "replaced"):
        in_flight, objects = books(BEFORE)
        in_flight.start("u", AFTER)
        in_flight.mark_written("u", AFTER)
        if change == "gone":
            objects.remove(BEFORE)
        else:
            objects.put(claim("c", metadata={"uid": "new"}))
        assert in_flight.claims() == {}


def test_a_claim_that_was_just_created_need_not_be_shown_yet() -> None:
    in_flight, objects = books()
    in_flight.start("x", AFTER)
    in_flight.mark_written("x", AFTER)
    assert "x" in in_flight.claims()
    objects.put(BEFORE)
    assert "x" in in_flight.claims()
    in_flight.drop("x")
    assert in_flight.claims() == {}


def test_landing_what_is_not_in_flight_changes_nothing() -> None:
    in_flight, _ = books(BEFORE)
    in_flight.mark_written("u", AFTER)
    assert in_flight.claims() == {}


def test_books_go_with_their_objects() -> None:
    in_flight, objects = books(BEFORE)
    assert objects.shared(InFlightAllocations) is in_flight
    assert Objects().shared(InFlightAllocations) is not in_flight
    gone = weakref.ref(objects)
    del objects
    gc.collect()
    assert gone() is None
