"""All simulated nodes of a cluster: a kubelet for each Node object, which runs the pods bound to it.

Kubelets share the informers of the cluster, the outboxes, and one monitor that checks for pressure; each has
only a timer for its heartbeat, and each pod one for its next change.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable
from random import Random
from typing import ClassVar, Final

from moorage.api.manifests import Manifest, annotations_of
from moorage.client.informer import EventType, Index, sleep
from moorage.client.kinds import NODE, POD
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.nodes import metrics
from moorage_cluster.nodes.addresses import Addresses
from moorage_cluster.nodes.context import NodeContext
from moorage_cluster.nodes.eviction import needs_eviction_check, reclaim_resources
from moorage_cluster.nodes.heartbeat import Heartbeat
from moorage_cluster.nodes.kubelet import Kubelet
from moorage_cluster.nodes.nodeobject import new_node
from moorage_cluster.nodes.settings import KubeletSettings, NodeTemplate
from moorage_cluster.nodes.workload import ContainerRuntime

HEARTBEATS: Final = "moorage.io/heartbeats"
"""An annotation of nodes: with the value `stopped`, the node is disconnected."""
STOPPED: Final = "stopped"
_BATCH: Final = 20
"""Nodes created before other tasks get their turn on the loop."""


class SimulatedNodes:
    """The kubelets of a cluster. Make it before the cluster's informers run, and run it beside them."""

    name: ClassVar[str] = "kubelets"

    def __init__(
        self,
        cluster: Cluster,
        settings: KubeletSettings | None = None,
        seed: int = 0,
        runtime: ContainerRuntime | None = None,
    ) -> None:
        self._cluster = cluster
        self._context = NodeContext(cluster, settings or KubeletSettings(), Random(seed), runtime)
        self._nodes = cluster.informer(NODE)
        self._pods = cluster.informer(POD)
        self._by_node = Index(self._pods, _node_names)
        self._addresses = Addresses()
        self._kubelets: dict[str, Kubelet] = {}
        self._heartbeats: dict[str, Heartbeat] = {}
        self._stopped: set[str] = set()
        self._made: set[str] = set()
        self._is_running = False
        self._nodes.listeners.append(self._follow_node)
        self._pods.listeners.append(self._follow_pod)

    # -- creating nodes

    async def create(self, template: NodeTemplate, count: int = 1) -> list[Manifest]:
        """Register `count` more nodes from a template, with unused names."""
        await self._see_nodes()
        names = (f"{template.name_prefix}-{index}" for index in itertools.count())
        free = (index for index, name in enumerate(names) if not self._knows(name))
        return await self._register_all(template, itertools.islice(free, count))

    async def ensure(self, template: NodeTemplate, count: int) -> list[Manifest]:
        """Register the missing ones of the first `count` nodes from a template; returns those."""
        await self._see_nodes()
        missing = [index for index in range(count) if not self._knows(f"{template.name_prefix}-{index}")]
        return await self._register_all(template, missing)

    async def _see_nodes(self) -> None:
        """Reserve the names and addresses of existing nodes."""
        await self._nodes.synced()
        for node in self._nodes.objects.values():
            self._addresses.taken(*_addresses_of(node))

    def _knows(self, name: str) -> bool:
        return name in self._made or self._nodes.get("", name) is not None

    async def _register_all(self, template: NodeTemplate, indexes: Iterable[int]) -> list[Manifest]:
        made: list[Manifest] = []
        for index in indexes:
            if len(made) % _BATCH == 0:
                await asyncio.sleep(0)
            made.append(await self._register(template, index))
        return made

    async def _register(self, template: NodeTemplate, index: int) -> Manifest:
        node = new_node(
            template,
            index,
            self._addresses.host(),
            self._addresses.network(),
            self._context.thresholds,
            self._context.settings.version,
            self._context.timestamp(self._cluster.clock.now()),
        )
        self._made.add(node["metadata"]["name"])
        return await self._cluster.client.create(NODE, "", node)

    # -- failing nodes

    def stop_heartbeats(self, name: str) -> None:
        """Disconnect a node: it keeps its pods but neither receives nor writes anything."""
        self._stopped.add(name)
        self._connect(name)

    def start_heartbeats(self, name: str) -> None:
        """Connect a node again, unless its annotation disconnects it."""
        self._stopped.discard(name)
        self._connect(name)

    def _connect(self, name: str) -> None:
        kubelet = self._kubelets.get(name)
        if kubelet is None:
            return
        is_stopped = name in self._stopped or annotations_of(kubelet.node).get(HEARTBEATS) == STOPPED
        if is_stopped and not kubelet.is_cut_off:
            kubelet.cut_off()
        elif not is_stopped and kubelet.is_cut_off:
            kubelet.reconnect(self._by_node.get(name))
            self._heartbeats[name].report_status()

    # -- queries

    def node_metrics(self) -> Manifest:
        """The usage of nodes: a NodeMetricsList."""
        return metrics.node_metrics(
            self._kubelets.values(), self._cluster.clock.now(), self._cluster.clock.utc_now()
        )

    def pod_metrics(self, namespace: str | None = None) -> Manifest:
        """The usage of pods, all or those of a namespace: a PodMetricsList."""
        return metrics.pod_metrics(
            self._kubelets.values(), namespace, self._cluster.clock.now(), self._cluster.clock.utc_now()
        )

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to write now."""
        return self._context.outbox.is_idle and self._context.heartbeats.is_idle

    # -- running

    async def run(self) -> None:
        """Run all nodes until cancelled; the cluster's informers must be running, too."""
        await self._nodes.synced()
        await self._pods.synced()
        self._is_running = True
        try:
            for node in list(self._nodes.objects.values()):
                self._follow_node("ADDED", node, None)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._context.outbox.run())
                tasks.create_task(self._context.heartbeats.run())
                tasks.create_task(self._monitor())
        finally:
            self._is_running = False
            for name in list(self._kubelets):
                self._remove(name)

    async def _monitor(self) -> None:
        while True:
            await sleep(self._cluster.clock, self._context.settings.monitor_seconds)
            now = self._cluster.clock.now()
            for name, kubelet in list(self._kubelets.items()):
                if needs_eviction_check(kubelet) and reclaim_resources(kubelet, now):
                    self._heartbeats[name].report_status()

    def _follow_node(self, type: EventType, node: Manifest, before: Manifest | None) -> None:
        name = node["metadata"]["name"]
        if not self._is_running:
            return
        kubelet = self._kubelets.get(name)
        if kubelet is not None and (
            type == "DELETED" or kubelet.node["metadata"]["uid"] != node["metadata"]["uid"]
        ):
            self._remove(name)
            kubelet = None
        if type == "DELETED":
            return
        if kubelet is None:
            self._add(node)
        else:
            kubelet.node = node
        self._connect(name)

    def _add(self, node: Manifest) -> None:
        name = node["metadata"]["name"]
        host, network = _addresses_of(node)
        self._addresses.taken(host, network)
        host, network = host or self._addresses.host(), network or self._addresses.network()
        kubelet = self._kubelets[name] = Kubelet(self._context, node, host, network)
        heartbeat = self._heartbeats[name] = Heartbeat(kubelet)
        if name in self._stopped or annotations_of(node).get(HEARTBEATS) == STOPPED:
            kubelet.cut_off()
        heartbeat.adopt()
        for pod in self._by_node.get(name):
            kubelet.sync_pod(pod)

    def _remove(self, name: str) -> None:
        self._made.discard(name)
        self._kubelets.pop(name).close()
        self._heartbeats.pop(name).close()

    def _follow_pod(self, type: EventType, pod: Manifest, before: Manifest | None) -> None:
        if not self._is_running:
            return
        if before is not None and before["metadata"]["uid"] != pod["metadata"]["uid"]:
            self._forget(before)
        if type == "DELETED":
            self._forget(pod)
            return
        kubelet = self._kubelets.get(pod["spec"].get("nodeName") or "")
        if kubelet is not None:
            kubelet.sync_pod(pod)

    def _forget(self, pod: Manifest) -> None:
        kubelet = self._kubelets.get(pod["spec"].get("nodeName") or "")
        if kubelet is not None:
            kubelet.forget(pod["metadata"]["uid"])


def _addresses_of(node: Manifest) -> tuple[str, str]:
    """A node's own address and its pods' network; empty where it has none."""
    listed = (node.get("status") or {}).get("addresses") or ()
    host = next((each["address"] for each in listed if each["type"] == "InternalIP"), "")
    return host, (node.get("spec") or {}).get("podCIDR") or ""


def _node_names(pod: Manifest) -> list[str]:
    name = pod["spec"].get("nodeName")
    return [name] if name else []
