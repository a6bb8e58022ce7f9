"""What the scheduler believes, for people: its cache, its queue, and where the API server disagrees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

from moorage.api.pod import Pod
from moorage.client.client import Client
from moorage.client.kinds import NODE, POD
from moorage.cluster.cache import Cache
from moorage.config.types import EXTENSION_POINTS
from moorage.framework.interface.status import point_name
from moorage.framework.runtime.framework import Framework
from moorage.queue.scheduling_queue import Place, SchedulingQueue

_OVER: Final = ("Succeeded", "Failed")


class Inspected(Protocol):
    """What can be looked into."""

    cache: Cache
    queue: SchedulingQueue


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that only one side has: the API server (`missed`) or the cache (`redundant`)."""

    what: str
    is_missed: bool

    def __str__(self) -> str:
        return f"{self.what}: {'missed' if self.is_missed else 'redundant'}"


def cache_view(cache: Cache) -> dict[str, Any]:
    """Each node with its pods, and how much they ask for in all."""
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
    """Each pod that waits or is in flight, with what is remembered of it; in the order of popping."""
    return {
        place.value: [
            {
                "pod": queued.pod.key,
                "uid": queued.uid,
                "profile": queued.profile,
                "attempts": queued.attempts,
                "refusedBy": sorted(queued.refusing_plugins()),
                "gatedBy": queued.gating_plugin,
            }
            for queued in queue.pods_in(place)
        ]
        for place in Place
    }


async def differences(scheduler: Inspected, client: Client) -> list[Difference]:
    """Where the cache and the API server disagree.

    The two are looked at one after the other, and much happens in between: only what is still so at a second
    look counts.
    """
    first = await _compared(scheduler, client)
    if not first:
        return []
    second = set(await _compared(scheduler, client))
    return [each for each in first if each in second]


async def _compared(scheduler: Inspected, client: Client) -> list[Difference]:
    # The version 0 is whatever the API server has at hand: that costs it least.
    nodes = {one["metadata"]["name"] for one in await client.list(NODE, resourceVersion=0)}
    bound = {
        (pod["metadata"]["uid"], f"{_key(pod)} on {pod['spec']['nodeName']}")
        for pod in await client.list(POD, resourceVersion=0)
        if pod["spec"].get("nodeName") and pod.get("status", {}).get("phase") not in _OVER
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


def _one_sided(kind: str, theirs: set[str], ours: set[str]) -> Iterator[Difference]:
    for name in sorted(theirs - ours):
        yield Difference(f"{kind} {name}", is_missed=True)
    for name in sorted(ours - theirs):
        yield Difference(f"{kind} {name}", is_missed=False)


def plugins_view(framework: Framework) -> dict[str, Any]:
    """The plugins of a profile by extension point, as kube-scheduler's log shows them."""
    return {
        point_name(point): {"Enabled": _enabled(framework, point) or None, "Disabled": None}
        for point in EXTENSION_POINTS
    }


def _enabled(framework: Framework, point: str) -> list[dict[str, Any]]:
    is_weighted = point == "score"
    return [
        {"Name": step.plugin, "Weight": step.weight if is_weighted else 0} for step in framework.at(point)
    ]
