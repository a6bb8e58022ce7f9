"""Quotas, pods that count for them, and a scheduler's plugin at a cluster: for tests of Capacity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from moorage import (
    Cache,
    Decision,
    Engine,
    EvictPods,
    Handle,
    Node,
    Object,
    Pod,
    PodGroupInfo,
    PostFilterResult,
    default_registry,
)
from moorage.api.decode import convert
from moorage.api.pod_groups import PodGroup, key_of
from moorage.clock import VirtualClock
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, V1_37
from moorage.engine.group_choices import RandomChoices
from moorage.engine.group_cycle import GroupCycle
from moorage.engine.group_result import GroupDecision
from moorage.engine.run_without_suspending import run_without_suspending
from moorage.framework.runtime.framework import Framework
from moorage.optional_plugins.capacity.elastic_quota import NAMESPACES, PARENT, ElasticQuota
from tests.builders import make_node, make_pod, make_profile

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
Amounts = Mapping[str, str | int]


def quota(
    name: str,
    least: Amounts | None = None,
    most: Amounts | None = None,
    *,
    of: str | None = None,
    parent: str | None = None,
    namespace: str = "",
    age: float = 0.0,
) -> ElasticQuota:
    """An ElasticQuota in a namespace of its name. of: the namespaces that it is for."""
    given = {NAMESPACES: of, PARENT: parent}
    manifest = {
        "metadata": {
            "name": name,
            "namespace": namespace or name,
            "uid": f"quota-{name}",
            "annotations": {key: text for key, text in given.items() if text is not None},
            "creationTimestamp": time(age),
        },
        "spec": {"min": dict(least or {}), "max": dict(most or {})},
    }
    return convert(manifest, ElasticQuota)


def node(name: str, cpu: int, **more: str) -> Node:
    """A node with CPUs, and with more."""
    return make_node(name, allocatable={"cpu": str(cpu), "memory": "64Gi", "pods": "110", **more})


def pod(
    name: str,
    namespace: str,
    cpu: int = 1,
    *,
    on: str = "",
    priority: int = 0,
    age: float = 0.0,
    terminating: bool = False,
    requests: Amounts | None = None,
    **fields: Any,
) -> Pod:
    """A pod of a namespace; with a node, it started some seconds ago."""
    manifest: dict[str, Any] = {"status": {"startTime": time(age)}} if on else {}
    return make_pod(
        name,
        uid=name,
        namespace=namespace,
        on=on,
        requests={"cpu": str(cpu)} if requests is None else requests,
        priority=priority,
        terminating=terminating,
        **manifest,
        **fields,
    )


def time(ago: float) -> str:
    """A time some seconds ago."""
    return (NOW - timedelta(seconds=ago)).isoformat().replace("+00:00", "Z")


class Scene:
    """The plugin in a profile, at a cluster."""

    plugins: tuple[str, ...] = ("NodeResourcesFit", "Capacity")
    version = DEFAULT_VERSION

    def __init__(self, *objects: Object) -> None:
        self.cache = Cache(objects)
        self.handle = Handle(
            self.cache.objects,
            clock=VirtualClock(epoch=NOW),
            random=Random(1),
            nominations=self.cache.nominations,
            pod_groups=self.cache.pod_groups,
            snapshot=self.cache.latest_snapshot,
            version=self.version,
        )
        self.framework = Framework(make_profile(*self.plugins), default_registry(), self.handle)
        self.engine = Engine(seed=0)

    def decide(self, new: Pod) -> Decision:
        """The decision for a pod."""
        return self.engine.decide(self.framework, new, self.cache.snapshot())

    def node_of(self, new: Pod) -> str:
        """The node that a pod gets; empty: none."""
        return self.decide(new).node or ""

    def evicted(self, new: Pod) -> list[str]:
        """The pods that are evicted for one that gets no node."""
        return evicted(self.decide(new).post_filter)


def evicted(result: object) -> list[str]:
    """The names of the victims."""
    assert isinstance(result, PostFilterResult)
    victims = [each.victims for each in result.effects if isinstance(each, EvictPods)]
    return sorted(each.name for some in victims for each in some)


VERSION = V1_37.with_gates({"GenericWorkload": True})


def gang(name: str, namespace: str, minimum: int, **spec: Any) -> PodGroup:
    """A group of which some pods at least run together."""
    policy = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    manifest = {"metadata": {"name": name, "namespace": namespace}, "spec": {**policy, **spec}}
    return convert(manifest, PodGroup)


def members(group: PodGroup, count: int, cpu: int = 1, *, on: str = "", age: float = 0.0) -> list[Pod]:
    """Pods of a group."""
    priority = group.priority
    return [
        pod(
            f"{group.name}-{number}",
            group.namespace,
            cpu,
            on=on,
            age=age,
            priority=priority,
            scheduling_group={"podGroupName": group.name},
        )
        for number in range(count)
    ]


class GroupScene(Scene):
    """The same where groups of pods are scheduled."""

    plugins = ("NodeResourcesFit", "GangScheduling", "Capacity")
    version = VERSION

    def decide_group(self, group: PodGroup, pods: Sequence[Pod]) -> GroupDecision:
        """The decision for a group."""
        self.cache.put(group)
        choices = RandomChoices(Random(0))
        cycle = GroupCycle(self.engine, self.framework, self.cache, choices, has_placements=False)
        return run_without_suspending(cycle.decide(PodGroupInfo(key_of(group), group, tuple(pods))))

    def evicted_for_group(self, group: PodGroup, count: int, cpu: int = 1) -> list[str]:
        """The pods that are evicted for a group."""
        return sorted(pod.name for pod in self.decide_group(group, members(group, count, cpu)).victims)
