"""A simulation with controllers: API server, controllers, kubelets and scheduler in virtual time.

All of them are those of `moorage up`. Kubelets start pods at once, so that a pod runs from the moment it is
bound, as in simulations without controllers; there are no heartbeats, because no node is lost without being
removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Final

from moorage.api.decode import InputError
from moorage.api.manifests import Manifest
from moorage.api.pod import Pod
from moorage.client.kinds import NAMESPACE, POD, POD_GROUP, PRIORITY_CLASS, Kind
from moorage.http.errors import RequestError
from moorage.queue.scheduling_queue import Place, nothing_began
from moorage.scheduler.scheduler import Scheduler
from moorage.simulation.controlled import ControlledObjects, Owner
from moorage.simulation.node_events import NodeEvents
from moorage.simulation.records import Records
from moorage.simulation.script import ScriptEvent
from moorage.simulation.settings import Settings
from moorage.simulation.simulator import Attempts
from moorage.simulation.virtual_loop import VirtualLoopClock
from moorage.simulation.workload import Arrival, in_order
from moorage_cluster.apiserver.embedded import Settings as ServerSettings
from moorage_cluster.dump import served_kinds
from moorage_cluster.local import LocalCluster, LocalSettings
from moorage_cluster.manifest_files import FileObject
from moorage_cluster.nodes.settings import KubeletSettings
from moorage_cluster.simulating.arriving import check_end, group_manifest_of, manifest_of, named_anew
from moorage_cluster.simulating.beginning import beginning, beginning_time, class_of, namespace_of
from moorage_cluster.simulating.logging_once import once_per_message
from moorage_cluster.simulating.pod_following import PodFollowing
from moorage_cluster.simulating.served_nodes import ServedNodes

_NEVER_SECONDS: Final = 10**9
"""The interval of what does not happen in a simulation, in seconds: 30 years."""
_KUBELETS: Final = KubeletSettings(
    start_seconds=0.0,
    pull_seconds=0.0,
    init_seconds=0.0,
    jitter=0.0,
    lease_seconds=_NEVER_SECONDS,
    status_seconds=_NEVER_SECONDS,
    monitor_seconds=_NEVER_SECONDS,
    normal_events=False,
)
_REST_SECONDS: Final = 2.0
"""How long nothing has to happen before a simulation ends, in seconds: longer than a pod takes to stop."""
_MAKING_PODS: Final = frozenset(
    (
        "replicaset-controller",
        "replication-controller",
        "statefulset-controller",
        "daemonset-controller",
        "job-controller",
        "cronjob-controller",
        "taint-eviction-controller",
    )
)
"""The controllers whose delayed work makes pods or ends them."""
_HOST: Final = "simulation"


class ControlledSimulation:
    """One run; to be awaited in a `VirtualLoop`."""

    def __init__(
        self,
        objects: ControlledObjects,
        workload: Iterable[Arrival],
        settings: Settings,
        script: Sequence[ScriptEvent] = (),
        arrived: Callable[[], None] = nothing_began,
    ) -> None:
        """arrived: called after each object of the workload."""
        check_end(objects, settings)
        self._objects = objects
        self._workload = workload
        self._settings = settings
        self._script = script
        self._arrived = arrived
        self._clock = VirtualLoopClock(beginning_time(objects.dump))
        self._random = Random(settings.seed)
        self.records = Records(self._clock.now)
        self.notes: list[str] = []
        """What was left out, one line each."""
        self.is_complete = False
        """Whether it has run to its end."""
        self._local = LocalCluster(self._local_settings(), clock=self._clock, random=self._random)
        self._is_begun = False
        self._pods = PodFollowing(self.records, lambda: self._is_begun, self._deleted)
        self._nodes = ServedNodes(self._local.server.store, self._local.client)
        self._node_events = NodeEvents(self._nodes)
        self._kinds: Mapping[tuple[str, str], Kind] = {}
        self._needed: set[tuple[Kind, str]] = set()
        """The objects that pods refer to and that are there."""
        self._manifests: dict[str, Manifest] = {}
        """The pods of the workload that no controller made, by uid."""
        self._restarts: set[asyncio.Task[None]] = set()

    @property
    def seconds(self) -> float:
        """Virtual time since the start, in seconds."""
        return self.records.course.seconds

    def _local_settings(self) -> LocalSettings:
        settings = self._settings
        return LocalSettings(
            nodes=0,
            kubelets=_KUBELETS,
            server=ServerSettings(version=settings.version),
            schedules=False,
            version=settings.version,
            node_grace_seconds=_NEVER_SECONDS,
        )

    async def run(self) -> None:
        """Run to the end; when cancelled, what is known until then is kept."""
        with once_per_message():
            await self._run()

    async def _run(self) -> None:
        self._local.server.store.listeners.append(self._pods.changed)
        tasks = [asyncio.create_task(each) for each in (self._local.run(), self._nodes.run(), self._begin())]
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
            self.is_complete = True
        finally:
            self.records.course.advance(self._clock.now())
            self._local.server.store.listeners.remove(self._pods.changed)
            for task in (*tasks, *self._restarts):
                task.cancel()
            await asyncio.gather(*tasks, *self._restarts, return_exceptions=True)
            self._local.close()

    async def _begin(self) -> None:
        """Create what is there at the start, then let everything happen; returns at the end."""
        files = [FileObject(manifest, where) for manifest, where in self._objects.files]
        prepared = await self._local.prepare(files, beginning(self._objects.dump))
        if prepared.refused:
            raise InputError("", prepared.refused[0])
        self.notes += [f"left out of the cluster: {line}" for line in prepared.dump.refused]
        self._kinds = await served_kinds(self._local.client)
        self._is_begun = True
        scheduler = self._new_scheduler()
        scheduling = asyncio.create_task(scheduler.run())
        feeding = asyncio.create_task(self._feed(scheduler))
        try:
            ended, _ = await asyncio.wait((scheduling, feeding), return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        finally:
            for task in (scheduling, feeding):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    def _new_scheduler(self) -> Scheduler:
        settings = self._settings
        return Scheduler(
            self._local.client,
            settings.config,
            settings.registry,
            self._clock,
            Random(settings.seed),
            _HOST,
            observer=Attempts(self.records),
            version=settings.version,
            snapshot_refresh_seconds=None,
        )

    async def _feed(self, scheduler: Scheduler) -> None:
        for informer in scheduler.informers:
            await informer.synced()
        until = self._settings.until_seconds
        try:
            async with asyncio.timeout(until):
                await asyncio.gather(self._follow_script(), self._let_arrive(), self._let_owners_arrive())
                await (self._until_end(scheduler) if until is None else asyncio.Event().wait())
        except TimeoutError:
            return

    async def _until(self, at_seconds: float) -> None:
        if (seconds := at_seconds - self._clock.now()) > 0:
            await asyncio.sleep(seconds)

    async def _follow_script(self) -> None:
        for event in self._script:
            await self._until(event.at_seconds)
            self._node_events.apply(event)

    async def _let_arrive(self) -> None:
        for arrival in in_order(self._workload):
            await self._until(arrival.at_seconds)
            if arrival.group is not None:
                await self._create(POD_GROUP, group_manifest_of(arrival.group), f"group {arrival.group.key}")
            await self._create_pod(manifest_of(arrival), f"pod {arrival.pod.key}")
            self._arrived()

    async def _let_owners_arrive(self) -> None:
        for owner in self._objects.owners:
            await self._until(owner.at_seconds)
            await self._create_owner(owner)
            self._arrived()

    async def _until_end(self, scheduler: Scheduler) -> None:
        """Returns when no pod will end, and nobody is about to do anything."""
        while True:
            changes = self._pods.changes
            await asyncio.sleep(_REST_SECONDS)
            is_at_rest = changes == self._pods.changes and not self._pods.has_finite_pods
            pending = scheduler.queue.pending()
            is_tried = pending[Place.ACTIVE] or pending[Place.BACKOFF] or scheduler.background_task_count
            if (
                is_at_rest
                and not is_tried
                and self._nodes.is_idle
                and self._local.is_idle
                and not self._will_work()
            ):
                return

    def _will_work(self) -> bool:
        """Whether a controller will make or end pods after a time."""
        return any(each.is_delayed for each in self._local.controllers if each.name in _MAKING_PODS)

    # -- the workload

    async def _create_owner(self, owner: Owner) -> None:
        manifest = owner.manifest
        kind = self._kinds.get((str(manifest.get("apiVersion")), str(manifest.get("kind"))))
        if kind is None:
            raise InputError(
                owner.where, f"there is no {manifest.get('kind')} in {manifest.get('apiVersion')}"
            )
        namespace = str(manifest["metadata"].get("namespace") or "default")
        try:
            await self._need(NAMESPACE, namespace_of(namespace))
            await self._local.client.create(kind, namespace, manifest, fieldValidation="Strict")
        except RequestError as error:
            raise InputError(owner.where, error.message) from None

    async def _create_pod(self, manifest: Manifest, where: str) -> None:
        created = await self._create(POD, manifest, where)
        self._manifests[created["metadata"]["uid"]] = manifest

    async def _create(self, kind: Kind, manifest: Manifest, where: str) -> Manifest:
        """Create a pod or a group, and what it refers to."""
        namespace, spec = manifest["metadata"]["namespace"], manifest["spec"]
        try:
            await self._need(NAMESPACE, namespace_of(namespace))
            if spec.get("priority") and spec.get("priorityClassName"):
                await self._need(PRIORITY_CLASS, class_of(spec["priorityClassName"], spec["priority"]))
            return await self._local.client.create(kind, namespace, manifest)
        except RequestError as error:
            raise InputError(where, error.message) from None

    async def _need(self, kind: Kind, obj: Manifest) -> None:
        """Create an object, unless it is there."""
        key = (kind, obj["metadata"]["name"])
        if key not in self._needed:
            self._needed.add(key)
            try:
                await self._local.client.create(kind, "", obj)
            except RequestError as error:
                if not error.already_exists:
                    raise

    def _deleted(self, pod: Pod) -> None:
        """Create a pod of the workload again that was deleted: no controller does."""
        manifest = self._manifests.pop(pod.uid, None)
        if manifest is not None and self._settings.restarts_pods:
            task = asyncio.create_task(self._create_pod(named_anew(manifest), f"pod {pod.key}"))
            self._restarts.add(task)
            task.add_done_callback(self._restarts.discard)
