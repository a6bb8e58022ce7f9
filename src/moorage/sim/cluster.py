"""An in-memory cluster with a scheduler: decisions are applied at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from datetime import datetime
from random import Random
from typing import Any, TypeVar

from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.manifests import utc_now
from moorage.api.pod import Pod
from moorage.clock import VirtualClock
from moorage.cluster.cache import Cache
from moorage.config.types import SchedulerConfiguration
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from moorage.engine.decision import Decision
from moorage.engine.engine import Engine
from moorage.engine.group_choices import GroupChoices
from moorage.engine.group_cycle import GroupCycle
from moorage.engine.group_result import GroupDecision
from moorage.engine.run_without_suspending import run_without_suspending
from moorage.framework.extenders.extenders import Extenders
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.extension_points import PostFilterResult
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.pod_groups import PodGroupInfo
from moorage.framework.interface.status import Code, PluginError, Status
from moorage.framework.loading.registry import Registry
from moorage.framework.runtime.framework import Framework
from moorage.framework.runtime.profiles import Profiles
from moorage.sim.cache_effects import CacheEffects

T = TypeVar("T")


class SimulatedCluster:
    """Objects, and the profiles of a configuration that decide about pods.

    extenders: the extenders to call; by default none, also if the configuration has some. They are never
    called to bind, because bindings are only simulated.
    now: the wall time at which it decides, for plugins that read it; by default that at which it is made.
    """

    def __init__(
        self,
        objects: Iterable[Object],
        config: SchedulerConfiguration,
        registry: Registry,
        seed: int = 0,
        extenders: Extenders | None = None,
        version: KubernetesVersion = DEFAULT_VERSION,
        now: datetime | None = None,
    ) -> None:
        self.version = version
        self.cache = Cache(objects)
        self._has_placements = version.features.topology_aware_workload_scheduling
        self._effects = CacheEffects(self.cache)
        handle = Handle(
            self.cache.objects,
            self._effects,
            VirtualClock(epoch=utc_now() if now is None else now),
            Random(seed),
            nominations=self.cache.nominations,
            pod_groups=self.cache.pod_groups,
            snapshot=self.cache.latest_snapshot,
            follow_pods=self.cache.follow_pods,
            pods_on=self.cache.pods_on,
            extenders=extenders or Extenders(),
            version=version,
        )
        self.profiles = Profiles(config, registry, handle)
        self.engine = Engine(config.percentage_of_nodes_to_score, seed)

    def framework_of(self, pod: Pod) -> Framework:
        """The profile that a pod names; InputError if there is none."""
        framework = self.profiles.of(pod)
        if framework is None:
            names = ", ".join(self.profiles)
            raise InputError(
                f"pod {pod.name}", f"wants scheduler {pod.spec.scheduler_name}; there is {names}"
            )
        return framework

    def gate(self, pod: Pod) -> str:
        """Why a pod does not enter the queue; empty if it does."""
        try:
            status = self.framework_of(pod).pre_enqueue(pod)
        except PluginError as error:
            return str(error)
        return "" if status is None else status.message

    def not_tried(self, pod: Pod) -> str:
        """Why a scheduler would not attempt a pod; empty if it would."""
        return ended(pod) or self.gate(pod)

    def decide(self, pod: Pod, cycle: CycleState) -> Decision:
        """The decision for a pod in the current state; nothing changes."""
        framework = self.framework_of(pod)
        return _run(framework, self.engine.decide_async(framework, pod, self.cache.snapshot(), cycle))

    def decide_group(self, group: PodGroupInfo, choices: GroupChoices) -> GroupDecision:
        """The decision for a group with pending members in the current state; nothing changes."""
        framework = self.framework_of(next(group.all_pods()))
        cycle = GroupCycle(self.engine, framework, self.cache, choices, has_placements=self._has_placements)
        return _run(framework, cycle.decide(group))

    def bind(self, pod: Pod, node: str, cycle: CycleState) -> Status:
        """Bind a pod to a node, with its volumes and devices. A failure changes nothing."""
        framework = self.framework_of(pod)
        self.remove_pod(pod.key)
        self.cache.assume_pod(pod, node)
        try:
            status = framework.reserve(cycle, pod, node)
            if status.code is Code.SUCCESS:
                status = asyncio.run(_binding_cycle(framework, pod, node, cycle))
        except PluginError as error:
            status = Status(Code.ERROR, (str(error),), error.plugin)
        if status.code is not Code.SUCCESS:
            framework.unreserve(cycle, pod, node)
            self.cache.forget_pod(pod)
        return status

    def arrange(self, result: PostFilterResult) -> None:
        """Apply the result of the post-filters."""
        for effect in result.effects:
            asyncio.run(self._effects.perform(effect))
        result.done()

    def take_out(self, pod: Pod) -> Pod:
        """Remove a pod from its node, if it is on one; returns it as a pending pod."""
        self.remove_pod(pod.key)
        return replace(pod, spec=replace(pod.spec, node_name=""))

    def remove_pod(self, key: str) -> None:
        """Remove a pod by namespace and name, with any uid."""
        for pod in [each for each in self.cache.pods() if each.key == key]:
            self.cache.remove_pod(pod)


def _run(framework: Framework, deciding: Coroutine[Any, Any, T]) -> T:
    """The result of a cycle, which pauses only where extenders are called."""
    if not framework.handle.extenders:
        return run_without_suspending(deciding)
    return asyncio.run(_then_close(framework.handle.extenders, deciding))


async def _then_close(extenders: Extenders, deciding: Coroutine[Any, Any, T]) -> T:
    try:
        return await deciding
    finally:
        await extenders.close()


async def _binding_cycle(framework: Framework, pod: Pod, node: str, cycle: CycleState) -> Status:
    status = await framework.pre_bind(cycle, pod, node)
    return status if status.code is not Code.SUCCESS else await framework.bind(cycle, pod, node)


def ended(pod: Pod) -> str:
    """Why a pod needs no node any more; empty if it does."""
    if pod.finished:
        return f"the pod has ended ({pod.status.phase})"
    return "the pod is being deleted" if pod.terminating else ""
