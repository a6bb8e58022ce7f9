"""The cluster as an extender follows it: nodes, pods, and whatever else its plugin looks at."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable
from datetime import datetime
from random import Random
from typing import Any

from moorage.api.base import Object
from moorage.api.decode import KINDS
from moorage.api.pod import Pod
from moorage.client import kinds
from moorage.client.client import Client
from moorage.client.informer import EventType, Informer
from moorage.client.kinds import Kind
from moorage.clock import Clock
from moorage.cluster.cache import Cache
from moorage.framework.interface.handle import Handle, Live
from moorage.framework.runtime.framework import Framework
from moorage.framework.runtime.plugin_threads import MAX_PLUGIN_THREADS, PluginThreads
from moorage.framework.runtime.pre_binding import PreBinding
from moorage.framework.runtime.waiting_pods import WaitingPods
from moorage.scheduler.bindings import Binder
from moorage.scheduler.effects import ApiEffects
from moorage.scheduler.events import Recorder
from moorage.scheduler.feed import decoder
from moorage.scheduler.needs import needed_kinds
from moorage.scheduler.statuses import PodStatuses
from moorage.services.events import Broadcaster


class FollowedCluster:
    """Nodes and pods as they are now (`cache`), and what a plugin needs to work with them (`handle`)."""

    def __init__(self, client: Client, clock: Clock, now: Callable[[], datetime], random: Random) -> None:
        self.cache = Cache()
        self._client = client
        self._clock = clock
        self._random = random
        self._broadcaster = Broadcaster(client, clock, now, random, socket.gethostname())
        recorder = Recorder(self._broadcaster)
        self._threads = PluginThreads(MAX_PLUGIN_THREADS, clock.now)
        waiting, pre_binding = WaitingPods(clock, self._threads), PreBinding()
        binder = Binder(client, clock, random)
        self.handle = Handle(
            self.cache.objects,
            ApiEffects(client, binder, PodStatuses(client, now), recorder, waiting, pre_binding),
            clock,
            random,
            waiting,
            pre_binding,
            nominations=self.cache.nominations,
            snapshot=self.cache.latest_snapshot,
            live=Live(client, recorder, _nobody_waits),
            threads=self._threads,
        )
        self._pods = self._informer(kinds.POD)

    def pod(self, namespace: str, name: str) -> Pod | None:
        """A pod, on a node or not."""
        found = self._pods.get(namespace, name)
        return found if isinstance(found, Pod) else None

    async def follow(self, framework: Framework, is_known: asyncio.Event) -> None:
        """Follow what a profile looks at until cancelled; `is_known` is set once all is known."""
        informers = [self._informer(kind) for kind in (kinds.NODE, *needed_kinds([framework]))]
        informers.append(self._pods)
        async with asyncio.TaskGroup() as tasks:
            self._threads.begin(tasks)
            tasks.create_task(self._broadcaster.run())
            for informer in informers:
                tasks.create_task(informer.run())
            for informer in informers:
                await informer.synced()
            is_known.set()

    def _informer(self, kind: Kind) -> Informer[Any]:
        decode = decoder(KINDS[kind.name])
        informer: Informer[Object] = Informer(
            self._client, kind, self._clock, decode=decode, random=self._random
        )
        informer.listeners.append(self._heard)
        return informer

    def _heard(self, type: EventType, obj: Object, before: Object | None) -> None:
        if type == "DELETED" or (isinstance(obj, Pod) and obj.finished):
            self.cache.remove(obj)
            return
        if isinstance(before, Pod) and before.metadata.uid != obj.metadata.uid:
            self.cache.remove(before)
        self.cache.put(obj)


def _nobody_waits(pods: Iterable[Pod]) -> None:
    """There is no queue here whose pods could be tried at once."""
