"""The loop: one scheduling cycle after another, bindings beside it.

A cycle works on a snapshot that does not move, and only extenders make it wait: then watches and bindings go
on, and the next cycle begins when this one has ended. What else takes time is a task of its own: waiting for
a permit, writing to the API server, evicting. A pod is assumed to be on its node from the end of its cycle
until the API server confirms it or the binding fails; then everything is taken back, and those whom the room
may help are woken.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import Any

from moorage.api.pod import Pod
from moorage.client.client import Client
from moorage.client.errors import ConnectionFailed, RequestError
from moorage.client.informer import Informer
from moorage.clock import Clock
from moorage.cluster.cache import Cache
from moorage.config.types import SchedulerConfiguration
from moorage.engine.decision import Decision
from moorage.engine.engine import Engine
from moorage.engine.pausing import at_once
from moorage.framework.cycle import CycleState
from moorage.framework.extenders import ExtenderError, Extenders
from moorage.framework.handle import Handle, Live
from moorage.framework.points import PostFilterResult
from moorage.framework.prebinding import PreBinding
from moorage.framework.profiles import Profiles
from moorage.framework.registry import Registry
from moorage.framework.runtime import Framework
from moorage.framework.slowness import SLOW_SECONDS, SlowCalls
from moorage.framework.status import Code, PluginError, Status
from moorage.framework.waiting import WaitingPods
from moorage.queue import events
from moorage.queue.entry import QueuedPod
from moorage.queue.flushing import Flusher
from moorage.queue.rules import QueueRules
from moorage.queue.scheduling_queue import MAX_UNSCHEDULABLE_SECONDS, Place, SchedulingQueue
from moorage.scheduler.attempts import (
    Attempt,
    Failure,
    failure_at_a_node,
    failure_of_decision,
    failure_to_bind,
)
from moorage.scheduler.bindings import Binder
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
from moorage.services.verbosity import DETAIL

_BATCH = 20
"""So many cycles run before others get their turn on the loop."""

log = logging.getLogger(__name__)


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
        new_informer: NewInformer = Informer,
        connect_extender: Connect | None = None,
    ) -> None:
        self.cache = Cache()
        self.is_synced = False
        """Whether everything in the cluster is known."""
        self._observer = observer or Observer()
        self._registry = registry
        self._random = random
        self._clock = clock
        self._broadcaster = Broadcaster(events_client or client, clock, now, random, host)
        self._recorder = Recorder(self._broadcaster)
        self._statuses = PodStatuses(client, now)
        self._connect_extender = connect_extender
        self._waiting, pre_binding = WaitingPods(clock), PreBinding()
        binder = Binder(client, clock, random)
        self._effects = ApiEffects(client, binder, self._statuses, self._recorder, self._waiting, pre_binding)
        self._handle = Handle(
            self.cache.objects,
            self._effects,
            clock,
            random,
            self._waiting,
            pre_binding,
            nominations=self.cache.nominations,
            snapshot=self.cache.latest_snapshot,
            extenders=http_extenders(config.extenders, clock, connect_extender),
            live=Live(
                client,
                self._recorder,
                lambda pods: self.queue.activate(pods),
                lambda kind: self._feed.custom(kind),
            ),
            slow_calls=SlowCalls(slow_plugin_seconds),
        )
        self._profiles = Profiles(config, registry, self._handle, self._observer.framework)
        self._awaited = self._profiles
        """The profiles that are to be in force once all is known that they look at."""
        self._engine = Engine(config.percentage_of_nodes_to_score, random.getrandbits(32))
        frameworks = dict(self._profiles.items())
        first = next(iter(frameworks.values()))
        self.queue = SchedulingQueue(
            _queue_rules(frameworks.items()),
            first.sort_key,
            clock,
            initial_backoff_seconds=config.pod_initial_backoff_seconds,
            max_backoff_seconds=config.pod_max_backoff_seconds,
            max_unschedulable_seconds=max_unschedulable_seconds,
            nominations=self.cache.nominations,
            observer=self._observer.queue,
        )
        self._woken = asyncio.Event()
        self.queue.changed = self._woken.set
        self._flusher = Flusher(self.queue, clock)
        self._handlers = Handlers(self.cache, self.queue, self._profiles, self._waiting, pre_binding)
        self._feed = Feed(
            client,
            clock,
            random,
            self._handlers,
            frameworks.values(),
            new_informer,
            keeps_whole=self._handle.extenders.want_whole_objects,
        )
        self._observer.follow(self._feed.informers)
        self._tasks: asyncio.TaskGroup | None = None
        self._following: dict[Informer[Any], asyncio.Task[None]] = {}
        self._under_way: set[asyncio.Task[None]] = set()
        self._deciding: asyncio.Task[None] | None = None
        """The cycle that waits for extenders."""
        self._is_draining = False

    async def run(self, may_begin: asyncio.Event | None = None) -> None:
        """Schedule until cancelled; before `may_begin`, only get to know the cluster."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                await self._run(tasks, may_begin)
        finally:
            await self._handle.extenders.close()

    async def _run(self, tasks: asyncio.TaskGroup, may_begin: asyncio.Event | None) -> None:
        tasks.create_task(self._broadcaster.run())
        for informer in self._feed.informers:
            self._follow(informer, tasks)
        for informer in self._feed.informers:
            await informer.synced()
        self.is_synced = True
        if may_begin is not None:
            await may_begin.wait()
        self._flusher.start()
        try:
            await self._loop()
        finally:
            self._flusher.stop()

    async def _loop(self) -> None:
        cycles = 0
        while not self._is_draining:
            queued = self.queue.pop_now()
            if queued is None:
                self._woken.clear()
                await self._woken.wait()
                continue
            if self._handle.extenders:
                await self._attempt_pausing(queued)
            else:
                at_once(self._attempt(queued))
            cycles += 1
            if cycles % _BATCH == 0:
                await asyncio.sleep(0)

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        assert self._tasks is not None
        task = self._tasks.create_task(_survived(work))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def drain(self, seconds: float) -> None:
        """Begin no more cycles; returns once all that is under way is done and told, or after that long.

        Pods that wait for a permit are not waited for: nothing is begun with them that has to be ended.
        """
        self._is_draining = True
        self._woken.set()
        deadline = self._clock.now() + seconds
        try:
            await within(self._clock, seconds, self._all_done())
        except TimeoutError:
            log.warning("%d pods are left on their way", len(self._under_way))
        await self._broadcaster.flush(max(deadline - self._clock.now(), 0.0))

    async def _all_done(self) -> None:
        while len(self._under_way) > len(self._waiting):
            await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)

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
        former, self._handle = self._handle.extenders, handle
        self._go_on_with(config, profiles)
        if self._tasks is not None:
            self._tasks.create_task(self._let_go_of_unneeded(former))

    def _go_on_with(self, config: SchedulerConfiguration, profiles: Profiles) -> None:
        frameworks = dict(profiles.items())
        self._profiles = self._handlers.profiles = profiles
        self._engine = Engine(config.percentage_of_nodes_to_score, self._random.getrandbits(32))
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
        if self._under_way:
            await asyncio.wait(list(self._under_way))
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
        return len(self._under_way)

    @property
    def prioritizing(self) -> int | None:
        """How many extenders are being asked for scores; None: there are none."""
        return self._handle.extenders.prioritizing if self._handle.extenders else None

    @property
    def pre_binding(self) -> int:
        """How many pre-bind plugins are at work."""
        return self._handle.pre_binding.running

    # -- the scheduling cycle

    async def _attempt_pausing(self, queued: QueuedPod) -> None:
        """Try a pod with extenders; meanwhile the snapshot stays as it is, and all else goes on."""
        self._deciding = asyncio.ensure_future(self._attempt(queued))
        try:
            await self._deciding
        finally:
            self._deciding = None

    async def _attempt(self, queued: QueuedPod) -> None:
        """Try a pod; whatever goes wrong is that pod's misfortune, not the scheduler's."""
        try:
            await self._schedule(queued)
        except Exception as error:
            log.exception("scheduling %s failed", queued.pod.key)
            self._fail(queued, Failure("SchedulerError", str(error) or type(error).__name__, nominated=""))

    async def _schedule(self, queued: QueuedPod) -> None:
        pod = queued.pod
        framework = self._profiles.of(pod)
        if framework is None or self._is_to_be_skipped(pod):
            self.queue.done(pod.uid)
            return
        self._observer.begins(queued)
        cycle = CycleState()
        decision = await self._engine.decide_pausing(framework, pod, self.cache.snapshot(), cycle)
        if framework.handle.extenders and self._is_too_late(queued):
            self._let_go(queued, decision)
            return
        self._observer.decided(queued, decision)
        if decision.node is None:
            self._refused(queued, decision)
            return
        attempt = Attempt(
            queued,
            self._assume(pod, decision.node, cycle),
            decision.node,
            framework,
            cycle,
            decision.evaluated,
            len(decision.feasible),
        )
        status = self._reserve(attempt)
        if status.code not in (Code.SUCCESS, Code.WAIT):
            # Nobody has seen the room taken, so nobody is to be told that it is free again.
            self._take_back(attempt, failure_at_a_node(status))
            return
        self._activate(cycle)
        self._aside(self._bind(attempt))

    def _assume(self, pod: Pod, node_name: str, cycle: CycleState) -> Pod:
        like = None if cycle.template is None else cycle.template.info(pod)
        return self.cache.assume_pod(pod, node_name, like)

    def _is_to_be_skipped(self, pod: Pod) -> bool:
        """Whether there is nothing to do for a pod: it goes, or it has its node."""
        if pod.metadata.deletion_timestamp:
            self._recorder.skipped(pod)
            return True
        return self.cache.pod(pod.uid) is not None

    def _is_too_late(self, queued: QueuedPod) -> bool:
        """Whether nothing is to come of a decision any more that has taken its time."""
        known = self._feed.pods.get(queued.pod.namespace, queued.pod.name)
        if self._is_draining or not isinstance(known, Pod) or known.uid != queued.uid:
            return True
        return self._is_to_be_skipped(known)

    def _let_go(self, queued: QueuedPod, decision: Decision) -> None:
        """Have nothing come of a decision."""
        self._observer.let_go(queued)
        if decision.post_filter is not None:
            decision.post_filter.done()
        self.queue.done(queued.uid)

    def _reserve(self, attempt: Attempt) -> Status:
        """Reserve what an assumed pod needs, and ask whether it may go on."""
        framework, where = attempt.framework, (attempt.cycle, attempt.pod, attempt.node_name)
        try:
            status = framework.reserve(*where)
            return framework.permit(*where) if status.code is Code.SUCCESS else status
        except PluginError as error:
            log.error("scheduling %s failed: %s", attempt.pod.key, error)
            return Status(Code.ERROR, (str(error),), error.plugin)

    def _activate(self, cycle: CycleState) -> None:
        """Let the pods be tried that plugins want to be tried."""
        if cycle.pods_to_activate:
            self.queue.activate(cycle.pods_to_activate.values())
            cycle.pods_to_activate.clear()

    def _refused(self, queued: QueuedPod, decision: Decision) -> None:
        """No node: the pod waits for what may help it, and what was arranged to make room is set going."""
        arranged = decision.post_filter
        if decision.error is not None:
            log.error("scheduling %s failed: %s", queued.pod.key, decision.error)
        self._fail(queued, failure_of_decision(decision))
        if arranged is not None and arranged.effects:
            self._aside(self._make_room(queued.pod, arranged))
        elif arranged is not None:
            arranged.done()

    async def _make_room(self, pod: Pod, arranged: PostFilterResult) -> None:
        failed, began = False, self._clock.now()
        try:
            for effect in arranged.effects:
                await self._effects.perform(effect)
        except (RequestError, ConnectionFailed) as error:
            failed = True
            log.warning("making room for %s: %s", pod.key, error)
        except Exception:
            failed = True
            log.exception("making room for %s failed", pod.key)
        self._observer.made_room(not failed, self._clock.now() - began)
        arranged.done()
        # Until now the pod was kept from being tried; what happened meanwhile must not be lost on it.
        if failed or self.queue.place_of(pod.uid) is Place.GATED:
            self.queue.activate([pod])

    def _fail(self, queued: QueuedPod, failure: Failure) -> None:
        """Put a pod back into the queue as it is now, and say why; one that is gone or bound is let go."""
        self._observer.failed(queued, failure.reason)
        known = self._feed.pods.get(queued.pod.namespace, queued.pod.name)
        if not isinstance(known, Pod) or known.uid != queued.uid:
            self.queue.done(queued.uid)
            return
        if known.spec.node_name:
            self.queue.done(queued.uid)  # Somebody else was faster: that is worth an event, not a condition.
            self._recorder.failed(known, failure.message)
            return
        self.queue.put_back(
            queued,
            known,
            unschedulable_plugins=failure.unschedulable_plugins,
            pending_plugins=failure.pending_plugins,
        )
        book = self.cache.nominations
        kept = book.node_of(known.uid) or known.status.nominated_node_name
        book.put(known, kept if failure.nominated is None else failure.nominated)
        self._recorder.failed(known, failure.message)
        self._aside(self._statuses.not_scheduled(known, failure.reason, failure.message, failure.nominated))

    # -- the binding cycle

    async def _bind(self, attempt: Attempt) -> None:
        queued, pod, framework = attempt.queued, attempt.pod, attempt.framework
        failure = await self._binding_cycle(attempt)
        if failure is not None:
            room = self.cache.is_assumed(pod)
            self._take_back(attempt, failure)
            if room:
                self.queue.move_all(events.ASSIGNED_POD_DELETE, pod, None, lambda other: other.uid != pod.uid)
            return
        log.log(
            DETAIL,
            '"Successfully bound pod to node" pod="%s" node="%s" evaluatedNodes=%d feasibleNodes=%d',
            pod.key,
            attempt.node_name,
            attempt.evaluated,
            attempt.feasible,
        )
        self._observer.bound(queued, self._clock.now())
        self._recorder.scheduled(pod, attempt.node_name)
        try:
            await framework.post_bind(attempt.cycle, pod, attempt.node_name)
        except PluginError as error:
            log.warning("after binding %s: %s", pod.key, error)
        self._activate(attempt.cycle)

    async def _binding_cycle(self, attempt: Attempt) -> Failure | None:
        """What keeps a pod from being bound; None once it is bound."""
        pod, framework = attempt.pod, attempt.framework
        where = (attempt.cycle, pod, attempt.node_name)
        try:
            if framework.pre_bind_pre_flight(*where) or self._waiting.get(pod.uid):
                # It may take a while: others should know where the pod is going to be.
                await self._statuses.nominate(attempt.queued.pod, attempt.node_name)
            status = await framework.wait_on_permit(pod)
            if status.code is not Code.SUCCESS:
                return failure_at_a_node(status)
            # From here on the pod cannot be refused any more, only fail: it need not remember events.
            self.queue.done(pod.uid)
            status = await framework.pre_bind(*where)
            if status.code is Code.SUCCESS and not await framework.handle.extenders.bind(*where[1:]):
                status = await framework.bind(*where)
            return None if status.code is Code.SUCCESS else failure_to_bind(status)
        except ExtenderError as error:
            log.error("binding %s failed: %s", pod.key, error)
            return Failure("SchedulerError", str(error), nominated="")
        except (PluginError, RequestError, ConnectionFailed) as error:
            # A pod that is stopped and a server that refuses are nothing unusual; a broken plugin is.
            if not isinstance(error.__cause__, RequestError | ConnectionFailed | None):
                log.error("binding %s failed: %s", pod.key, error)
            return Failure("SchedulerError", str(error), nominated="")
        except Exception as error:
            log.exception("binding %s failed", pod.key)
            return Failure("SchedulerError", f"{type(error).__name__}: {error}", nominated="")

    def _take_back(self, attempt: Attempt, failure: Failure) -> None:
        """Undo what a pod had reserved, and try it again later."""
        pod = attempt.pod
        for problem in attempt.framework.unreserve(attempt.cycle, pod, attempt.node_name):
            log.warning("giving back what %s had reserved: %s", pod.key, problem)
        self.cache.forget_pod(pod)
        self._fail(attempt.queued, failure)


def _queue_rules(frameworks: Iterable[tuple[str, Framework]]) -> dict[str, QueueRules]:
    """What profiles say about queueing, by their name; extenders cannot say what would help."""
    return {
        name: framework.queue_rules(extenders=bool(framework.handle.extenders))
        for name, framework in frameworks
    }


async def _survived(work: Coroutine[Any, Any, None]) -> None:
    """Some work; if it fails in a way that nobody has thought of, all other work goes on."""
    try:
        await work
    except Exception:
        log.exception("something went wrong beside the scheduling cycles")
