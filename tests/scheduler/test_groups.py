"""Groups of pods in a running scheduler: all that is needed of a group is bound, or nothing is."""

from __future__ import annotations

from typing import Any

from moorage.api.manifests import Manifest
from moorage.api.pod_groups import GroupKey
from moorage.client.kinds import COMPOSITE_POD_GROUP, NODE, POD, POD_GROUP
from moorage.emulation.kubernetes_version import V1_37
from moorage.queue.queued_group import QueuedGroup
from moorage.queue.scheduling_queue import Place
from moorage.scheduler.scheduler import Scheduler
from tests.extenders.extender_responses import Service, keeping
from tests.scheduler.plugins import profile
from tests.scheduler.running import GROUP_GATES, SchedulerHarness, in_harness, pod

WITH_GROUPS = V1_37.with_gates({"GenericWorkload": True})


class Groups:
    """A scheduler that schedules groups, and what is asked of it."""

    def __init__(self, harness: SchedulerHarness, **options: Any) -> None:
        self.harness = harness
        options.setdefault("version", WITH_GROUPS)
        self.scheduler: Scheduler = harness.scheduler(**options)

    async def add_group(self, name: str, min_count: int | None = None, **spec: Any) -> None:
        """A gang, or a group without a minimum."""
        policy: Manifest = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
        group = {"apiVersion": POD_GROUP.api_version, "kind": "PodGroup", "metadata": {"name": name}}
        await self.harness.client.create(
            POD_GROUP, "default", {**group, "spec": {"schedulingPolicy": policy, **spec}}
        )

    async def add_pods(self, group: str, count: int, first: int = 0, **spec: Any) -> None:
        """Members of a group, each of which needs a CPU."""
        for number in range(first, first + count):
            await self.harness.client.create(
                POD, "default", pod(f"{group}-{number}", schedulingGroup={"podGroupName": group}, **spec)
            )

    async def bound(self, group: str) -> list[str]:
        """The members of a group that have nodes."""
        pods = await self.harness.client.list(POD)
        return sorted(
            item["metadata"]["name"]
            for item in pods
            if item["spec"].get("nodeName") and item["metadata"]["name"].startswith(f"{group}-")
        )

    async def condition(self, group: str) -> tuple[str, str, str] | None:
        """Status, reason and message of a group's condition."""
        stored = await self.harness.client.get(POD_GROUP, "default", group)
        conditions = stored.get("status", {}).get("conditions", [])
        return next(((each["status"], each["reason"], each["message"]) for each in conditions), None)

    async def ends(self) -> None:
        """Nothing is lost or counted twice."""
        self.scheduler.queue.validate()
        self.scheduler.cache.validate()
        assert self.scheduler.cache.assumed_count == 0


def test_a_gang_runs_as_soon_as_enough_of_it_fit_and_the_rest_joins_later() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        groups = Groups(harness)
        await harness.add_node("n1", cpu="4")
        await groups.add_group("job", min_count=3)
        await groups.add_pods("job", 5)
        await harness.passes(5)
        assert await groups.bound("job") == ["job-0", "job-1", "job-2", "job-3"]
        assert await groups.condition("job") == ("True", "Scheduled", "")
        await harness.add_node("n2", cpu="4")
        await harness.passes(30)
        assert await harness.node_of("job-4") == "n2"
        await groups.ends()
        await harness.check(groups.scheduler)

    in_harness(scenario)


def test_a_gang_without_room_for_enough_of_it_runs_not_at_all() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        groups = Groups(harness)
        await harness.add_node("n1", cpu="2")
        await groups.add_group("job", min_count=3)
        await groups.add_pods("job", 5)
        await harness.passes(5)
        assert await groups.bound("job") == []
        status, reason, message = await groups.condition("job") or ("", "", "")
        assert (status, reason) == ("False", "Unschedulable")
        assert message == (
            "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining, "
            "pod group preemption: No preemption victims found for incoming preemptor"
        )
        refused = await harness.condition("job-4")
        assert refused["message"] == "0/1 nodes are available: 1 Insufficient cpu."
        placed = await harness.condition("job-0")
        assert placed["message"].startswith("pod group is unschedulable, ")
        await groups.ends()

    in_harness(scenario)


