"""A scheduler that pauses before each attempt, which an external policy may decide instead.

Queue, cache, plugins and bindings are those of production; only the loop is another one. Between two attempts
everything is done that needs no time, such as bindings, so that stepping and running have the same results.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from moorage.api.decode import InputError
from moorage.api.limits import PodLimitError
from moorage.api.pod import Pod
from moorage.engine.decision import Decision
from moorage.engine.run_without_suspending import run_without_suspending
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import PluginError
from moorage.framework.runtime.framework import Framework
from moorage.queue.queued_group import QueuedGroup
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.scheduling_queue import Place
from moorage.scheduler.attempts import failure_of_decision
from moorage.scheduler.scheduler import Scheduler
from moorage.simulation.virtual_loop import VirtualLoop

_DECLINED: Final = "declined by the policy"


class SteppedScheduler(Scheduler):
    """Decides about no pod before it is told to; to be used in a `VirtualLoop`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.at_hand: QueuedPod | None = None
        """The pod, or group, whose attempt is next."""
        self.pauses = True
        """Whether it pauses before each attempt."""
        self.paused: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Set when there is something at hand."""
        self._resumed = asyncio.Event()

    @property
    def background_task_count(self) -> int:
        """Number of running background tasks, and of what is at hand: a simulation with any is not over."""
        return super().background_task_count + (self.at_hand is not None)

    def resume(self) -> None:
        """Let the scheduler decide about what is at hand, unless that was done, and go on."""
        if self.paused.done():
            self.paused = asyncio.get_running_loop().create_future()
            self._resumed.set()

    async def _loop(self) -> None:
        while not self._schedule_one.is_stopping:
            queued = self.queue.pop_now()
            if queued is None:
                self._wakeup.clear()
                await self._wakeup.wait()
                continue
            self.cycles_begun += 1
            if self.pauses and not self._skips(queued):
                self.at_hand = queued
                self.paused.set_result(None)
                await self._resumed.wait()
                self._resumed.clear()
                if not self._is_left_to_itself():
                    continue
            run_without_suspending(self._attempt(queued))
            await rest()

    def _is_left_to_itself(self) -> bool:
        """Whether the pod at hand is still undecided; afterwards, no pod is at hand."""
        at_hand, self.at_hand = self.at_hand, None
        return at_hand is not None

    def _skips(self, queued: QueuedPod) -> bool:
        """Whether there is nothing to decide about a pod: it has a node, or is being deleted."""
        pod = queued.pod
        return bool(pod.metadata.deletion_timestamp) or self.cache.pod(pod.uid) is not None

    def evaluate(self, pod: Pod, cycle: CycleState) -> Decision:
        """Which nodes pass the filters for a pod, and why the others do not; none is chosen."""
        framework, snapshot = self.framework_of(pod), self.cache.snapshot()
        nodes, diagnosis = Nodes(snapshot), Diagnosis(len(snapshot))
        try:
            cycle.equivalence_class = self._schedule_one.engine.equivalence_class(pod, snapshot)
            candidates = framework.pre_filter(cycle, pod, nodes, diagnosis)
            passed = None if candidates is None else framework.filter(cycle, pod, candidates, diagnosis)
        except (PluginError, PodLimitError) as error:
            return Decision(pod, None, nodes.named(()), None, diagnosis, 0, error=error)
        feasible = nodes.named(()) if passed is None else passed
        return Decision(pod, None, feasible, None, diagnosis, len(snapshot))

    def decide(self, pod: Pod) -> Decision:
        """The scheduler's own decision for a pod; nothing changes."""
        framework = self.framework_of(pod)
        decision = self._schedule_one.engine.decide(framework, pod, self.cache.snapshot(), CycleState())
        if decision.post_filter is not None:
            decision.post_filter.done()
        return decision

    async def place(self, pod: Pod, evaluated: Decision, cycle: CycleState, node: str) -> bool:
        """Bind a pod to a node that passes the filters; false if a plugin rejects it there.

        evaluated, cycle: of the pod's evaluation.
        """
        queued = self._taken(pod)
        self._schedule_one.bind(queued, self.framework_of(pod), cycle, node, evaluated)
        await rest()
        return self.cache.pod(pod.uid) is not None

    async def decline(self, pod: Pod) -> None:
        """Put a pod back: until an event that may help if it fits nowhere, else for its backoff."""
        decision, queued = self.evaluate(pod, CycleState()), self._taken(pod)
        if len(decision.feasible):
            self._observer.failed(queued, "Unschedulable", _DECLINED)
            self.queue.put_back(queued, queued.pod)
        else:
            self._schedule_one.fail(queued, failure_of_decision(decision))
        await rest()

    def framework_of(self, pod: Pod) -> Framework:
        """The profile that a pod names; InputError if there is none."""
        framework = self._profiles.of(pod)
        if framework is None:
            raise InputError(f"pod {pod.key}", f"there is no profile {pod.spec.scheduler_name}")
        return framework

    def _taken(self, pod: Pod) -> QueuedPod:
        """A pod's entry of the queue, which is no longer in it."""
        at_hand = self.at_hand
        if at_hand is not None and at_hand.uid == pod.uid:
            self.at_hand = None
            return at_hand
        queued = self.queue.get(pod.uid)
        assert queued is not None, pod.key
        self.queue.delete(pod)
        queued.attempts += 1
        return queued

    def why_not(self, pod: Pod) -> str:
        """Why nothing can be decided about a pod from outside; empty if it can."""
        if pod.spec.scheduling_group is not None and self.cache.pod_groups.is_enabled:
            return "it is in a group, which the scheduler decides about as a whole"
        if self.at_hand is not None and self.at_hand.uid == pod.uid:
            return ""
        place = self.queue.place_of(pod.uid)
        if place is Place.GATED:
            return "a plugin keeps it from the queue"
        return "" if place is not None else "it does not wait for a node"

    def waiting(self) -> list[Pod]:
        """All pods without a node, those first that are tried first."""
        ahead = [] if self.at_hand is None else _pods_of(self.at_hand)
        places = (Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE, Place.GATED)
        queued = [each for place in places for each in self.queue.pods_in(place)]
        return ahead + [pod for each in queued for pod in _pods_of(each)]


def _pods_of(queued: QueuedPod) -> list[Pod]:
    if isinstance(queued, QueuedGroup):
        return [each.pod for each in queued.in_order()]
    return [queued.pod]


async def rest() -> None:
    """Returns when all is done that can be done now."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    await loop.rest()
