"""The loop: one scheduling cycle after another, bindings beside it.

A cycle works on a snapshot that does not move, and only extenders make it wait: then watches and bindings go
on, and the next cycle begins when this one has ended. What else takes time is a task of its own: waiting for
a permit, writing to the API server, evicting. What a cycle does is in `cycles`; here it is put together, run,
drained and brought in line with another configuration.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import Any

from moorage.api.pod import Pod
from moorage.client.client import Client
from moorage.client.informer import Informer
from moorage.clock import Clock, Timer
from moorage.cluster.cache import Cache
from moorage.config.types import SchedulerConfiguration
from moorage.engine.engine import Engine
from moorage.engine.run_without_suspending import run_without_suspending
from moorage.framework.extenders.extenders import Extenders
from moorage.framework.interface.handle import Handle, Live
from moorage.framework.loading.registry import Registry
from moorage.framework.runtime.framework import Framework
from moorage.framework.runtime.plugin_threads import MAX_PLUGIN_THREADS, PluginThreads
from moorage.framework.runtime.pre_binding import PreBinding
from moorage.framework.runtime.profiles import Profiles
from moorage.framework.runtime.slow_plugins import SLOW_SECONDS, SlowCalls
from moorage.framework.runtime.waiting_pods import WaitingPods
from moorage.klog import Logger
from moorage.queue.entry import QueuedPod
from moorage.queue.flushing import Flusher
from moorage.queue.rules import QueueRules
from moorage.queue.scheduling_queue import MAX_UNSCHEDULABLE_SECONDS, SchedulingQueue
from moorage.scheduler.beside import Beside
from moorage.scheduler.bindings import Binder
from moorage.scheduler.cycles import Cycles
from moorage.scheduler.debugging import plugins_view
from moorage.scheduler.effects import ApiEffects
from moorage.scheduler.events import Recorder
from moorage.scheduler.feed import Feed, NewInformer
from moorage.scheduler.handlers import Handlers
from moorage.scheduler.needs import CustomObject
from moorage.scheduler.observers import Observer
from moorage.scheduler.statuses import PodStatuses
from moorage.services.events import Broadcaster
from moorage.services.extender_client import Connect, http_extenders
from moorage.services.timing import within

_KEEP_UP_SECONDS = 0.5
_BATCH = 20
"""So many cycles run before others get their turn on the loop."""
_BATCH_SECONDS = 0.02
"""How long cycles run before others get their turn, if fewer take that long."""
_EVENT_FLUSH_SECONDS = 2.0
"""Time for events that are not written yet when the scheduler ends."""

log = Logger(__name__)


class Scheduler:
    """Binds the pods whose scheduler is one of the configuration's profiles."""

    def __init__(
        self,
        client: Client,
        config: SchedulerConfiguration,
        registry: Registry,
        clock: Clock,
        now: Callable[[], datetime],
        random: Random,
        host: str,
        *,
        events_client: Client | None = None,
        observer: Observer | None = None,
        max_unschedulable_seconds: float = MAX_UNSCHEDULABLE_SECONDS,
        slow_plugin_seconds: float = SLOW_SECONDS,
        plugin_threads: int = MAX_PLUGIN_THREADS,
        new_informer: NewInformer = Informer,
        connect_extender: Connect | None = None,
    ) -> None:
        self.cache = Cache()
        self.is_synced = False
        """Whether everything in the cluster is known."""
        self.cycles_begun = 0
        """Scheduling cycles so far: a watchdog sees that the loop gets on."""
        self._observer = observer or Observer()
        self._registry = registry
        self._random = random
        self._clock = clock
        self._broadcaster = Broadcaster(events_client or client, clock, now, random, host)
        self._recorder = Recorder(self._broadcaster)
        self._statuses = PodStatuses(client, now)
        self._connect_extender = connect_extender
        self._threads = PluginThreads(plugin_threads, clock.now)
        self._waiting, pre_binding = WaitingPods(clock, self._threads), PreBinding()
        binder = Binder(client, clock, random)
        self._effects = ApiEffects(client, binder, self._statuses, self._recorder, self._waiting, pre_binding)
        self._handle = self._new_handle(client, config, pre_binding, slow_plugin_seconds)
        self._profiles = Profiles(config, registry, self._handle, self._observer.framework)
        _log_plugins(self._profiles.values())
        self._awaited = self._profiles
        """The profiles that are to be in force once all is known that they look at."""
        self.queue = self._new_queue(config, max_unschedulable_seconds)
        self._woken = asyncio.Event()
        self.queue.changed = self._woken.set
        self._flusher = Flusher(self.queue, clock)
        self._handlers = Handlers(self.cache, self.queue, self._profiles, self._waiting, pre_binding)
        self._feed = Feed(
            client,
            clock,
            random,
            self._handlers,
            self._profiles.values(),
            new_informer,
            keeps_whole=self._handle.extenders.want_whole_objects,
        )
        self._observer.follow(self._feed.informers)
        self._beside = Beside()
        self._cycles = Cycles(
            self._profiles,
            self._new_engine(config),
            self.cache,
            self.queue,
            self._feed.pods,
            clock,
            self._effects,
            self._statuses,
            self._recorder,
            self._waiting,
            self._beside,
            self._observer,
        )
        self._tasks: asyncio.TaskGroup | None = None
        self._following: dict[Informer[Any], asyncio.Task[None]] = {}
        self._deciding: asyncio.Task[None] | None = None
        """The cycle that waits for extenders."""
        self._keeping_up: Timer | None = None

    def _new_handle(
        self,
        client: Client,
        config: SchedulerConfiguration,
        pre_binding: PreBinding,
        slow_plugin_seconds: float,
    ) -> Handle:
        """What plugins are lent; those who ask for the queue or the informers do so once these are there."""
        return Handle(
            self.cache.objects,
            self._effects,
            self._clock,
            self._random,
            self._waiting,
            pre_binding,
            nominations=self.cache.nominations,
            snapshot=self.cache.latest_snapshot,
            extenders=http_extenders(config.extenders, self._clock, self._connect_extender),
            live=Live(
                client,
                self._recorder,
                lambda pods: self.queue.activate(pods),
                lambda kind: self._feed.custom(kind),
            ),
            slow_calls=SlowCalls(slow_plugin_seconds),
            threads=self._threads,
        )

    def _new_queue(self, config: SchedulerConfiguration, max_unschedulable_seconds: float) -> SchedulingQueue:
        return SchedulingQueue(
            _queue_rules(self._profiles.items()),
            next(iter(self._profiles.values())).sort_key,
            self._clock,
            initial_backoff_seconds=config.pod_initial_backoff_seconds,
            max_backoff_seconds=config.pod_max_backoff_seconds,
            max_unschedulable_seconds=max_unschedulable_seconds,
            nominations=self.cache.nominations,
            observer=self._observer.queue,
        )

    def _new_engine(self, config: SchedulerConfiguration) -> Engine:
        return Engine(config.percentage_of_nodes_to_score, self._random.getrandbits(32))

    async def run(self, may_begin: asyncio.Event | None = None) -> None:
        """Schedule until cancelled; before `may_begin`, only get to know the cluster."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                self._beside.begin(tasks)
                self._threads.begin(tasks)
                await self._run(tasks, may_begin)
        finally:
            await self._handle.extenders.close()

    async def _run(self, tasks: asyncio.TaskGroup, may_begin: asyncio.Event | None) -> None:
        tasks.create_task(self._broadcaster.run())
        for informer in self._feed.informers:
            self._follow(informer, tasks)
        for informer in self._feed.informers:
            await informer.synced()
            log.info(2, "Caches populated", type=informer.kind.go_type)
        self.is_synced = True
        log.info(3, "Handlers synced")
        if may_begin is not None:
            await may_begin.wait()
        self._flusher.start()
        self._keep_up()
        try:
            await self._loop()
            log.info(2, "Scheduling queue is closed")
        finally:
            self._flusher.stop()
            if self._keeping_up is not None:
                self._keeping_up.cancel()

    def _keep_up(self) -> None:
        """Bring the snapshot up to date from time to time, so that no pod has to wait for much of that."""
        if self._deciding is None:
            self.cache.snapshot()
        self._keeping_up = self._clock.call_later(_KEEP_UP_SECONDS, self._keep_up)

    async def _loop(self) -> None:
        turn_ends_at = 0.0
        while not self._cycles.is_ending:
            queued = self.queue.pop_now()
            if queued is None:
                self._woken.clear()
                await self._woken.wait()
                continue
            self.cycles_begun += 1
            if self._handle.extenders:
                await self._attempt_pausing(queued)
            else:
                run_without_suspending(self._cycles.attempt(queued))
            if self.cycles_begun % _BATCH == 0 or self._clock.now() > turn_ends_at:
                await asyncio.sleep(0)
                turn_ends_at = self._clock.now() + _BATCH_SECONDS

    async def _attempt_pausing(self, queued: QueuedPod) -> None:
        """Try a pod with extenders; meanwhile the snapshot stays as it is, and all else goes on."""
        self._deciding = asyncio.ensure_future(self._cycles.attempt(queued))
        try:
            await self._deciding
        finally:
            self._deciding = None

    async def drain(self, seconds: float) -> None:
        """Begin no more cycles; returns once bindings and evictions are done, or after that long.

        Pods that wait for a permit are not waited for: nothing is begun with them that has to be ended. Nor
        are conditions of pods without a node, which may wait for the request rate limit: the next leader
        writes them. Events have a short time of their own.
        """
        self._cycles.is_ending = True
        self._woken.set()
        deadline = self._clock.now() + seconds
        try:
            await within(self._clock, seconds, self._beside.all_done(but=lambda: len(self._waiting)))
        except TimeoutError:
            log.warning("In-flight bindings are abandoned", count=self._beside.awaited)
        await self._broadcaster.flush(min(max(deadline - self._clock.now(), 0.0), _EVENT_FLUSH_SECONDS))

    async def reconfigure(self, config: SchedulerConfiguration, registry: Registry | None = None) -> None:
        """Go on with other profiles once all is known that they look at; nobody in the queue is lost.

        Until then, the profiles stay as they are. What is wrong is raised before anything else is done.
        registry: the plugins there are from now on, if they are others.
        """
        registry = self._registry if registry is None else registry
        extenders = http_extenders(config.extenders, self._clock, self._connect_extender)
        handle = replace(self._handle, extenders=extenders)
        profiles = Profiles(config, registry, handle, self._observer.framework)
        self._registry = registry
        self._awaited = profiles
        new = self._feed.add(framework for _, framework in profiles.items())
        self._observer.follow(new)
        if extenders.want_whole_objects:
            self._keep_whole(True)
        if self._tasks is not None:
            for informer in new:
                self._follow(informer, self._tasks)
            for informer in self._feed.informers:
                await informer.synced()
        _log_plugins(profiles.values())
        former, self._handle = self._handle.extenders, handle
        self._go_on_with(config, profiles)
        if self._tasks is not None:
            self._tasks.create_task(self._let_go_of_unneeded(former))

    def _go_on_with(self, config: SchedulerConfiguration, profiles: Profiles) -> None:
        frameworks = dict(profiles.items())
        self._profiles = self._handlers.profiles = self._cycles.profiles = profiles
        self._cycles.engine = self._new_engine(config)
        self.queue.reconfigure(
            _queue_rules(frameworks.items()),
            next(iter(frameworks.values())).sort_key,
            initial_backoff_seconds=config.pod_initial_backoff_seconds,
            max_backoff_seconds=config.pod_max_backoff_seconds,
        )
        for pod in self.pods():
            # Those that were another scheduler's until now; those that are queued already stay as they are.
            if not pod.spec.node_name and pod.spec.scheduler_name in frameworks:
                self._handlers.pod("ADDED", pod, None)

    def _follow(self, informer: Informer[Any], tasks: asyncio.TaskGroup) -> None:
        log.info(3, "Starting reflector", type=informer.kind.go_type)
        self._following[informer] = tasks.create_task(informer.run())

    def _keep_whole(self, is_wanted: bool) -> None:
        """Whether pods and nodes are to keep what the API server sent: if not so before, they come anew."""
        for informer in self._feed.keep_whole(is_wanted):
            if self._tasks is not None:
                self._following[informer].cancel()
                self._follow(informer, self._tasks)

    async def _let_go_of_unneeded(self, former: Extenders) -> None:
        """Hear no more of kinds that no plugin looks at, once what began with other plugins has ended.

        What was heard of them is forgotten: it would be out of date when it is wanted again.
        """
        if self._deciding is not None:
            await asyncio.wait((self._deciding,))
        await self._beside.all_ended()
        await former.close()
        in_use = [framework for each in (self._profiles, self._awaited) for framework in each.values()]
        if not any(framework.handle.extenders.want_whole_objects for framework in in_use):
            self._keep_whole(False)
        for informer in self._feed.drop(in_use):
            self._following.pop(informer).cancel()
            for obj in informer.objects.values():
                if not isinstance(obj, CustomObject):
                    self.cache.objects.remove(obj)

    def pods(self) -> Iterator[Pod]:
        """All pods that the API server has shown, on nodes or not, whoever schedules them."""
        return (pod for pod in self._feed.pods.objects.values() if isinstance(pod, Pod))

    @property
    def informers(self) -> Sequence[Informer[Any]]:
        """What is followed."""
        return self._feed.informers

    @property
    def under_way(self) -> int:
        """How much goes on beside the cycles: bindings, mostly."""
        return len(self._beside)

    @property
    def prioritizing(self) -> int | None:
        """How many extenders are being asked for scores; None: there are none."""
        return self._handle.extenders.prioritizing if self._handle.extenders else None

    @property
    def pre_binding(self) -> int:
        """How many pre-bind plugins are at work."""
        return self._handle.pre_binding.running


def _queue_rules(frameworks: Iterable[tuple[str, Framework]]) -> dict[str, QueueRules]:
    """What profiles say about queueing, by their name; extenders cannot say what would help."""
    return {
        name: framework.queue_rules(extenders=bool(framework.handle.extenders))
        for name, framework in frameworks
    }


def _log_plugins(frameworks: Iterable[Framework]) -> None:
    if log.v >= 2:
        for framework in frameworks:
            log.info(2, "the scheduler starts to work with those plugins", Plugins=plugins_view(framework))