def test_of_two_gangs_one_runs_whole_and_the_other_waits_whole() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        groups = Groups(harness)
        await harness.add_node("n1", cpu="8")
        for name in ("a", "b"):
            await groups.add_group(name, min_count=6)
            await groups.add_pods(name, 6)
        await harness.passes(15)
        assert [len(await groups.bound(name)) for name in ("a", "b")] == [6, 0]
        for number in range(6):
            await harness.delete_pod(f"a-{number}")
        await harness.passes(60)
        assert len(await groups.bound("b")) == 6
        await groups.ends()

    in_harness(scenario)


def test_members_wait_for_their_group_and_for_each_other() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        groups = Groups(harness)
        await harness.add_node("n1", cpu="8")
        await groups.add_pods("late", 2)
        await harness.passes(2)
        assert groups.scheduler.queue.pending()[Place.INCOMPLETE] == 2
        await groups.add_group("late", min_count=3)
        await harness.passes(2)
        assert groups.scheduler.queue.pending()[Place.GATED] == 2
        assert await harness.condition_or_none("late-0") is None
        await groups.add_pods("late", 1, first=2)
        await harness.passes(2)
        assert len(await groups.bound("late")) == 3
        await groups.ends()

    in_harness(scenario)


def test_what_came_late_joins_a_group_that_runs() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        groups = Groups(harness)
        await harness.add_node("n1", cpu="8")
        await groups.add_group("job", min_count=2)
        await groups.add_pods("job", 2)
        await harness.passes(2)
        await groups.add_pods("job", 1, first=2)
        await harness.passes(2)
        assert len(await groups.bound("job")) == 3
        await groups.ends()

    in_harness(scenario)


def test_a_group_whose_pods_differ_in_priority_is_refused() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        groups = Groups(harness)
        await harness.add_priority("high", 1000)
        await harness.add_node("n1", cpu="8")
        await groups.add_group("job", min_count=1)
        await groups.add_pods("job", 1, priorityClassName="high")
        await harness.passes(2)
        problem = (
            "all pods in a single pod group should have the same priority as the pod group's priority, "
            "got 1000 and 0"
        )
        assert await groups.condition("job") == ("False", "SchedulerError", problem)
        condition = await harness.condition("job-0")
        assert (condition["reason"], condition["message"]) == ("SchedulerError", problem)
        await groups.ends()

    in_harness(scenario)


def test_a_group_preempts_as_a_whole() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        groups = Groups(harness)
        await harness.add_priority("high", 1000)
        await harness.add_node("n1", cpu="4")
        for number in range(4):
            await harness.add_pod(f"small-{number}", terminationGracePeriodSeconds=0)
        await harness.passes(2)
        await groups.add_group("job", min_count=3, priorityClassName="high")
        await groups.add_pods("job", 3, priorityClassName="high")
        await harness.passes(20)
        assert len(await groups.bound("job")) == 3
        events = await harness.events("Preempted")
        group = await harness.client.get(POD_GROUP, "default", "job")
        uid = group["metadata"]["uid"]
        assert {event["message"] for event in events} == {f"Preempted by podgroup {uid} on node cluster"}
        assert {event["related"]["kind"] for event in events} == {"PodGroup"}
        assert len(events) == 3
        await groups.ends()

    in_harness(scenario)


def test_a_group_that_does_not_fit_says_which_member_failed() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        groups = Groups(harness)
        await harness.add_node("n1", cpu="1")
        await groups.add_group("job", min_count=2)
        await groups.add_pods("job", 2)
        await harness.passes(2)
        told = [
            event
            for event in await harness.events("FailedScheduling")
            if event["involvedObject"]["kind"] == "PodGroup"
        ]
        assert told[0]["message"].endswith("; default/job-1: 0/1 nodes are available: 1 Insufficient cpu.")
        await groups.ends()

    in_harness(scenario)


def test_a_group_runs_in_one_domain_of_its_topology() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        groups = Groups(harness, version=V1_37.with_gates(GROUP_GATES))
        for number in range(4):
            await harness.add_node(f"n{number}", cpu="2", rack=f"r{number // 2}")
        await harness.add_pod("here", nodeSelector={"rack": "r0"})
        await harness.passes(1)
        await groups.add_group("job", 4, schedulingConstraints={"topology": [{"key": "rack"}]})
        await groups.add_pods("job", 4)
        await harness.passes(3)
        assert {await harness.node_of(f"job-{number}") for number in range(4)} == {"n2", "n3"}
        await groups.ends()

    in_harness(scenario)


