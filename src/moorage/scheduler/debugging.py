"""The scheduler's state for debugging: its cache, its queue, and differences to the API server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

from moorage.api.pod import Pod
from moorage.client.client import Client
from moorage.client.kinds import NODE, POD
from moorage.cluster.cache import Cache
from moorage.config.expansion import WEIGHTED_POINTS
from moorage.config.types import EXTENSION_POINTS
from moorage.framework.interface.status import point_name
from moorage.framework.runtime.framework import Framework
from moorage.queue.scheduling_queue import Place, SchedulingQueue

_FINISHED_PHASES: Final = ("Succeeded", "Failed")


class InspectedScheduler(Protocol):
    """What can be inspected."""

    cache: Cache
    queue: SchedulingQueue


@dataclass(frozen=True, slots=True)
class CacheDifference:
    """An object that only the API server (`missed`) or only the cache (`redundant`) has."""

    what: str
    is_missed: bool

    def __str__(self) -> str:
        return f"{self.what}: {'missed' if self.is_missed else 'redundant'}"


def cache_view(cache: Cache) -> dict[str, Any]:
    """Each node with its pods, and the nominated pods."""
    by_node: dict[str, list[Pod]] = {}
    for pod in cache.pods():
        by_node.setdefault(pod.spec.node_name, []).append(pod)
    known = {node.name for node in cache.nodes()}
    return {
        "nodes": {
            name: {
                "isKnown": name in known,
                "pods": sorted(
                    f"{pod.key} (assumed)" if cache.is_assumed(pod) else pod.key
                    for pod in by_node.get(name, ())
                ),
            }
            for name in sorted(known | by_node.keys())
        },
        "nominated": {
            name: sorted(info.pod.key for info in pods) for name, pods in sorted(cache.nominations.items())
        },
    }


def queue_view(queue: SchedulingQueue) -> dict[str, Any]:
    """Each pod in the queue or in flight with its attempts, in the order of popping."""
    return {
        place.value: [
            {
                "pod": queued.pod.key,
                "uid": queued.uid,
                "profile": queued.profile,
                "attempts": queued.attempts,
                "refusedBy": sorted(queued.rejector_plugins()),
                "gatedBy": queued.gating_plugin,
            }
            for queued in queue.pods_in(place)
        ]
        for place in Place
    }


async def differences(scheduler: InspectedScheduler, client: Client) -> list[CacheDifference]:
    """Differences between the cache and the API server.

    The two are read one after the other while the cluster changes: only differences found twice are reported.
    """
    first = await _compared(scheduler, client)
    if not first:
        return []
    second = set(await _compared(scheduler, client))
    return [each for each in first if each in second]


async def _compared(scheduler: InspectedScheduler, client: Client) -> list[CacheDifference]:
    # resourceVersion 0 is served from the API server's cache, which costs it least.
    nodes = {one["metadata"]["name"] for one in await client.list(NODE, resourceVersion=0)}
    bound = {
        (pod["metadata"]["uid"], f"{_key(pod)} on {pod['spec']['nodeName']}")
        for pod in await client.list(POD, resourceVersion=0)
        if pod["spec"].get("nodeName") and pod.get("status", {}).get("phase") not in _FINISHED_PHASES
    }
    cache = scheduler.cache
    ours = {
        (pod.uid, f"{pod.key} on {pod.spec.node_name}") for pod in cache.pods() if not cache.is_assumed(pod)
    }
    return [
        *_one_sided("node", nodes, {node.name for node in cache.nodes()}),
        *_one_sided("pod", {name for _, name in bound}, {name for _, name in ours}),
    ]


def _key(pod: dict[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _one_sided(kind: str, theirs: set[str], ours: set[str]) -> Iterator[CacheDifference]:
    for name in sorted(theirs - ours):
        yield CacheDifference(f"{kind} {name}", is_missed=True)
    for name in sorted(ours - theirs):
        yield CacheDifference(f"{kind} {name}", is_missed=False)


def plugins_view(framework: Framework) -> dict[str, Any]:
    """The plugins of a profile by extension point, as kube-scheduler's log shows them."""
    return {
        point_name(point): {"Enabled": _enabled(framework, point) or None, "Disabled": None}
        for point in EXTENSION_POINTS
    }


def _enabled(framework: Framework, point: str) -> list[dict[str, Any]]:
    is_weighted = point in WEIGHTED_POINTS
    return [
        {"Name": step.plugin, "Weight": step.weight if is_weighted else 0} for step in framework.at(point)
    ]
