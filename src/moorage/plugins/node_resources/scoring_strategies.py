"""How NodeResourcesFit scores a node by how full the pod would make it: on all nodes at once, or on one.

Both give the same numbers, as a property test verifies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from moorage.config.args import LEAST_ALLOCATED, MOST_ALLOCATED, UtilizationShapePoint
from moorage.framework.interface.extension_points import MAX_SCORE, Scores
from moorage.framework.runtime.go_arithmetic import round_half_away
from moorage.plugins.node_resources.usage import NodeUsage, Usage
from moorage.plugins.utilization_shape import on_shape

_FULL = 100


class Strategy(Protocol):
    """A way to score."""

    def on_all(self, resources: list[Usage], count: int) -> Scores:
        """The scores of `count` nodes. Shape (nodes,)."""

    def on_one(self, resources: Sequence[NodeUsage]) -> int:
        """The score of a node, from the usage of the resources that it has."""


class WeightedMean:
    """The mean over the resources a node has: of the share that is left, or with `most` of that in use."""

    def __init__(self, *, most: bool) -> None:
        self._most = most

    def on_all(self, resources: list[Usage], count: int) -> Scores:
        """The scores of `count` nodes. Shape (nodes,)."""
        total = np.zeros(count, np.int64)
        weights: NDArray[np.int64] | int = 0
        for usage in resources:
            scored = self._amount(usage) * MAX_SCORE // usage.divisor * usage.weight
            total += scored if usage.present is None else scored * usage.present
            weights = weights + (usage.weight if usage.present is None else usage.weight * usage.present)
        return total // np.maximum(weights, 1)

    def _amount(self, usage: Usage) -> NDArray[np.int64]:
        used: NDArray[np.int64] = np.minimum(usage.requested, usage.allocatable)
        return used if self._most else usage.allocatable - used

    def on_one(self, resources: Sequence[NodeUsage]) -> int:
        """The score of a node."""
        total = weights = 0
        for weight, allocatable, _, requested in resources:
            used = min(allocatable, requested)
            amount = used if self._most else allocatable - used
            total += amount * MAX_SCORE // allocatable * weight
            weights += weight
        return total // max(weights, 1)


class RequestedToCapacity:
    """The rounded mean of a shape's scores; resources with score 0 are left out."""

    def __init__(self, shape: tuple[UtilizationShapePoint, ...]) -> None:
        self._by_percent = [on_shape(shape, percent) for percent in range(_FULL + 1)]
        self._table = np.array(self._by_percent, np.int64)

    def on_all(self, resources: list[Usage], count: int) -> Scores:
        """The scores of `count` nodes. Shape (nodes,)."""
        total = np.zeros(count, np.int64)
        weights = np.zeros(count, np.int64)
        for usage in resources:
            percent = np.minimum(usage.requested, usage.allocatable) * _FULL // usage.divisor
            scored = self._table[percent]
            says = scored > 0
            if usage.present is not None:
                says &= usage.present
            total += scored * usage.weight * says
            weights += usage.weight * says
        return round_half_away(total / np.maximum(weights, 1))

    def on_one(self, resources: Sequence[NodeUsage]) -> int:
        """The score of a node."""
        total = weights = 0
        for weight, allocatable, _, requested in resources:
            scored = self._by_percent[min(requested, allocatable) * _FULL // allocatable]
            if scored > 0:
                total += scored * weight
                weights += weight
        mean = total / max(weights, 1)
        return int(mean) + (mean - int(mean) >= 0.5)


def strategy(kind: str, shape: tuple[UtilizationShapePoint, ...]) -> Strategy:
    """The strategy that a configuration names."""
    if kind in (LEAST_ALLOCATED, MOST_ALLOCATED):
        return WeightedMean(most=kind == MOST_ALLOCATED)
    return RequestedToCapacity(shape)
