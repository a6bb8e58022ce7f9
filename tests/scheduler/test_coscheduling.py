"""Groups of scheduler-plugins in a running scheduler: labels name them; only their controller writes them."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.coscheduling import POD_GROUP_LABEL
from moorage.api.manifests import Manifest
from moorage.client.kinds import COSCHEDULING_POD_GROUP, POD
from moorage.config.load import default_config, parse_config
from moorage.emulation.kubernetes_version import KUBERNETES_VERSIONS, V1_36, KubernetesVersion
from moorage.framework.loading.registry import RegistryError
from moorage.queue.scheduling_queue import Place
from moorage.scheduler.scheduler import Scheduler
from moorage_cluster.addons import AddonName
from moorage_cluster.addons.addon import ADDONS
from tests.extenders.extender_responses import Service, keeping
from tests.scheduler.plugins import profile
from tests.scheduler.running import SchedulerHarness, in_harness, pod
from tests.scheduler.test_watched_kinds import DEFINITIONS


def configuration() -> Manifest:
    """A configuration as scheduler-plugins' documentation has it."""
    config = profile("Coscheduling")
    sort = {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]}
    config["profiles"][0]["plugins"]["queueSort"] = sort
    return config


class Groups:
    """A scheduler, and the custom resource."""

    def __init__(self, harness: SchedulerHarness, scheduler: Scheduler) -> None:
        self.harness = harness
        self.scheduler = scheduler

    @classmethod
    async def start(cls, harness: SchedulerHarness, config: Manifest | None = None, **options: Any) -> Groups:
        for definition in ADDONS[AddonName.POD_GROUPS].objects():
            await harness.client.create(DEFINITIONS, "", definition.manifest)
        return cls(harness, harness.scheduler(config=config or configuration(), **options))

    async def add_group(self, name: str, minimum: int, **spec: Any) -> None:
        group = {"apiVersion": COSCHEDULING_POD_GROUP.api_version, "kind": "PodGroup"}
        body = {**group, "metadata": {"name": name}, "spec": {"minMember": minimum, **spec}}
        await self.harness.client.create(COSCHEDULING_POD_GROUP, "default", body)

    async def add_pods(self, group: str, count: int, first: int = 0, **spec: Any) -> None:
        for number in range(first, first + count):
            made = pod(f"{group}-{number}", **spec)
            made["metadata"]["labels"] = {POD_GROUP_LABEL: group}
            await self.harness.client.create(POD, "default", made)

    async def bound(self) -> list[str]:
        pods = await self.harness.client.list(POD)
        return sorted(item["metadata"]["name"] for item in pods if item["spec"].get("nodeName"))

    async def move(self, name: str, group: str | None) -> None:
        """Change the label of a pod."""
        await self.harness.label(name, {"labels": {POD_GROUP_LABEL: group}})

    def ends(self) -> None:
        """Nothing is lost or counted twice, and no group was written."""
        self.scheduler.queue.validate()
        self.scheduler.cache.validate()
        assert self.scheduler.cache.assumed_count == 0
        assert not [
            path for method, path in self.harness.line.requests if method == "PATCH" and "podgroups" in path
        ]


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS.values(), ids=KUBERNETES_VERSIONS)
def test_a_gang_runs_when_there_is_room_for_enough_of_it(version: KubernetesVersion) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        groups = await Groups.start(harness, version=version)
        await harness.add_node("n1", cpu="2")
        await groups.add_group("job", 3)
        await groups.add_pods("job", 3)
        await harness.add_pod("alone")
        await harness.passes(2)
        assert await groups.bound() == ["alone"]
        told = await harness.events("FailedScheduling")
        about = {(event["involvedObject"]["apiVersion"], event["involvedObject"]["kind"]) for event in told}
        assert about == {("v1", "Pod"), ("scheduling.x-k8s.io/v1alpha1", "PodGroup")}
        await harness.add_node("n2", cpu="2")
        await harness.passes(20)
        assert await groups.bound() == ["alone", "job-0", "job-1", "job-2"]
        groups.ends()
        await harness.check(groups.scheduler)

    in_harness(scenario)


def test_members_wait_for_their_group_and_for_each_other() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        groups = await Groups.start(harness)
        await harness.add_node("n1", cpu="8")
        await groups.add_pods("late", 2)
        await harness.passes(2)
        assert groups.scheduler.queue.pending()[Place.INCOMPLETE] == 2
        await groups.add_group("late", 3)
        await harness.passes(2)
        assert groups.scheduler.queue.pending()[Place.GATED] == 2
        fewer = {"spec": {"minMember": 2}}
        await harness.client.patch(COSCHEDULING_POD_GROUP, "default", "late", fewer, "merge")
        await harness.passes(2)
        assert await groups.bound() == ["late-0", "late-1"]
        groups.ends()

    in_harness(scenario)


