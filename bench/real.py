"""Measures `moorage run` against the API server of a kubeconfig, such as a kube-apiserver with etcd.

    python -m bench.real --kubeconfig FILE [--nodes 5000] [--pods 10000] [--http-pipelining]
                         [--output FILE] [--profile FILE]

Nodes and pods are those of scheduler_perf's SchedulingBasic. Pods are created as fast as the server accepts
them while the scheduler binds them. CPU time is that of the scheduler's process (user and system) from the
first creation until it is idle again, so events are included; profiles of that time (`/debug/pprof/profile`)
divide it into parts. The scheduler emulates the server's version. Nodes and pods are deleted at the end. The
user of the kubeconfig must be an administrator; the cluster should have no other nodes and no other
scheduler.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
import uvloop
from rich.console import Console
from rich.table import Table

from moorage.bench.cluster_target import ClusterTarget, cluster_target
from moorage.bench.concurrency import at_once
from moorage.bench.pod_watch import SCHEDULED, PodSelection
from moorage.bench.process_usage import usage_of
from moorage.bench.served_target import scheduler_process
from moorage.client.client import Client
from moorage.client.connect import connected
from moorage.client.credentials import find_access
from moorage.client.server_version import server_version
from moorage.clock import LoopClock

NAMESPACE: Final = "default"
LABELS: Final = {"app": "moorage-bench-real"}
ZONES: Final = 3
PROFILE_SECONDS: Final = 1
IDLE_SECONDS: Final = 0.5
IDLE_CPU_SHARE: Final = 0.1
"""A scheduler that uses less of a core for half a second is idle: its events are written."""

EVENT_FILES: Final = ("services/event_", "scheduler/pod_events")
CACHE_FILES: Final = ("cluster/", "scheduler/event_handlers", "scheduler/measured_events")
PARTS: Final = {
    "decode": "watches: from bytes to objects",
    "cache": "changes of objects in the cache, and the snapshot",
    "queue": "the scheduling queue",
    "cycle": "scheduling cycles",
    "bind": "binding cycles and their requests",
    "events": "events and their requests",
    "http": "sending requests, reading responses and watches",
    "loop": "event loop, system calls, everything else",
}


class Figures(msgspec.Struct):
    """One run."""

    nodes: int
    pods: int
    pods_per_second: float
    cpu_ms_per_pod: float
    cpu_ms_per_pod_by_part: dict[str, float]
    peak_bytes: int


def make_node(index: int) -> dict[str, Any]:
    name, amounts = f"moorage-bench-{index}", {"cpu": "4", "memory": "32Gi", "pods": "110"}
    zone = f"zone-{index % ZONES}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone},
        },
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def make_pod() -> dict[str, Any]:
    amounts = {"cpu": "100m", "memory": "500Mi"}
    container = {
        "name": "pause",
        "image": "registry.k8s.io/pause:3.10.1",
        "ports": [{"containerPort": 80}],
        "resources": {"requests": amounts, "limits": amounts},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "pod-", "labels": LABELS},
        "spec": {"containers": [container]},
    }


def part_of(stack: str) -> str:
    """The part of the work that a stack of a profile belongs to."""
    frames = [frame.partition("moorage/")[2] for frame in stack.split(";")]

    def has(*beginnings: str) -> bool:
        return any(frame.startswith(beginnings) for frame in frames)

    if has(*EVENT_FILES):
        return "events"
    if has("scheduler/schedule_one.py:ScheduleOne._bind"):
        return "bind"
    if has("queue/"):
        return "queue"
    if has(*CACHE_FILES):
        return "cache"
    if has("client/informer"):
        return "decode"
    if has("scheduler/scheduler.py:Scheduler._loop"):
        return "cycle"
    return "http" if has("http/") else "loop"


def shares(profile: str) -> dict[str, float]:
    """The share of each part in the samples of profiles."""
    samples: Counter[str] = Counter()
    for line in profile.splitlines():
        stack, _, count = line.rpartition(" ")
        samples[part_of(stack)] += int(count)
    return {part: samples[part] / (samples.total() or 1) for part in PARTS}


@asynccontextmanager
async def profiled(scheduler: Client) -> AsyncIterator[list[str]]:
    """Profiles of a scheduler, one after the other; complete at the end of the context."""
    profiles: list[str] = []
    is_over = False

    async def record() -> None:
        while not is_over:
            stream = await scheduler.stream("/debug/pprof/profile", {"seconds": PROFILE_SECONDS})
            profiles.append(b"".join([piece async for piece in stream]).decode())

    recording = asyncio.create_task(record())
    yield profiles
    is_over = True
    await recording


async def create(target: ClusterTarget, manifests: Sequence[dict[str, Any]], namespace: str = "") -> None:
    prepared = [each for each in [await target.prepared(one) for one in manifests] if each is not None]
    await at_once(target.create(each, namespace) for each in prepared)


def cpu_seconds(pid: int) -> float:
    used = usage_of(pid).cpu_seconds
    assert used is not None, "this system does not say how much CPU time another process has used"
    return used


async def until_idle(pid: int) -> None:
    before, used = -1.0, cpu_seconds(pid)
    while before < 0 or used - before > IDLE_SECONDS * IDLE_CPU_SHARE:
        await asyncio.sleep(IDLE_SECONDS)
        before, used = used, cpu_seconds(pid)


async def bind_pods(
    target: ClusterTarget, scheduler: Client, pid: int, nodes: int, pods: int
) -> tuple[Figures, str]:
    """Create pods, and measure the scheduler until it is idle; returns its profile, too."""
    await until_idle(pid)
    cpu_before = cpu_seconds(pid)
    async with profiled(scheduler) as profiles:
        begun = time.perf_counter()
        await create(target, [make_pod()] * pods, NAMESPACE)
        await target.pods.until(PodSelection((NAMESPACE,), LABELS), pods, SCHEDULED)
        took_seconds = time.perf_counter() - begun
        await until_idle(pid)
    cpu_ms = 1000 * (cpu_seconds(pid) - cpu_before) / pods
    profile = "".join(profiles)
    by_part = {part: share * cpu_ms for part, share in shares(profile).items()}
    peak_bytes = usage_of(pid).peak_bytes or 0
    return Figures(nodes, pods, pods / took_seconds, cpu_ms, by_part, peak_bytes), profile


async def measure(kubeconfig: Path, nodes: int, pods: int, flags: Sequence[str] = ()) -> tuple[Figures, str]:
    """Create nodes, start a scheduler, and measure while it binds pods; returns its profile, too."""
    clock = LoopClock()
    access = find_access(kubeconfig, clock=clock)
    with TemporaryDirectory(prefix="moorage-bench-") as place:
        async with connected(access, clock=clock) as client, cluster_target(client, clock) as target:
            await create(target, [make_node(index) for index in range(nodes)])
            version = await server_version(client)
            async with scheduler_process(Path(place), kubeconfig, None, access, clock, version, flags) as (
                pid,
                scheduler,
            ):
                return await bind_pods(target, scheduler, pid, nodes, pods)


def table(figures: Figures) -> Table:
    rows = Table("part", "CPU a pod, ms", "what")
    for part, ms in figures.cpu_ms_per_pod_by_part.items():
        rows.add_row(part, f"{ms:.3f}", PARTS[part])
    rows.add_section()
    peak = f"{figures.nodes} nodes, {figures.pods} pods, {figures.pods_per_second:.0f} pods/s"
    rows.add_row("all", f"{figures.cpu_ms_per_pod:.3f}", f"{peak}, peak {figures.peak_bytes / 1e6:.0f} MB")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU a pod of the scheduler against any API server.")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--http-pipelining", action="store_true", help="as the flag of moorage run")
    parser.add_argument("--output", type=Path, help="write the figures as JSON to this file, too")
    parser.add_argument("--profile", type=Path, help="write the profiles to this file, for a flame graph")
    options = parser.parse_args()
    flags = ("--http-pipelining",) if options.http_pipelining else ()
    figures, profile = uvloop.run(measure(options.kubeconfig, options.nodes, options.pods, flags))
    Console().print(table(figures))
    if options.output is not None:
        options.output.write_bytes(msgspec.json.format(msgspec.json.encode(figures)))
    if options.profile is not None:
        options.profile.write_text(profile, encoding="utf-8")


if __name__ == "__main__":
    main()
