"""The pods that are to be expected, and how many GPUs are of no use to them.

A GPU is a fragment for a pod if it is free on a node where this pod does not fit: too little of this or of
another resource is free there, or there is no room for one more pod. The fragments of a node are the mean
over the expected pods, in which each counts by the GPUs that it requests. A pod is scored by how many more
there are with it.

All sums are integers: all nodes at once and one node at a time give the same scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage import MAX_SCORE, Nodes, NodeView, Scores

NEUTRAL: Final = MAX_SCORE // 2
"""The score of a node that has as many fragments with a pod as without it."""
_SUM_OF_WEIGHTS: Final = 1 << 20
_MAX_MEASURED: Final = 1 << 31
"""Maximum amount of the measured resource that counts: with it, and these weights, sums fit in an int64."""

Amounts = NDArray[np.int64]


class Shape(NamedTuple):
    """What pods request, in whole units and by name, and the number of such pods."""

    requests: tuple[tuple[str, int], ...]
    number: int


class Room(NamedTuple):
    """What is free on nodes, by resource and node, and how many more pods each of them takes."""

    free: Amounts
    pods: Amounts


class Target:
    """The shapes of expected pods, and the score of nodes for a pod.

    resource: the measured one, which all shapes request. unit: how much of it is one GPU.
    """

    def __init__(self, resource: str, unit: int, shapes: Sequence[Shape]) -> None:
        self.shapes = tuple(shapes)
        self._resource = resource
        requests = [dict(shape.requests) for shape in shapes]
        self._names = [resource, *sorted({name for each in requests for name in each} - {resource})]
        needs = [[each.get(name, 0) for name in self._names] for each in requests]
        weights = _weights(
            [shape.number * each[resource] for shape, each in zip(shapes, requests, strict=True)]
        )
        self._scale = sum(weights) * unit
        """The weighted sum of one GPU that is a fragment for all of them."""
        self._weighted_needs = list(zip(weights, needs, strict=True))
        self._weights = np.array(weights, np.float64)
        self._needs = np.array(needs, np.int64).reshape(len(shapes), len(self._names)).T

    def score(self, nodes: Nodes, taken: Mapping[str, int]) -> Scores:
        """The score of each node for a pod that takes some amounts. Shape (nodes,)."""
        scores = np.full(len(nodes), NEUTRAL, np.int64)
        indices = np.flatnonzero(_free(nodes, self._resource) > 0)
        if len(indices) and self.shapes:
            scores[indices] = self._score(nodes.at(indices), taken)
        return scores

    def _score(self, nodes: Nodes, taken: Mapping[str, int]) -> Scores:
        """The same for nodes where a GPU is free."""
        room = Room(
            np.array([_free(nodes, name) for name in self._names]), nodes.allowed_pods - nodes.pod_count
        )
        used = np.array([[taken.get(name, 0)] for name in self._names])
        increase = self._fragments(Room(room.free - used, room.pods - 1)) - self._fragments(room)
        distance = self._scale + np.abs(increase)
        scores: Scores = NEUTRAL * (distance - increase) // distance
        return scores

    def _fragments(self, room: Room) -> Amounts:
        """The weighted sum of the fragments for all shapes. Shape (nodes,)."""
        fits = np.broadcast_to(room.pods > 0, (len(self.shapes), len(room.pods)))
        for free, needs in zip(room.free, self._needs, strict=True):
            fits = fits & (free >= needs[:, np.newaxis])
        # The product is faster in floats, in which sums of these weights are exact.
        fragments: Amounts = (self._weights @ ~fits).astype(np.int64)
        fragments *= np.clip(room.free[0], 0, _MAX_MEASURED)
        return fragments

    def score_node(self, node: NodeView, taken: Mapping[str, int]) -> int:
        """As `score`, for one node."""
        if node.free(self._resource) <= 0 or not self.shapes:
            return NEUTRAL
        free = [node.free(name) for name in self._names]
        left = [amount - taken.get(name, 0) for name, amount in zip(self._names, free, strict=True)]
        pods = node.allowed_pods - node.pod_count
        increase = self._fragments_of(left, pods - 1) - self._fragments_of(free, pods)
        distance = self._scale + abs(increase)
        return NEUTRAL * (distance - increase) // distance

    def _fragments_of(self, free: Sequence[int], pods: int) -> int:
        """As `_fragments`, for one node."""
        lost = 0
        for weight, needs in self._weighted_needs:
            if pods <= 0 or any(amount < need for amount, need in zip(free, needs, strict=True)):
                lost += weight
        return lost * min(max(free[0], 0), _MAX_MEASURED)


def _free(nodes: Nodes, resource: str) -> Amounts:
    return nodes.allocatable(resource) - nodes.requested(resource)


def _weights(numbers: Sequence[int]) -> list[int]:
    """Weights in proportion to some numbers, of which each has one."""
    total = sum(numbers)
    return [max(number * _SUM_OF_WEIGHTS // total, 1) for number in numbers]
