"""How a cluster begins, while others want their turn."""

from __future__ import annotations

import asyncio

from moorage.client.kinds import NODE
from moorage.clock import VirtualClock
from moorage_cluster.local import LocalCluster, LocalSettings
from tests.up.objects import Manifest, pod

MANY = 200


def turns_during_preparation(settings: LocalSettings, dump: list[Manifest]) -> int:
    """How often somebody else had a turn on the loop while a cluster was made ready."""

    async def measured() -> int:
        cluster, turns = LocalCluster(settings, clock=VirtualClock()), 0
        running = asyncio.create_task(cluster.run())
        preparing = asyncio.create_task(cluster.prepare(dump=dump))
        while not preparing.done():
            await asyncio.sleep(0)
            turns += 1
        assert preparing.result().dump.refused == []
        if settings.nodes:
            assert len(await cluster.client.list(NODE)) == settings.nodes
        running.cancel()
        await asyncio.wait([running])
        cluster.close()
        return turns

    return asyncio.run(measured())


def test_creating_many_nodes_does_not_block_other_requests() -> None:
    few = turns_during_preparation(LocalSettings(nodes=1), [])
    many = turns_during_preparation(LocalSettings(nodes=MANY), [])
    assert many - few >= MANY // 50


def test_importing_a_large_dump_does_not_block_other_requests() -> None:
    few = turns_during_preparation(LocalSettings(nodes=0), [])
    many = turns_during_preparation(LocalSettings(nodes=0), [pod(f"pod-{index}") for index in range(MANY)])
    assert many - few >= MANY // 100
