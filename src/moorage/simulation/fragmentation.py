"""Fragmentation: how much of what is free on nodes a typical pod could not use.

Of a resource, that is what is free on nodes where the typical pod that requests it does not fit: too little
of it is left there, or of something else that this pod needs. (The measure of Weng et al., "Beware of
Fragmentation", USENIX ATC 2023, with one typical pod in place of all.) The typical pod requests the median of
each resource over a sample of those pods that have arrived and request the resource in question.

A change is evaluated for its node only. All nodes are evaluated again when a new sample changes the typical
pod: each time the number of pods has doubled.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from statistics import median_low
from typing import Final

Amounts = Mapping[str, int]
"""Whole units by resource."""
Change = tuple[str, int]

MAX_SAMPLE_PODS: Final = 2048
"""Maximum number of pods whose requests are kept."""


class Sample:
    """The requests of pods that have arrived: of all, or of every second, fourth, ... of them."""

    def __init__(self) -> None:
        self._kept: list[Amounts] = []
        self._stride = 1
        self._seen = 0

    def add(self, requested: Amounts) -> bool:
        """A pod has arrived; returns whether medians are to be taken again."""
        self._seen += 1
        if self._seen % self._stride:
            return False
        self._kept.append(requested)
        size = len(self._kept)
        if size == MAX_SAMPLE_PODS:
            del self._kept[::2]
            self._stride *= 2
        return size & (size - 1) == 0

    def typical(self, resource: str) -> dict[str, int]:
        """What the typical pod that requests a resource requests; empty if there is none."""
        asking = [each for each in self._kept if each.get(resource)]
        names = sorted({name for each in asking for name in each})
        medians = {name: median_low([each.get(name, 0) for each in asking]) for name in names}
        return {name: amount for name, amount in medians.items() if amount}


class _Room:
    """What is left on a node, and what of that is of no use."""

    __slots__ = ("allocatable", "free", "unusable")

    def __init__(self) -> None:
        self.allocatable: Amounts = {}
        """Nothing where there is no such node."""
        self.free: dict[str, int] = {}
        """By resource; negative where more is requested than there is."""
        self.unusable: dict[str, int] = {}

    def add(self, amounts: Amounts, sign: int) -> None:
        """Amounts become free (sign 1), or are used (-1)."""
        for name, amount in amounts.items():
            self.free[name] = self.free.get(name, 0) + sign * amount

    def unusable_of(self, resource: str, typical: Amounts) -> int:
        """What is free of a resource and of no use for a typical pod."""
        free = self.free
        left = free.get(resource, 0)
        if left <= 0:
            return 0
        for name, amount in typical.items():
            if free.get(name, 0) < amount:
                return left
        return 0


class Fragmentation:
    """Follows what is free on nodes; its methods return how much more is of no use, by resource."""

    def __init__(self) -> None:
        self.typical: dict[str, dict[str, int]] = {}
        """What the typical pod requests, by the resource that is looked at."""
        self._sample = Sample()
        self._rooms: defaultdict[str, _Room] = defaultdict(_Room)

    def follow(self, resource: str) -> None:
        """Look at a resource from now on, before a node has it."""
        self.typical[resource] = self._sample.typical(resource)

    def pod_arrived(self, requested: Amounts) -> list[Change]:
        """A pod of the workload was created."""
        if not self._sample.add(requested):
            return []
        self.typical = {resource: self._sample.typical(resource) for resource in self.typical}
        return [change for room in self._rooms.values() for change in self._changes(room)]

    def node_changed(self, name: str, allocatable: Amounts) -> list[Change]:
        """A node was added, or is gone: it has nothing then."""
        room = self._rooms[name]
        room.add(room.allocatable, -1)
        room.add(allocatable, 1)
        room.allocatable = allocatable
        return self._changes(room)

    def pod_changed(self, node: str, requested: Amounts, sign: int) -> list[Change]:
        """A pod is gone from a node (sign 1), or was bound to it (-1)."""
        room = self._rooms[node]
        room.add(requested, sign)
        return self._changes(room)

    def _changes(self, room: _Room) -> list[Change]:
        changes = []
        for resource, typical in self.typical.items():
            unusable, before = room.unusable_of(resource, typical), room.unusable.get(resource, 0)
            if unusable != before:
                room.unusable[resource] = unusable
                changes.append((resource, unusable - before))
        return changes
