"""A simulation: the production scheduler over a store of objects, in virtual time.

Pods of the workload are created at their times, bound by the scheduler, and run on nodes that need no
machine. A pod that is preempted, drained or lost with its node is created again, as its Job or ReplicaSet
would do, and runs for its whole time again. A simulation ends when nothing is going to change any more, or at
a given time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Final

from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.node import Node
from moorage.api.pod import Pod, PodStatus
from moorage.client.declared_kinds import kind_of_object
from moorage.client.informer import EventType
from moorage.client.kinds import NODE, POD, POD_GROUP
from moorage.http.errors import RequestError
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.scheduling_queue import Place, nothing_began
from moorage.scheduler.observers import Observer, Observers
from moorage.scheduler.scheduler import Scheduler
from moorage.services.event_broadcaster import SilentBroadcaster
from moorage.sim.object_store import ObjectStore
from moorage.sim.store_client import StoreClient, StoreInformer
from moorage.simulation.kubelets import Kubelets
from moorage.simulation.node_events import NodeEvents, StoredNodes
from moorage.simulation.records import Outcome, Records
from moorage.simulation.script import ScriptEvent
from moorage.simulation.settings import Settings
from moorage.simulation.virtual_loop import VirtualLoopClock
from moorage.simulation.workload import Arrival, duration_of, in_order

_HOST: Final = "simulation"
_REST_SECONDS: Final = 1.0
"""Interval at which the queue is looked at once nothing else is going to happen, in seconds."""
_PREEMPTED: Final = "PreemptionByScheduler"
_DISRUPTED: Final = "DisruptionTarget"


class Attempts(Observer):
    """Notes failed attempts."""

    def __init__(self, records: Records) -> None:
        super().__init__()
        self._records = records

    def failed(self, queued: QueuedPod, reason: str, message: str = "") -> None:
        """An attempt failed."""
        self._records.attempted(queued.uid, message)


class Simulation:
    """One run; to be awaited in a `VirtualLoop`."""

    def __init__(
        self,
        cluster: Sequence[Object],
        workload: Iterable[Arrival],
        settings: Settings,
        script: Sequence[ScriptEvent] = (),
        progressed: Callable[[], None] = nothing_began,
        observer: Observer | None = None,
        new_scheduler: Callable[..., Scheduler] = Scheduler,
    ) -> None:
        """progressed: called after each pod of the workload, and when one has ended.

        observer: receives the scheduler's events, too. new_scheduler: makes the scheduler.
        """
        self._cluster = cluster
        self._workload = workload
        self._settings = settings
        self._script = script
        self._progressed = progressed
        self._observer = observer
        self._make_scheduler = new_scheduler
        self._clock = VirtualLoopClock()
        self.records = Records(self._clock.now)
        self.notes: list[str] = []
        """What is missing in the cluster: nothing."""
        self.is_complete = False
        """Whether it has run to its end."""
        self.is_interrupted = False
        """Set by who is going to cancel it: no more pods arrive, not even those of this moment."""
        self.arrived = 0
        """Number of pods of the workload so far; those that were created again are not counted."""
        self._store = ObjectStore(self._clock.utc_now)
        self._kubelets = Kubelets(self._store, self._clock, self._duration_of)
        self._node_events = NodeEvents(StoredNodes(self._store))
        self._arrivals: dict[str, Arrival] = {}
        """The arrivals of pods that are there, by uid."""
        self._has_changed = asyncio.Event()
        self._changed_at = 0.0
        """When a pod was last created, bound or deleted, or a node changed."""

    @property
    def seconds(self) -> float:
        """Virtual time since the start, in seconds."""
        return self.records.course.seconds

    async def run(self) -> None:
        """Run to the end; when cancelled, what is known until then is kept."""
        scheduler = self._new_scheduler()
        self._store.watch(POD, [self._pod_changed])
        self._store.watch(NODE, [self._node_changed])
        self._fill()
        scheduling = asyncio.create_task(scheduler.run())
        feeding = asyncio.create_task(self._feed(scheduler))
        try:
            ended, _ = await asyncio.wait((scheduling, feeding), return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
            self.is_complete = True
        finally:
            self.records.course.advance(self._clock.now())
            for task in (scheduling, feeding):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    def _new_scheduler(self) -> Scheduler:
        settings, attempts = self._settings, Attempts(self.records)
        return self._make_scheduler(
            StoreClient(self._store),
            settings.config,
            settings.registry,
            self._clock,
            Random(settings.seed),
            _HOST,
            observer=attempts if self._observer is None else Observers(self._observer, attempts),
            new_informer=StoreInformer,
            new_broadcaster=SilentBroadcaster,
            version=settings.version,
            snapshot_refresh_seconds=None,
        )

    def _fill(self) -> None:
        """Create the objects that are there at the start; pods without a node arrive at once."""
        pending = []
        for item in self._cluster:
            if isinstance(item, Pod) and not item.spec.node_name:
                pending.append(item)
            elif not isinstance(item, Pod):
                kind = kind_of_object(item)
                assert kind is not None, item
                self._store.create(kind, item.namespace, item)
            elif not item.finished:
                self._store.create(POD, item.namespace, _without_finalizers(item))
        for pod in pending:
            self._create(Arrival(0.0, pod, duration_of(pod)))

    async def _feed(self, scheduler: Scheduler) -> None:
        """Let everything happen at its time; returns at the end."""
        for informer in scheduler.informers:
            await informer.synced()
        until = self._settings.until_seconds
        try:
            async with asyncio.timeout(until):
                await asyncio.gather(self._follow_script(), self._let_arrive())
                await (self._until_end(scheduler) if until is None else asyncio.Event().wait())
        except TimeoutError:
            return

    async def _let_arrive(self) -> None:
        for arrival in in_order(self._workload):
            if (seconds := arrival.at_seconds - self._clock.now()) > 0:
                await asyncio.sleep(seconds)
            self._create(arrival)
            self.arrived += 1
            self._progressed()
            while self.is_interrupted:
                await asyncio.sleep(0)

    async def _follow_script(self) -> None:
        for event in self._script:
            if (seconds := event.at_seconds - self._clock.now()) > 0:
                await asyncio.sleep(seconds)
            self._node_events.apply(event)

    async def _until_end(self, scheduler: Scheduler) -> None:
        """Returns when no pod will complete, and none is tried or about to be tried again.

        A group that does not fit is tried again after backoff for ever: what was tried since the last change
        gets the same answer.
        """
        backoff_seconds = self._settings.config.pod_max_backoff_seconds + 2 * _REST_SECONDS
        while True:
            while self._kubelets.has_finite_pods:
                self._has_changed.clear()
                await self._has_changed.wait()
            await asyncio.sleep(_REST_SECONDS)
            pending = scheduler.queue.pending()
            has_changed = self._clock.now() - self._changed_at <= backoff_seconds
            waits = has_changed and pending[Place.BACKOFF]
            is_tried = pending[Place.ACTIVE] or waits or scheduler.background_task_count
            if not is_tried and not self._kubelets.has_finite_pods:
                return

    # -- pods

    def _create(self, arrival: Arrival) -> None:
        """Create a pod of the workload."""
        pod, group = arrival.pod, arrival.group
        try:
            if group is not None:
                self._store.create(POD_GROUP, group.namespace, group)
            created = self._store.create(POD, pod.namespace, _new(pod, pod.name))
        except RequestError as error:
            raise InputError(f"pod {pod.key}", error.message) from None
        self._created(created, arrival)

    def _create_again(self, arrival: Arrival) -> None:
        """Create a pod that was evicted, under a name of its own."""
        pod, created = arrival.pod, None
        while created is None:
            with suppress(RequestError):  # The name is taken: the store generates another one.
                created = self._store.create(POD, pod.namespace, _new(pod, ""))
        self._created(created, arrival)

    def _created(self, pod: Object, arrival: Arrival) -> None:
        assert isinstance(pod, Pod)
        self._arrivals[pod.uid] = arrival
        self.records.arrived(pod)

    def _duration_of(self, pod: Pod) -> float | None:
        arrival = self._arrivals.get(pod.uid)
        return duration_of(pod) if arrival is None else arrival.duration_seconds

    def _pod_changed(self, type: EventType, obj: Object, before: Object | None) -> None:
        assert isinstance(obj, Pod)
        was_bound = isinstance(before, Pod) and bool(before.spec.node_name)
        is_bound = type != "DELETED" and bool(obj.spec.node_name) and not was_bound
        if is_bound or type != "MODIFIED":
            self._changed_at = self._clock.now()
        if type == "DELETED":
            self._deleted(obj)
        elif is_bound:
            self.records.bound(obj)
        self._kubelets.pod_changed(type, obj, before)

    def _deleted(self, pod: Pod) -> None:
        is_completed = self._kubelets.has_completed(pod)
        self.records.ended(pod, Outcome.COMPLETED if is_completed else outcome_of_deleted(pod))
        arrival = self._arrivals.pop(pod.uid, None)
        if arrival is not None and not is_completed and self._settings.restarts_pods:
            self._clock.call_later(0.0, partial(self._create_again, arrival))
        self._has_changed.set()
        self._progressed()

    def _node_changed(self, type: EventType, obj: Object, before: Object | None) -> None:
        assert isinstance(obj, Node)
        self._changed_at = self._clock.now()
        if type == "ADDED":
            self.records.node_added(obj)
        elif type == "DELETED":
            self.records.node_removed(obj)


def _new(pod: Pod, name: str) -> Pod:
    """A pod to be created; without a name, one is generated from that of the pod."""
    meta = replace(pod.metadata, uid="", name=name, generate_name=f"{pod.name}-")
    return _without_finalizers(replace(pod, metadata=meta, status=PodStatus()))


def _without_finalizers(pod: Pod) -> Pod:
    """A pod that is gone when it has ended: there is no Job controller that would remove finalizers."""
    if not pod.metadata.finalizers:
        return pod
    return replace(pod, metadata=replace(pod.metadata, finalizers=()))


def outcome_of_deleted(pod: Pod) -> Outcome:
    """Why a pod was deleted, by its conditions."""
    reasons = [each.reason for each in pod.status.conditions if each.type == _DISRUPTED]
    return Outcome.PREEMPTED if _PREEMPTED in reasons else Outcome.EVICTED
