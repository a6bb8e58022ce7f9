"""A simulation with controllers: API server, controllers, kubelets and scheduler in virtual time.

All of them are those of `moorage up`. Kubelets start pods at once, so that a pod runs from the moment it is
bound, as in simulations without controllers; there are no heartbeats, because no node is lost without being
removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from random import Random
from typing import Final

from moorage.api.decode import InputError
from moorage.queue.scheduling_queue import Place, nothing_began
from moorage.scheduler.observers import Observer, Observers
from moorage.scheduler.scheduler import Scheduler
from moorage.services.event_broadcaster import SilentBroadcaster
from moorage.simulation.controlled import ControlledObjects
from moorage.simulation.node_events import NodeEvents
from moorage.simulation.records import Records
from moorage.simulation.script import ScriptEvent
from moorage.simulation.settings import Settings
from moorage.simulation.simulator import Attempts
from moorage.simulation.virtual_loop import VirtualLoopClock
from moorage.simulation.workload import Arrival, in_order
from moorage_cluster.apiserver.embedded import Settings as ServerSettings
from moorage_cluster.local import LocalCluster, LocalSettings
from moorage_cluster.manifest_files import FileObject
from moorage_cluster.nodes.settings import KubeletSettings
from moorage_cluster.simulating.arriving import check_end
from moorage_cluster.simulating.beginning import beginning, beginning_time
from moorage_cluster.simulating.creation import Creation
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
        progressed: Callable[[], None] = nothing_began,
        observer: Observer | None = None,
    ) -> None:
        """progressed: called after each object of the workload, and when a pod has ended.

        observer: receives the scheduler's events, too.
        """
        check_end(objects, settings)
        self._objects = objects
        self._workload = workload
        self._settings = settings
        self._script = script
        self._progressed = progressed
        self._observer = observer
        self._clock = VirtualLoopClock(beginning_time(objects.dump))
        self._random = Random(settings.seed)
        self.records = Records(self._clock.now)
        self.notes: list[str] = []
        """What was left out, one line each."""
        self.is_complete = False
        """Whether it has run to its end."""
        self.is_interrupted = False
        """Set before it is cancelled: nothing more arrives, not even what does at this moment."""
        self.arrived = 0
        """Number of objects of the workload so far."""
        self._local = LocalCluster(self._local_settings(), clock=self._clock, random=self._random)
        self._is_begun = False
        self._creation = Creation(self._local.client, restarts_pods=settings.restarts_pods)
        self._pods = PodFollowing(self.records, lambda: self._is_begun, self._creation.deleted, progressed)
        self._nodes = ServedNodes(self._local.server.store, self._local.client)
        self._node_events = NodeEvents(self._nodes)

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
        running = self._local.run(), self._nodes.run(), self._creation.run(), self._begin()
        tasks = [asyncio.create_task(each) for each in running]
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                _raise_problem(task)
            self.is_complete = True
        finally:
            self.records.course.advance(self._clock.now())
            self._local.server.store.listeners.remove(self._pods.changed)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._local.close()

    async def _begin(self) -> None:
        """Create what is there at the start, then let everything happen; returns at the end."""
        files = [FileObject(manifest, where) for manifest, where in self._objects.files]
        dump = beginning(self._objects.dump, [each.manifest for each in files])
        prepared = await self._local.prepare(files, dump)
        if prepared.refused:
            raise InputError("", prepared.refused[0])
        self.notes += [f"left out of the cluster: {line}" for line in prepared.dump.refused]
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
        settings, attempts = self._settings, Attempts(self.records)
        return Scheduler(
            self._local.client,
            settings.config,
            settings.registry,
            self._clock,
            Random(settings.seed),
            _HOST,
            observer=attempts if self._observer is None else Observers(self._observer, attempts),
            new_broadcaster=SilentBroadcaster,
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
            await self._creation.arrival(arrival)
            await self._has_arrived()

    async def _let_owners_arrive(self) -> None:
        for owner in self._objects.owners:
            await self._until(owner.at_seconds)
            await self._creation.owner(owner)
            await self._has_arrived()

    async def _has_arrived(self) -> None:
        self.arrived += 1
        self._progressed()
        while self.is_interrupted:
            await asyncio.sleep(0)

    async def _until_end(self, scheduler: Scheduler) -> None:
        """Returns when no pod will end, and nothing is about to be done.

        What was tried since the last change gets the same answer, however often it is tried.
        """
        backoff_seconds = self._settings.config.pod_max_backoff_seconds + 2 * _REST_SECONDS
        changed_at = self._clock.now()
        while True:
            changes = self._pods.changes
            await asyncio.sleep(_REST_SECONDS)
            if changes != self._pods.changes:
                changed_at = self._clock.now()
            elif not self._pods.has_finite_pods:
                counts_backoff = self._clock.now() - changed_at <= backoff_seconds
                if not self._is_working(scheduler, counts_backoff=counts_backoff):
                    return

    def _is_working(self, scheduler: Scheduler, *, counts_backoff: bool) -> bool:
        """Whether the scheduler, an event or a controller does something, or will after a time.

        counts_backoff: whether pods in backoff count.
        """
        pending = scheduler.queue.pending()
        waits = counts_backoff and pending[Place.BACKOFF]
        is_tried = pending[Place.ACTIVE] or waits or scheduler.background_task_count
        is_idle = self._nodes.is_idle and self._creation.is_idle and self._local.is_idle
        makers = (each for each in self._local.controllers if each.name in _MAKING_PODS)
        return bool(is_tried) or not is_idle or any(each.is_delayed for each in makers)


def _raise_problem(task: asyncio.Task[None]) -> None:
    """Raise what a task failed with; what is wrong with the input by itself, not in a group."""
    try:
        task.result()
    except ExceptionGroup as group:
        problem: Exception = group.subgroup(InputError) or group
        while isinstance(problem, ExceptionGroup) and len(problem.exceptions) == 1:
            problem = problem.exceptions[0]
        raise problem from None
