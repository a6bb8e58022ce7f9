"""Attempts that come to nothing, at every point where they can."""

from __future__ import annotations

import asyncio
import logging
from itertools import pairwise
from typing import Any

import pytest

from moorage.client.kinds import POD
from moorage.framework.interface.status import SKIP, Code, Status, pending, unschedulable
from moorage.klog import quoted
from moorage.queue.scheduling_queue import Place
from tests.scheduler.plugins import Binding, Diary, profile, registry_with
from tests.scheduler.running import SchedulerHarness, in_harness

ERROR = Status(Code.ERROR, ("broken",))


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        pytest.param({"reserve": ERROR}, ["A.reserve", "B.reserve"], id="reserve"),
        pytest.param({"reserve": ValueError("bad")}, ["A.reserve", "B.reserve"], id="reserve raises"),
        pytest.param({"permit": ERROR}, ["A.reserve", "B.reserve", "A.permit", "B.permit"], id="permit"),
        pytest.param(
            {"pre_bind": ERROR},
            [
                *("A.reserve", "B.reserve", "A.permit", "B.permit"),
                *("A.pre_bind_pre_flight", "B.pre_bind_pre_flight", "A.pre_bind", "B.pre_bind"),
            ],
            id="pre_bind",
        ),
    ],
)
def test_what_was_reserved_is_given_back_in_reverse_order(answers: dict[str, Any], asked: list[str]) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        diary: list[str] = []
        one, other = Diary("A", diary), Diary("B", diary, answers)
        scheduler = harness.scheduler(config=profile("A", "B"), registry=registry_with(one, other))
        await harness.add_node("n1")
        await harness.add_pod("p")
        await harness.passes(0.25)
        assert diary == [*asked, "B.unreserve", "A.unreserve"]
        assert scheduler.cache.assumed_count == 0
        assert (await harness.condition("p"))["reason"] == "SchedulerError"
        other.answers = {}
        await harness.passes(5)
        assert await harness.node_of("p") == "n1"
        assert diary[-1] == "B.post_bind"
        await harness.check(scheduler)

    in_harness(scenario)


WORDS = {
    "reserve": ({"reserve": ERROR}, 'running Reserve plugin "A": broken'),
    "pre_bind": ({"pre_bind": ERROR}, 'running PreBind plugin "A": broken'),
    "bind": ({"bind": ERROR}, 'running Bind plugin "A": broken'),
    "all binders skip": ({"bind": SKIP}, "running Bind plugins: all of them skipped the pod: A"),
}


