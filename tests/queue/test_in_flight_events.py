"""Events kept for pods in flight: no more than they need, and bounded."""

from __future__ import annotations

import pytest

from moorage.queue import cluster_events as events
from moorage.queue import in_flight_events as flight
from moorage.queue.in_flight_events import POD_POPPED
from moorage.queue.scheduling_queue import Place
from tests.queue.helpers import Case, helping

ENOUGH = 8


@pytest.fixture(autouse=True)
def few_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight, "MAX_EVENTS", ENOUGH)


def kept(case: Case) -> int:
    case.queue.validate()
    tally = case.queue.events_in_flight()
    return sum(tally.values()) - tally[POD_POPPED]


def happen(case: Case, times: int, helps: str = "nobody") -> None:
    for _ in range(times):
        case.queue.move_all(events.NODE_ADD, None, helping(helps))


def test_nothing_is_kept_while_no_pod_is_in_flight() -> None:
    case = Case()
    case.refused("p", "Named")
    happen(case, 3)
    assert kept(case) == 0


def test_events_go_with_the_last_attempt_that_is_older() -> None:
    case = Case()
    case.add("p", "q")
    case.attempt("p")
    happen(case, 2)
    case.attempt("q")
    happen(case, 3)
    assert kept(case) == 5
    case.queue.done("p")
    assert kept(case) == 3
    case.queue.done("q")
    assert kept(case) == 0


PLACES = {
    "as many events as are kept": (ENOUGH, Place.UNSCHEDULABLE),
    "one more, which may have been the one": (ENOUGH + 1, Place.BACKOFF),
    "many more": (10 * ENOUGH, Place.BACKOFF),
}


@pytest.mark.parametrize(("times", "place"), PLACES.values(), ids=PLACES.keys())
def test_a_long_attempt_misses(times: int, place: Place) -> None:
    case = Case()
    case.add("p")
    queued = case.attempt("p")
    happen(case, times)
    assert kept(case) <= ENOUGH
    assert case.fail(queued, "Named") is place


def test_a_pod_that_was_popped_later_has_all_its_missed_events() -> None:
    case = Case()
    case.add("p", "q", "r")
    case.attempt("p")
    happen(case, 2 * ENOUGH)
    helped, other = case.attempt("q"), case.attempt("r")
    happen(case, 2, helps="q")
    assert case.fail(helped, "Named") is Place.BACKOFF
    assert case.fail(other, "Named") is Place.UNSCHEDULABLE


def test_what_is_about_one_pod_is_forgotten_with_the_rest() -> None:
    case = Case()
    [pod, _] = case.add("p", "q")
    first, second = case.attempt("p"), case.attempt("q")
    case.queue.activate([pod])
    assert case.fail(second, "Named") is Place.UNSCHEDULABLE
    assert case.fail(first, "Named") is Place.BACKOFF
    assert kept(case) == 0
