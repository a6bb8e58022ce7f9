"""What requeues pods: events, hints, time, plugins."""

from __future__ import annotations

import logging

import pytest

from moorage.api.pod import DEFAULT_SCHEDULER
from moorage.queue import cluster_events as events
from moorage.queue.cluster_events import Action, ClusterEvent
from moorage.queue.event_of_change import PodEvents
from moorage.queue.queueing_rules import QueueRules
from moorage.queue.scheduling_queue import Place
from tests.builders import make_node, make_pod
from tests.queue.helpers import INTERESTS, Case, by_priority, helping

FOO_ADD = ClusterEvent("foos.v1.example.com", Action.ADD)

WOKEN = {
    "an event its plugin waits for": (["Any"], events.NODE_ADD, True),
    "another event": (["Any"], events.NODE_DELETE, False),
    "an event nobody waits for": (["Any"], FOO_ADD, False),
    "an event another plugin waits for": (["Pods"], events.NODE_ADD, False),
    "one of its plugins is enough": (["Pods", "Any"], events.NODE_ADD, True),
    "a hint that says no": (["Never"], events.NODE_ADD, False),
    "a hint that says no beside one that says yes": (["Never", "Any"], events.NODE_ADD, True),
    "a hint that says yes to this pod": (["Named"], events.NODE_ADD, True),
    "pods that are assigned": (["Pods"], events.ASSIGNED_POD_DELETE, True),
    "pods that are not": (["Pods"], PodEvents(True).deleted, True),
    "a plugin that waits for nothing": (["Silent"], events.NODE_ADD, False),
    "a plugin that nobody knows": (["Stranger"], events.NODE_ADD, False),
    "a wildcard wakes all": (["Silent"], events.UNSCHEDULABLE_TIMEOUT, True),
}


@pytest.mark.parametrize(("plugins", "event", "woken"), WOKEN.values(), ids=WOKEN.keys())
@pytest.mark.parametrize("in_flight", [False, True], ids=["waiting", "in flight"])
def test_events(plugins: list[str], event: ClusterEvent, woken: bool, in_flight: bool) -> None:
    case = Case()
    new = None if event.is_wildcard else helping("p")
    if in_flight:
        case.add("p")
        queued = case.attempt("p")
        case.queue.move_all(event, None, new)
        assert (case.fail(queued, *plugins) is Place.BACKOFF) is woken
    else:
        case.refused("p", *plugins)
        case.queue.move_all(event, None, new)
        assert case.where("p") is (Place.ACTIVE if woken else Place.UNSCHEDULABLE)
        if woken:
            assert case.observer.came["active", event.label] == 1
    case.queue.validate()


def test_a_hint_is_asked_about_each_pod() -> None:
    case = Case()
    case.refused("one", "Named")
    case.refused("other", "Named")
    case.queue.move_all(events.NODE_ADD, None, helping("other"))
    assert (case.where("one"), case.where("other")) == (Place.UNSCHEDULABLE, Place.ACTIVE)
    assert case.observer.hints == {("Named", "NodeAdd", "Queue"): 1, ("Named", "NodeAdd", "QueueSkip"): 1}


def test_plugins_that_did_not_refuse_a_pod_are_not_asked() -> None:
    case = Case()
    case.refused("p", "Silent")
    case.queue.move_all(events.NODE_ADD, None, helping("p"))
    assert not case.observer.hints


def test_a_hint_that_fails_says_yes(caplog: pytest.LogCaptureFixture) -> None:
    case = Case()
    case.refused("p", "Broken")
    with caplog.at_level(logging.ERROR):
        case.queue.move_all(events.NODE_ADD, None, make_node("n"))
    assert case.where("p") is Place.ACTIVE
    assert '"QueueingHintFn returns error" err=' in caplog.text
    assert 'plugin="Broken" pod="default/p"' in caplog.text
    assert case.observer.hints == {("Broken", "NodeAdd", "Error"): 1}


def test_a_pod_that_still_has_to_pause_goes_to_backoff() -> None:
    case = Case()
    case.add("p")
    case.fail(case.attempt("p"), "Any")
    case.queue.move_all(events.NODE_ADD, None, make_node("n"))
    assert case.where("p") is Place.BACKOFF
    assert case.observer.came["backoff", "NodeAdd"] == 1


