"""The loop: one scheduling cycle after another, bindings beside it.

A cycle is synchronous and works on a snapshot that does not move. What takes time is a task of its own:
waiting for a permit, writing to the API server, evicting. A pod is assumed to be on its node from the end of
its cycle until the API server confirms it or the binding fails; then everything is taken back, and those whom
the room may help are woken.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from datetime import datetime
from random import Random
from typing import Any

from moorage.api.pod import Pod
from moorage.client.client import Client
from moorage.client.errors import ConnectionFailed, RequestError
from moorage.clock import Clock
from moorage.cluster.cache import Cache
from moorage.config.types import SchedulerConfiguration
from moorage.engine.decision import Decision
from moorage.engine.engine import Engine
from moorage.framework.cycle import CycleState
from moorage.framework.handle import Handle
from moorage.framework.profiles import Profiles
from moorage.framework.registry import Registry
from moorage.framework.runtime import Framework
from moorage.framework.status import Code, PluginError, Status
from moorage.queue import events
from moorage.queue.entry import QueuedPod
from moorage.queue.flushing import Flusher
from moorage.queue.scheduling_queue import Place, SchedulingQueue
from moorage.scheduler.effects import ApiEffects
from moorage.scheduler.events import Recorder
from moorage.scheduler.feed import Feed
from moorage.scheduler.handlers import Handlers

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
        instance: str,
    ) -> None:
        self.cache = Cache()
        self._recorder = Recorder(client, now, random, instance)
        self._effects = ApiEffects(client, self._recorder, now)
        self._profiles = Profiles(config, registry, Handle(self.cache.objects, self._effects, clock, random))
        self._engine = Engine(config.percentage_of_nodes_to_score, random.getrandbits(32))
        frameworks = dict(self._profiles.items())
        first = next(iter(frameworks.values()))
        self.queue = SchedulingQueue(
            {name: framework.queue_rules() for name, framework in frameworks.items()},
            first.sort_key,
            clock,
            initial_backoff_seconds=config.pod_initial_backoff_seconds,
            max_backoff_seconds=config.pod_max_backoff_seconds,
            nominations=self.cache.nominations,
        )
        self._woken = asyncio.Event()
        self.queue.changed = self._woken.set
        self._flusher = Flusher(self.queue, clock)
        self._feed = Feed(client, clock, Handlers(self.cache, self.queue, self._profiles))
        self._tasks: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Schedule until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            for informer in self._feed.informers:
                tasks.create_task(informer.run())
            for informer in self._feed.informers:
                await informer.synced()
            self._flusher.start()
            try:
                await self._loop()
            finally:
                self._flusher.stop()

    async def _loop(self) -> None:
        cycles = 0
        while True:
            queued = self.queue.pop_now()
            if queued is None:
                self._woken.clear()
                await self._woken.wait()
                continue
            self._attempt(queued)
            cycles += 1
            if cycles % _BATCH == 0:
                await asyncio.sleep(0)

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        assert self._tasks is not None
        self._tasks.create_task(work)

    # -- the scheduling cycle

    def _attempt(self, queued: QueuedPod) -> None:
        """Try a pod; whatever goes wrong is that pod's misfortune, not the scheduler's."""
        try:
            self._schedule(queued)
        except Exception as error:
            log.exception("scheduling %s failed", queued.pod.key)
            self.cache.forget_pod(queued.pod)
            self._fail(queued, "SchedulerError", str(error) or type(error).__name__)

    def _schedule(self, queued: QueuedPod) -> None:
        pod = queued.pod
        framework = self._profiles.of(pod)
        if framework is None or pod.metadata.deletion_timestamp or self.cache.pod(pod.uid) is not None:
            self.queue.done(pod.uid)  # Nothing to do for it: it goes, or it has its node.
            return
        cycle = CycleState()
        decision = self._engine.decide(framework, pod, self.cache.snapshot(), cycle)
        if decision.node is None:
            self._refused(queued, decision)
            return
        node_name = decision.node
        self.cache.assume_pod(pod, node_name)
        status = framework.reserve(cycle, pod, node_name)
        if status.code is Code.SUCCESS:
            status = framework.permit(cycle, pod, node_name)
        if status.code in (Code.SUCCESS, Code.WAIT):
            self._aside(self._bind(queued, framework, cycle, node_name))
        else:
            self._take_back(queued, framework, cycle, node_name, status)

    def _refused(self, queued: QueuedPod, decision: Decision) -> None:
        """No node: the pod waits for what may help it, and what was arranged to make room is set going."""
        arranged = decision.post_filter
        nominated = arranged.nominated_node if arranged is not None else None
        if nominated is not None:
            self.cache.nominations.put(queued.pod, nominated)
        if decision.error is not None:
            self._fail(queued, "SchedulerError", decision.message, nominated)
        else:
            diagnosis = decision.diagnosis
            self._fail(
                queued,
                "Unschedulable",
                decision.message,
                nominated,
                unschedulable_plugins=diagnosis.plugins,
                pending_plugins=diagnosis.pending_plugins,
            )
        if arranged is not None and arranged.effects:
            self._aside(self._make_room(queued.pod, decision))
        elif arranged is not None:
            arranged.done()

    async def _make_room(self, pod: Pod, decision: Decision) -> None:
        arranged = decision.post_filter
        assert arranged is not None
        failed = False
        try:
            for effect in arranged.effects:
                await self._effects.perform(effect)
        except (RequestError, ConnectionFailed) as error:
            failed = True
            log.warning("making room for %s: %s", pod.key, error)
        except Exception:
            failed = True
            log.exception("making room for %s failed", pod.key)
        arranged.done()
        # Until now the pod was kept from being tried; what happened meanwhile must not be lost on it.
        if failed or self.queue.place_of(pod.uid) is Place.GATED:
            self.queue.activate([pod])

    def _fail(
        self,
        queued: QueuedPod,
        reason: str,
        message: str,
        nominated: str | None = None,
        unschedulable_plugins: set[str] | frozenset[str] = frozenset(),
        pending_plugins: set[str] | frozenset[str] = frozenset(),
    ) -> None:
        """Put a pod back into the queue as it is now, and say why; one that is gone or bound is let go."""
        known = self._feed.pods.get(queued.pod.namespace, queued.pod.name)
        if not isinstance(known, Pod) or known.uid != queued.uid or known.spec.node_name:
            self.queue.done(queued.uid)
            return
        self.queue.put_back(
            queued, known, unschedulable_plugins=unschedulable_plugins, pending_plugins=pending_plugins
        )
        self._aside(self._recorder.failed(known, reason, message, nominated))

    # -- the binding cycle

    async def _bind(self, queued: QueuedPod, framework: Framework, cycle: CycleState, node_name: str) -> None:
        status = await self._binding_cycle(queued, framework, cycle, node_name)
        if status.code is not Code.SUCCESS:
            self._take_back(queued, framework, cycle, node_name, status)
            return
        self.queue.done(queued.uid)
        await self._recorder.scheduled(queued.pod, node_name)
        try:
            await framework.post_bind(cycle, queued.pod, node_name)
        except PluginError as error:
            log.warning("after binding %s: %s", queued.pod.key, error)

    async def _binding_cycle(
        self, queued: QueuedPod, framework: Framework, cycle: CycleState, node_name: str
    ) -> Status:
        pod = queued.pod
        try:
            status = await framework.wait_on_permit(pod)
            if status.code is not Code.SUCCESS:
                return status
            # From here on the pod cannot be refused any more, only fail: it need not remember events.
            self.queue.done(queued.uid)
            status = await framework.pre_bind(cycle, pod, node_name)
            if status.code is Code.SUCCESS:
                status = await framework.bind(cycle, pod, node_name)
            if status.refused:
                return Status(Code.ERROR, status.reasons, status.plugin)
            return status
        except (PluginError, RequestError, ConnectionFailed) as error:
            return Status(Code.ERROR, (str(error),))
        except Exception as error:
            log.exception("binding %s failed", pod.key)
            return Status(Code.ERROR, (f"{type(error).__name__}: {error}",))

    def _take_back(
        self, queued: QueuedPod, framework: Framework, cycle: CycleState, node_name: str, status: Status
    ) -> None:
        """Undo what a pod had reserved, wake those whom that may help, and try the pod again later."""
        pod = queued.pod
        for problem in framework.unreserve(cycle, pod, node_name):
            log.warning("giving back what %s had reserved: %s", pod.key, problem)
        was_assumed = self.cache.is_assumed(pod)
        self.cache.forget_pod(pod)
        refusers = frozenset((status.plugin,)) if status.refused and status.plugin else frozenset()
        self._fail(
            queued,
            "Unschedulable" if refusers else "SchedulerError",
            status.message,
            unschedulable_plugins=refusers,
        )
        if was_assumed:
            self.queue.move_all(events.ASSIGNED_POD_DELETE, pod, None, lambda other: other.uid != pod.uid)
