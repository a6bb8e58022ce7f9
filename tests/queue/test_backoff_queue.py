"""Backoff between attempts, and the order of pods."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.queue.heap import PodHeap
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.scheduling_queue import Place
from tests.builders import make_pod
from tests.queue.helpers import Case, by_priority

PAUSES = {
    "by default": ({}, [1, 2, 4, 8, 10, 10]),
    "longer at most": ({"max_backoff_seconds": 60}, [1, 2, 4, 8, 16, 32, 60, 60]),
    "longer at first": ({"initial_backoff_seconds": 4}, [4, 8, 10]),
    "all the same": ({"initial_backoff_seconds": 3, "max_backoff_seconds": 3}, [3, 3]),
}


@pytest.mark.parametrize(("options", "seconds"), PAUSES.values(), ids=PAUSES.keys())
def test_pauses_double(options: dict[str, Any], seconds: list[float]) -> None:
    case = Case(**options)
    case.add("p")
    for pause in seconds:
        failed_at = case.clock.now()
        assert case.fail(case.attempt("p")) is Place.BACKOFF
        # Its backoff lasts to the end of the second in which it expires.
        end = int(failed_at + pause) + 1
        case.clock.advance(end - 0.01 - failed_at)
        case.queue.flush_backoff()
        assert case.where("p") is Place.BACKOFF
        case.clock.advance(0.01)
        case.queue.flush_backoff()
        assert case.where("p") is Place.ACTIVE
        case.queue.validate()


def test_no_pause_at_all() -> None:
    case = Case(max_backoff_seconds=0)
    case.add("p")
    assert case.fail(case.attempt("p")) is Place.ACTIVE


def test_pauses_after_errors_and_after_refusals_grow_apart() -> None:
    case = Case()
    case.add("p")
    for _ in range(4):
        case.fail(case.attempt("p"))
        case.clock.advance(60)
        case.queue.flush_backoff()
    queued = case.attempt("p")
    assert (queued.consecutive_errors, queued.unschedulable_count, queued.attempts) == (4, 0, 5)
    case.fail(queued, "Any")
    assert (queued.consecutive_errors, queued.unschedulable_count) == (0, 1)
    case.queue.activate([queued.pod])
    case.fail(case.attempt("p"))
    assert (queued.consecutive_errors, queued.unschedulable_count) == (1, 1)


def backed_off(case: Case, name: str, **fields: int) -> None:
    """A pod in backoff because an event helped it while it was in flight."""
    case.add(name, **fields)
    queued = case.attempt(name)
    case.queue.activate([queued.pod])
    assert case.fail(queued, "Any") is Place.BACKOFF


def test_the_active_queue_goes_first() -> None:
    case = Case()
    backed_off(case, "paused", priority=9)
    case.add("new")
    assert case.pop_all() == ["new", "paused"]


def test_an_empty_active_queue_pops_pauses_early() -> None:
    case = Case()
    backed_off(case, "refused")
    assert case.pop() == "refused"
    assert case.observer.came["active", "PopFromBackoffQ"] == 1


def test_pauses_after_errors_are_never_popped_early() -> None:
    case = Case()
    case.add("failed")
    assert case.fail(case.attempt("failed")) is Place.BACKOFF
    assert case.pop() is None
    case.clock.advance(2)
    case.queue.flush_backoff()
    assert case.pop() == "failed"
    assert case.observer.came["active", "BackoffComplete"] == 1


def test_pauses_that_end_in_the_same_second_are_in_the_order_of_the_active_queue() -> None:
    case = Case()
    backed_off(case, "low", priority=1)
    case.clock.advance(0.3)
    backed_off(case, "high", priority=9)
    case.clock.advance(0.3)
    backed_off(case, "middle", priority=5)
    assert [queued.pod.name for queued in case.queue.pods_in(Place.BACKOFF)] == ["high", "middle", "low"]
    case.clock.advance(0.5)  # the next second
    backed_off(case, "later", priority=100)
    assert case.pop_all() == ["high", "middle", "low", "later"]


def test_the_order_is_priority_then_time_then_arrival() -> None:
    case = Case()
    case.add("first", "second", priority=1)
    case.clock.advance(1)
    case.add("third", priority=1)
    case.add("important", priority=2)
    assert case.pop_all() == ["important", "first", "second", "third"]


def test_an_update_may_change_the_order() -> None:
    case = Case()
    low, _ = case.add("low", "other", priority=1)
    case.queue.update(low, make_pod("low", uid="low", priority=2))
    case.queue.validate()
    assert case.pop_all() == ["low", "other"]


def test_a_heap_forgets_what_is_removed() -> None:
    heap = PodHeap(by_priority)
    pods = [QueuedPod(make_pod(str(n), uid=str(n), priority=n), 0.0) for n in range(500)]
    for queued in pods:
        heap.put(queued)
    for queued in pods[100:]:
        assert heap.remove(queued.uid) is queued
        heap.validate()
    assert heap.remove("nobody") is None
    assert len(heap._run) + len(heap._heap) < 300
    assert [queued.pod.name for queued in heap.in_order()] == [str(n) for n in reversed(range(100))]
    assert [heap.pop() for _ in range(101)] == [*reversed(pods[:100]), None]


def test_flushes_come_at_whole_seconds() -> None:
    case = Case()
    case.add("p")
    case.fail(case.attempt("p"))  # at 1000.25; the pause ends in the second 1001
    case.flusher.start()
    case.clock.advance(1.74)
    assert case.where("p") is Place.BACKOFF
    case.clock.advance(0.01)
    assert case.where("p") is Place.ACTIVE
    case.fail(case.attempt("p"))
    case.flusher.stop()
    case.clock.advance(60)
    assert case.where("p") is Place.BACKOFF