PENDING = {
    "its own event": (["Any"], [], events.NODE_ADD, Place.ACTIVE),
    "only another plugin's event": (["Any"], ["Pods"], events.ASSIGNED_POD_DELETE, Place.BACKOFF),
    "both": (["Any"], ["Named", "Any"], events.NODE_ADD, Place.ACTIVE),
    "its hint says no": (["Never"], ["Any"], events.NODE_ADD, Place.BACKOFF),
    "neither": (["Any"], ["Never"], events.ASSIGNED_POD_DELETE, Place.UNSCHEDULABLE),
}


@pytest.mark.parametrize(("pending", "others", "event", "place"), PENDING.values(), ids=PENDING.keys())
@pytest.mark.parametrize("in_flight", [False, True], ids=["waiting", "in flight"])
def test_what_a_pending_plugin_waited_for_skips_the_pause(
    pending: list[str], others: list[str], event: ClusterEvent, place: Place, in_flight: bool
) -> None:
    case = Case()
    case.add("p")
    queued = case.attempt("p")
    if in_flight:
        case.queue.move_all(event, None, helping("p"))
        assert case.fail(queued, *others, pending=pending) is place
    else:
        assert case.fail(queued, *others, pending=pending) is Place.UNSCHEDULABLE
        case.queue.move_all(event, None, helping("p"))
        assert case.where("p") is place
    case.queue.validate()


def test_a_pending_plugins_event_is_found_behind_others() -> None:
    case = Case()
    case.add("p")
    queued = case.attempt("p")
    case.queue.move_all(events.ASSIGNED_POD_DELETE, make_pod("x", on="n"), None)
    case.queue.move_all(events.NODE_ADD, None, make_node("n"))
    assert case.fail(queued, "Pods", pending=["Any"]) is Place.ACTIVE


def test_an_error_is_tried_again_after_a_pause_whatever_happens() -> None:
    case = Case()
    case.add("p")
    assert case.fail(case.attempt("p")) is Place.BACKOFF


def test_a_pod_that_is_put_back_after_done_is_tried_again() -> None:
    case = Case()
    case.add("p")
    queued = case.attempt("p")
    case.queue.done("p")
    assert case.fail(queued, "Any") is Place.BACKOFF


def test_events_before_an_attempt_do_not_count() -> None:
    case = Case()
    case.add("early", "late")
    early = case.attempt("early")
    case.queue.move_all(events.NODE_ADD, None, make_node("n"))
    late = case.attempt("late")
    assert case.fail(late, "Any") is Place.UNSCHEDULABLE
    case.queue.validate()
    assert case.fail(early, "Any") is Place.BACKOFF
    assert not +case.queue.events_in_flight()
    case.queue.validate()


def test_events_are_kept_only_for_those_in_flight() -> None:
    case = Case()
    case.queue.move_all(events.NODE_ADD, None, make_node("n"))
    assert not +case.queue.events_in_flight()
    case.add("a", "b")
    case.attempt("a")
    case.queue.move_all(events.NODE_ADD, None, make_node("n"))
    case.queue.move_all(FOO_ADD, None, None)
    case.attempt("b")
    case.queue.move_all(events.NODE_ADD, None, make_node("n"))
    assert case.queue.events_in_flight() == {"NodeAdd": 2, "PodPopped": 2}
    case.queue.done("a")
    assert case.queue.events_in_flight() == {"NodeAdd": 1, "PodPopped": 1}
    case.queue.done("a")
    case.queue.done("b")
    assert not +case.queue.events_in_flight()
    case.queue.validate()


def test_a_precheck_leaves_pods_alone() -> None:
    case = Case()
    case.refused("p", "Any")
    case.queue.move_all(events.NODE_ADD, None, make_node("n"), lambda pod: pod.name != "p")
    assert case.where("p") is Place.UNSCHEDULABLE


def test_a_lost_nomination_wakes_pods_of_equal_or_lower_priority() -> None:
    case = Case()
    for name, priority in (("lower", 1), ("equal", 5), ("higher", 9)):
        case.refused(name, "Pods", priority=priority)
    case.queue.nomination_removed(make_pod("x", priority=5, status={"nominatedNodeName": "n"}))
    assert case.where("lower") is case.where("equal") is Place.ACTIVE
    assert case.where("higher") is Place.UNSCHEDULABLE
    assert case.observer.came["active", "AssignedPodDelete"] == 2


# Activation


