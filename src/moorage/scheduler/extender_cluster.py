"""The cluster state of an extender: nodes, pods, and the other kinds its plugin reads."""

from __future__ import annotations

import asyncio
import socket
from random import Random
from typing import Any

from moorage.api.base import Object
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
from moorage.scheduler.api_effects import ApiEffects
from moorage.scheduler.binder import Binder
from moorage.scheduler.informers import decoder_of
from moorage.scheduler.pod_events import PodEventRecorder
from moorage.scheduler.pod_status_writer import PodStatusWriter
from moorage.scheduler.watched_kinds import needed_kinds
from moorage.services.event_broadcaster import Broadcaster


class ExtenderCluster:
    """Nodes and pods in their current state (`cache`), and the plugin's handle (`handle`)."""

    def __init__(self, client: Client, clock: Clock, random: Random) -> None:
        self.cache = Cache()
        self._client = client
        self._clock = clock
        self._random = random
        self._broadcaster = Broadcaster(client, clock, random, socket.gethostname())
        recorder = PodEventRecorder(self._broadcaster)
        self._threads = PluginThreads(MAX_PLUGIN_THREADS, clock.now)
        waiting, pre_binding = WaitingPods(clock, self._threads), PreBinding()
        binder = Binder(client, clock, random)
        self.handle = Handle(
            self.cache.objects,
            ApiEffects(client, binder, PodStatusWriter(client, clock), recorder, waiting, pre_binding),
            clock,
            random,
            waiting,
            pre_binding,
            nominations=self.cache.nominations,
            snapshot=self.cache.latest_snapshot,
            follow_pods=self.cache.follow_pods,
            pods_on=self.cache.pods_on,
            live=Live(client, recorder, _no_queue, _no_queue),
            threads=self._threads,
        )
        self._pods = self._informer(kinds.POD)

    def pod(self, namespace: str, name: str) -> Pod | None:
        """A pod, bound or not."""
        found = self._pods.get(namespace, name)
        return found if isinstance(found, Pod) else None

    async def run_informers(self, framework: Framework, is_known: asyncio.Event) -> None:
        """Run the informers that a profile needs until cancelled; `is_known` is set once all are synced."""
        informers = [self._informer(kind) for kind in (kinds.NODE, *needed_kinds([framework]))]
        informers.append(self._pods)
        async with asyncio.TaskGroup() as tasks:
            self._threads.begin(tasks)
            self.handle.periodic.begin(self._clock, tasks)
            tasks.create_task(self._broadcaster.run())
            for informer in informers:
                tasks.create_task(informer.run())
            for informer in informers:
                await informer.synced()
            is_known.set()

    def _informer(self, kind: Kind) -> Informer[Any]:
        decode = decoder_of(kind)
        informer: Informer[Object] = Informer(
            self._client, kind, self._clock, decode=decode, random=self._random
        )
        informer.listeners.append(self._on_event)
        return informer

    def _on_event(self, type: EventType, obj: Object, before: Object | None) -> None:
        if type == "DELETED" or (isinstance(obj, Pod) and obj.finished):
            self.cache.remove(obj)
            return
        if isinstance(before, Pod) and before.metadata.uid != obj.metadata.uid:
            self.cache.remove(before)
        self.cache.put(obj)


def _no_queue(waiting: object) -> None:
    """An extender has no queue: there are no pods to activate."""
