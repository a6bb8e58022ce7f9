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
from tests.scheduler.running import World, in_world
from tests.scheduler.storage import add_claim, add_class, add_volume, using

SEEDS = range(3)


def _controllers(world: World, *controllers: MakeController) -> None:
    cluster = Cluster(world.client, world.clock, Random(1))
    world.runs(ControllerManager(cluster, controllers).run())


def test_a_claim_that_is_bound_late_lets_its_pod_go() -> None:
    async def scenario(world: World) -> None:
        _controllers(world, PersistentVolumeBinder)
        scheduler = world.scheduler()
        await world.add_node("n1")
        await add_class(world, "slow", "Immediate")
        await world.add_pod("p", **using("data"))
        await world.passes(2)
        assert 'persistentvolumeclaim "data" not found' in (await world.condition("p"))["message"]
        await add_claim(world, "data", "slow")
        await world.passes(10)
        assert "unbound immediate PersistentVolumeClaims" in (await world.condition("p"))["message"]
        await add_volume(world, "v1", "slow")
        await world.passes(20)
        assert await world.node_of("p") == "n1"
        await world.check(scheduler)

    in_world(scenario)


def test_a_volume_is_made_for_the_node_that_was_chosen() -> None:
    async def scenario(world: World) -> None:
        scheduler = world.scheduler()
        await world.client.create(STORAGE_CLASS, "", default_storage_class())
        await world.add_node("n1")
        await add_claim(world, "data")
        await world.add_pod("p", **using("data"))
        await world.passes(20)
        # No volume is provisioned yet; the nominated node is already visible.
        waiting = await world.pod("p")
        assert "nodeName" not in waiting["spec"]
        assert waiting["status"]["nominatedNodeName"] == "n1"
        _controllers(world, PersistentVolumeBinder, HostPathProvisioner)
        await world.passes(20)
        assert await world.node_of("p") == "n1"
        await world.check(scheduler)

    in_world(scenario)


def test_a_volume_that_is_never_made_gives_the_room_back() -> None:
    async def scenario(world: World) -> None:
        scheduler = world.scheduler()
        await world.client.create(STORAGE_CLASS, "", default_storage_class())
        await world.add_node("n1")
        await add_claim(world, "data")
        await world.add_pod("p", cpu="3", **using("data"))
        await world.passes(1)
        assert scheduler.cache.assumed_count == 1
        await world.delete_pod("p")
        await world.add_pod("other", cpu="3")
        await world.passes(2)
        assert await world.node_of("other") == "n1"
        scheduler.cache.validate()

    in_world(scenario)


@pytest.mark.parametrize("seed", SEEDS)
def test_volumes_get_bound_on_a_bad_network(seed: int) -> None:
    async def scenario(world: World) -> None:
        _controllers(world, PersistentVolumeBinder, HostPathProvisioner)
        faults = Faults(lost=0.2, slow=0.2, answers=((409, 0.2), (503, 0.1)), cut=0.1)
        faulty = FaultyTransport(world.line, world.clock, faults, seed)
        scheduler = world.scheduler(transport=RetryingTransport(faulty, world.clock, world.random), seed=seed)
        await world.client.create(STORAGE_CLASS, "", default_storage_class())
        await world.add_node("n1")
        await world.add_node("n2")
        for index in range(6):
            await add_claim(world, f"data{index}")
            await world.add_pod(f"p{index}", **using(f"data{index}"))
            await world.passes(2)
        faulty.faults = Faults()
        await world.passes(200, step=1.0)
        await world.check(scheduler)
        assert world.line.bound.total() == 6

    in_world(scenario, seed=seed)
