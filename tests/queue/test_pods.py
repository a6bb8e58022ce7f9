"""Pods that are added, updated and deleted; gates; nominations; counts."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.pod import DEFAULT_SCHEDULER, Pod
from moorage.queue import cluster_events as events
from moorage.queue.cluster_events import Action, ClusterEvent, Resource
from moorage.queue.scheduling_queue import Place
from tests.builders import make_node, make_pod
from tests.queue.helpers import GATE, START, Case

VOLUME_ADD = ClusterEvent(Resource.PERSISTENT_VOLUME, Action.ADD)
LABELLED = {"labels": {"new": "label"}}


def changed(pod: Pod, **fields: Any) -> Pod:
    return make_pod(pod.name, uid=pod.uid, **fields)


# Adding and deleting


def test_a_new_pod_is_active() -> None:
    case = Case()
    case.add("p")
    assert case.where("p") is Place.ACTIVE
    assert case.observer.came == {("active", "UnscheduledPodAdd"): 1}
    assert case.wakes == 1
    queued = case.attempt("p")
    assert (queued.first_attempt, queued.timestamp, queued.attempts) == (START, START, 1)
    assert case.where("p") is Place.IN_FLIGHT
    assert case.pop() is None


def test_adding_a_pod_twice_does_nothing() -> None:
    case = Case()
    case.add("p")
    case.attempt("p")
    case.add("p")
    assert case.pop() is None
    case.queue.validate()


def test_an_unknown_pod_that_changes_is_added() -> None:
    case = Case()
    pod = make_pod("p", uid="p")
    case.queue.update(pod, changed(pod, **LABELLED))
    assert case.where("p") is Place.ACTIVE
    assert case.observer.came == {("active", "UnscheduledPodUpdate"): 1}


def test_a_pod_that_was_recreated_under_its_name_is_another() -> None:
    case = Case()
    case.refused("p", "Silent")
    old = make_pod("p", uid="p")
    case.queue.update(old, make_pod("p", uid="other"))
    assert case.where("p") is None
    assert case.where("other") is Place.ACTIVE
    case.queue.validate()


@pytest.mark.parametrize("place", [Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE, Place.GATED])
def test_a_deleted_pod_is_nowhere(place: Place) -> None:
    case = Case()
    pod = in_place(case, place)
    assert case.where("p") is place
    case.queue.delete(pod)
    assert case.where("p") is None
    assert len(case.queue) == 0
    assert not case.queue.unschedulable_by_plugin
    case.queue.validate()


def in_place(case: Case, place: Place) -> Pod:
    if place is Place.GATED:
        case.closed.add("p")
    [pod] = case.add("p")
    if place is Place.BACKOFF:
        queued = case.attempt("p")
        case.queue.activate([queued.pod])
        case.fail(queued, "Any")
    elif place is Place.UNSCHEDULABLE:
        case.fail(case.attempt("p"), "Any")
    return pod


def test_deleting_a_pod_in_flight_leaves_the_attempt_alone() -> None:
    case = Case()
    [pod] = case.add("p")
    case.attempt("p")
    case.queue.delete(pod)
    assert case.where("p") is Place.IN_FLIGHT
    case.queue.done("p")
    assert case.where("p") is None


def test_a_pod_that_is_back_already_is_not_put_back_twice() -> None:
    case = Case()
    case.add("p")
    queued = case.attempt("p")
    case.fail(queued, "Any")
    assert case.fail(queued, "Silent") is Place.UNSCHEDULABLE
    assert queued.unschedulable_plugins == {"Any"}
    case.queue.validate()


# Updates

UPDATES = {
    "its plugin waits for that": (["Labels"], LABELLED, Place.ACTIVE),
    "its plugin waits for something else": (["Any"], LABELLED, Place.UNSCHEDULABLE),
    "another update": (["Labels"], {"tolerations": [{"key": "a"}]}, Place.UNSCHEDULABLE),
    "one of two updates": (["Labels"], {"tolerations": [{"key": "a"}], **LABELLED}, Place.ACTIVE),
}


@pytest.mark.parametrize(("plugins", "fields", "place"), UPDATES.values(), ids=UPDATES.keys())
def test_a_pods_own_update_may_help_it(plugins: list[str], fields: dict[str, Any], place: Place) -> None:
    case = Case()
    pod = case.refused("p", *plugins)
    new = changed(pod, **fields)
    case.queue.update(pod, new)
    assert case.where("p") is place
    queued = case.queue.get("p")
    assert queued is not None
    assert queued.pod is new
    case.queue.validate()


@pytest.mark.parametrize(("plugins", "fields", "place"), UPDATES.values(), ids=UPDATES.keys())
def test_updates_in_flight_count_when_the_pod_comes_back(
    plugins: list[str], fields: dict[str, Any], place: Place
) -> None:
    case = Case()
    [pod] = case.add("p")
    queued = case.attempt("p")
    new = changed(pod, **fields)
    case.queue.update(pod, new)
    back = case.fail(queued, *plugins, pod=new)
    assert back is (Place.BACKOFF if place is Place.ACTIVE else place)
    assert queued.pod is new


def test_updates_in_flight_do_not_concern_others_in_flight() -> None:
    case = Case()
    pod, _ = case.add("p", "q")
    case.attempt("p")
    other = case.attempt("q")
    case.queue.update(pod, changed(pod, **LABELLED))
    assert case.fail(other, "Labels") is Place.UNSCHEDULABLE


def test_a_pod_that_pauses_is_updated_where_it_is() -> None:
    case = Case()
    pod = in_place(case, Place.BACKOFF)
    new = changed(pod, priority=9)
    case.queue.update(pod, new)
    assert case.where("p") is Place.BACKOFF
    assert case.attempt("p").pod is new


def test_an_update_within_the_pause_leads_to_backoff() -> None:
    case = Case()
    [pod] = case.add("p")
    case.fail(case.attempt("p"), "Labels")
    case.queue.update(pod, changed(pod, **LABELLED))
    assert case.where("p") is Place.BACKOFF
    assert case.observer.came["backoff", "TargetPodUpdatePodLabel"] == 1


# Gates


def test_a_gated_pod_is_not_tried() -> None:
    case = Case()
    case.closed.add("p")
    case.add("p")
    assert case.where("p") is Place.GATED
    assert case.pop() is None
    assert case.wakes == 0
    assert case.observer.came == {("unschedulable", "UnscheduledPodAdd"): 1}
    assert case.queue.unschedulable_by_plugin == {(GATE, DEFAULT_SCHEDULER): 1}
    assert case.queue.pending() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 1}


GATED = {
    "its plugin's event, the gate open": (VOLUME_ADD, False, Place.ACTIVE, 1),
    "its plugin's event, the gate still closed": (VOLUME_ADD, True, Place.GATED, 1),
    "another plugin's event": (events.NODE_ADD, False, Place.GATED, 0),
    "a wildcard": (events.UNSCHEDULABLE_TIMEOUT, False, Place.ACTIVE, 1),
}


@pytest.mark.parametrize(("event", "closed", "place", "asked"), GATED.values(), ids=GATED.keys())
def test_a_gate_is_asked_again_on_its_plugins_events_only(
    event: ClusterEvent, closed: bool, place: Place, asked: int
) -> None:
    case = Case()
    case.closed.add("p")
    case.add("p")
    if not closed:
        case.closed.clear()
    case.gate_asked.clear()
    case.queue.move_all(event)
    assert case.where("p") is place
    assert case.gate_asked == [("p", GATE)] * asked
    case.queue.validate()


def test_a_pod_that_was_refused_and_then_gated_waits_for_the_gate_and_its_refusers() -> None:
    case = Case()
    pod = case.refused("p", "Any", "Labels")
    case.closed.add("p")
    case.queue.move_all(events.NODE_ADD, None, make_node("n"))
    assert case.where("p") is Place.GATED
    queued = case.queue.get("p")
    assert queued is not None
    assert queued.unschedulable_plugins == {"Any", "Labels", GATE}
    case.queue.validate()
    case.closed.clear()
    case.queue.move_all(events.NODE_ADD, None, make_node("n"))
    assert case.where("p") is Place.GATED
    case.queue.update(pod, changed(pod, **LABELLED))
    assert case.where("p") is Place.ACTIVE
    case.queue.validate()


def test_a_pod_that_enters_backoff_is_asked_at_the_gate() -> None:
    case = Case()
    case.add("p")
    queued = case.attempt("p")
    case.closed.add("p")
    assert case.fail(queued) is Place.GATED
    assert case.queue.pending()[Place.GATED] == 1
    case.queue.validate()


def test_a_pod_that_leaves_backoff_is_not_asked_again() -> None:
    case = Case()
    case.add("p")
    case.fail(case.attempt("p"))
    case.closed.add("p")
    case.clock.advance(2)
    case.queue.flush_backoff()
    assert case.where("p") is Place.ACTIVE


def test_lifting_the_gate_by_an_update() -> None:
    case = Case()
    case.closed.add("p")
    [pod] = case.add("p")
    case.closed.clear()
    case.clock.advance(100)
    case.queue.update(pod, changed(pod, **LABELLED))
    assert case.where("p") is Place.ACTIVE
    queued = case.attempt("p")
    assert queued.first_attempt == START + 100
    assert not queued.gating_plugin


def test_a_gated_pod_has_not_paused() -> None:
    """It was never attempted, so it has no backoff when its gate opens."""
    case = Case()
    case.closed.add("p")
    case.add("p")
    case.closed.clear()
    case.queue.move_all(VOLUME_ADD)
    assert case.where("p") is Place.ACTIVE


# Nominations

NOMINATED = {"status": {"nominatedNodeName": "n"}}
ELSEWHERE = {"status": {"nominatedNodeName": "m"}}


def test_a_pod_comes_with_its_nomination() -> None:
    case = Case()
    case.add("p", **NOMINATED)
    assert case.nominations.node_of("p") == "n"


def test_a_gated_pod_takes_no_node() -> None:
    case = Case()
    case.closed.add("p")
    case.add("p", **NOMINATED)
    assert case.nominations.node_of("p") is None


UPDATED_NOMINATIONS = {
    "set": ({}, NOMINATED, None, "n"),
    "changed": (NOMINATED, ELSEWHERE, "n", "m"),
    "cleared": (NOMINATED, {}, "n", None),
    "kept in memory": ({}, {}, "x", "x"),
    "never any": ({}, {}, None, None),
}


@pytest.mark.parametrize("place", [Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE])
@pytest.mark.parametrize(
    ("before", "after", "known", "expected"), UPDATED_NOMINATIONS.values(), ids=UPDATED_NOMINATIONS.keys()
)
def test_updates_of_nominations(
    before: dict[str, Any], after: dict[str, Any], known: str | None, expected: str | None, place: Place
) -> None:
    case = Case()
    pod = in_place(case, place)
    case.nominations.put(pod, known or "")
    case.queue.update(changed(pod, **before), changed(pod, **after))
    assert case.nominations.node_of("p") == expected


def test_a_deleted_pod_gives_its_node_back() -> None:
    case = Case()
    [pod] = case.add("p", **NOMINATED)
    case.queue.delete(pod)
    assert case.nominations.node_of("p") is None


# Counts


def test_refusals_are_counted_while_a_pod_waits() -> None:
    case = Case()
    case.refused("p", "Any", pending=["Named"])
    by_plugin = case.queue.unschedulable_by_plugin
    assert by_plugin == {("Any", DEFAULT_SCHEDULER): 1, ("Named", DEFAULT_SCHEDULER): 1}
    case.refused("q", "Any")
    assert by_plugin["Any", DEFAULT_SCHEDULER] == 2
    case.queue.move_all(events.NODE_ADD, None, make_node("n"))
    assert by_plugin["Any", DEFAULT_SCHEDULER] == 2  # not tried yet
    case.pop_all()
    assert not by_plugin


def test_places_are_counted() -> None:
    case = Case()
    case.refused("unschedulable", "Silent")
    case.add("backoff")
    case.fail(case.attempt("backoff"))
    case.closed.add("gated")
    case.add("active", "active too", "gated", "in flight", priority=-1)
    case.add("flies", priority=1)
    case.attempt("flies")
    assert case.queue.pending() == {"active": 3, "backoff": 1, "unschedulable": 1, "gated": 1}
    assert len(case.queue) == 6
    places = {queued.pod.name: place for place in Place for queued in case.queue.pods_in(place)}
    assert places == {
        "active": Place.ACTIVE,
        "active too": Place.ACTIVE,
        "in flight": Place.ACTIVE,
        "backoff": Place.BACKOFF,
        "unschedulable": Place.UNSCHEDULABLE,
        "gated": Place.GATED,
        "flies": Place.IN_FLIGHT,
    }


def test_what_validate_finds() -> None:
    case = Case()
    case.refused("p", "Any")
    queued = case.queue.get("p")
    assert queued is not None
    case.queue._active.put(queued)
    case.is_corrupt = True
    with pytest.raises(AssertionError):
        case.queue.validate()
