"""NodeResourcesBalancedAllocation: prefer nodes whose resources the pod brings closer to even use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.api.remembered import IdentityCache
from moorage.api.resource_requests import current_requests
from moorage.client.kinds import Kind
from moorage.cluster.object_tables import Objects
from moorage.cluster.row_reader import RowReader
from moorage.config.args import NodeResourcesBalancedAllocationArgs
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.dependencies import NODE_AND_PODS, DependsOn
from moorage.framework.interface.extension_points import MAX_SCORE, Scores
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.framework.interface.status import SKIP, Status
from moorage.plugins.dynamic_resources.device_totals import DEVICE_KINDS, DeviceTotals
from moorage.plugins.node_resources.usage import (
    SCORE_TYPE,
    Amounts,
    ResourceUsage,
    ScoredRequests,
    ScoredResources,
    picked,
    whole_columns,
)

_NEUTRAL: Final = MAX_SCORE // 2 * 3
"""Twice the score of a node whose balance stays the same."""
_FEW_ROWS: Final = 8
"""Number of nodes up to which one node at a time is faster than columns."""
_WANTED: StateKey[ScoredRequests] = StateKey("NodeResourcesBalancedAllocation/score")


class NodeResourcesBalancedAllocation:
    """Scores the change of balance, not the balance: 75 is neutral, more is better."""

    name = "NodeResourcesBalancedAllocation"
    watched_kinds: tuple[Kind, ...] = DEVICE_KINDS

    def __init__(self, args: NodeResourcesBalancedAllocationArgs, handle: Handle) -> None:
        names_and_weights = [(each.name, each.weight) for each in args.resources]
        devices = DeviceTotals(handle.objects)
        self._scored = ScoredResources(names_and_weights, devices, scoring_defaults=False, min_resources=2)
        self._wanted = IdentityCache(self._requests)
        self._before = _BalanceColumn(self._scored)

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn | None:
        """Allocatable and requested resources of the node, unless devices may back one of them."""
        return NODE_AND_PODS if self._wanted(pod).is_node_local else None

    def pre_score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """A pod that requests nothing changes no balance; scoring it would send all such pods to one node."""
        wanted = self._wanted(pod)
        cycle.write(_WANTED, wanted)
        return None if wanted.is_anything else SKIP

    def _requests(self, pod: Pod) -> ScoredRequests:
        return self._scored.wanted(current_requests(pod))

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        """From 50 (worse balanced than before) to 100 (better)."""
        wanted = cycle.read_or(_WANTED, lambda: self._wanted(pod))
        if not wanted.is_anything:
            return np.zeros(len(nodes), SCORE_TYPE)
        view = whole_columns(nodes)
        usage = self._scored.usage(view, wanted)
        scores = _balance(usage, wanted.requests)
        scores += self._before.of(view, wanted, usage)
        scores >>= 1
        return picked(scores, view, nodes)

    def score_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> int:
        """As `score`, for one node."""
        wanted = cycle.read_or(_WANTED, lambda: self._wanted(pod))
        if not wanted.is_anything:
            return 0
        if not wanted.is_node_local:
            return int(self.score(cycle, pod, node.as_nodes())[0])
        after, before = [], []
        for _, allocatable, allocated, requested in self._scored.usages_of(node, wanted):
            after.append(float(requested) / float(allocatable))
            before.append(float(allocated) / float(allocatable))
        return (_balance_of(after) + _NEUTRAL - _balance_of(before)) // 2


class _BalanceColumn:
    """The balance of all nodes without a new pod, computed again where pods or nodes have changed.

    It is kept as its difference to `_NEUTRAL`, for pods that request no extended resource: for these, the
    same resources count.
    """

    def __init__(self, scored: ScoredResources) -> None:
        self._scored = scored
        self._reader = RowReader()
        self._column = np.zeros(0, SCORE_TYPE)

    def of(self, nodes: Nodes, wanted: ScoredRequests, usage: ResourceUsage) -> NDArray[np.int16]:
        """`_NEUTRAL` less the balance of each node. Shape (nodes,)."""
        if nodes.rows is not None or nodes.hypothetical_pods is not None or not wanted.is_node_local:
            return _balance_without(usage)
        snapshot = nodes.snapshot
        rows = self._reader.new_rows(snapshot, snapshot.load_changes)
        if rows is None or len(rows) > _FEW_ROWS:
            self._column = _balance_without(usage)
        else:
            for row in rows:
                usages = self._scored.usages_of(NodeView(snapshot, row), wanted)
                balance = _balance_of([float(used) / float(of) for _, of, used, _ in usages])
                self._column[row] = _NEUTRAL - balance
        return self._column


def _balance_without(usage: ResourceUsage) -> NDArray[np.int16]:
    """`_NEUTRAL` less the balance of each node without a new pod. Shape (nodes,)."""
    return _NEUTRAL - _balance(usage, [0] * len(usage.free))


def _balance_of(fractions: list[float]) -> int:
    """As `_balance`, for one node."""
    if len(fractions) < 2:
        return MAX_SCORE
    clipped = [min(1.0, each) for each in fractions]
    if len(clipped) == 2:
        deviation = abs((clipped[0] - clipped[1]) / 2)
    else:
        mean = sum(clipped[1:], clipped[0]) / len(clipped)
        deviation = math.sqrt(sum(((each - mean) * (each - mean) for each in clipped), 0.0) / len(clipped))
    return int((1.0 - deviation) * MAX_SCORE)


def _balance(usage: ResourceUsage, requests: Sequence[int]) -> NDArray[np.int16]:
    """100 for equal fractions of every resource in use, less the more they deviate. Shape (nodes,)."""
    if len(requests) < 2:
        return np.full(usage.count, MAX_SCORE, SCORE_TYPE)
    fractions = [_fraction(usage, lane, request) for lane, request in enumerate(requests)]
    deviation = _deviation(fractions, usage.allocatable)
    np.subtract(1.0, deviation, out=deviation)
    deviation *= MAX_SCORE
    return deviation.astype(SCORE_TYPE)


def _fraction(usage: ResourceUsage, lane: int, request: int) -> NDArray[np.float64]:
    """The fraction of a resource in use with a pod's request. Shape (nodes,)."""
    used = usage.used(lane, request)
    return np.divide(used, usage.divisor[lane], out=used if used.dtype == np.float64 else None)


def _deviation(fractions: list[NDArray[np.float64]], allocatable: Sequence[Amounts]) -> NDArray[np.float64]:
    """The standard deviation over the resources each node has; 0 where it has none. Shape (nodes,)."""
    if len(fractions) == 2:
        return _half_distance(fractions[0], fractions[1])
    count: NDArray[np.int64] | int = len(fractions)
    present = [each != 0 for each in allocatable]
    if not all(each.all() for each in present):
        count = np.maximum(np.count_nonzero(present, axis=0), 1)
    # A resource that a node does not have is a fraction of 0, which changes no sum.
    mean = sum(fractions[1:], fractions[0]) / count
    squares = sum(
        ((each - mean) * (each - mean) * has for each, has in zip(fractions, present, strict=True)), 0.0
    )
    deviation: NDArray[np.float64] = np.sqrt(squares / count)
    least = np.where(present, fractions, np.inf).min(axis=0)
    return np.where(count == 2, _half_distance(np.max(fractions, axis=0), least), deviation)


def _half_distance(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """The standard deviation of two values."""
    distance = first - second
    np.abs(distance, out=distance)
    distance *= 0.5
    return distance