def test_activation_skips_events_and_pauses() -> None:
    case = Case()
    case.add("refused")
    refused = case.attempt("refused")
    case.fail(refused, "Silent")
    case.add("failed")
    failed = case.attempt("failed")
    case.fail(failed)
    case.queue.activate([refused.pod, failed.pod, make_pod("unknown", uid="unknown")])
    assert case.where("refused") is case.where("failed") is Place.ACTIVE
    assert case.where("unknown") is None
    assert case.observer.came["active", "ForceActivate"] == 2
    case.queue.validate()


def test_activation_of_a_pod_in_flight_is_for_that_pod() -> None:
    case = Case()
    case.add("one", "other")
    one, other = case.attempt("one"), case.attempt("other")
    case.queue.activate([one.pod])
    assert case.fail(one, "Silent") is Place.BACKOFF
    assert case.fail(other, "Silent") is Place.UNSCHEDULABLE


def test_activation_does_not_open_a_gate() -> None:
    case = Case()
    pod = case.refused("p", "Any")
    case.closed.add("p")
    case.queue.activate([pod])
    assert case.where("p") is Place.GATED


# Time


def test_a_pod_that_waited_for_five_minutes_is_tried_again() -> None:
    case = Case()
    case.add("p")
    queued = case.attempt("p")
    case.fail(queued, "Silent")
    case.clock.advance(300)
    case.queue.flush_unschedulable()
    assert case.where("p") is Place.UNSCHEDULABLE
    case.clock.advance(0.5)
    case.queue.flush_unschedulable()
    assert case.where("p") is Place.ACTIVE
    assert queued.was_flushed
    assert case.observer.came["active", "UnschedulableTimeout"] == 1
    case.fail(case.attempt("p"), "Silent")
    assert not queued.was_flushed


def test_the_duration_is_configurable() -> None:
    case = Case(max_unschedulable_seconds=60)
    case.add("p")
    case.fail(case.attempt("p"), "Silent")
    case.clock.advance(61)
    case.queue.flush_unschedulable()
    assert case.where("p") is Place.ACTIVE


def test_long_waits_are_looked_for_every_half_minute() -> None:
    case = Case()
    case.flusher.start()
    case.add("p")
    case.fail(case.attempt("p"), "Silent")
    case.clock.advance(329)
    assert case.where("p") is Place.UNSCHEDULABLE
    case.clock.advance(2)
    assert case.where("p") is Place.ACTIVE


def test_a_gated_pod_is_asked_again_every_five_minutes_not_every_half() -> None:
    case = Case()
    case.closed.add("p")
    case.add("p")
    case.flusher.start()
    case.clock.advance(900)
    assert case.where("p") is Place.GATED
    assert len(case.gate_asked) == 3
    queued = case.queue.get("p")
    assert queued is not None
    assert not queued.was_flushed


# Profiles


def test_each_profile_has_its_own_plugins() -> None:
    case = Case()
    rules = {
        DEFAULT_SCHEDULER: QueueRules(lambda pod, first: "", INTERESTS),
        "second": QueueRules(lambda pod, first: "", {"Any": INTERESTS["Never"]}),
    }
    case.queue.reconfigure(rules, by_priority)
    case.refused("first", "Any")
    case.refused("second", "Any", scheduler_name="second")
    case.queue.move_all(events.NODE_ADD, None, make_node("n"))
    assert (case.where("first"), case.where("second")) == (Place.ACTIVE, Place.UNSCHEDULABLE)
    assert case.queue.unschedulable_by_plugin == {("Any", DEFAULT_SCHEDULER): 1, ("Any", "second"): 1}


def test_new_rules_keep_all_pods() -> None:
    case = Case()
    case.refused("waits", "Silent")
    case.add("failed")
    case.fail(case.attempt("failed"))
    case.add("old", "new")
    in_flight = case.attempt("old")
    rules = {DEFAULT_SCHEDULER: QueueRules(lambda pod, first: "", {"Other": ()})}
    case.queue.reconfigure(rules, lambda queued: queued.pod.name, max_backoff_seconds=30)
    case.queue.validate()
    assert [queued.pod.name for queued in case.queue.pods_in(Place.ACTIVE)] == ["new", "waits"]
    assert case.where("failed") is Place.BACKOFF
    assert case.fail(in_flight, "Other") is Place.BACKOFF  # its attempt was under the old rules


def test_moves_wake_a_waiting_pop() -> None:
    case = Case()
    case.refused("p", "Any")
    before = case.wakes
    case.queue.move_all(events.NODE_DELETE, make_node("n"), None)
    assert case.wakes == before
    case.queue.move_all(events.NODE_ADD, None, make_node("n"))
    assert case.wakes == before + 1