@pytest.mark.parametrize(("answers", "message"), WORDS.values(), ids=WORDS)
def test_an_error_status_is_reported_in_condition_event_and_log(
    answers: dict[str, Any], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        made, config = registry_with(Binding("A", [], answers)), profile("A")
        config["profiles"][0]["plugins"]["bind"] = {"disabled": [{"name": "DefaultBinder"}]}
        harness.scheduler(config=config, registry=made)
        await harness.add_node("n1")
        await harness.add_pod("p")
        await harness.passes(0.25)
        condition = await harness.condition("p")
        assert (condition["reason"], condition["message"]) == ("SchedulerError", message)
        assert [each["message"] for each in await harness.events("FailedScheduling")] == [message]

    in_harness(scenario)
    errors = [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR]
    assert (
        f'"Error scheduling pod; retrying" err={quoted(message)} logger="UnhandledError" pod="default/p"'
        in errors
    )


REFUSALS = {
    "reserve": ({"reserve": unschedulable("full")}, "0/1 nodes are available: 1 full.", {"A"}, set()),
    "permit": ({"permit": unschedulable("no")}, "0/1 nodes are available: 1 no.", {"A"}, set()),
    "two reasons": (
        {"permit": unschedulable("small", "late")},
        "0/1 nodes are available: 1 late, 1 small.",
        {"A"},
        set(),
    ),
    "pending": ({"reserve": pending("soon")}, "0/1 nodes are available: 1 soon.", set(), {"A"}),
    "pre_bind": ({"pre_bind": unschedulable("gone")}, "gone", set(), set()),
}


@pytest.mark.parametrize(("answers", "message", "refused_by", "pending_on"), REFUSALS.values(), ids=REFUSALS)
def test_a_rejected_pod_has_a_condition_and_waits_for_its_rejectors(
    answers: dict[str, Any], message: str, refused_by: set[str], pending_on: set[str]
) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = harness.scheduler(config=profile("A"), registry=registry_with(Diary("A", [], answers)))
        await harness.add_node("n1")
        made = await harness.add_pod("p")
        await harness.passes(0.25)
        condition = await harness.condition("p")
        assert (condition["reason"], condition["message"]) == ("Unschedulable", message)
        queued = scheduler.queue.get(made["metadata"]["uid"])
        assert queued is not None
        assert (queued.unschedulable_plugins, queued.pending_plugins) == (refused_by, pending_on)
        # A pod rejected after the permit has no event to wait for.
        waits = refused_by or pending_on
        assert scheduler.queue.place_of(queued.uid) is (Place.UNSCHEDULABLE if waits else Place.BACKOFF)

    in_harness(scenario)


def test_the_pauses_after_errors_double() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        diary: list[str] = []
        failing = Diary("A", diary, {"pre_bind": ERROR})
        harness.scheduler(config=profile("A"), registry=registry_with(failing))
        await harness.add_node("n1")
        await harness.add_pod("p")
        moments = []
        for _ in range(240):
            before = diary.count("A.pre_bind")
            await harness.passes(0.25)
            if diary.count("A.pre_bind") > before:
                moments.append(harness.clock.now())
        pauses = [round(after - before) for before, after in pairwise(moments)]
        # 1, 2, 4, 8, 10, 10 seconds, and the rest of the second in which they end.
        assert pauses[:6] == [2, 3, 5, 9, 11, 11]

    in_harness(scenario)


def test_others_are_woken_when_a_binding_fails() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        block = asyncio.Event()
        slow = Diary("Slow", [], {"pre_bind first": block})
        scheduler = harness.scheduler(config=profile("Slow"), registry=registry_with(slow))
        await harness.add_node("n1")
        await harness.add_pod("first", cpu="3")
        await harness.passes(1)
        await harness.add_pod("second", cpu="3")
        await harness.passes(1)
        assert await harness.node_of("second") == ""
        # Bound by another scheduler, to an unknown node: the resources of n1 are free again.
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "first"},
            "target": {"kind": "Node", "name": "elsewhere"},
        }
        await harness.client.create_part(POD, "default", "first", "binding", binding)
        await harness.passes(2)
        assert await harness.node_of("second") == "n1"
        block.set()
        await harness.passes(20)
        assert await harness.node_of("first") == "elsewhere"
        scheduler.cache.validate()
        assert not list(scheduler.queue)
        (failed,) = [
            each
            for each in await harness.events("FailedScheduling")
            if each["involvedObject"]["name"] == "first"
        ]
        assert failed["message"].startswith('running Bind plugin "DefaultBinder"')
        assert (await harness.condition("first"))["status"] == "True"

    in_harness(scenario)


def test_a_pod_that_is_bound_by_another_client_leaves_the_queue() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = harness.scheduler()
        await harness.add_node("n1")
        await harness.add_pod("large", cpu="16")
        await harness.passes(1)
        assert len(scheduler.queue) == 1
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "large"},
            "target": {"kind": "Node", "name": "elsewhere"},
        }
        await harness.client.create_part(POD, "default", "large", "binding", binding)
        await harness.passes(1)
        assert len(scheduler.queue) == 0
        scheduler.queue.validate()

    in_harness(scenario)


def test_a_pod_that_is_being_deleted_is_not_tried() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        harness.scheduler()
        await harness.add_pod("p", schedulingGates=[{"name": "example.com/hold"}])
        await harness.label("p", {"finalizers": ["example.com/keep"]})
        await harness.delete_pod("p")
        await harness.client.patch(POD, "default", "p", {"spec": {"schedulingGates": None}}, "merge")
        await harness.add_node("n1")
        await harness.passes(2)
        assert await harness.node_of("p") == ""
        (event,) = await harness.events("FailedScheduling")
        assert event["message"] == "skip schedule deleting pod: default/p"

    in_harness(scenario)


def test_another_pod_of_the_same_name_is_another_pod() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        block = asyncio.Event()
        slow = Diary("Slow", [], {"pre_bind": block})
        scheduler = harness.scheduler(config=profile("Slow"), registry=registry_with(slow))
        await harness.add_node("n1")
        await harness.add_pod("p", cpu="3")
        await harness.passes(1)
        await harness.delete_pod("p")
        again = await harness.add_pod("p", cpu="4")
        block.set()
        slow.answers.clear()
        await harness.passes(5)
        assert await harness.node_of("p") == "n1"
        assert harness.line.bound == {again["metadata"]["uid"]: 1}
        await harness.check(scheduler)

    in_harness(scenario)
