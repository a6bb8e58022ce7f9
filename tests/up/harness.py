"""A whole cluster in this process, under virtual time: what takes minutes passes at once."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Self

from moorage.api.manifests import Manifest
from moorage.client.kinds import NODE, POD
from moorage_cluster.apiserver.embedded import Settings
from moorage_cluster.local import LocalCluster, LocalSettings
from tests.controllers.harness import Harness


class _Everything:
    """A cluster as the harness wants it: one thing that may be idle."""

    name = "cluster"

    def __init__(self, local: LocalCluster) -> None:
        self._local = local
        self.controllers = [self]

    @property
    def is_idle(self) -> bool:
        return self._local.is_idle


class ClusterHarness(Harness):
    """A cluster that is up, with its nodes ready."""

    local: LocalCluster

    def __init__(self, settings: LocalSettings, seed: int = 1) -> None:
        self._wanted = settings
        super().__init__(seed=seed, run=False)
        self._await(self._begin())

    async def _begin(self) -> None:
        self._task = asyncio.create_task(self.local.run())
        await self.local.prepare()
        await self._settled()

    async def _make(self, settings: Settings | None) -> None:
        self.local = LocalCluster(self._wanted, clock=self.clock, random=Random(self._seed))
        self.server, self.client = self.local.server, self.local.client
        self.manager = _Everything(self.local)  # type: ignore[assignment]

    def __enter__(self) -> Self:
        return self

    def nodes_of(self, app: str) -> dict[str, str]:
        """Where the Running pods of a workload are, but for those that are on their way out."""
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in self.pods("default")
            if pod["metadata"]["labels"].get("app") == app and pod["status"]["phase"] == "Running"
        }

    def phases(self) -> dict[str, str]:
        return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in self.list(POD, "default")}

    def condition(self, obj: Manifest, type: str) -> Manifest:
        return next(each for each in obj["status"]["conditions"] if each["type"] == type)

    def taints(self, node: str) -> set[tuple[str, str]]:
        listed = self.get(NODE, node)["spec"].get("taints") or ()
        return {(taint["key"].removeprefix("node.kubernetes.io/"), taint["effect"]) for taint in listed}
