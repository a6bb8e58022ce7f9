"""Measures the cost of the most expensive pods of one namespace to the scheduler, at 5,000 nodes.

    .venv/bin/python -m bench.worst.pods [PART_OF_A_NAME ...]

Each of `SHAPES` is created in a cluster that is a store in this process, with the production scheduler, all
default plugins, its queue and its failure handling beside it. Figures are CPU milliseconds of the one event
loop, the best of a few attempts, and kibibytes that are still held after everything the shape created was
deleted. Progress goes to standard error, a line for each shape; the table is printed at the end.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from random import Random
from time import process_time
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.worst.manifests import BACKGROUND_PODS, NODES, background_pod, node, pod
from bench.worst.pod_shapes import SHAPES, Objects, Shape
from moorage.api.base import Object
from moorage.api.decode import KINDS, convert
from moorage.api.manifests import Manifest, utc_now
from moorage.api.pod import Pod
from moorage.client import kinds
from moorage.client.kinds import POD, Kind
from moorage.clock import VirtualClock
from moorage.config.load import default_config
from moorage.plugins import default_registry
from moorage.scheduler.scheduler import Scheduler
from moorage.sim.object_store import ObjectStore
from moorage.sim.store_client import StoreClient, StoreInformer

REPEATS = 2
_KINDS = {each.name: each for each in vars(kinds).values() if isinstance(each, Kind)}


class Lab:
    """A cluster of many nodes with pods on them, and the scheduler."""

    def __init__(self) -> None:
        self._clock = VirtualClock(epoch=utc_now())
        self._store = ObjectStore(utc_now)
        client = StoreClient(self._store)
        self.scheduler = Scheduler(
            client,
            default_config(),
            default_registry(),
            self._clock,
            Random(1),
            "bench",
            new_informer=StoreInformer,
        )

    async def begin(self) -> asyncio.Task[None]:
        """Build the cluster; the scheduler runs as the task."""
        for index in range(NODES):
            self._create(_decoded(node(index)))
        self._fill()
        running = asyncio.create_task(self.scheduler.run())
        await self._settle()
        self._clock.advance(1.0)
        await self._settle()
        return running

    def _fill(self) -> None:
        """Restore the pods on nodes, of which some may have been evicted."""
        there = self._store.table(POD)
        for index in range(BACKGROUND_PODS):
            if ("default", f"background-{index}-worst") not in there:
                self._create(_decoded(background_pod(index)))

    def _create(self, obj: Object) -> Any:
        return self._store.create(_KINDS[obj.kind], obj.namespace, obj)

    async def _settle(self) -> float:
        """Run the event loop until pending work is done; returns its CPU milliseconds."""
        start = process_time()
        for _ in range(60):
            await asyncio.sleep(0)
        return (process_time() - start) * 1000

    async def measure(self, build: Callable[[str], Objects], prefix: str) -> tuple[float, float, float]:
        """Milliseconds of the first attempt, of another one, and of another user's pod meanwhile."""
        *others, last = map(_decoded, build(prefix))
        created = [self._create(each) for each in others]
        await self._settle()
        self._clock.advance(0.5)
        await self._settle()
        start = process_time()
        worst = self._create(last)
        first = (process_time() - start) * 1000 + await self._settle()
        self._clock.advance(0.5)
        again = await self._again(worst)
        beside = await self._other_pod(prefix)
        await self._delete([*created, worst])
        self._fill()
        await self._settle()
        return first, again, beside

    async def _again(self, worst: Pod) -> float:
        """Another attempt; for a pod that has its node, one with the same template."""
        if self.scheduler.queue.get(worst.uid) is None:
            return 0.0
        await self._settle()
        start = process_time()
        self.scheduler.queue.activate([worst])
        return (process_time() - start) * 1000 + await self._settle()

    async def _other_pod(self, prefix: str) -> float:
        other = pod(prefix, "bystander")
        other["metadata"]["namespace"] = "default"
        other["metadata"]["labels"] = {"app": f"bystander-{prefix}"}
        decoded = _decoded(other)
        start = process_time()
        made = self._create(decoded)
        spent = (process_time() - start) * 1000 + await self._settle()
        await self._delete([made])
        return spent

    async def _delete(self, objects: Iterable[Any]) -> None:
        for each in reversed(list(objects)):
            if not isinstance(each, KINDS["StorageClass"]):
                kind = _KINDS[each.kind]
                self._store.delete(kind, each.namespace if kind.namespaced else "", each.name)
        await self._settle()
        self._clock.advance(2.0)
        await self._settle()

    async def held(self, build: Callable[[str], Objects], prefix: str) -> float:
        """Growth of memory after a shape was created and deleted, in KiB."""
        gc.collect()
        tracemalloc.start()
        try:
            await self.measure(build, prefix)
            gc.collect()
            return tracemalloc.get_traced_memory()[0] / 1024
        finally:
            tracemalloc.stop()


def _decoded(manifest: Manifest) -> Object:
    return convert(manifest, KINDS[manifest["kind"]])


async def run(shapes: Sequence[Shape]) -> None:
    table = Table("shape", "first, ms", "again, ms", "another pod, ms", "kept, KiB")
    _report(f"Creating {NODES:,} nodes and {BACKGROUND_PODS:,} pods ...\n")
    lab = Lab()
    running = await lab.begin()
    for number, shape in enumerate(shapes):
        _report(f"[{number + 1}/{len(shapes)}] {shape.name} ... ")
        rounds = [await lab.measure(shape.build, f"s{number}r{n}") for n in range(REPEATS)]
        first, again, beside = (min(values) for values in zip(*rounds, strict=True))
        kept = await lab.held(shape.build, f"s{number}h")
        figures = f"{first:,.1f}", f"{again:,.1f}", f"{beside:,.1f}", f"{kept:,.0f}"
        _report(" ".join(figures) + "\n")
        table.add_row(shape.name, *figures)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    Console(width=130).print(table)


def _report(text: str) -> None:
    print(text, file=sys.stderr, end="", flush=True)


def main(parts: Sequence[str]) -> None:
    chosen = [shape for shape in SHAPES if not parts or any(part in shape.name for part in parts)]
    if not chosen:
        sys.exit(f"No shape has {' or '.join(map(repr, parts))} in its name.")
    asyncio.run(run(chosen))


if __name__ == "__main__":
    main(sys.argv[1:])
