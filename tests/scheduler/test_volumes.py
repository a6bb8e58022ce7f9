"""Pods with volumes, and the controllers that bind them, in time or late."""

from __future__ import annotations

from random import Random

import pytest

from moorage.client.kinds import STORAGE_CLASS
from moorage.client.retry import RetryingTransport
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.manager import ControllerManager, MakeController
from moorage_cluster.controllers.persistent_volumes import PersistentVolumeBinder
from moorage_cluster.controllers.volume_provisioning import HostPathProvisioner, default_storage_class
from tests.client.faults import Faults, FaultyTransport
from tests.scheduler.running import SchedulerHarness, in_harness
from tests.scheduler.storage import add_claim, add_class, add_volume, using

SEEDS = range(3)


def _controllers(harness: SchedulerHarness, *controllers: MakeController) -> None:
    cluster = Cluster(harness.client, harness.clock, Random(1))
    harness.runs(ControllerManager(cluster, controllers).run())


def test_a_claim_that_is_bound_late_lets_its_pod_go() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        _controllers(harness, PersistentVolumeBinder)
        scheduler = harness.scheduler()
        await harness.add_node("n1")
        await add_class(harness, "slow", "Immediate")
        await harness.add_pod("p", **using("data"))
        await harness.passes(2)
        assert 'persistentvolumeclaim "data" not found' in (await harness.condition("p"))["message"]
        await add_claim(harness, "data", "slow")
        await harness.passes(10)
        assert "unbound immediate PersistentVolumeClaims" in (await harness.condition("p"))["message"]
        await add_volume(harness, "v1", "slow")
        await harness.passes(20)
        assert await harness.node_of("p") == "n1"
        await harness.check(scheduler)

    in_harness(scenario)


def test_a_volume_is_made_for_the_node_that_was_chosen() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = harness.scheduler()
        await harness.client.create(STORAGE_CLASS, "", default_storage_class())
        await harness.add_node("n1")
        await add_claim(harness, "data")
        await harness.add_pod("p", **using("data"))
        await harness.passes(20)
        # No volume is provisioned yet; the nominated node is already visible.
        waiting = await harness.pod("p")
        assert "nodeName" not in waiting["spec"]
        assert waiting["status"]["nominatedNodeName"] == "n1"
        _controllers(harness, PersistentVolumeBinder, HostPathProvisioner)
        await harness.passes(20)
        assert await harness.node_of("p") == "n1"
        await harness.check(scheduler)

    in_harness(scenario)


def test_a_volume_that_is_never_made_gives_the_room_back() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        scheduler = harness.scheduler()
        await harness.client.create(STORAGE_CLASS, "", default_storage_class())
        await harness.add_node("n1")
        await add_claim(harness, "data")
        await harness.add_pod("p", cpu="3", **using("data"))
        await harness.passes(1)
        assert scheduler.cache.assumed_count == 1
        await harness.delete_pod("p")
        await harness.add_pod("other", cpu="3")
        await harness.passes(2)
        assert await harness.node_of("other") == "n1"
        scheduler.cache.validate()

    in_harness(scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_volumes_get_bound_on_a_bad_network(seed: int) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        _controllers(harness, PersistentVolumeBinder, HostPathProvisioner)
        faults = Faults(lost=0.2, slow=0.2, answers=((409, 0.2), (503, 0.1)), cut=0.1)
        faulty = FaultyTransport(harness.line, harness.clock, faults, seed)
        scheduler = harness.scheduler(
            transport=RetryingTransport(faulty, harness.clock, harness.random), seed=seed
        )
        await harness.client.create(STORAGE_CLASS, "", default_storage_class())
        await harness.add_node("n1")
        await harness.add_node("n2")
        for index in range(6):
            await add_claim(harness, f"data{index}")
            await harness.add_pod(f"p{index}", **using(f"data{index}"))
            await harness.passes(2)
        faulty.faults = Faults()
        await harness.passes(200, step=1.0)
        await harness.check(scheduler)
        assert harness.line.bound.total() == 6

    in_harness(scenario, seed=seed)
