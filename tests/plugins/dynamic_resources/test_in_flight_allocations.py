"""Allocations on their way: when they begin and end to count."""

from __future__ import annotations

import gc
import weakref

from moorage.api.devices import ResourceClaim
from moorage.cluster.objects import Objects
from moorage.plugins.dynamic_resources.in_flight_allocations import Flights, flights_of
from tests.plugins.dynamic_resources.device_objects import allocated, claim

BEFORE = claim("c", metadata={"uid": "u"})
AFTER = claim("c", metadata={"uid": "u"}, status=allocated("p/a"))


def books(*shown: ResourceClaim) -> tuple[Flights, Objects]:
    objects = Objects()
    for each in shown:
        objects.put(each)
    return flights_of(objects), objects


def test_a_flight_begins_and_is_cancelled() -> None:
    flights, _ = books(BEFORE)
    flights.start("u", AFTER)
    assert flights.claims() == {"u": AFTER}
    assert flights.allocation("u") == AFTER.status.allocation
    flights.cancel("u")
    flights.cancel("u")
    assert flights.claims() == {}
    assert flights.allocation("u") is None


def test_a_flight_ends_when_the_server_shows_the_allocation() -> None:
    flights, objects = books(BEFORE)
    flights.start("u", AFTER)
    objects.put(AFTER)  # before it was written, somebody else's
    assert "u" in flights.claims()
    objects.put(BEFORE)
    flights.land("u", AFTER)
    flights.cancel("u")  # too late
    objects.put(BEFORE)
    assert "u" in flights.claims()
    objects.of(ResourceClaim).assume(AFTER)  # our own word is not the server's
    assert "u" in flights.claims()
    objects.put(AFTER)
    assert flights.claims() == {}
    objects.put(BEFORE)
    assert flights.claims() == {}


def test_a_flight_ends_when_the_claim_is_gone_or_replaced() -> None:
    for change in ("gone", "replaced"):
        flights, objects = books(BEFORE)
        flights.start("u", AFTER)
        flights.land("u", AFTER)
        if change == "gone":
            objects.remove(BEFORE)
        else:
            objects.put(claim("c", metadata={"uid": "new"}))
        assert flights.claims() == {}


def test_a_claim_that_was_just_created_need_not_be_shown_yet() -> None:
    flights, objects = books()
    flights.start("x", AFTER)
    flights.land("x", AFTER)
    assert "x" in flights.claims()
    objects.put(BEFORE)
    assert "x" in flights.claims()
    flights.drop("x")
    assert flights.claims() == {}


def test_landing_what_is_not_in_flight_changes_nothing() -> None:
    flights, _ = books(BEFORE)
    flights.land("u", AFTER)
    assert flights.claims() == {}


def test_books_go_with_their_objects() -> None:
    flights, objects = books(BEFORE)
    assert flights_of(objects) is flights
    assert flights_of(Objects()) is not flights
    gone = weakref.ref(objects)
    del objects
    gc.collect()
    assert gone() is None
