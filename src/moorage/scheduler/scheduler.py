"""The scheduling loop: one scheduling cycle after another, binding cycles in the background.

A cycle works on an immutable snapshot and waits for nothing but extenders: meanwhile watches and bindings
continue, and the next cycle begins when this one has ended. Everything else that takes time is a background
task: waiting for a permit, writing to the API server, evicting. Cycles are implemented in `schedule_one`;
this module composes, runs, drains and reconfigures the scheduler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from moorage.api.pod import Pod
from moorage.client.client import Client
from moorage.client.informer import Informer
from moorage.client.waiting import within
from moorage.clock import Clock, Timer
from moorage.cluster.cache import Cache
from moorage.config.types import SchedulerConfiguration
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from moorage.engine.engine import Engine
from moorage.engine.run_without_suspending import run_without_suspending
from moorage.framework.extenders.extenders import Extenders
from moorage.framework.interface.handle import Handle, Live
from moorage.framework.loading.registry import Registry, RegistryError
from moorage.framework.runtime.framework import Framework
from moorage.framework.runtime.periodic_calls import PeriodicCalls
from moorage.framework.runtime.plugin_threads import MAX_PLUGIN_THREADS, PluginThreads
from moorage.framework.runtime.pre_binding import PreBinding
from moorage.framework.runtime.profiles import Profiles
from moorage.framework.runtime.slow_plugins import SLOW_SECONDS, SlowCalls
from moorage.framework.runtime.waiting_pods import WaitingPods
from moorage.klog import Logger
from moorage.queue.cluster_events import event
from moorage.queue.event_of_change import PodEvents
from moorage.queue.flushing import Flusher
from moorage.queue.group_queue import GroupSchedulingQueue
from moorage.queue.queued_group import QueuedGroup
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.queueing_rules import QueueRules
from moorage.queue.scheduling_queue import MAX_UNSCHEDULABLE_SECONDS, SchedulingQueue
from moorage.scheduler.api_effects import ApiEffects
from moorage.scheduler.background_tasks import BackgroundTasks
from moorage.scheduler.binder import Binder
from moorage.scheduler.debugging import plugins_view
from moorage.scheduler.event_handlers import EventHandlers
from moorage.scheduler.group_status_writer import GroupStatusWriter
from moorage.scheduler.informers import NewInformer, SchedulerInformers
from moorage.scheduler.observers import Observer
from moorage.scheduler.pod_events import PodEventRecorder
from moorage.scheduler.pod_groups import PodGroupWarnings
from moorage.scheduler.pod_status_writer import PodStatusWriter
from moorage.scheduler.schedule_group import ScheduleGroup
from moorage.scheduler.schedule_one import ScheduleOne
from moorage.scheduler.watched_kinds import CustomObject, has_labelled_groups
from moorage.services.event_broadcaster import Broadcaster
from moorage.services.extender_client import Connect, http_extenders

SNAPSHOT_REFRESH_SECONDS = 0.5
"""Interval at which the snapshot is refreshed although no pod is scheduled, in seconds."""
_STANDBY_SECONDS = 2.0
"""Time after which a scheduler that waits to lead lists everything again before it begins, in seconds."""
_MAX_CYCLES_PER_TURN = 20
"""Maximum number of cycles before other tasks run on the loop."""
_MAX_TURN_SECONDS = 0.02
"""Time after which other tasks run on the loop, in seconds, if fewer cycles take that long."""
_EVENT_FLUSH_SECONDS = 2.0
"""Grace period for unwritten events at shutdown, in seconds."""
_NOT_RELOADED = "plugin Coscheduling: it can be enabled or disabled at the start only; restart the scheduler"

log = Logger(__name__)


class Scheduler:
    """Schedules the pods whose scheduler name is that of a profile."""

    def __init__(
        self,
        client: Client,
        config: SchedulerConfiguration,
        registry: Registry,
        clock: Clock,
        random: Random,
        host: str,
        *,
        events_client: Client | None = None,
        observer: Observer | None = None,
        max_unschedulable_seconds: float = MAX_UNSCHEDULABLE_SECONDS,
        slow_plugin_seconds: float = SLOW_SECONDS,
        plugin_threads: int = MAX_PLUGIN_THREADS,
        new_informer: NewInformer = Informer,
        new_broadcaster: Callable[[Client, Clock, Random, str], Broadcaster] = Broadcaster,
        connect_extender: Connect | None = None,
        version: KubernetesVersion = DEFAULT_VERSION,
        snapshot_refresh_seconds: float | None = SNAPSHOT_REFRESH_SECONDS,
    ) -> None:
        """snapshot_refresh_seconds: None where time is virtual, and no pod waits for an update."""
        self.cache = Cache()
        self.is_synced = False
        """Whether all informers are synced."""
        self.cycles_begun = 0
        """Number of scheduling cycles begun, for the watchdog."""
        self._observer = observer or Observer()
        self._registry = registry
        self._random = random
        self._clock = clock
        self._broadcaster = new_broadcaster(events_client or client, clock, random, host)
        self._recorder = PodEventRecorder(self._broadcaster)
        self._status_writer = PodStatusWriter(client, clock)
        self._connect_extender = connect_extender
        self._threads = PluginThreads(plugin_threads, clock.now)
        self._waiting, pre_binding = WaitingPods(clock, self._threads), PreBinding()
        binder = Binder(client, clock, random)
        self._effects = ApiEffects(
            client, binder, self._status_writer, self._recorder, self._waiting, pre_binding
        )
        self._handle = self._new_handle(client, config, version, pre_binding, slow_plugin_seconds)
        self._profiles = Profiles(config, registry, self._handle, self._observer.framework)
        if has_labelled_groups(self._profiles.values()):
            self.cache.pod_groups.follow_labels()
        _log_plugins(self._profiles.values())
        self._next_profiles = self._profiles
        """The profiles that come into force once the informers they need are synced."""
        self.queue = self._new_queue(config, max_unschedulable_seconds)
        self._wakeup = asyncio.Event()
        self.queue.changed = self._wakeup.set
        self._flusher = Flusher(self.queue, clock)
        self._handlers = self._new_handlers(pre_binding)
        self._informers = SchedulerInformers(
            client,
            clock,
            random,
            self._handlers,
            self._profiles.values(),
            new_informer,
            keeps_whole=self._handle.extenders.want_whole_objects,
        )
        self._observer.observe_informers(self._informers.informers)
        self._background = BackgroundTasks()
        self._schedule_one = ScheduleOne(
            self._profiles,
            self._new_engine(config),
            self.cache,
            self.queue,
            self._informers.pods,
            clock,
            self._effects,
            self._status_writer,
            self._recorder,
            PodGroupWarnings(client, self._recorder, self._background),
            self._waiting,
            self._background,
            self._observer,
        )
        self._schedule_group = self._new_schedule_group(client, version)
        self._tasks: asyncio.TaskGroup | None = None
        self._informer_tasks: dict[Informer[Any], asyncio.Task[None]] = {}
        self._async_cycle: asyncio.Task[None] | None = None
        """The cycle that waits for extenders."""
        self._snapshot_refresh_seconds = snapshot_refresh_seconds
        self._refresh_timer: Timer | None = None

    def _new_handle(
        self,
        client: Client,
        config: SchedulerConfiguration,
        version: KubernetesVersion,
        pre_binding: PreBinding,
        slow_plugin_seconds: float,
    ) -> Handle:
        """The plugins' handle; the queue and the informers are created later and looked up on use."""
        return Handle(
            self.cache.objects,
            self._effects,
            self._clock,
            # Their own: what chance decides must not depend on the jitter of retries.
            Random(self._random.getrandbits(64)),
            self._waiting,
            pre_binding,
            nominations=self.cache.nominations,
            pod_groups=self.cache.pod_groups,
            snapshot=self.cache.latest_snapshot,
            follow_pods=self.cache.follow_pods,
            pods_on=self.cache.pods_on,
            extenders=http_extenders(config.extenders, self._clock, self._connect_extender),
            live=Live(
                client,
                self._recorder,
                lambda pods: self.queue.activate(pods),
                lambda root: self.queue.activate_group(root),
                lambda kind: self._informers.custom(kind),
                lambda resource, action: self.queue.move_all(event(resource, action)),
                lambda work: self._background.start(work, is_awaited=False),
            ),
            slow_calls=SlowCalls(slow_plugin_seconds),
            threads=self._threads,
            version=version,
        )

    def _new_queue(self, config: SchedulerConfiguration, max_unschedulable_seconds: float) -> SchedulingQueue:
        groups = self.cache.pod_groups
        new = partial(GroupSchedulingQueue, groups=groups) if groups.is_enabled else SchedulingQueue
        first = next(iter(self._profiles.values()))
        return new(
            _queue_rules(self._profiles.items()),
            first.sort_key,
            self._clock,
            sub_queues=first.sub_queues,
            initial_backoff_seconds=config.pod_initial_backoff_seconds,
            max_backoff_seconds=config.pod_max_backoff_seconds,
            max_unschedulable_seconds=max_unschedulable_seconds,
            nominations=self.cache.nominations,
            observer=self._observer.queue,
            pod_events=PodEvents(self._handle.version.target_pod_events),
        )

    def _new_schedule_group(self, client: Client, version: KubernetesVersion) -> ScheduleGroup | None:
        """What schedules groups; None: pods of a group are scheduled one by one."""
        if not isinstance(self.queue, GroupSchedulingQueue):
            return None
        return ScheduleGroup(
            self._schedule_one,
            self.cache,
            self.queue,
            # Its own, as the plugins': retries have the other.
            Random(self._random.getrandbits(64)),
            GroupStatusWriter(client, self._clock, self.cache.pod_groups),
            self._recorder,
            self._background,
            self._observer,
            has_placements=version.features.topology_aware_workload_scheduling,
        )

    def _new_handlers(self, pre_binding: PreBinding) -> EventHandlers:
        return EventHandlers(self.cache, self.queue, self._profiles, self._waiting, pre_binding)

    def _new_engine(self, config: SchedulerConfiguration) -> Engine:
        return Engine(config.percentage_of_nodes_to_score, self._random.getrandbits(32))

    async def run(self, may_begin: asyncio.Event | None = None) -> None:
        """Schedule until cancelled; before `may_begin` is set, only run the informers."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                self._background.begin(tasks)
                self._threads.begin(tasks)
                self._handle.periodic.begin(self._clock, tasks)
                await self._run(tasks, may_begin)
        finally:
            await self._handle.extenders.close()

    async def _run(self, tasks: asyncio.TaskGroup, may_begin: asyncio.Event | None) -> None:
        tasks.create_task(self._broadcaster.run())
        for informer in self._informers.informers:
            self._start_informer(informer, tasks)
        for informer in self._informers.informers:
            await informer.synced()
            log.info(2, "Caches populated", type=informer.kind.go_type)
        self.is_synced = True
        log.info(3, "Handlers synced")
        if may_begin is not None:
            await self._wait_to_begin(may_begin)
        self._flusher.start()
        self._refresh_snapshot()
        try:
            await self._loop()
            log.info(2, "Scheduling queue is closed")
        finally:
            self._flusher.stop()
            if self._refresh_timer is not None:
                self._refresh_timer.cancel()

    async def _wait_to_begin(self, may_begin: asyncio.Event) -> None:
        """Returns when `may_begin` is set, and what the former leader has written is known.

        A watch may have stalled unnoticed while this process was a standby: it would not know the pods that
        the former leader has bound, and over-commit their nodes.
        """
        waits_since = self._clock.now()
        await may_begin.wait()
        if self._clock.now() - waits_since < _STANDBY_SECONDS:
            return
        log.info(2, "Listing again before the first scheduling cycle as leader")
        for informer in self._informers.informers:
            informer.relist()
        self._restart(self._informers.informers)
        for informer in self._informers.informers:
            await informer.synced()

    def _refresh_snapshot(self) -> None:
        """Refresh what cycles read periodically, so that no pod has to wait for a large update."""
        if self._snapshot_refresh_seconds is None:
            return
        if self._async_cycle is None:
            snapshot = self.cache.snapshot()
            for framework in self._profiles.values():
                framework.catch_up(snapshot)
        self._refresh_timer = self._clock.call_later(self._snapshot_refresh_seconds, self._refresh_snapshot)

    async def _loop(self) -> None:
        turn_ends_at = 0.0
        while not self._schedule_one.is_stopping:
            queued = self.queue.pop_now()
            if queued is None:
                self._wakeup.clear()
                await self._wakeup.wait()
                continue
            self.cycles_begun += 1
            if self._handle.extenders:
                await self._attempt_async(queued)
            else:
                is_group = queued.__class__ is QueuedGroup
                run_without_suspending((self._attempt if is_group else self._schedule_one.attempt)(queued))
            if self.cycles_begun % _MAX_CYCLES_PER_TURN == 0 or self._clock.now() > turn_ends_at:
                await asyncio.sleep(0)
                turn_ends_at = self._clock.now() + _MAX_TURN_SECONDS

    def _attempt(self, queued: QueuedPod) -> Coroutine[Any, Any, None]:
        if isinstance(queued, QueuedGroup):
            assert self._schedule_group is not None
            return self._schedule_group.attempt(queued)
        return self._schedule_one.attempt(queued)

    async def _attempt_async(self, queued: QueuedPod) -> None:
        """Attempt a pod with extenders; the snapshot stays unchanged while other tasks run."""
        is_group = isinstance(queued, QueuedGroup)
        self._async_cycle = asyncio.ensure_future(self._attempt(queued))
        try:
            with self._handlers.held() if is_group else nullcontext():
                await self._async_cycle
        finally:
            self._async_cycle = None

    async def drain(self, seconds: float) -> None:
        """Begin no more cycles; returns when bindings and evictions are done, or after `seconds`.

        Not waited for: pods that wait for a permit, which have nothing to complete, and conditions of
        unscheduled pods, which may wait for the rate limit and which the next leader writes. Events have a
        short grace period of their own.
        """
        self._schedule_one.is_stopping = True
        self._wakeup.set()
        deadline = self._clock.now() + seconds
        try:
            await within(self._clock, seconds, self._background.all_done(but=lambda: len(self._waiting)))
        except TimeoutError:
            log.warning("In-flight bindings are abandoned", count=self._background.awaited)
        await self._broadcaster.flush(min(max(deadline - self._clock.now(), 0.0), _EVENT_FLUSH_SECONDS))

    async def reconfigure(self, config: SchedulerConfiguration, registry: Registry | None = None) -> None:
        """Switch to other profiles once the informers they need are synced; no queued pod is lost.

        Until then the old profiles stay in force. Errors are raised before anything is changed.
        registry: the plugins from now on, if they change.
        """
        registry = self._registry if registry is None else registry
        extenders = http_extenders(config.extenders, self._clock, self._connect_extender)
        handle = replace(self._handle, extenders=extenders, periodic=PeriodicCalls())
        profiles = Profiles(config, registry, handle, self._observer.framework)
        if has_labelled_groups(profiles.values()) is not has_labelled_groups(self._profiles.values()):
            raise RegistryError(_NOT_RELOADED)
        self._registry = registry
        self._next_profiles = profiles
        self._restart(self._informers.redeclared())
        new = self._informers.add(framework for _, framework in profiles.items())
        self._observer.observe_informers(new)
        if extenders.want_whole_objects:
            self._keep_whole(True)
        if self._tasks is not None:
            for informer in new:
                self._start_informer(informer, self._tasks)
            for informer in self._informers.informers:
                await informer.synced()
        _log_plugins(profiles.values())
        former, self._handle = self._handle, handle
        former.periodic.end()
        if self._tasks is not None:
            handle.periodic.begin(self._clock, self._tasks)
        self._apply_configuration(config, profiles)
        if self._tasks is not None:
            self._tasks.create_task(self._stop_unneeded_informers(former.extenders))

    def _apply_configuration(self, config: SchedulerConfiguration, profiles: Profiles) -> None:
        frameworks = dict(profiles.items())
        first = next(iter(frameworks.values()))
        self._profiles = self._handlers.profiles = self._schedule_one.profiles = profiles
        self._schedule_one.engine = self._new_engine(config)
        self.queue.reconfigure(
            _queue_rules(frameworks.items()),
            first.sort_key,
            sub_queues=first.sub_queues,
            initial_backoff_seconds=config.pod_initial_backoff_seconds,
            max_backoff_seconds=config.pod_max_backoff_seconds,
        )
        for pod in self.pods():
            # Pods that other schedulers were responsible for; those in the queue stay as they are.
            if not pod.spec.node_name and pod.spec.scheduler_name in frameworks:
                self._handlers.pod("ADDED", pod, None)

    def _start_informer(self, informer: Informer[Any], tasks: asyncio.TaskGroup) -> None:
        log.info(3, "Starting reflector", type=informer.kind.go_type)
        self._informer_tasks[informer] = tasks.create_task(informer.run())

    def _keep_whole(self, is_wanted: bool) -> None:
        """Set whether pods and nodes keep the bytes that were sent; restarts their informers if needed."""
        self._restart(self._informers.keep_whole(is_wanted))

    def _restart(self, informers: Iterable[Informer[Any]]) -> None:
        """Restart informers that decode in another way now."""
        for informer in informers:
            if self._tasks is not None:
                self._informer_tasks[informer].cancel()
                self._start_informer(informer, self._tasks)

    async def _stop_unneeded_informers(self, former: Extenders) -> None:
        """Stop informers of kinds that no plugin reads, once work with the old plugins has ended.

        Their objects are removed from the cache: they would be outdated when they are needed again.
        """
        if self._async_cycle is not None:
            await asyncio.wait((self._async_cycle,))
        await self._background.all_ended()
        await former.close()
        in_use = [framework for each in (self._profiles, self._next_profiles) for framework in each.values()]
        if not any(framework.handle.extenders.want_whole_objects for framework in in_use):
            self._keep_whole(False)
        for informer in self._informers.drop(in_use):
            self._informer_tasks.pop(informer).cancel()
            for obj in informer.objects.values():
                if not isinstance(obj, CustomObject):
                    self.cache.objects.remove(obj)

    def pods(self) -> Iterator[Pod]:
        """All pods of the informer, bound or not, of any scheduler."""
        return (pod for pod in self._informers.pods.objects.values() if isinstance(pod, Pod))

    @property
    def informers(self) -> Sequence[Informer[Any]]:
        """All informers."""
        return self._informers.informers

    @property
    def background_task_count(self) -> int:
        """Number of running background tasks, mostly bindings."""
        return len(self._background)

    @property
    def prioritizing(self) -> int | None:
        """Number of running prioritize calls to extenders; None: there are no extenders."""
        return self._handle.extenders.prioritizing if self._handle.extenders else None

    @property
    def pre_binding(self) -> int:
        """Number of running pre-bind plugins."""
        return self._handle.pre_binding.running


def _queue_rules(frameworks: Iterable[tuple[str, Framework]]) -> dict[str, QueueRules]:
    """What each profile's plugins register for the queue; extenders cannot register events."""
    return {
        name: framework.queue_rules(extenders=bool(framework.handle.extenders))
        for name, framework in frameworks
    }


def _log_plugins(frameworks: Iterable[Framework]) -> None:
    if log.v >= 2:
        for framework in frameworks:
            log.info(2, "the scheduler starts to work with those plugins", Plugins=plugins_view(framework))
