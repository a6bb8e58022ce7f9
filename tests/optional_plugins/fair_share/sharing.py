"""A queue sorted by FairShare over a cluster in memory, in virtual time: for tests."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from moorage import Cache, Handle, Pod, QueuedPod, pod_requests
from moorage.api.pod import DEFAULT_SCHEDULER
from moorage.clock import VirtualClock
from moorage.framework.runtime.plugin_metrics import PluginMetrics
from moorage.optional_plugins.fair_share.plugin import FairShare
from moorage.optional_plugins.fair_share.shares import Shares
from moorage.plugins import default_registry
from moorage.queue import cluster_events as events
from moorage.queue.cluster_events import Action, Resource, on
from moorage.queue.flushing import Flusher
from moorage.queue.queueing_rules import QueueRules
from moorage.queue.scheduling_queue import SchedulingQueue
from tests.builders import container, make_node, make_pod

FIT = "Fit"
"""The plugin that rejects pods for which there is no room."""
RULES = {
    DEFAULT_SCHEDULER: QueueRules(
        lambda pod, ask_first: "", {FIT: (on(Resource.ASSIGNED_POD, Action.DELETE),)}
    )
}
_BILLION = 10**9


def a_pod(name: str, owner: str, cpu: str = "1", memory: str = "1Gi", **fields: Any) -> Pod:
    """A pod of a namespace that requests something."""
    requests = {"cpu": cpu, "memory": memory}
    return make_pod(name, uid=name, namespace=owner, containers=[container(requests)], **fields)


class SharedCluster:
    """One node, and a queue whose pods get room there as long as it lasts."""

    def __init__(
        self,
        cpu: str = "10",
        memory: str = "40Gi",
        pods: str = "1000",
        metrics: PluginMetrics | None = None,
        **args: Any,
    ) -> None:
        self.clock = VirtualClock(1000.0)
        self.cache = Cache([make_node("n1", allocatable={"cpu": cpu, "memory": memory, "pods": pods})])
        self.handle = Handle(
            self.cache.objects,
            clock=self.clock,
            snapshot=self.cache.snapshot,
            follow_pods=self.cache.follow_pods,
            metrics=metrics or PluginMetrics(),
        )
        plugin = default_registry().make("FairShare", args, self.handle)
        assert isinstance(plugin, FairShare)
        self.plugin = plugin
        self.queue = SchedulingQueue(RULES, plugin.queue_sort, self.clock, sub_queues=plugin)
        Flusher(self.queue, self.clock).start()
        self.running: dict[str, Pod] = {}
        self.has_room: Callable[[Pod], bool] = self._fits
        self.decisions = 0

    @property
    def shares(self) -> Shares:
        """The plugin's shares; a pod has been popped."""
        assert self.plugin._shares is not None
        return self.plugin._shares

    def totals(self) -> dict[str, int]:
        """What the node has, in billionths."""
        (node,) = self.cache.nodes()
        return {name: int(amount) for name, amount in node.status.allocatable.items()}

    def used(self, owner: str | None = None) -> dict[str, int]:
        """What the pods on the node request, in billionths, counted again: those of an owner, or all."""
        used = dict.fromkeys(self.totals(), 0)
        for pod in self.cache.pods():
            if owner in (None, pod.namespace):
                for name, amount in {"pods": _BILLION, **pod_requests(pod)}.items():
                    used[name] = used.get(name, 0) + amount
        return used

    def dominant_share(self, owner: str) -> float:
        """The largest share of any resource that an owner's pods have."""
        totals, used = self.totals(), self.used(owner)
        return max(amount / totals[name] for name, amount in used.items() if totals.get(name))

    def _fits(self, pod: Pod) -> bool:
        totals, used = self.totals(), self.used()
        return all(
            used.get(name, 0) + amount <= totals.get(name, 0)
            for name, amount in {"pods": _BILLION, **pod_requests(pod)}.items()
        )

    def attempt(self) -> tuple[QueuedPod, bool] | None:
        """Decide about the next pod: whether it got room; None: there is none."""
        queued = self.queue.pop_now()
        if queued is None:
            return None
        self.decisions += 1
        if not self.has_room(queued.pod):
            self.queue.put_back(queued, queued.pod, unschedulable_plugins=(FIT,))
            return queued, False
        self.running[queued.uid] = self.cache.assume_pod(queued.pod, "n1")
        self.queue.done(queued.uid)
        return queued, True

    def attempt_all(self) -> list[str]:
        """Decide about pods until there are none; returns the namespaces of those that got room."""
        bound = []
        while (done := self.attempt()) is not None:
            if done[1]:
                bound.append(done[0].pod.namespace)
        return bound

    def end(self, uid: str) -> None:
        """A pod ends."""
        pod = self.running.pop(uid)
        self.cache.remove_pod(pod)
        self.queue.move_all(events.ASSIGNED_POD_DELETE, pod, None)


class Demand:
    """Owners that always have some pods waiting, each of which runs for a random time."""

    def __init__(
        self, cluster: SharedCluster, pods: Mapping[str, tuple[str, str]], duration: Callable[[], float]
    ) -> None:
        self.cluster = cluster
        self._pods = pods
        self._duration = duration
        self._numbers = count()
        self._ends: list[tuple[float, str]] = []
        self._amounts: dict[str, dict[str, int]] = {owner: {} for owner in pods}
        self.bound: dict[str, int] = dict.fromkeys(pods, 0)
        cluster.has_room = self._fits
        self._totals = cluster.totals()
        self._free = dict(self._totals)

    def submit(self, owner: str, number: int = 1) -> None:
        """Pods of an owner arrive."""
        for _ in range(number):
            cpu, memory = self._pods[owner]
            self.cluster.queue.add(a_pod(f"{owner}-{next(self._numbers)}", owner, cpu, memory))

    def _fits(self, pod: Pod) -> bool:
        return all(amount <= self._free[name] for name, amount in pod_requests(pod).items())

    def _move(self, pod: Pod, count: int) -> None:
        amounts = self._amounts[pod.namespace]
        for name, amount in pod_requests(pod).items():
            self._free[name] -= count * amount
            amounts[name] = amounts.get(name, 0) + count * amount

    def share(self, owner: str) -> float:
        """The dominant share of an owner now."""
        return max((each / self._totals[name] for name, each in self._amounts[owner].items()), default=0.0)

    def run(self, seconds: float, observed: Callable[[float], None] = lambda seconds: None) -> None:
        """Let time pass; `observed` is called with how long nothing has changed."""
        clock, end = self.cluster.clock, self.cluster.clock.now() + seconds
        while True:
            self._attempt_all()
            at = min(self._ends[0][0], end) if self._ends else end
            observed(at - clock.now())
            clock.advance(at - clock.now())
            if at >= end:
                return
            _, uid = heapq.heappop(self._ends)
            self._move(self.cluster.running[uid], -1)
            self.cluster.end(uid)

    def _attempt_all(self) -> None:
        while (done := self.cluster.attempt()) is not None:
            queued, is_bound = done
            if is_bound:
                owner = queued.pod.namespace
                self.bound[owner] += 1
                self._move(queued.pod, 1)
                heapq.heappush(self._ends, (self.cluster.clock.now() + self._duration(), queued.uid))
                self.submit(owner)
