"""Pods that have a node and wait for a permit."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from moorage.api.pod import Pod
from moorage.clock import Clock, Timer
from moorage.config.duration import Duration
from moorage.framework.interface.status import SUCCESS, Code, Status, unschedulable
from moorage.framework.runtime.plugin_threads import PluginThreads

MAX_WAIT_SECONDS = 15 * 60.0


class WaitingPod:
    """A pod held by permit plugins, each with its own time-out; the first to end decides."""

    def __init__(
        self,
        pod: Pod,
        node_name: str,
        timeouts: Mapping[str, float],
        clock: Clock,
        threads: PluginThreads,
        released: Callable[[WaitingPod, str], None],
    ) -> None:
        """released: called when a plugin holds the pod no more."""
        assert timeouts, "no plugin returned Wait"
        self.pod = pod
        self.node_name = node_name
        self.outcome: Status | None = None
        self._threads = threads
        self._released = released
        self._timers: dict[str, Timer] = {}
        self._done = asyncio.Event()
        for plugin, seconds in timeouts.items():
            capped = min(seconds, MAX_WAIT_SECONDS)
            self._timers[plugin] = clock.call_later(capped, lambda p=plugin, s=capped: self._expire(p, s))  # type: ignore[misc]

    @property
    def pending_plugins(self) -> frozenset[str]:
        """The plugins that have not allowed the pod yet."""
        return frozenset(self._timers)

    def allow(self, plugin: str) -> None:
        """Allow the pod for one plugin; the pod goes on when the last one has allowed it. Safe in threads."""
        if self._threads.is_elsewhere():
            self._threads.post(self.allow, plugin)
            return
        timer = self._timers.pop(plugin, None)
        if timer is not None:
            timer.cancel()
            self._released(self, plugin)
        if not self._timers:
            self._resolve(SUCCESS)

    def reject(self, plugin: str, reason: str) -> None:
        """Stop the pod. Safe in threads."""
        if self._threads.is_elsewhere():
            self._threads.post(self.reject, plugin, reason)
            return
        self._resolve(unschedulable(reason).by(plugin))

    def preempt(self, plugin: str, reason: str) -> bool:
        """Stop the pod to make room for another: it is not rejected, but tried again.

        False if the wait has ended already.
        """
        if self.outcome is not None:
            return False
        self._resolve(Status(Code.ERROR, (f"waiting on permit for pod: {reason}",), plugin))
        return True

    def _expire(self, plugin: str, seconds: float) -> None:
        self.reject(plugin, f"rejected due to timeout after waiting {Duration(seconds)} at plugin {plugin}")

    def _resolve(self, outcome: Status) -> None:
        if self.outcome is None:
            self.outcome = outcome
            for plugin, timer in self._timers.items():
                timer.cancel()
                self._released(self, plugin)
            self._done.set()

    async def wait(self) -> Status:
        """The status that ends the wait."""
        await self._done.wait()
        assert self.outcome is not None
        return self.outcome


class WaitingPods:
    """All pods that wait for a permit, by uid."""

    def __init__(self, clock: Clock, threads: PluginThreads | None = None) -> None:
        self._clock = clock
        self._threads = threads or PluginThreads()
        self._pods: dict[str, WaitingPod] = {}
        self._held_by: defaultdict[str, dict[str, WaitingPod]] = defaultdict(dict)
        """The pods that each plugin holds, by uid."""

    def hold(self, pod: Pod, node_name: str, timeouts: Mapping[str, float]) -> WaitingPod:
        """Add a waiting pod."""
        waiting = self._pods[pod.uid] = WaitingPod(
            pod, node_name, timeouts, self._clock, self._threads, self._release
        )
        for plugin in timeouts:
            self._held_by[plugin][pod.uid] = waiting
        return waiting

    def _release(self, waiting: WaitingPod, plugin: str) -> None:
        if self._held_by[plugin].get(waiting.pod.uid) is waiting:
            del self._held_by[plugin][waiting.pod.uid]

    def held_by(self, plugin: str) -> Mapping[str, WaitingPod]:
        """The pods that a plugin has neither allowed nor rejected yet, by uid."""
        return self._held_by[plugin]

    def get(self, uid: str) -> WaitingPod | None:
        """A waiting pod, or None."""
        return self._pods.get(uid)

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._pods.values()))

    async def wait_on(self, pod: Pod) -> Status:
        """The status that ends the wait of a pod; returns at once if it does not wait."""
        waiting = self._pods.get(pod.uid)
        if waiting is None:
            return SUCCESS
        try:
            return await waiting.wait()
        finally:
            self._pods.pop(pod.uid, None)
