"""Patterns: how many pods of each class go into one bin together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from moorage.planning.pod_classes import Amounts, Bin, Packing


class Pattern(NamedTuple):
    """The content of one bin."""

    bin: int
    counts: tuple[int, ...]
    """Number of pods by class."""


def greedy_patterns(packing: Packing) -> list[Pattern]:
    """For each bin: each class first, as often as it fits, then the others; so that all are covered."""
    found: dict[Pattern, None] = {}
    for number, bin in enumerate(packing.bins):
        for first in range(len(packing.classes)):
            if packing.capacity(bin, first):
                order = [first, *(cls for cls in range(len(packing.classes)) if cls != first)]
                found[Pattern(number, _filled(packing, bin, order))] = None
    return list(found)


def _filled(packing: Packing, bin: Bin, order: list[int]) -> tuple[int, ...]:
    counts, room = [0] * len(packing.classes), bin.room.copy()
    for cls in order:
        counts[cls] = _fitting(packing, bin, cls, room)
        room -= counts[cls] * packing.classes[cls].demand
    return tuple(counts)


def _fitting(packing: Packing, bin: Bin, cls: int, room: Amounts) -> int:
    """How many pods of a class fit into the room that is left."""
    demand = packing.classes[cls].demand
    needed = demand > 0
    return max(0, min(packing.capacity(bin, cls), int((room[needed] // demand[needed]).min())))


def all_patterns(packing: Packing, limit: int) -> list[Pattern] | None:
    """All patterns to which no pod can be added; None if there are more than the limit."""
    found: list[Pattern] = []
    for number, bin in enumerate(packing.bins):
        search = _Search(packing, bin, limit - len(found))
        if not search.run(0, bin.room, []):
            return None
        found += [Pattern(number, counts) for counts in search.found]
    return found


class _Search:
    """Enumerates the maximal patterns of one bin."""

    def __init__(self, packing: Packing, bin: Bin, limit: int) -> None:
        self._packing = packing
        self._bin = bin
        self._limit = limit
        self._steps = 0
        self.found: list[tuple[int, ...]] = []

    def run(self, cls: int, room: Amounts, counts: list[int]) -> bool:
        """Extend a pattern by further classes; returns whether the limit was kept."""
        self._steps += 1
        if self._steps > self._limit * len(self._packing.classes):
            return False
        if cls == len(self._packing.classes):
            if any(counts) and not self._has_room(room, counts):
                self.found.append(tuple(counts))
            return len(self.found) <= self._limit
        demand = self._packing.classes[cls].demand
        most = _fitting(self._packing, self._bin, cls, room)
        return all(
            self.run(cls + 1, room - count * demand, [*counts, count]) for count in range(most, -1, -1)
        )

    def _has_room(self, room: Amounts, counts: list[int]) -> bool:
        """Whether a pod could be added."""
        return any(
            counts[cls] < self._packing.capacity(self._bin, cls) and bool(np.all(room >= each.demand))
            for cls, each in enumerate(self._packing.classes)
        )
