"""Running controllers: informers first, then all controllers concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.controller import Controller

MakeController = Callable[[Cluster], Controller]


class ControllerManager:
    """Controllers that share one Cluster."""

    def __init__(self, cluster: Cluster, controllers: Iterable[MakeController]) -> None:
        self._cluster = cluster
        self.controllers = [make(cluster) for make in controllers]

    async def run(self) -> None:
        """Run all of them until cancelled."""
        informers = list(self._cluster.informers())
        async with asyncio.TaskGroup() as tasks:
            for informer in informers:
                tasks.create_task(informer.run())
            for informer in informers:
                await informer.synced()
            for controller in self.controllers:
                tasks.create_task(controller.run())