def test_pods_change_their_groups_with_their_labels() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        groups = await Groups.start(harness)
        await harness.add_node("n1", cpu="8")
        for name in ("a", "b"):
            await groups.add_group(name, 3)
            await groups.add_pods(name, 2)
        await harness.passes(2)
        await groups.move("b-0", "a")
        await harness.passes(2)
        assert await groups.bound() == ["a-0", "a-1", "b-0"]
        await groups.move("b-1", None)
        await harness.passes(2)
        assert await groups.bound() == ["a-0", "a-1", "b-0", "b-1"]
        # Pods with nodes count for the group that they are in now.
        for name in ("b-0", "b-1"):
            await groups.move(name, "b")
        await groups.add_pods("b", 1, first=2)
        await harness.passes(2)
        assert await harness.node_of("b-2") == "n1"
        for item in await harness.client.list(POD):
            await harness.delete_pod(item["metadata"]["name"])
        await harness.settles()
        assert not groups.scheduler.cache.pod_groups._known
        assert not groups.scheduler.cache.pod_groups._placed
        groups.ends()

    in_harness(scenario)


def test_a_group_is_tried_by_the_lowest_priority_of_its_pods() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        groups = await Groups.start(harness)
        for name, value in (("high", 1000), ("middle", 500)):
            await harness.add_priority(name, value)
        await groups.add_group("mixed", 2)
        await groups.add_pods("mixed", 1, priorityClassName="high")
        await groups.add_pods("mixed", 1, first=1)
        await groups.add_group("whole", 2)
        await groups.add_pods("whole", 2, priorityClassName="middle")
        await harness.passes(2)
        await harness.add_node("n1", cpu="2")
        await harness.passes(90, step=1.0)
        assert await groups.bound() == ["whole-0", "whole-1"]
        groups.ends()

    in_harness(scenario)


def test_minimum_resources_are_waited_for() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        groups = await Groups.start(harness)
        await harness.add_node("n1", cpu="4")
        await groups.add_group("job", 2, minResources={"cpu": "6"})
        await groups.add_pods("job", 2)
        await harness.passes(2)
        gap = "resource gap: map[cpu:{{2000 -3} {<nil>}  DecimalSI}]"
        condition = await harness.condition("job-0")
        assert condition["message"] == f"0/1 nodes are available: {gap}."
        await harness.add_node("n2", cpu="2")
        await harness.passes(20)
        assert len(await groups.bound()) == 2
        groups.ends()

    in_harness(scenario)


def test_labels_count_where_extenders_get_whole_objects() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        service = Service(filter=keeping("n1"))
        extender = {"urlPrefix": "http://one", "filterVerb": "filter"}
        config = {**configuration(), "extenders": [extender]}
        groups = await Groups.start(harness, config, connect_extender=service.connect)
        await harness.add_node("n1", cpu="4")
        await groups.add_group("job", 2)
        await groups.add_pods("job", 1)
        await harness.passes(2)
        assert await groups.bound() == []
        await groups.add_pods("job", 1, first=1)
        await harness.passes(5)
        assert len(await groups.bound()) == 2
        groups.ends()

    in_harness(scenario)


def test_labels_mean_nothing_without_the_plugin() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        groups = await Groups.start(harness, profile())
        await harness.add_node("n1", cpu="1")
        await groups.add_group("job", 2)
        await groups.add_pods("job", 2)
        await harness.passes(2)
        assert await groups.bound() == ["job-0"]
        assert await harness.events("PodGroupIgnored") == []

    in_harness(scenario)


def test_the_plugin_is_not_enabled_or_disabled_by_reloading() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        groups = await Groups.start(harness)
        await groups.scheduler.reconfigure(parse_config(configuration()))
        with pytest.raises(RegistryError, match=r"Coscheduling: .*restart the scheduler"):
            await groups.scheduler.reconfigure(default_config(V1_36))
        await harness.passes(1)
        await harness.add_node("n1", cpu="1")
        await groups.add_group("job", 1)
        await groups.add_pods("job", 1)
        await harness.passes(2)
        assert await groups.bound() == ["job-0"]
        groups.ends()

    in_harness(scenario)
