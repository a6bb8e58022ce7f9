"""Measures how long the scheduler takes to sync with an existing cluster.

    python bench/startup.py [--nodes 5000] [--pods 50000]

The API server is in another process and is reached over HTTPS. The time includes everything from the first
request on: lists, decoding, the cache, the queue, and the columns of the first snapshot.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import time
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import uvloop

from moorage.cli.garbage_collection import collect_in_passing
from moorage.client.client import Client
from moorage.client.connect import connected
from moorage.client.credentials import find_access
from moorage.client.kinds import NODE, POD
from moorage.clock import LoopClock
from moorage.config.load import default_config
from moorage.plugins import default_registry
from moorage.scheduler.scheduler import Scheduler

CLIENTS = 8


def node(index: int) -> dict[str, Any]:
    room = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": f"node-{index}", "topology.kubernetes.io/zone": f"zone-{index % 3}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{index}", "labels": labels},
        "status": {"allocatable": room, "capacity": room},
    }


def pod(index: int, nodes: int) -> dict[str, Any]:
    resources = {"requests": {"cpu": "100m", "memory": "200Mi"}}
    container = {"name": "main", "image": f"registry.example/app-{index % 20}:1", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{index}", "labels": {"app": f"app-{index % 50}"}},
        "spec": {"nodeName": f"node-{index % nodes}", "containers": [container]},
    }


async def fill(client: Client, nodes: int, pods: int) -> None:
    async def some(first: int) -> None:
        for index in range(first, nodes, CLIENTS):
            await client.create(NODE, "", node(index))
        for index in range(first, pods, CLIENTS):
            await client.create(POD, "default", pod(index, nodes))

    await asyncio.gather(*(some(first) for first in range(CLIENTS)))


async def begin(client: Client, pods: int) -> None:
    config, registry, clock = default_config(), default_registry(), LoopClock()
    scheduler = Scheduler(client, config, registry, clock, Random(1), "bench")
    begun, cpu = time.perf_counter(), time.process_time()
    running = asyncio.create_task(scheduler.run())
    await asyncio.gather(*(informer.synced() for informer in scheduler.informers))
    snapshot = scheduler.cache.snapshot()
    took, used = time.perf_counter() - begun, time.process_time() - cpu
    assert len(snapshot.pods.infos) == pods
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    mebibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{len(snapshot)} nodes and {pods} pods are known after {took:.2f} s")
    print(f"{used:.2f} s of CPU, {mebibytes} MiB")


async def run(nodes: int, pods: int) -> None:
    with TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        words = ["-m", "moorage", "apiserver", "--port=0", f"--kubeconfig={kubeconfig}"]
        server = await asyncio.create_subprocess_exec(sys.executable, *words, stdout=asyncio.subprocess.PIPE)
        assert server.stdout is not None
        try:
            while b"API at" not in await server.stdout.readline():
                pass
            async with connected(find_access(kubeconfig)) as client:
                await fill(client, nodes, pods)
                await begin(client, pods)
        finally:
            server.terminate()
            await server.wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    options = parser.parse_args()
    collect_in_passing()
    uvloop.run(run(options.nodes, options.pods))


if __name__ == "__main__":
    main()
