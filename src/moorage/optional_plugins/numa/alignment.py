"""Whether the topology manager of one node admits a pod.

It looks at one container after another, or at the pod as a whole, and takes what it admits from the zones.
With the policy single-numa-node, everything must come from one zone. With restricted, everything must come
from the same zones, of which there must be no more for any resource than it would take on an empty node.
Resources that no zone lists are served from anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from moorage.optional_plugins.numa.combinations import ZoneSet, sets_of
from moorage.optional_plugins.numa.requests import PodRequests
from moorage.optional_plugins.numa.topology import CPU, NOT_LISTED, POD, SINGLE, NodeZones

FreeZones = dict[str, list[int]]
"""What is left of each resource in each zone; resources that no zone lists are not there."""
Needs = Mapping[str, int]

CANNOT_ALIGN_POD = "cannot align pod"
CANNOT_ALIGN_CONTAINER = "cannot align {}container"


def refusal(zones: NodeZones, free: FreeZones, requests: PodRequests) -> str | None:
    """Why the topology manager rejects a pod; None if it does not. `free` is changed."""
    if not zones.refuses:
        return None
    if zones.scope == POD:
        return None if fitting(zones, free, requests.pinned) is not None else CANNOT_ALIGN_POD
    last = requests.containers[-1] if requests.containers else None
    for container in requests.containers:
        chosen = fitting(zones, free, container.pinned)
        if chosen is None:
            return CANNOT_ALIGN_CONTAINER.format(container.kind)
        if container.stays and container is not last:
            take(free, container.pinned, chosen)
    return None


def is_hopeless(zones: NodeZones, requests: PodRequests) -> bool:
    """Whether a node could not even align the pod if nothing else ran there."""
    empty = {name: list(each.allocatable) for name, each in zones.resources.items()}
    return refusal(zones, empty, requests) is not None


def fitting(zones: NodeZones, free: FreeZones, needs: Needs) -> ZoneSet | None:
    """The zones that serve some requests; none of them if any may, None if it is not possible."""
    wanted = {name: amount for name, amount in needs.items() if name in free}
    if not wanted:
        return ()
    if zones.policy == SINGLE:
        return _first_zone(free, wanted, zones.zone_count)
    size = _smallest(zones, wanted)
    if size is None:
        return None
    sets = sets_of(zones.zone_count, size)
    if sets is None:
        return ()
    return next((each for each in sets if _has(free, wanted, each)), None)


def take(free: FreeZones, needs: Needs, chosen: ZoneSet) -> None:
    """Take requests from zones, from the first one as much as there is."""
    for name, amount in needs.items():
        if name not in free:
            continue
        left = free[name] = [*free[name]]  # Others may hold the list.
        for zone in chosen:
            taken = min(max(left[zone], 0), amount)
            left[zone] -= taken
            amount -= taken


def _first_zone(free: FreeZones, wanted: Needs, count: int) -> ZoneSet | None:
    """The first zone with room."""
    for zone in range(count):
        for name, amount in wanted.items():
            if free[name][zone] < amount:
                break
        else:
            return (zone,)
    return None


def _has(free: FreeZones, wanted: Needs, zones: ZoneSet) -> bool:
    """Whether each of some zones lists all resources, and together they have enough of them."""
    for name, amount in wanted.items():
        amounts = [free[name][zone] for zone in zones]
        if NOT_LISTED in amounts or sum(amounts) < amount:
            return False
    return True


def _smallest(zones: NodeZones, wanted: Needs) -> int | None:
    """The number of zones that each of the requests takes at least; None if not the same, or impossible.

    What an empty node has counts: for devices and cpu the capacity, for kinds of memory what is allocatable.
    Kinds of memory are looked at together.
    """
    groups = [[name] for name in wanted if not is_memory(name)]
    if memory := [name for name in wanted if is_memory(name)]:
        groups.append(memory)
    sizes = {_smallest_of(zones, {name: wanted[name] for name in group}) for group in groups}
    return sizes.pop() if len(sizes) == 1 else None


def is_memory(name: str) -> bool:
    """Whether the kubelet's memory manager serves a resource."""
    return name != CPU and "/" not in name


def _smallest_of(zones: NodeZones, wanted: Needs) -> int | None:
    totals = [(_sizes(zones, name), amount) for name, amount in wanted.items()]
    for size in range(1, zones.zone_count + 1):
        if any(sum(sorted(of, reverse=True)[:size]) < amount for of, amount in totals):
            continue
        sets = None if len(totals) == 1 else sets_of(zones.zone_count, size)
        if sets is None or any(
            all(sum(of[zone] for zone in each) >= amount for of, amount in totals) for each in sets
        ):
            return size
    return None


def _sizes(zones: NodeZones, name: str) -> list[int]:
    resource = zones.resources[name]
    return [max(each, 0) for each in (resource.allocatable if is_memory(name) else resource.capacity)]
