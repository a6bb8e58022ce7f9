"""A scheduler loop as small as can be: pending pods by priority, one cycle after another, bindings beside it.

It has no queueing hints: a pod that fitted nowhere is tried again after its backoff, once anything in the
cluster has changed.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from random import Random

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.client.client import Client
from moorage.client.errors import ConnectionFailed, RequestError
from moorage.client.informer import EventType
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
from moorage.scheduler.effects import ApiEffects
from moorage.scheduler.events import Recorder
from moorage.scheduler.feed import Feed

_BATCH = 20
"""So many cycles run before others get their turn on the loop."""
_ROUND = 500
"""So many pods are tried before their order is made anew."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Waiting:
    """A pod without a node."""

    pod: Pod
    attempts: int = 0
    not_before: float = 0.0
    seen_change: int = -1
    """The cluster's change count when the pod was last tried; the same count means: nothing has changed."""


class MinimalScheduler:
    """Binds the pods whose scheduler is one of the configuration's profiles."""

    def __init__(
        self,
        client: Client,
        config: SchedulerConfiguration,
        registry: Registry,
        clock: Clock,
        now: Callable[[], datetime],
        random: Random,
    ) -> None:
        self._clock = clock
        self._cache = Cache()
        self._recorder = Recorder(client, now, random, f"moorage-{socket.gethostname()}")
        self._effects = ApiEffects(client, self._recorder, now)
        handle = Handle(self._cache.objects, self._effects, clock, random)
        self._profiles = Profiles(config, registry, handle)
        self._config = config
        self._engine = Engine(config.percentage_of_nodes_to_score, random.getrandbits(32))
        self._feed = Feed(client, clock, self._cache)
        for informer in self._feed.informers[:-1]:
            informer.listeners.append(self._note_change)
        self._feed.pods.listeners.append(self._follow_pod)
        self._waiting: dict[str, _Waiting] = {}
        self._changes = 0
        self._woken = asyncio.Event()

    async def run(self) -> None:
        """Schedule until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for informer in self._feed.informers:
                tasks.create_task(informer.run())
            for informer in self._feed.informers:
                await informer.synced()
            while True:
                await self._round(tasks)

    # -- what changes

    def _note_change(self, type: EventType, obj: Object, before: Object | None) -> None:
        self._changes += 1
        self._woken.set()

    def _follow_pod(self, type: EventType, obj: Object, before: Object | None) -> None:
        assert isinstance(obj, Pod)
        if type == "DELETED" or obj.finished:
            self._waiting.pop(obj.uid, None)
            self._cache.remove_pod(obj)
            self._note_change(type, obj, before)
        elif obj.spec.node_name:
            self._waiting.pop(obj.uid, None)
            self._cache.put_pod(obj)
            self._note_change(type, obj, before)
        elif self._profiles.of(obj) is not None and not self._cache.is_assumed(obj):
            self._cache.nominations.put(obj, obj.status.nominated_node_name)
            known = self._waiting.get(obj.uid)
            if known is None:
                self._waiting[obj.uid] = _Waiting(obj)
                self._woken.set()
            else:
                if known.pod.spec != obj.spec or known.pod.labels != obj.labels:
                    known.seen_change = -1
                    self._woken.set()
                known.pod = obj

    # -- scheduling

    async def _round(self, tasks: asyncio.TaskGroup) -> None:
        """Try the pods that may be tried now, the most important first; or wait until there is one."""
        now = self._clock.now()
        ready = [one for one in self._waiting.values() if self._may_try(one, now)]
        if not ready:
            await self._wait_for_something(now)
            return
        ready.sort(key=lambda one: (-one.pod.priority, one.pod.metadata.creation_timestamp, one.pod.key))
        for index, waiting in enumerate(ready[:_ROUND]):
            if index % _BATCH == 0:
                await asyncio.sleep(0)
            if waiting.pod.uid in self._waiting:
                self._try(waiting, tasks)

    def _may_try(self, waiting: _Waiting, now: float) -> bool:
        framework = self._profiles.of(waiting.pod)
        return (
            waiting.not_before <= now
            and waiting.seen_change != self._changes
            and framework is not None
            and not waiting.pod.metadata.deletion_timestamp
            and framework.pre_enqueue(waiting.pod) is None
        )

    async def _wait_for_something(self, now: float) -> None:
        self._woken.clear()
        due = [
            one.not_before for one in self._waiting.values()
            if one.not_before > now and one.seen_change != self._changes
        ]  # fmt: skip
        timer = self._clock.call_later(min(due) - now, self._woken.set) if due else None
        await self._woken.wait()
        if timer is not None:
            timer.cancel()

    def _try(self, waiting: _Waiting, tasks: asyncio.TaskGroup) -> None:
        pod = waiting.pod
        framework = self._profiles.of(pod)
        assert framework is not None
        cycle = CycleState()
        decision = self._engine.decide(framework, pod, self._cache.snapshot(), cycle)
        waiting.attempts += 1
        waiting.seen_change = self._changes
        if decision.node is None:
            self._put_off(waiting)
            arranged = decision.post_filter
            if arranged is not None and arranged.nominated_node is not None:
                self._cache.nominations.put(pod, arranged.nominated_node)
            tasks.create_task(self._explain(waiting, decision))
            return
        self._cache.assume_pod(pod, decision.node)
        status = framework.reserve(cycle, pod, decision.node)
        if status.code is Code.SUCCESS:
            status = framework.permit(cycle, pod, decision.node)
        if status.code not in (Code.SUCCESS, Code.WAIT):
            self._give_back(waiting, framework, cycle, decision.node)
            tasks.create_task(self._recorder.failed(pod, "SchedulerError", status.message))
            return
        del self._waiting[pod.uid]
        tasks.create_task(self._bind(waiting, framework, cycle, decision.node))

    def _put_off(self, waiting: _Waiting) -> None:
        """The pod waits: longer after every attempt, up to a limit."""
        first, most = self._config.pod_initial_backoff_seconds, self._config.pod_max_backoff_seconds
        pause = min(first * 2 ** (waiting.attempts - 1), most)
        waiting.not_before = self._clock.now() + pause

    def _give_back(self, waiting: _Waiting, framework: Framework, cycle: CycleState, node_name: str) -> None:
        framework.unreserve(cycle, waiting.pod, node_name)
        self._cache.forget_pod(waiting.pod)
        self._changes += 1
        self._put_off(waiting)
        self._waiting.setdefault(waiting.pod.uid, waiting)
        self._woken.set()

    async def _explain(self, waiting: _Waiting, decision: Decision) -> None:
        """Say why a pod has no node, and do what was arranged to make room for it."""
        arranged = decision.post_filter
        reason = "SchedulerError" if decision.error is not None else "Unschedulable"
        try:
            nominated = None if arranged is None else arranged.nominated_node
            await self._recorder.failed(waiting.pod, reason, decision.message, nominated)
            if arranged is not None:
                for effect in arranged.effects:
                    await self._effects.perform(effect)
        except (RequestError, ConnectionFailed) as error:
            log.warning("making room for %s: %s", waiting.pod.key, error)
        finally:
            if arranged is not None:
                arranged.done()
            self._woken.set()

    async def _bind(self, waiting: _Waiting, framework: Framework, cycle: CycleState, node_name: str) -> None:
        status = await self._binding_cycle(waiting.pod, framework, cycle, node_name)
        if status.code is Code.SUCCESS:
            await self._recorder.scheduled(waiting.pod, node_name)
            await framework.post_bind(cycle, waiting.pod, node_name)
            return
        log.warning("binding %s to %s: %s", waiting.pod.key, node_name, status.message)
        self._give_back(waiting, framework, cycle, node_name)
        if self._feed.pods.get(waiting.pod.namespace, waiting.pod.name) is None:
            self._waiting.pop(waiting.pod.uid, None)
            return
        await self._recorder.failed(waiting.pod, "SchedulerError", status.message)

    async def _binding_cycle(
        self, pod: Pod, framework: Framework, cycle: CycleState, node_name: str
    ) -> Status:
        try:
            status = await framework.wait_on_permit(pod)
            if status.code is Code.SUCCESS:
                status = await framework.pre_bind(cycle, pod, node_name)
            if status.code is Code.SUCCESS:
                status = await framework.bind(cycle, pod, node_name)
            return status
        except PluginError as error:
            return Status(Code.ERROR, (str(error),))
