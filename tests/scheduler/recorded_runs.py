"""Schedulers over a store in which the clusters and pods of recordings are created."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.persistent_volumes import SELECTED_NODE, is_bound
from moorage.api.pod import Pod
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim
from moorage.client.declared_kinds import kind_of_object
from moorage.client.kinds import (
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    STORAGE_CLASS,
    Kind,
)
from moorage.clock import VirtualClock
from moorage.cluster.cache import Cache
from moorage.framework.interface.effects import BindVolume, SelectNode
from moorage.http.errors import RequestError
from moorage.plugins import default_registry
from moorage.scheduler.observers import Observer, Observers
from moorage.scheduler.recorder import Recorder
from moorage.scheduler.recording_file import RecordingFile
from moorage.scheduler.scheduler import Scheduler
from moorage.sim.object_store import ObjectStore
from moorage.sim.recording import ChangeStep, PodStep, Recording, load_recording
from moorage.sim.store_client import StoreClient, StoreInformer
from moorage.sim.volume_controller import VolumeController

FOLDER = Path(__file__).parents[1] / "recordings"
FAMILIES = sorted(path.name.removesuffix("-0.json.gz") for path in FOLDER.glob("*-0.json.gz"))
GROUP_FAMILIES = sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("groups/*.json.gz"))

MOST_PODS = 24
"""Pods of a recording that are scheduled: enough for each family's subject."""


def recorded(family: str) -> Recording:
    return load_recording(FOLDER / f"{family}-0.json.gz")


def recorded_groups(name: str) -> Recording:
    return load_recording(FOLDER / "groups" / f"{name}.json.gz")


class VolumeBinder:
    """Binds the volumes that a scheduler has reserved for claims, and makes those that it asks for."""

    def bind(self, store: ObjectStore) -> None:
        claims = store.table(PERSISTENT_VOLUME_CLAIM)
        reserved = {
            (volume.spec.claim_ref.namespace, volume.spec.claim_ref.name)
            for volume in store.table(PERSISTENT_VOLUME).values()
            if volume.spec.claim_ref is not None
        }
        for key, claim in list(claims.items()):
            if is_bound(claim) or not (key in reserved or SELECTED_NODE in claim.metadata.annotations):
                continue
            cache = Cache(
                obj
                for kind in (NODE, STORAGE_CLASS, CSI_NODE, CSI_STORAGE_CAPACITY, PERSISTENT_VOLUME)
                for obj in store.table(kind).values()
            )
            cache.put(claim)
            effect: BindVolume | SelectNode = (
                BindVolume(_reserved_volume(store, key), claim)
                if key in reserved
                else SelectNode(claim, claim.metadata.annotations[SELECTED_NODE])
            )
            VolumeController(cache).apply(effect)
            for kind, api in (
                (PersistentVolume, PERSISTENT_VOLUME),
                (PersistentVolumeClaim, PERSISTENT_VOLUME_CLAIM),
            ):
                for obj in cache.objects.of(kind):
                    known = store.table(api).get((obj.namespace, obj.name))
                    if known is None:
                        store.create(api, obj.namespace, obj)
                    elif known != obj:
                        store.update(api, obj)


def _reserved_volume(store: ObjectStore, claim: tuple[str, str]) -> PersistentVolume:
    found: PersistentVolume = next(
        volume
        for volume in store.table(PERSISTENT_VOLUME).values()
        if volume.spec.claim_ref is not None
        and (volume.spec.claim_ref.namespace, volume.spec.claim_ref.name) == claim
    )
    return found


class Stage:
    """A store with the objects of a recording, and what runs beside it."""

    def __init__(self, recording: Recording) -> None:
        self.clock = VirtualClock()
        self.recording = recording
        self.store = ObjectStore(self.clock.utc_now)
        self.client = StoreClient(self.store)
        self._tasks: list[asyncio.Task[Any]] = []
        self._volumes = VolumeBinder()
        self.put(recording.objects)

    def scheduler(self, observer: Observer | None = None, seed: int = 1, **options: Any) -> Scheduler:
        recording = self.recording
        scheduler = Scheduler(
            self.client,
            options.get("config", recording.config),
            default_registry(),
            self.clock,
            Random(seed),
            "host",
            observer=observer,
            plugin_threads=0,
            new_informer=StoreInformer,
            version=recording.version,
        )
        self.runs(scheduler.run())
        return scheduler

    def runs(self, work: Coroutine[Any, Any, Any]) -> None:
        self._tasks.append(asyncio.ensure_future(work))

    def put(self, objects: Iterable[Object]) -> None:
        for obj in objects:
            kind = self._kind(obj)
            known = self.store.table(kind).get((obj.namespace if kind.namespaced else "", obj.name))
            if known is None:
                self.store.create(kind, obj.namespace, obj)
            else:
                meta = replace(obj.metadata, uid=known.metadata.uid)
                self.store.update(kind, replace(obj, metadata=meta))

    def remove(self, objects: Iterable[Object]) -> None:
        for obj in objects:
            kind = self._kind(obj)
            try:
                self.store.delete(kind, obj.namespace if kind.namespaced else "", obj.name, "", 0)
            except RequestError as error:
                if not error.is_not_found:
                    raise

    @staticmethod
    def _kind(obj: Object) -> Kind:
        kind = kind_of_object(obj)
        assert kind is not None, obj
        return kind

    async def settles(self) -> None:
        for _ in range(25):
            await asyncio.sleep(0)
        for task in self._tasks:
            if task.done():
                task.result()

    async def plays(self, most_pods: int = 1000) -> None:
        """Make the recording's changes, and create its pods, one after another."""
        await self.settles()
        for step in self.recording.steps:
            if isinstance(step, ChangeStep):
                self.put(step.put)
                self.remove(step.delete)
            elif isinstance(step, PodStep):
                self.put([step.pod])
                most_pods -= 1
                await self._comes_to_rest(step.pod)
            else:
                self.put(step.put)
                self.remove(step.delete)
                self.put(step.pods)
                await self._groups_come_to_rest()
            if not most_pods:
                return

    async def _comes_to_rest(self, pod: Pod) -> None:
        """Let a pod be attempted; pods that are evicted for it end, and one that does not fit is deleted."""
        await self._passes(rounds=3)
        stored = self.store.table(POD)[pod.namespace, pod.name]
        if not stored.spec.node_name:
            self.remove([stored])

    async def _groups_come_to_rest(self) -> None:
        """Let groups be attempted, and again after backoff; those that do not fit stay."""
        await self._passes(rounds=6)

    async def _passes(self, rounds: int) -> None:
        for _ in range(rounds):
            await self.settles()
            self._volumes.bind(self.store)
            await self.settles()
            ending = [each for each in self.store.table(POD).values() if each.terminating]
            self.remove(ending)
            self.clock.advance(2)
        await self.settles()


@asynccontextmanager
async def staged(recording: Recording) -> AsyncIterator[Stage]:
    stage = Stage(recording)
    try:
        yield stage
    finally:
        for task in stage._tasks:
            task.cancel()
        await asyncio.gather(*stage._tasks, return_exceptions=True)


def record(recording: Recording, path: Path) -> None:
    """Record a run of a recording's pods into a file."""

    async def run() -> None:
        reference = f"moorage, as kube-scheduler v{recording.version.number}"
        recorder = Recorder(RecordingFile(path, recording.config, recording.version, reference))
        async with staged(recording) as stage:
            stage.scheduler(Observers(Observer(), recorder))
            await stage.plays(MOST_PODS)
            recorder.close()

    asyncio.run(run())
