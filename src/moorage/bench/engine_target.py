"""The production scheduler over a store in the same process: measures the cost of scheduling only."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from moorage.api.base import Object, Struct
from moorage.api.decode import kind_of
from moorage.api.devices import ResourceClaimSpec
from moorage.api.manifests import Manifest, utc_now
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.bench.base_objects import declared_features
from moorage.bench.claim_controller import ClaimController
from moorage.bench.concurrency import MAX_CONCURRENCY
from moorage.bench.pod_watch import PodWatch
from moorage.bench.process_usage import ProcessUsage, forget_peak, own_usage
from moorage.bench.target import PreparedObject, WorkloadFailed
from moorage.client.client import Client
from moorage.client.declared_kinds import kind_of_object
from moorage.client.kinds import POD, Kind
from moorage.clock import Clock, LoopClock
from moorage.config.load import default_config
from moorage.config.types import SchedulerConfiguration
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from moorage.framework.loading.plugin_discovery import find_plugins
from moorage.framework.loading.registry import Registry
from moorage.plugins import default_registry
from moorage.plugins.node_declared_features import NodeDeclaredFeatures
from moorage.queue.queued_pod import QueuedPod
from moorage.scheduler.attempt_history import AttemptHistory
from moorage.scheduler.informers import decoder
from moorage.scheduler.observers import MetricsObserver, Observers
from moorage.scheduler.pod_decoder import PodDecoder
from moorage.scheduler.scheduler import Scheduler
from moorage.services.metrics import Metrics
from moorage.sim.object_store import ObjectStore
from moorage.sim.store_client import StoreClient, StoreInformer


class ClaimTemplateSpec(Struct):
    """What claims from a template have."""

    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Object):
    """A template of claims."""

    spec: ClaimTemplateSpec = ClaimTemplateSpec()


_FOR_CONTROLLER: Final[Mapping[str, type[Object]]] = {ResourceClaimTemplate.__name__: ResourceClaimTemplate}
"""What is stored beside the kinds that scheduling and plugins read: what the controller of claims reads."""
_SEED: Final = 1
"""Seed of the scheduler's random numbers, so that ties are broken in the same way in every run."""
_decoder = cache(decoder)
"""The decoder of a type of objects, as the scheduler's informers have it; not that of pods."""


class _Stopwatch(MetricsObserver):
    """Metrics as in production, and each attempt's exact time: buckets begin at a millisecond."""

    def __init__(self, metrics: Metrics) -> None:
        super().__init__(metrics)
        self.attempts: dict[str, list[float]] = defaultdict(list)

    def ended(self, result: str, queued: QueuedPod) -> float:
        """An attempt ended."""
        seconds = super().ended(result, queued)
        self.attempts[result].append(seconds)
        return seconds


