"""Measures simulated nodes: starts pods on them, then measures the cost of heartbeats and monitoring.

    python bench/nodes.py [--nodes 1000] [--pods 10000] [--seconds 60]

Server, informers and kubelets share one process, as in `moorage up`; the time is the machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import time
from random import Random

import uvloop

from moorage.client.client import Client
from moorage.client.kinds import POD
from moorage.clock import LoopClock
from moorage_cluster.apiserver.embedded import EmbeddedServer
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.manager import ControllerManager
from moorage_cluster.nodes.settings import KubeletSettings, NodeTemplate
from moorage_cluster.nodes.simulation import SimulatedNodes


def pod(index: int, nodes: int) -> dict[str, object]:
    resources = {"requests": {"cpu": "100m", "memory": "200Mi"}}
    container = {"name": "main", "image": f"registry.example/app-{index % 20}:1", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{index}", "labels": {"app": f"app-{index % 50}"}},
        "spec": {"nodeName": f"node-{index % nodes}", "containers": [container]},
    }


async def run(nodes: int, pods: int, seconds: float, events: bool) -> None:
    server = EmbeddedServer()
    server.start()
    client = Client(server.api, server.token)
    cluster = Cluster(client, LoopClock(), Random(1))
    simulated = SimulatedNodes(cluster, KubeletSettings(normal_events=events), seed=1)
    running = [
        asyncio.create_task(ControllerManager(cluster, []).run()),
        asyncio.create_task(simulated.run()),
    ]
    informer = cluster.informer(POD)
    await informer.synced()

    begun = time.perf_counter()
    await simulated.create(NodeTemplate(), nodes)
    print(f"{nodes} nodes registered in {time.perf_counter() - begun:.1f} s")

    begun, cpu = time.perf_counter(), time.process_time()
    for index in range(pods):
        await client.create(POD, "default", pod(index, nodes))
        if index % 20 == 0:
            await asyncio.sleep(0)
    await informer.until(lambda: len(informer.objects) == pods)

    ready: set[str] = set()

    def all_run() -> bool:
        return len(ready) == pods

    for each in informer.objects.values():
        if each["status"]["phase"] == "Running":
            ready.add(each["metadata"]["name"])

    def watch(type: str, obj: dict[str, object], before: object) -> None:
        if obj["status"]["phase"] == "Running":  # type: ignore[index]
            ready.add(obj["metadata"]["name"])  # type: ignore[index]

    informer.listeners.append(watch)
    await informer.until(all_run)
    took, used = time.perf_counter() - begun, time.process_time() - cpu
    print(f"{pods} pods created and Running in {took:.1f} s ({used:.1f} s of CPU)")

    await asyncio.sleep(25)  # Images are listed and leases exist: from here on the cluster is idle.
    begun, cpu = time.perf_counter(), time.process_time()
    revision = server.store.revision
    await asyncio.sleep(seconds)
    took, used = time.perf_counter() - begun, time.process_time() - cpu
    writes = server.store.revision - revision
    print(f"at rest: {writes / took:.0f} writes/s, {100 * used / took:.1f}% of one core")

    begun = time.perf_counter()
    listed = simulated.pod_metrics()
    print(f"metrics of {len(listed['items'])} pods in {1000 * (time.perf_counter() - begun):.0f} ms")
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--events", action="store_true", help="also record the usual events of pods")
    arguments = parser.parse_args()
    uvloop.run(run(arguments.nodes, arguments.pods, arguments.seconds, arguments.events))


if __name__ == "__main__":
    main()
