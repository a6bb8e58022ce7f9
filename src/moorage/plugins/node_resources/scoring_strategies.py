"""How NodeResourcesFit scores a node by how full the pod would make it: on all nodes at once, or on one.

Both give the same numbers, as a property test verifies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from moorage.config.args import LEAST_ALLOCATED, MOST_ALLOCATED, UtilizationShapePoint
from moorage.framework.interface.extension_points import MAX_SCORE, Scores
from moorage.framework.runtime.go_arithmetic import round_half_away
from moorage.plugins.node_resources.usage import (
    SCORE_TYPE,
    Amounts,
    NodeUsage,
    ResourceUsage,
    ScoredRequests,
)
from moorage.plugins.utilization_shape import on_shape

_FULL = 100
_MAX_WEIGHTS: Final = np.iinfo(SCORE_TYPE).max // MAX_SCORE
"""Sum of the weights of resources up to which sums of scores have the type of scores."""


class AllocationScorer(Protocol):
    """A way to score."""

    def on_all(self, usage: ResourceUsage, wanted: ScoredRequests) -> Scores:
        """The scores of nodes for a pod. Shape (nodes,)."""

    def on_one(self, resources: Sequence[NodeUsage]) -> int:
        """The score of a node, from the usage of the resources that it has."""


class WeightedMean:
    """The mean over the resources a node has: of the share that is left, or with `most` of that in use."""

    def __init__(self, *, most: bool) -> None:
        self._most = most

    def on_all(self, usage: ResourceUsage, wanted: ScoredRequests) -> Scores:
        """The scores of nodes for a pod. Shape (nodes,)."""
        total: Amounts | None = None
        amount_of = usage.used if self._most else usage.left
        total_type = (
            SCORE_TYPE if sum([weight for _, weight in wanted.resources]) <= _MAX_WEIGHTS else np.int64
        )
        for lane, ((_, weight), request) in enumerate(zip(wanted.resources, wanted.requests, strict=True)):
            percents = _percents(amount_of(lane, request), usage.divisor[lane], total_type)
            if weight != 1:
                percents *= weight
            total = percents if total is None else np.add(total, percents, out=total)
        if total is None:
            return np.zeros(usage.count, SCORE_TYPE)
        return np.floor_divide(total, usage.weights).astype(SCORE_TYPE, copy=False)

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

    def on_all(self, usage: ResourceUsage, wanted: ScoredRequests) -> Scores:
        """The scores of nodes for a pod. Shape (nodes,)."""
        total, weights = np.zeros((2, usage.count), np.int64)
        for lane, ((_, weight), request) in enumerate(zip(wanted.resources, wanted.requests, strict=True)):
            scored = self._table[_percents(usage.used(lane, request), usage.divisor[lane], np.intp)]
            is_counted = (scored > 0) & (usage.allocatable[lane] != 0)
            total += scored * weight * is_counted
            weights += weight * is_counted
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


def _percents(amounts: Amounts, divisor: Amounts, dtype: type[np.integer[Any]]) -> NDArray[Any]:
    """The quotients of amounts in hundredths, rounded down; see `free_columns`. They replace `amounts`."""
    if amounts.dtype == np.int64:
        return np.floor_divide(amounts, divisor, out=amounts).astype(dtype, copy=False)
    return np.divide(amounts, divisor, out=amounts).astype(dtype)


def strategy(kind: str, shape: tuple[UtilizationShapePoint, ...]) -> AllocationScorer:
    """The strategy that a configuration names."""
    if kind in (LEAST_ALLOCATED, MOST_ALLOCATED):
        return WeightedMean(most=kind == MOST_ALLOCATED)
    return RequestedToCapacity(shape)