def test_a_composite_group_is_scheduled_as_one() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        groups = Groups(harness, version=V1_37.with_gates(GROUP_GATES))
        await harness.add_node("n1", cpu="3")
        reference = {"workloadName": "w", "templateName": "t"}
        await groups.add_pods("a", 2)
        for name in "ab":
            await groups.add_group(
                name, 2, parentCompositePodGroupName="whole", workloadRef={**reference, "templateName": name}
            )
        await groups.add_pods("b", 2)
        await harness.passes(1)
        assert groups.scheduler.queue.pending()[Place.INCOMPLETE] == 4
        whole: Manifest = {"apiVersion": COMPOSITE_POD_GROUP.api_version, "kind": "CompositePodGroup"}
        whole["metadata"] = {"name": "whole"}
        policy = {"gang": {"minGroupCount": 2}}
        await harness.client.create(
            COMPOSITE_POD_GROUP,
            "default",
            {
                **whole,
                "metadata": {"name": "whole"},
                "spec": {"schedulingPolicy": policy, "workloadRef": reference},
            },
        )
        await harness.passes(5)
        assert [await groups.bound(name) for name in "ab"] == [[], []]
        conditions = [await groups.condition(name) for name in "ab"]
        assert [condition and condition[:2] for condition in conditions] == [("False", "Unschedulable")] * 2
        await harness.add_node("n2", cpu="1")
        await harness.passes(40, step=1.0)
        assert [len(await groups.bound(name)) for name in "ab"] == [2, 2]
        await groups.ends()

    in_harness(scenario)


def test_a_group_that_an_extender_is_asked_about_sees_its_nodes_as_they_were() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        service = Service(filter=keeping("n1", "n2", "n3"))
        extender = {"urlPrefix": "http://one", "nodeCacheCapable": True, "filterVerb": "filter"}
        groups = Groups(
            harness, config={**profile(), "extenders": [extender]}, connect_extender=service.connect
        )
        await harness.add_node("n1", cpu="1")
        await harness.add_node("n2", cpu="4")
        await harness.passes(1)
        service.may_answer.clear()
        await groups.add_group("job", 3)
        await groups.add_pods("job", 3)
        await harness.settles()
        await harness.client.delete(NODE, "", "n1")
        await harness.add_node("n3", cpu="4")
        await harness.settles()
        assert {node.name for node in groups.scheduler.cache.nodes()} == {"n1", "n2"}
        service.may_answer.set()
        await harness.passes(30, step=1.0)
        assert {node.name for node in groups.scheduler.cache.nodes()} == {"n2", "n3"}
        assert len(await groups.bound("job")) == 3
        await groups.ends()

    in_harness(scenario)


def test_a_member_that_the_cycle_leaves_out_is_put_back() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        groups = Groups(harness)
        await harness.add_node("n1")
        await groups.add_group("job", 2)
        await groups.add_pods("job", 1)
        await groups.add_pods("gone", 1)
        await harness.passes(1)
        queue, schedule_group = groups.scheduler.queue, groups.scheduler._schedule_group
        assert schedule_group is not None
        members = {queued.uid: queued for queued in queue}
        entry = QueuedGroup(next(iter(members.values())).pod, 0.0, key=GroupKey("default", "job"))
        entry.members.update(members)
        await schedule_group.attempt(entry)
        await harness.passes(1)
        condition = await harness.condition("gone-0")
        assert condition["message"] == "scheduling error for pod group, some pods were not processed"
        assert queue.place_of((await harness.pod("gone-0"))["metadata"]["uid"]) is Place.INCOMPLETE

    in_harness(scenario)


def test_without_the_gate_pods_are_scheduled_one_by_one_and_the_group_says_so() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        groups = Groups(harness, version=V1_37)
        await harness.add_node("n1", cpu="1")
        await groups.add_group("job", 2)
        await groups.add_pods("job", 2)
        await harness.passes(2)
        assert await groups.bound("job") == ["job-0"]
        told = await harness.events("PodGroupIgnored")
        assert sorted(event["involvedObject"]["kind"] for event in told) == ["Pod", "Pod", "PodGroup"]
        group = await harness.client.get(POD_GROUP, "default", "job")
        (about_group,) = [event for event in told if event["involvedObject"]["kind"] == "PodGroup"]
        assert about_group["involvedObject"]["uid"] == group["metadata"]["uid"]
        groups.scheduler.queue.validate()

    in_harness(scenario)
