"""The score of one node: how full its zones would be with a pod, or how many of them the pod needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from moorage import MAX_SCORE
from moorage.optional_plugins.numa.alignment import FreeZones, Needs, take
from moorage.optional_plugins.numa.combinations import ZoneSet, sets_of
from moorage.optional_plugins.numa.requests import PodRequests
from moorage.optional_plugins.numa.topology import POD, SINGLE, NodeZones

MOST, BALANCED, LEAST, LEAST_NUMA = (
    "MostAllocated",
    "BalancedAllocation",
    "LeastAllocated",
    "LeastNUMANodes",
)
STRATEGIES: Final = (MOST, BALANCED, LEAST, LEAST_NUMA)

Weights = Mapping[str, int]


def allocation_score(
    zones: NodeZones, free: FreeZones, requests: PodRequests, strategy: str, weights: Weights
) -> int:
    """The score by the zones that the pod, or each container, may get; only for single-numa-node.

    Which zone it will be is the kubelet's choice: the lowest score of a zone with room counts.
    """
    if zones.policy != SINGLE or not zones.zone_count:
        return 0
    score = _STRATEGIES[strategy]
    parts = [requests.all] if zones.scope == POD else [each.all for each in requests.containers]
    return sum(_lowest(zones, free, part, score, weights) for part in parts) // len(parts)


def _lowest(
    zones: NodeZones,
    free: FreeZones,
    needs: Needs,
    score: Callable[[Sequence[tuple[int, int, int]]], int],
    weights: Weights,
) -> int:
    """The lowest score of a zone, but for those of zero: the kubelet does not use these."""
    scores = []
    for zone in range(zones.zone_count):
        amounts = [
            (amount, max(free[name][zone], 0) if name in free else 0, weights.get(name, 1))
            for name, amount in needs.items()
        ]
        scores.append(score(amounts) if amounts else 0)
    return min((each for each in scores if each), default=0)


def _most_allocated(amounts: Sequence[tuple[int, int, int]]) -> int:
    parts = [need * MAX_SCORE // left * weight for need, left, weight in amounts if need <= left]
    return sum(parts) // sum(weight for _, _, weight in amounts)


def _least_allocated(amounts: Sequence[tuple[int, int, int]]) -> int:
    parts = [(left - need) * MAX_SCORE // left * weight for need, left, weight in amounts if need <= left]
    return sum(parts) // sum(weight for _, _, weight in amounts)


def _balanced(amounts: Sequence[tuple[int, int, int]]) -> int:
    """100 for equal fractions of all resources, less their variance."""
    fractions = [need / left if left else 1.0 for need, left, _ in amounts]
    if any(each > 1 for each in fractions):
        return 0
    if len(fractions) < 2:
        return MAX_SCORE
    mean = sum(fractions) / len(fractions)
    variance = sum([(each - mean) * (each - mean) for each in fractions]) / (len(fractions) - 1)
    return int((1 - variance) * MAX_SCORE)


_STRATEGIES: Final = MappingProxyType({MOST: _most_allocated, LEAST: _least_allocated, BALANCED: _balanced})


def least_zones_score(zones: NodeZones, free: FreeZones, requests: PodRequests) -> int:
    """The score by the number of zones that the pod, or its largest container, needs. `free` is changed."""
    if not zones.zone_count:
        return 0
    most, are_closest = 0, True
    parts = (
        [(requests.pinned, False)]
        if zones.scope == POD
        else [(each.pinned, each.stays) for each in requests.containers]
    )
    for number, (needs, stays) in enumerate(parts, 1):
        wanted = {name: amount for name, amount in needs.items() if name in free}
        if not wanted:
            continue
        found = _fewest(zones, free, wanted)
        if found is None:
            return 0
        chosen, is_closest = found
        most, are_closest = max(most, len(chosen)), are_closest and is_closest
        if stays and number < len(parts):
            take(free, wanted, chosen)
    return zones_score(most, zones.max_zones, is_closest=are_closest) if most else MAX_SCORE


def zones_score(count: int, max_zones: int, *, is_closest: bool) -> int:
    """The score of a number of zones; half a step more if no set of as many zones has a smaller distance."""
    step = MAX_SCORE // max_zones
    return max(MAX_SCORE - count * step + (step // 2 if is_closest else 0), 0)


def _fewest(zones: NodeZones, free: FreeZones, wanted: Needs) -> tuple[ZoneSet, bool] | None:
    """The smallest set of zones with room, of several the closest, and whether no other is closer."""
    for size in range(1, zones.zone_count + 1):
        sets = sets_of(zones.zone_count, size)
        if sets is None:
            return None
        distances, least = zones.distances.of_sets(size, sets)
        closest: tuple[int, int] | None = None
        for number, each in enumerate(sets):
            if (closest is None or distances[number] < closest[0]) and _fits(free, wanted, each):
                closest = (distances[number], number)
        if closest is not None:
            return sets[closest[1]], closest[0] == least
    return None


def _fits(free: FreeZones, wanted: Needs, zones: ZoneSet) -> bool:
    """Whether zones have enough of all resources together."""
    for name, amount in wanted.items():
        left = free[name]
        for zone in zones:
            if left[zone] > 0:
                amount -= left[zone]
        if amount > 0:
            return False
    return True
