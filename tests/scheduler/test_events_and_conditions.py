"""What users read: events and conditions, field by field as kube-scheduler writes them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moorage.api.manifests import Manifest
from moorage.client.kinds import EVENT, POD
from moorage.http.transport import Request, Response
from tests.scheduler.running import Line, SchedulerHarness, in_harness, version


def _events_about(event: Manifest) -> dict[str, Any]:
    """Everything of an event but its name and times."""
    fields = ("type", "reason", "action", "note", "reportingController", "reportingInstance")
    return {field: event[field] for field in fields} | {
        "regarding": event["regarding"],
        "related": event.get("related"),
        "count": event.get("series", {}).get("count", 1),
    }


def _reference(pod: Manifest, at_version: str) -> dict[str, str]:
    meta = pod["metadata"]
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "namespace": meta["namespace"],
        "name": meta["name"],
        "uid": meta["uid"],
        "resourceVersion": at_version,
    }


async def _events(harness: SchedulerHarness, reason: str) -> list[dict[str, Any]]:
    return [_events_about(each) for each in await harness.client.list(EVENT) if each["reason"] == reason]


def test_scheduled() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        harness.scheduler()
        await harness.add_node("n1")
        made = await harness.add_pod("p")
        await harness.passes(1)
        assert await _events(harness, "Scheduled") == [
            {
                "type": "Normal",
                "reason": "Scheduled",
                "action": "Binding",
                "note": "Successfully assigned default/p to n1",
                "reportingController": "default-scheduler",
                "reportingInstance": "default-scheduler-host",
                "regarding": _reference(made, version(made)),
                "related": None,
                "count": 1,
            }
        ]

    in_harness(scenario)


def test_failed_scheduling() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        harness.scheduler()
        await harness.add_node("n1")
        made = await harness.add_pod("p", cpu="16")
        await harness.passes(1)
        message = (
            "0/1 nodes are available: 1 Insufficient cpu. "
            "preemption: 0/1 nodes are available: "
            "1 Preemption is not helpful for scheduling."
        )
        assert await _events(harness, "FailedScheduling") == [
            {
                "type": "Warning",
                "reason": "FailedScheduling",
                "action": "Scheduling",
                "note": message,
                "reportingController": "default-scheduler",
                "reportingInstance": "default-scheduler-host",
                "regarding": _reference(made, version(made)),
                "related": None,
                "count": 1,
            }
        ]
        condition = await harness.condition("p")
        since = condition.pop("lastTransitionTime")
        condition.pop("lastProbeTime", None)
        assert condition == {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "observedGeneration": 1,
        }
        # Another message, the same status: the time of the transition stays.
        await harness.add_node("n2", cpu="1")
        await harness.passes(340, step=1.0)  # That node is of no help, so it takes five minutes.
        condition = await harness.condition("p")
        assert condition["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
        assert condition["lastTransitionTime"] == since

    in_harness(scenario)


def test_a_pod_of_a_group_is_scheduled_alone_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        harness.scheduler()
        await harness.add_node("n1")
        group = {"podGroupName": "crew"}
        made = await harness.add_pod("p", schedulingGroup=group)
        await harness.add_pod("too-big", cpu="16", schedulingGroup=group)
        await harness.add_pod("alone")
        await harness.passes(700, step=1.0)  # The large one is tried again after five minutes, twice.
        assert await harness.node_of("p") == "n1"
        events = await _events(harness, "PodGroupIgnored")
        assert {event["regarding"]["name"]: event["count"] for event in events} == {"p": 1, "too-big": 1}
        assert events[0] == {
            "type": "Warning",
            "reason": "PodGroupIgnored",
            "action": "Scheduling",
            "note": "Pod group default/crew is ignored: its pods are scheduled one by one, "
            "because the feature gate GenericWorkload is off",
            "reportingController": "default-scheduler",
            "reportingInstance": "default-scheduler-host",
            "regarding": _reference(made, version(made)),
            "related": None,
            "count": 1,
        }
        await harness.add_pod("other", schedulingGroup={"podGroupName": "guests"})
        await harness.passes(1)

    in_harness(scenario)
    assert [record.getMessage() for record in caplog.records if "PodGroup" in record.getMessage()] == [
        f'"PodGroup is ignored: its pods are scheduled one by one" podGroup="default/{name}"'
        for name in ("crew", "guests")
    ]


def test_nothing_is_written_where_nothing_is_new() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        harness.scheduler()
        await harness.add_node("n1")
        await harness.add_pod("p", cpu="16")
        await harness.passes(1)
        before = version(await harness.pod("p"))
        await harness.passes(700, step=1.0)  # Tried again after five minutes, twice.
        assert version(await harness.pod("p")) == before
        # The first event is about the pod as it was before its condition was written.
        assert [event["count"] for event in await _events(harness, "FailedScheduling")] == [1, 2]

    in_harness(scenario)


def test_no_nodes() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        harness.scheduler()
        await harness.add_pod("p")
        await harness.passes(1)
        condition = await harness.condition("p")
        assert (condition["reason"], condition["message"]) == (
            "Unschedulable",
            "no nodes available to schedule pods",
        )

    in_harness(scenario)


def test_preempted() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        harness.scheduler()
        await harness.add_node("n1")
        await harness.add_priority("high", 1000)
        await harness.add_pod("lesser", cpu="3")
        await harness.passes(1)
        victim = await harness.pod("lesser")
        preemptor = await harness.add_pod("greater", cpu="3", priorityClassName="high")
        await harness.passes(1)
        assert await _events(harness, "Preempted") == [
            {
                "type": "Normal",
                "reason": "Preempted",
                "action": "Preempting",
                "note": f"Preempted by pod {preemptor['metadata']['uid']} on node n1",
                "reportingController": "default-scheduler",
                "reportingInstance": "default-scheduler-host",
                "regarding": _reference(victim, version(victim)),
                "related": _reference(preemptor, version(preemptor)),
                "count": 1,
            }
        ]
        condition = await harness.condition("lesser", "DisruptionTarget")
        assert condition.pop("lastTransitionTime")
        condition.pop("lastProbeTime", None)
        assert condition == {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": "default-scheduler: preempting to accommodate a higher priority pod",
            "observedGeneration": 1,
        }

    in_harness(scenario)


def test_a_condition_is_not_written_into_a_pod_that_was_bound_meanwhile() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = harness.scheduler()
        await harness.add_pod("p", cpu="16")
        await harness.passes(1)
        stale = next(scheduler.pods())
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "p"},
            "target": {"kind": "Node", "name": "elsewhere"},
        }
        await harness.client.create_part(POD, "default", "p", "binding", binding)
        await scheduler._status_writer.not_scheduled(stale, "Unschedulable", "too late", "n9")
        stored = await harness.pod("p")
        assert (await harness.condition("p"))["status"] == "True"
        assert "nominatedNodeName" not in stored["status"]

    in_harness(scenario)


def test_a_condition_is_written_though_the_pod_has_changed_meanwhile() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = harness.scheduler()
        await harness.add_pod("p", cpu="16")
        await harness.passes(1)
        stale = next(scheduler.pods())
        await harness.label("p", {"labels": {"some": "thing"}})
        await scheduler._status_writer.not_scheduled(stale, "Unschedulable", "now", "n9")
        assert (await harness.condition("p"))["message"] == "now"
        assert (await harness.pod("p"))["status"]["nominatedNodeName"] == "n9"

    in_harness(scenario)


class _TakingATurn(Line):
    """A way to the API server on which other tasks get their turn before an answer comes."""

    async def handle(self, request: Request) -> Response:
        await asyncio.sleep(0)
        return await super().handle(request)


def test_a_pod_that_fails_often_has_one_status_write_in_flight() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        line = _TakingATurn()
        line.server = harness.server.api
        scheduler = harness.scheduler(transport=line)
        await harness.add_pod("p", cpu="16")
        await harness.passes(1)
        known = next(scheduler.pods())
        line.requests.clear()
        writes = [
            scheduler._status_writer.not_scheduled(known, "Unschedulable", f"try {n}", "") for n in range(9)
        ]
        await asyncio.gather(*writes, scheduler._status_writer.nominate(known, "n9"))
        stored = await harness.pod("p")
        assert (await harness.condition("p"))["message"] == "try 8"
        assert stored["status"]["nominatedNodeName"] == "n9"
        asked = [method for method, path in line.requests if "/pods/p" in path]
        assert asked == ["PATCH", "PATCH"]

    in_harness(scenario)
