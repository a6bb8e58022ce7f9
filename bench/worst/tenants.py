"""Measures what users of 20 namespaces who do their worst cost one that behaves.

    .venv/bin/python -m bench.worst.tenants [--minutes 10] [--nodes 5000] [--tenants 20] [--each 50]

The production scheduler with its queue runs over a store in this process. Its event loop's time is the CPU
time of this process, and passes at once when there is nothing to do: other work on the machine does not
count. One user creates a plain pod twice a second, and deletes it when it is bound. Each tenant creates a pod
a second and keeps the last --each of them, as a quota allows: all shapes of `bench.worst.pod_shapes` but
those with thousands of objects, and pods with all claims of `bench.worst.claims`; each node has eight devices
with a uuid. Every ten seconds one tenant creates --each pods at once. Latencies of the
behaving user's pods, from creation to binding, are measured alone, beside the tenants, and beside them with
the optional plugin FairShare. A pod that is not bound at the end counts with the time that it has waited.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from random import Random
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from bench.worst.claims import CLAIMS, CLAIMS_ON_UNIQUE_DEVICES, device_class, slices
from bench.worst.manifests import node, pod
from bench.worst.pod_shapes import SHAPES, Shape
from moorage.api.base import Object
from moorage.api.decode import KINDS, convert
from moorage.api.manifests import Manifest, utc_now
from moorage.cli.garbage_collection import collect_in_passing
from moorage.client.kinds import KINDS_BY_NAME, POD
from moorage.clock import LoopClock
from moorage.config.load import default_config, parse_config
from moorage.config.types import SchedulerConfiguration
from moorage.http.errors import RequestError
from moorage.plugins import default_registry
from moorage.scheduler.scheduler import Scheduler
from moorage.services.event_broadcaster import SilentBroadcaster
from moorage.sim.object_store import ObjectStore
from moorage.sim.store_client import StoreClient, StoreInformer
from moorage.simulation.virtual_loop import VirtualLoop
from moorage_cluster.soak.logged_warnings import counted_warnings

BEHAVING: Final = "behaving"
PODS_PER_SECOND: Final = 2.0
BURST_SECONDS: Final = 10
LEFT_OUT: Final = ("0,000", "beside")
"""Parts of the names of shapes that are far beyond the limits, or consist of thousands of objects."""
FAIR_SHARE: Final[Manifest] = {
    "queueSort": {"enabled": [{"name": "FairShare"}], "disabled": [{"name": "PrioritySort"}]}
}


class CpuLoop(VirtualLoop):
    """An event loop whose time is the CPU time of the process, and passes when there is nothing to do."""

    def time(self) -> float:
        return super().time() + time.process_time()


@dataclass(slots=True)
class Figures:
    """What the behaving user has seen."""

    name: str
    created: int = 0
    bound: int = 0
    latencies: list[float] = field(default_factory=list)
    tenants_created: int = 0
    busy_share: float = 0.0

    def latency(self, share: float) -> float:
        found = sorted(self.latencies)
        return found[min(int(len(found) * share), len(found) - 1)] if found else 0.0


class World:
    """A cluster, its scheduler and its users."""

    def __init__(self, options: argparse.Namespace, figures: Figures, *, is_fair: bool) -> None:
        self._options, self._figures = options, figures
        self._store = ObjectStore(utc_now)
        self._store.watch(POD, [self._pod_changed])
        self._waiting: dict[str, float] = {}
        self._bound: list[tuple[str, str]] = []
        self._scheduler = Scheduler(
            StoreClient(self._store),
            _configuration(is_fair=is_fair),
            default_registry(),
            LoopClock(),
            Random(1),
            "bench",
            new_informer=StoreInformer,
            new_broadcaster=SilentBroadcaster,
        )

    def _pod_changed(self, event: str, new: Any, before: Any) -> None:
        if new.namespace == BEHAVING and new.spec.node_name and new.uid in self._waiting:
            self._figures.latencies.append(_now() - self._waiting.pop(new.uid))
            self._bound.append((new.namespace, new.name))

    def _create(self, manifest: Manifest) -> Any:
        kind = KINDS_BY_NAME[manifest["kind"]]
        obj: Object = convert(manifest, KINDS[manifest["kind"]])
        return self._store.create(kind, obj.namespace if kind.namespaced else "", obj)

    def _delete(self, kind: str, namespace: str, name: str) -> None:
        try:
            self._store.delete(KINDS_BY_NAME[kind], namespace, name)
        except RequestError:
            return  # A victim of preemption.

    async def run(self, *, has_tenants: bool) -> None:
        self._create(device_class())
        for index in range(self._options.nodes):
            made = self._create(node(index))
            self._create(slices(made.name, unique=True))
        running = asyncio.create_task(self._scheduler.run())
        await asyncio.sleep(1.0)
        begun, busy = _now(), time.process_time()
        users = [self._behave()]
        if has_tenants:
            users += [self._tenant(number) for number in range(self._options.tenants)]
        tasks = [asyncio.create_task(each) for each in users]
        await asyncio.sleep(self._options.minutes * 60)
        self._figures.busy_share = (time.process_time() - busy) / (_now() - begun)
        now = _now()
        self._figures.bound = len(self._figures.latencies)
        self._figures.latencies += [now - each for each in self._waiting.values()]
        for task in (*tasks, running):
            task.cancel()
        await asyncio.gather(*tasks, running, return_exceptions=True)

    async def _behave(self) -> None:
        for number in range(sys.maxsize):
            manifest = pod("plain", f"{number}", cpu="10m", labels={"app": "plain"})
            manifest["metadata"]["namespace"] = BEHAVING
            created_at = _now()
            created = self._create(manifest)
            self._figures.created += 1
            self._waiting[created.uid] = created_at
            await asyncio.sleep(1 / PODS_PER_SECOND)
            for namespace, name in self._bound:
                self._delete("Pod", namespace, name)
            self._bound.clear()

    async def _tenant(self, number: int) -> None:
        shapes = cycle(_shapes(number))
        kept: deque[list[tuple[str, str, str]]] = deque()
        await asyncio.sleep(number / self._options.tenants)
        for second in range(sys.maxsize):
            is_burst = (
                second % BURST_SECONDS == 0 and second // BURST_SECONDS % self._options.tenants == number
            )
            for one in range(self._options.each if is_burst else 1):
                kept.append(self._create_shape(next(shapes), f"t{number}s{second}n{one}", f"tenant-{number}"))
            while len(kept) > self._options.each:
                for each in reversed(kept.popleft()):
                    self._delete(*each)
            await asyncio.sleep(1.0)

    def _create_shape(self, shape: Shape, prefix: str, namespace: str) -> list[tuple[str, str, str]]:
        self._figures.tenants_created += 1
        created = []
        for manifest in shape.build(prefix):
            manifest["metadata"]["namespace"] = namespace
            try:
                made = self._create(manifest)
            except RequestError:
                continue  # Classes and the like are there already.
            created.append((manifest["kind"], made.namespace, made.name))
        return created


def _now() -> float:
    return asyncio.get_running_loop().time()


def _configuration(*, is_fair: bool) -> SchedulerConfiguration:
    if not is_fair:
        return default_config()
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "plugins": FAIR_SHARE}],
    }
    return parse_config(config, "bench")


def _claiming(devices: Manifest) -> Callable[[str], list[Manifest]]:
    def build(prefix: str) -> list[Manifest]:
        claim = {"kind": "ResourceClaim", "metadata": {"name": prefix}, "spec": {"devices": devices}}
        return [claim, pod(prefix, resourceClaims=[{"name": "devices", "resourceClaimName": prefix}])]

    return build


def _shapes(number: int) -> Iterator[Shape]:
    """The shapes; each tenant begins with another one."""
    chosen = [each for each in SHAPES if not any(part in each.name for part in LEFT_OUT)]
    claims = (*CLAIMS.items(), *CLAIMS_ON_UNIQUE_DEVICES.items())
    chosen += [Shape(name, _claiming(devices)) for name, devices in claims]
    return (chosen[(at + number) % len(chosen)] for at in range(len(chosen)))


def measure(options: argparse.Namespace) -> Iterator[Figures]:
    for name, has_tenants, is_fair in (
        ("alone", False, False),
        ("beside the tenants", True, False),
        ("beside the tenants, FairShare", True, True),
    ):
        print(name, file=sys.stderr, flush=True)
        figures = Figures(name)
        with asyncio.Runner(loop_factory=CpuLoop) as runner, counted_warnings():
            runner.run(World(options, figures, is_fair=is_fair).run(has_tenants=has_tenants))
        yield figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--tenants", type=int, default=20)
    parser.add_argument("--each", type=int, default=50, help="how many pods each tenant has at a time")
    collect_in_passing()  # as `moorage run` does
    table = Table("load", "pods", "bound", "p50 s", "p90 s", "p99 s", "longest s", "tenants' pods", "busy")
    for each in measure(parser.parse_args()):
        latencies = (f"{each.latency(share):.3f}" for share in (0.5, 0.9, 0.99, 1.0))
        busy = f"{each.busy_share:.0%}"
        table.add_row(
            each.name, f"{each.created}", f"{each.bound}", *latencies, f"{each.tenants_created}", busy
        )
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
