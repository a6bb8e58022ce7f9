"""Measures whether a cluster's memory stays level while pods are created and deleted.

    python -m bench.churn [--minutes 10] [--pods 30000] [--live 1500] [--nodes 100] [--output churn]

`moorage up` runs in its own process and is driven over HTTPS: bare pods and Deployments, each with labels
of its own, some with topology spread, affinity and anti-affinity, are created at an even rate, and the oldest
are deleted. Its resident memory is read every second, written to OUTPUT.csv and drawn in OUTPUT.svg. It is
level if it does not grow with the number of pods that were created.

Events expire an hour after they were written, as in Kubernetes, so in a short run they accumulate, six for
each pod. They are deleted every `--event-seconds` instead; 0 keeps them for the hour.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import sys
import time
from collections import deque
from contextlib import suppress
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from random import Random

import numpy as np
import uvloop
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.client.kinds import CORE_EVENT, DEPLOYMENT, POD, Kind
from moorage.simulation.line_chart import line_chart
from moorage_cluster.soak.clusters import Measured, cluster_process

NAMESPACE = "default"
WARM_UP_SHARE = 0.3
"""Share of the run, at its beginning, that is not measured because caches fill."""
LEVEL_MIB_PER_10_000_PODS = 5.0
"""Maximum slope of level memory: 500 bytes for each pod."""
SAMPLE_SECONDS, STEP_SECONDS = 1.0, 0.2
DEPLOYMENT_SHARE, MAX_REPLICAS = 0.05, 10


@dataclass(frozen=True, slots=True)
class Sample:
    """A measurement at one moment."""

    seconds: float
    pods_created: int
    resident_mib: float


class Churn:
    """Creates workloads at an even rate, and deletes the oldest while there are more than `live` pods."""

    def __init__(self, client: Client, live: int, event_seconds: float, random: Random) -> None:
        self._client, self._live, self._random = client, live, random
        self._event_seconds, self._events_deleted_at = event_seconds, 0.0
        self._workloads: deque[tuple[Kind, str, int]] = deque()
        self._pods = 0
        self.created = 0

    async def advance(self, until: int) -> None:
        """Create workloads until they have `until` pods in all, deleted ones included."""
        while self.created < until:
            await self._create()
            while self._pods > self._live:
                await self._delete()

    async def expire_events(self, seconds: float) -> None:
        """Delete all events if `event_seconds` have passed since the last time."""
        if self._event_seconds and seconds - self._events_deleted_at >= self._event_seconds:
            self._events_deleted_at = seconds
            await self._client.exchange("DELETE", CORE_EVENT.path(NAMESPACE))

    async def _create(self) -> None:
        number = self.created
        if self._random.random() < DEPLOYMENT_SHARE:
            replicas = self._random.randint(2, MAX_REPLICAS)
            kind, obj = DEPLOYMENT, deployment(number, replicas, self._random)
        else:
            replicas, kind, obj = 1, POD, pod(number, self._random)
        await self._client.create(kind, NAMESPACE, obj)
        self._workloads.append((kind, obj["metadata"]["name"], replicas))
        self._pods += replicas
        self.created += replicas

    async def _delete(self) -> None:
        kind, name, replicas = self._workloads.popleft()
        await self._client.delete(kind, NAMESPACE, name)
        self._pods -= replicas


def pod(number: int, random: Random) -> Manifest:
    """A bare pod."""
    template = pod_template(number, random)
    template["metadata"]["name"] = f"bare-{number}"
    return {"apiVersion": "v1", "kind": "Pod", **template}


def deployment(number: int, replicas: int, random: Random) -> Manifest:
    """A Deployment; its pods are deleted with it."""
    template = pod_template(number, random)
    selector = {"matchLabels": {"workload": template["metadata"]["labels"]["workload"]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"deployment-{number}"},
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    }


def pod_template(number: int, random: Random) -> Manifest:
    """Pods of which no two are alike: labels of their own, and one of several ways to choose a node."""
    labels = {"app": f"app-{number % 40}", "workload": f"w-{number}", "build": f"{random.getrandbits(48):x}"}
    requests = {"cpu": f"{random.choice((10, 20, 50, 100))}m", "memory": f"{random.randint(16, 128)}Mi"}
    container = {
        "name": "main",
        "image": f"registry.example/app-{number % 40}:{number % 7}",
        "env": [{"name": "BUILD", "value": labels["build"]}],
        "resources": {"requests": requests},
    }
    spec: Manifest = {"containers": [container], "terminationGracePeriodSeconds": 1}
    return {"metadata": {"labels": labels}, "spec": {**spec, **_placement(labels["app"], random)}}


def _placement(app: str, random: Random) -> Manifest:
    selector = {"labelSelector": {"matchLabels": {"app": app}}}
    zone, host = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
    near = {"weight": 10, "podAffinityTerm": {**selector, "topologyKey": zone}}
    apart = {"weight": 10, "podAffinityTerm": {**selector, "topologyKey": host}}
    soft = "preferredDuringSchedulingIgnoredDuringExecution"
    return random.choice(
        (
            {},
            {},
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 5, "topologyKey": zone, "whenUnsatisfiable": "DoNotSchedule", **selector}
                ]
            },
            {"affinity": {"podAffinity": {soft: [near]}}},
            {"affinity": {"podAntiAffinity": {soft: [apart]}}},
        )
    )


def slope_mib(samples: list[Sample]) -> float:
    """Growth of memory for every 10,000 pods after the warm-up, in MiB."""
    counted = samples[int(len(samples) * WARM_UP_SHARE) :]
    pods, memory = [each.pods_created for each in counted], [each.resident_mib for each in counted]
    return float(np.polyfit(pods, memory, 1)[0]) * 10_000


async def run(options: argparse.Namespace, samples: list[Sample]) -> None:
    """Drive a cluster, and record a sample each second."""
    seconds = options.minutes * 60
    async with cluster_process(options.nodes) as cluster:
        churn = Churn(cluster.client, options.live, options.event_seconds, Random(1))
        begun = time.monotonic()
        sampling = asyncio.create_task(sample(cluster, churn, options.pods, begun, samples))
        while churn.created < options.pods:
            passed = time.monotonic() - begun
            await churn.advance(min(options.pods, 1 + int(passed / seconds * options.pods)))
            await churn.expire_events(passed)
            await asyncio.sleep(STEP_SECONDS)
        sampling.cancel()


async def sample(cluster: Measured, churn: Churn, pods: int, begun: float, samples: list[Sample]) -> None:
    """Record a sample each second, and print it."""
    columns = (BarColumn(), TextColumn("{task.completed:.0f} pods, {task.fields[mib]:.0f} MiB"))
    with Progress(*columns, TimeRemainingColumn()) as progress:
        bar = progress.add_task("", total=pods, mib=0.0)
        while True:
            mib = cluster.usage().resident_mib
            samples.append(Sample(round(time.monotonic() - begun, 1), churn.created, round(mib, 1)))
            progress.update(bar, completed=churn.created, mib=mib)
            await asyncio.sleep(SAMPLE_SECONDS)


def write(samples: list[Sample], output: Path) -> None:
    """Write the samples as CSV and as a chart."""
    with output.with_suffix(".csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([field.name for field in fields(Sample)])
        table.writerows(map(astuple, samples))
    points = [(each.pods_created, each.resident_mib) for each in samples]
    output.with_suffix(".svg").write_text(line_chart({"": points}, "pods created", "resident memory (MiB)"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--pods", type=int, default=30_000, help="how many are created in all")
    parser.add_argument("--live", type=int, default=1500, help="how many are there at a time")
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--output", type=Path, default=Path("churn"))
    parser.add_argument("--event-seconds", type=float, default=60.0, help="how long events stay; 0: an hour")
    chosen = parser.parse_args()
    samples: list[Sample] = []
    with suppress(KeyboardInterrupt):  # Samples until then are kept.
        uvloop.run(run(chosen, samples))
    write(samples, chosen.output)
    slope, last = slope_mib(samples), samples[-1]
    is_level = slope <= LEVEL_MIB_PER_10_000_PODS
    print(
        f"{last.pods_created} pods in {last.seconds / 60:.1f} minutes; {last.resident_mib:.0f} MiB at the end"
    )
    print(f"{slope:+.1f} MiB for every 10,000 pods: {'level' if is_level else 'NOT level'}")
    return 0 if is_level else 1


if __name__ == "__main__":
    sys.exit(main())
