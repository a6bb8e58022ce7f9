"""A workload in a live cluster: an API server and a scheduler in processes of their own, one pod at a time.

Between two pods the cluster comes to rest: nothing is about to be tried, evicted or bound. There are no
kubelets: pods that are being deleted are removed here, at once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.client.connect import connected
from moorage.client.credentials import find_access
from moorage.client.kinds import KINDS_BY_NAME, NODE, POD
from moorage.client.scheduler_api import QUEUE_PATH
from tests.apiserver.running import start_server
from tests.run.running import RunningScheduler

RESTING_PLACES = ("unschedulable", "gated", "incomplete", "pending")
PREEMPTION = "DefaultPreemption"
NOT_SCHEDULED = "PodScheduled"


class Ending(NamedTuple):
    """What has become of the pods."""

    nodes: dict[str, str]
    """The node of each pod that is there; empty for one that is pending."""
    messages: dict[str, str]
    """Why pods are pending, as far as they were tried."""
    removed: set[str]
    """The pods that were preempted."""


def lived(
    cluster: Sequence[Manifest], pods: Sequence[Manifest], folder: Path, *options: str, seed: int
) -> Ending:
    """What becomes of pods in a cluster.

    options: those of the scheduler and of the server.
    """
    with (
        start_server(folder, *options) as server,
        RunningScheduler(server.kubeconfig, f"--tie-seed={seed}", "-v=5", *options) as scheduler,
    ):
        return asyncio.run(_Life(server.kubeconfig, scheduler).run(cluster, pods))


class _Life:
    def __init__(self, kubeconfig: Path, scheduler: RunningScheduler) -> None:
        self._kubeconfig = kubeconfig
        self._scheduler = scheduler
        self._token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
        self._removed: set[str] = set()

    async def run(self, cluster: Sequence[Manifest], pods: Sequence[Manifest]) -> Ending:
        async with connected(find_access(self._kubeconfig)) as client:
            for item in cluster:
                kind, name = KINDS_BY_NAME[item["kind"]], item["metadata"]["name"]
                await client.create(kind, "default" if kind.namespaced else "", item)
                if kind is NODE:  # There is no kubelet that becomes ready.
                    await client.patch(NODE, "", name, {"spec": {"taints": None}}, "merge")
            for pod in pods:
                await client.create(POD, "default", pod)
                while not await self._is_at_rest(client):
                    self._scheduler.says("")
            return self._ending(await client.list(POD))

    async def _is_at_rest(self, client: Client) -> bool:
        """Whether nothing is going to change; if not, the scheduler has something to say yet."""
        queue, is_at_rest = self._queue(), True
        for pod in await client.list(POD):
            meta = pod["metadata"]
            if "deletionTimestamp" in meta:
                self._removed.add(meta["name"])
                await client.delete(POD, "default", meta["name"], grace_seconds=0)
                is_at_rest = False
            elif not pod["spec"].get("nodeName"):
                is_at_rest &= meta["uid"] in queue and _rests(pod, queue[meta["uid"]])
        return is_at_rest

    def _queue(self) -> dict[str, Any]:
        """The scheduler's queue, by uid."""
        answer = self._scheduler.get(QUEUE_PATH, self._token)
        assert answer.status == 200, answer
        return {each["uid"]: each for each in json.loads(answer.text)["items"]}

    def _ending(self, stored: Sequence[Manifest]) -> Ending:
        nodes = {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in stored}
        conditions = {
            pod["metadata"]["name"]: each
            for pod in stored
            for each in pod["status"].get("conditions", ())
            if each["type"] == NOT_SCHEDULED and each["status"] == "False"
        }
        return Ending(nodes, {name: each["message"] for name, each in conditions.items()}, self._removed)


def _rests(pod: Manifest, queued: Any) -> bool:
    """Whether a pod without a node is not about to be tried."""
    is_waiting = queued["place"] in RESTING_PLACES and queued.get("gatedBy") != PREEMPTION
    return is_waiting and not pod["status"].get("nominatedNodeName")
