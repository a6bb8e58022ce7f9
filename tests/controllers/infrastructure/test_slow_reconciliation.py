"""Objects that take long to look at rest for a while; that is not remembered of those that are gone."""

from __future__ import annotations

import asyncio
from random import Random

from moorage.client.client import Client
from moorage.clock import VirtualClock
from moorage_cluster.apiserver.embedded import EmbeddedServer
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.controller import Controller

SECONDS_PER_LOOK = 0.02
REST_SECONDS = 9 * SECONDS_PER_LOOK


class Slow(Controller):
    """Takes its time for each object."""

    name = "slow-controller"

    def __init__(self, cluster: Cluster, clock: VirtualClock) -> None:
        super().__init__(cluster)
        self._clock = clock
        self.looked_at: list[str] = []

    async def reconcile(self, namespace: str, name: str) -> float | None:
        self._clock.advance(SECONDS_PER_LOOK)
        self.looked_at.append(name)
        return None


def test_objects_that_are_looked_at_for_the_last_time_are_forgotten() -> None:
    async def scenario() -> None:
        clock, server = VirtualClock(), EmbeddedServer()
        cluster = Cluster(Client(server.api, server.token), clock, Random(1))
        controller = Slow(cluster, clock)
        running = asyncio.create_task(controller.run())
        names = [f"object-{number}" for number in range(200)]
        for name in names:
            controller.enqueue("default", name)
            await asyncio.sleep(0)
        assert controller.looked_at == names
        assert len(controller._delayed_until) <= REST_SECONDS / SECONDS_PER_LOOK + 1
        controller.enqueue("default", names[-1])
        await asyncio.sleep(0)
        assert controller.looked_at == names, "the last one still rests"
        running.cancel()
        server.close()

    asyncio.run(scenario())
