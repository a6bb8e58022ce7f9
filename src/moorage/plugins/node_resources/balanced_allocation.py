"""NodeResourcesBalancedAllocation: prefer nodes whose resources the pod brings closer to even use."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.api.requests import pod_requests
from moorage.client.kinds import Kind
from moorage.cluster.object_tables import Objects
from moorage.config.args import NodeResourcesBalancedAllocationArgs
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.dependencies import NODE_AND_PODS, DependsOn
from moorage.framework.interface.extension_points import MAX_SCORE, Scores
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.framework.interface.status import SKIP, Status
from moorage.plugins.dynamic_resources.device_totals import DEVICE_KINDS, DeviceTotals
from moorage.plugins.node_resources.usage import Usage, Wanted, usages, usages_of, wanted_of

_HALF = MAX_SCORE // 2
_WANTED: StateKey[Wanted] = StateKey("NodeResourcesBalancedAllocation/score")


class NodeResourcesBalancedAllocation:
    """Scores the change of balance, not the balance: 75 is neutral, more is better."""

    name = "NodeResourcesBalancedAllocation"
    watched_kinds: tuple[Kind, ...] = DEVICE_KINDS

    def __init__(self, args: NodeResourcesBalancedAllocationArgs, handle: Handle) -> None:
        self._devices = DeviceTotals(handle.objects)
        self._scored = [(each.name, each.weight) for each in args.resources]

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn | None:
        """Allocatable and requested resources of the node, unless devices may back one of them."""
        return NODE_AND_PODS if self._wanted(pod).is_row_alone else None

    def pre_score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """A pod that requests nothing changes no balance; scoring it would send all such pods to one node."""
        wanted = self._wanted(pod)
        cycle.write(_WANTED, wanted)
        return None if wanted.is_anything else SKIP

    def _wanted(self, pod: Pod) -> Wanted:
        return wanted_of(self._scored, pod_requests(pod, use_status=True))

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        """From 50 (worse balanced than before) to 100 (better)."""
        wanted = cycle.read_or(_WANTED, lambda: self._wanted(pod))
        if not wanted.is_anything:
            return np.zeros(len(nodes), np.int64)
        resources = usages(nodes, wanted, self._devices, scoring_defaults=False)
        after = _balance(resources, [usage.requested for usage in resources], len(nodes))
        before = _balance(resources, [usage.allocated for usage in resources], len(nodes))
        return _HALF + (_HALF + after - before) // 2

    def score_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> int:
        """As `score`, for one node."""
        wanted = cycle.read_or(_WANTED, lambda: self._wanted(pod))
        if not wanted.is_anything:
            return 0
        if not wanted.is_row_alone:
            return int(self.score(cycle, pod, node.as_nodes())[0])
        after, before = [], []
        for _, allocatable, allocated, requested in usages_of(node, wanted, scoring_defaults=False):
            after.append(float(requested) / float(allocatable))
            before.append(float(allocated) / float(allocatable))
        return _HALF + (_HALF + _balance_of(after) - _balance_of(before)) // 2


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


def _balance(resources: list[Usage], used: list[NDArray[np.int64]], count: int) -> NDArray[np.int64]:
    """100 for equal fractions of every resource in use, less the more they deviate. Shape (nodes,)."""
    fractions = [
        np.minimum(amount / usage.divisor, 1.0) for usage, amount in zip(resources, used, strict=True)
    ]
    if len(resources) < 2:
        return np.full(count, MAX_SCORE, np.int64)
    if all(usage.present is None for usage in resources):
        deviation = _deviation(fractions)
    else:
        deviation = _deviation_where_present(resources, fractions, count)
    return ((1.0 - deviation) * MAX_SCORE).astype(np.int64)


def _deviation(fractions: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The standard deviation; of two values it is half their distance."""
    if len(fractions) == 2:
        return np.abs((fractions[0] - fractions[1]) / 2)
    mean = sum(fractions[1:], fractions[0]) / len(fractions)
    squares = sum(((each - mean) * (each - mean) for each in fractions), np.zeros(len(mean)))
    return np.sqrt(squares / len(fractions))


def _deviation_where_present(
    resources: list[Usage], fractions: list[NDArray[np.float64]], count: int
) -> NDArray[np.float64]:
    """The deviation over the resources each node has: nodes are grouped by which ones those are."""
    deviation = np.zeros(count)
    having = np.stack([np.ones(count, bool) if u.present is None else u.present for u in resources])
    patterns, group = np.unique(having, axis=1, return_inverse=True)
    for number, pattern in enumerate(patterns.T):
        kept = np.flatnonzero(pattern)
        if len(kept) >= 2:
            rows = np.flatnonzero(group == number)
            deviation[rows] = _deviation([fractions[index][rows] for index in kept.tolist()])
    return deviation