class EngineTarget:
    """A cluster that is a store, and the scheduler in the same event loop."""

    def __init__(
        self,
        config: SchedulerConfiguration | None,
        clock: Clock,
        features: int,
        version: KubernetesVersion = DEFAULT_VERSION,
        plugins: Iterable[Path] = (),
    ) -> None:
        self.notes: list[str] = []
        self.concurrency = 1  # The store answers at once, and a turn of a task costs more than a write.
        self._writes = 0
        self._store = ObjectStore(utc_now)
        self._metrics = Metrics(Random(_SEED), version=version)
        self._stopwatch = _Stopwatch(self._metrics)
        self.client: Client = StoreClient(self._store)
        found = find_plugins(config or default_config(version), _registry(features), plugins)
        self.scheduler = Scheduler(
            self.client,
            found.config,
            found.registry,
            clock,
            Random(_SEED),
            "bench",
            observer=Observers(self._stopwatch, AttemptHistory(clock)),
            new_informer=StoreInformer,
            version=version,
        )
        self._pods: StoreInformer[Any] = StoreInformer(self.client, POD, clock, decode=_not_decoded)
        self.pods = PodWatch(self._pods)
        self._claims = ClaimController(self.client, self._pods)
        self._pod_decoder = PodDecoder()

    async def begin(self, tasks: set[asyncio.Task[None]]) -> None:
        """Follow the cluster and schedule, as tasks that are added here."""
        scheduling = asyncio.create_task(self.scheduler.run())
        scheduling.add_done_callback(self._scheduler_ended)
        tasks |= {scheduling, *map(asyncio.create_task, (self._pods.run(), self._claims.run()))}
        for informer in self.scheduler.informers:
            await informer.synced()
        await self._pods.synced()

    def _scheduler_ended(self, scheduling: asyncio.Task[None]) -> None:
        if not scheduling.cancelled() and scheduling.exception() is not None:
            self.pods.give_up(WorkloadFailed(f"the scheduler failed: {scheduling.exception()!r}"))

    # -- objects

    async def prepared(self, manifest: Manifest) -> PreparedObject | None:
        """An object, decoded; None for a kind that scheduling does not read."""
        name = str(manifest.get("kind"))
        stored = kind_of(manifest) or _FOR_CONTROLLER.get(name)
        if stored is None:
            note = f"{name} objects are left out: scheduling does not read them"
            if note not in self.notes:
                self.notes.append(note)
            return None
        obj = self._decoded(stored, msgspec.json.encode(manifest))
        kind = kind_of_object(obj)
        assert kind is not None, obj
        return PreparedObject(kind, obj)

    def _decoded(self, type: type[Object], raw: bytes) -> Object:
        """An object, decoded as by the scheduler's informers: pods with equal specs share one."""
        if type is not Pod:
            return _decoder(type)(raw)
        return self._pod_decoder.decode(self._pod_decoder.head(raw), raw)

    async def create(self, prepared: PreparedObject, namespace: str) -> str:
        """Create an object."""
        name = self._store.create(prepared.kind, namespace, prepared.body).name
        if self._is_turn_over():
            await asyncio.sleep(0)
        return name

    async def update(self, manifest: Manifest, namespace: str, subresources: Sequence[str]) -> None:
        """Replace an object's fields that users may replace; its status too, if the new one has any."""
        prepared = await self.prepared(manifest)
        if prepared is None:
            return
        kind, wanted = prepared
        known = self._store.get(kind, namespace if kind.namespaced else "", wanted.name)
        self._store.update(kind, _changed(known, wanted, "resize" in subresources))
        await asyncio.sleep(0)

    async def delete(self, kind: Kind, namespace: str, name: str, grace_seconds: int | None = None) -> None:
        """Delete an object."""
        place = namespace if kind.namespaced else ""
        self._store.delete(kind, place, name, grace_seconds=grace_seconds)
        if self._is_turn_over():
            await asyncio.sleep(0)

    def _is_turn_over(self) -> bool:
        """Whether as many objects were written as concurrent clients write in one turn of the event loop."""
        self._writes += 1
        return self._writes % MAX_CONCURRENCY == 0

    # -- figures

    async def metrics(self) -> str:
        """The scheduler's metrics."""
        return self._metrics.text().decode()

    def attempts(self) -> Mapping[str, Sequence[float]]:
        """The duration of every attempt so far, in seconds."""
        return self._stopwatch.attempts

    def usage(self) -> Mapping[str, ProcessUsage]:
        """This process's usage: scheduler, store and generator share it."""
        return {"scheduler": own_usage()}


def _changed(known: Object, wanted: Object, resizes: bool) -> Object:
    """An updated object, with the fields that the server does not let clients change."""
    if isinstance(known, Pod) and isinstance(wanted, Pod):
        if resizes:
            return replace(known, spec=replace(known.spec, containers=wanted.spec.containers))
        wanted = replace(
            wanted, spec=replace(wanted.spec, node_name=known.spec.node_name), status=known.status
        )
    elif isinstance(wanted, Node):
        status = wanted.status
        wanted = replace(wanted, status=replace(status, allocatable=status.allocatable or status.capacity))
    meta = wanted.metadata
    kept = replace(known.metadata, labels=meta.labels, annotations=meta.annotations)
    return replace(wanted, metadata=replace(kept, generation=kept.generation + 1))


def _registry(features: int) -> Registry:
    """The default plugins, where pods with pod-level resources require features that nodes declare."""
    if not features:
        return default_registry()
    names = frozenset(declared_features(features))

    def required(pod: Pod) -> frozenset[str]:
        return frozenset() if pod.spec.resources is None else names

    plugin = NodeDeclaredFeatures
    return default_registry().replacing(plugin.name, lambda: plugin(required))


def _not_decoded(raw: bytes) -> Any:
    raise AssertionError("a store holds no bytes")


@asynccontextmanager
async def engine_target(
    config: SchedulerConfiguration | None,
    clock: Clock | None = None,
    *,
    features: int = 0,
    version: KubernetesVersion = DEFAULT_VERSION,
    plugins: Iterable[Path] = (),
) -> AsyncIterator[EngineTarget]:
    """A new cluster with a scheduler, for the duration of the context.

    features: number of declared features that pods with pod-level resources require.
    version: the version of Kubernetes to emulate. plugins: files with plugins.
    """
    forget_peak()
    target = EngineTarget(config, clock or LoopClock(), features, version, plugins)
    tasks: set[asyncio.Task[None]] = set()
    try:
        await target.begin(tasks)
        yield target
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
