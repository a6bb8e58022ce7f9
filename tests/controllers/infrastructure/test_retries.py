"""Objects that fail are reconciled again after a delay that doubles up to a minute."""

from __future__ import annotations

import asyncio
from random import Random

from moorage.client.client import Client
from moorage.clock import VirtualClock
from moorage.http.errors import ConnectionFailed
from moorage_cluster.apiserver.embedded import EmbeddedServer
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.controller import Controller
from moorage_cluster.controllers.retries import Retries


class Failing(Controller):
    """Fails always."""

    name = "failing-controller"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.attempts: list[float] = []

    async def reconcile(self, namespace: str, name: str) -> float | None:
        self.attempts.append(self.cluster.clock.now())
        raise ConnectionFailed("gone")


def test_an_object_may_fail_any_number_of_times() -> None:
    async def scenario() -> None:
        clock, server = VirtualClock(), EmbeddedServer()
        cluster = Cluster(Client(server.api, server.token), clock, Random(1))
        controller = Failing(cluster)
        running = asyncio.create_task(controller.run())
        controller.enqueue("default", "object")
        for _ in range(1100):
            await asyncio.sleep(0)
            clock.advance(60.0)
        await asyncio.sleep(0)
        assert len(controller.attempts) == 1101
        running.cancel()
        server.close()

    asyncio.run(scenario())


def test_delays_by_key_double_up_to_a_limit_and_expire() -> None:
    retries = Retries(first_seconds=1.0, longest_seconds=4.0)
    now, waits = 0.0, []
    for _ in range(5):
        assert retries.wait("a", now) is None
        waits.append(retries.wait("a", now) or 0.0)
        now += waits[-1]
    assert waits == [1.0, 2.0, 4.0, 4.0, 4.0]
    assert retries.wait("a", now + 8.1) is None
    assert retries.wait("a", now + 8.1) == 1.0
