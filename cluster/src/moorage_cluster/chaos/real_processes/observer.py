"""Follows nodes and pods by watches: no pod is moved or bound twice, no node over-committed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random

from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.client.informer import Informer
from moorage.client.kinds import NODE, POD
from moorage.clock import LoopClock
from moorage_cluster.chaos.monitor import Amounts, amounts_of, billionths


class Observer:
    """A client with a watch of nodes and one of pods; failed: called with what must not happen."""

    def __init__(self, client: Client, failed: Callable[[str], None]) -> None:
        clock = LoopClock()
        self._failed = failed
        self.nodes = Informer(client, NODE, clock, random=Random())
        self.pods = Informer(client, POD, clock, random=Random())
        self.pods.listeners.append(self._changed)
        self._nodes_of: dict[str, str] = {}
        """The node on which each pod was seen, by uid; also of pods that are gone."""
        self._is_check_due = False

    @property
    def bound(self) -> int:
        """Number of pods that were seen on a node."""
        return len(self._nodes_of)

    async def run(self) -> None:
        """Follow both kinds until cancelled."""
        await asyncio.gather(self.nodes.run(), self.pods.run())

    def _changed(self, type: str, pod: Manifest, before: Manifest | None) -> None:
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        node = pod["spec"].get("nodeName", "")
        known = self._nodes_of.get(uid)
        if known is not None and known != node:
            self._failed(f"pod {name} was moved from node {known} to {node or 'no node'}")
        if node:
            self._nodes_of[uid] = node
        if not self._is_check_due:
            # Informers replace many objects at once: nodes are looked at when all of them are there.
            self._is_check_due = True
            asyncio.get_running_loop().call_soon(self._check_nodes)

    def _check_nodes(self) -> None:
        self._is_check_due = False
        for name, used in self._used().items():
            node = self.nodes.get("", name)
            for resource, amount in used.items() if node is not None else ():
                room = _room(node, resource)
                if amount > room:
                    self._failed(f"node {name} is over-committed: {resource} {amount} of {room}")

    def _used(self) -> dict[str, Amounts]:
        used: dict[str, Amounts] = {name: Counter() for _, name in self.nodes.objects}
        for pod in self.pods.objects.values():
            node = pod["spec"].get("nodeName")
            if node:
                used.setdefault(node, Counter()).update(amounts_of(pod))
        return used

    def waiting(self) -> list[str]:
        """The names of pods that have no node although there is room for them."""
        used = self._used()
        return [
            pod["metadata"]["name"]
            for pod in self.pods.objects.values()
            if not pod["spec"].get("nodeName")
            and any(self._fits(pod, name, amounts) for name, amounts in used.items())
        ]

    def _fits(self, pod: Manifest, name: str, used: Amounts) -> bool:
        node = self.nodes.get("", name)
        if node is None:
            return False
        return all(used[each] + amount <= _room(node, each) for each, amount in amounts_of(pod).items())


def _room(node: Manifest | None, resource: str) -> int:
    assert node is not None
    return billionths(node["status"]["allocatable"].get(resource, "0"))
