"""A tenant's pods beyond a limit: they get an error, are tried at growing intervals, and delay no others."""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import Any

import pytest

from tests.scheduler.running import SchedulerHarness, in_harness

TERMS = 101
MESSAGE = f"pod has {TERMS} inter-pod affinity terms, which exceeds the limit of 100"


def crowded(match: str) -> dict[str, Any]:
    terms = [
        {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"app": match if number == 0 else f"other-{number}"}},
        }
        for number in range(TERMS)
    ]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def test_a_pod_beyond_a_limit_is_reported_and_tried_at_growing_intervals_while_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = harness.scheduler()
        await harness.add_node("n1")
        await harness.add_pod("hostile", affinity=crowded("x"))
        times: list[float] = []
        for number in range(160):
            attempts = len(caplog.records)
            await harness.passes(0.25)
            if len(caplog.records) > attempts:
                times.append(harness.clock.now())
            if number == 80:
                await harness.add_pod("beside")
        condition = await harness.condition("hostile")
        assert (condition["status"], condition["reason"]) == ("False", "SchedulerError")
        assert condition["message"] == MESSAGE
        events = await harness.events("FailedScheduling")
        assert {(each["type"], each["message"]) for each in events} == {("Warning", MESSAGE)}
        pauses = [round(later - earlier) for earlier, later in pairwise(times)]
        assert pauses == sorted(pauses)
        assert (pauses[0], max(pauses)) == (2, 11)
        assert await harness.node_of("beside") == "n1"
        scheduler.queue.validate()

    with caplog.at_level(logging.ERROR, "moorage.scheduler.schedule_one"):
        in_harness(scenario)


def test_terms_beyond_the_limit_of_a_pod_put_onto_a_node_are_ignored_and_that_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = harness.scheduler()
        await harness.add_node("n1")
        await harness.add_pod("hostile", affinity=crowded("beside"), nodeName="n1")
        await harness.passes(0.5)
        await harness.label("hostile", {"labels": {"new": "label"}})
        await harness.passes(0.5)
        await harness.add_pod("beside")
        await harness.passes(0.5)
        assert await harness.node_of("beside") == "n1", "its terms keep no pod away"
        assert len(scheduler.cache.snapshot().pods.terms.vocabulary) == 0
        await harness.delete_pod("hostile")
        await harness.passes(0.5)
        scheduler.cache.validate()

    in_harness(scenario)
    ignored = [record for record in caplog.records if "exceed the limits" in record.getMessage()]
    assert len(ignored) == 1
