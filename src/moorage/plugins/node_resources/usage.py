"""What NodeResourcesFit and NodeResourcesBalancedAllocation share: how full nodes would be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.names import is_scalar_resource
from moorage.api.resource_requests import countable, whole_units
from moorage.cluster.columns import clipped
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.plugins.dynamic_resources.device_totals import DeviceTotals
from moorage.plugins.node_resources.free_columns import NATIVE_LANES, SCORING_SCALE, FreeColumns

SCORE_TYPE: Final = np.int16
"""The type of scores: what is computed with them takes a quarter of the time that int64 takes."""
_ZERO: Final = {"f": np.float64(0), "i": np.int64(0)}
"""Zero by kind of amounts: comparing with a number of another type takes twice the time."""

Amounts = NDArray[Any]
"""Amounts of a resource as float64 where that is exact, as int64 otherwise. Shape (nodes,)."""


@dataclass(slots=True)
class ScoredRequests:
    """A pod's requests of the resources that count for scoring.

    An extended resource that the pod does not ask for does not count.
    """

    resources: tuple[tuple[str, int], ...]
    """(resource, weight) of those that count."""
    requests: tuple[int, ...]
    """The pod's request of each of them, in whole units."""
    is_anything: bool
    """Whether the pod asks for any of the resources that are scored."""
    is_node_local: bool
    """Whether nodes' own rows are sufficient: no device can back the requested resources."""
    lanes: tuple[int, ...]
    """The index of each of them in `NATIVE_LANES`; empty if there is none, or one is not among these."""


@dataclass(slots=True, eq=False)
class ResourceUsage:
    """What nodes have of the resources that count, and what is free of it; by resource.

    scale: what is free is given as a multiple of this number.
    """

    allocatable: Sequence[Amounts]
    divisor: Sequence[Amounts]
    """The allocatable amount, made safe to divide by where there is none."""
    free: Sequence[Amounts]
    """The allocatable less the allocated amount, times `scale`; as a float it may be negative."""
    weights: Amounts | int
    """The sum of the weights of the resources a node has, at least 1; one number if it is the same for all
    nodes that have any."""
    count: int
    """Number of nodes."""
    min_free: Sequence[float]
    """A lower bound of `free` on any node."""
    scale: int
    allocated: Sequence[Amounts] | None = None
    """What is in use, where that is known and `scale` is 1."""

    def left(self, lane: int, request: int) -> Amounts:
        """What would be left of a resource with a pod's request, at least 0, times `scale`; a new array."""
        request *= self.scale
        left: Amounts = self.free[lane] - request
        return left if self.min_free[lane] >= request else np.maximum(left, _ZERO[left.dtype.kind], out=left)

    def used(self, lane: int, request: int) -> Amounts:
        """What would be in use of a resource, at most what there is, times `scale`; a new array."""
        if self.allocated is not None:
            used: Amounts = self.allocated[lane] + request
            return (
                used if self.min_free[lane] >= request else np.minimum(used, self.allocatable[lane], out=used)
            )
        left, allocatable = self.left(lane, request), self.allocatable[lane]
        return np.subtract(allocatable if self.scale == 1 else allocatable * self.scale, left, out=left)


NodeUsage = tuple[int, int, int, int]
"""One resource on one node that has it: weight, allocatable, allocated, and what would be with the pod."""


class ScoredResources:
    """The resources that a plugin scores nodes by.

    devices: what there is of resources that devices back, on nodes that have none themselves.
    scoring_defaults: count pods that request no cpu or memory with a default; amounts are in hundredths.
    min_resources: nodes that have fewer of the resources are taken to have none of them.
    """

    def __init__(
        self,
        names_and_weights: Sequence[tuple[str, int]],
        devices: DeviceTotals,
        *,
        scoring_defaults: bool,
        min_resources: int = 1,
    ) -> None:
        self._resources = [
            (name, weight, countable(name), is_scalar_resource(name)) for name, weight in names_and_weights
        ]
        is_native = all(name in NATIVE_LANES for name, _ in names_and_weights)
        lanes = tuple(NATIVE_LANES[name] for name, _ in names_and_weights if is_native)
        self._native = (tuple(names_and_weights), lanes) if is_native else None
        """The resources and their lanes, if they are the same for all pods."""
        self._devices = devices
        self._scoring_defaults = scoring_defaults
        self._scale = SCORING_SCALE if scoring_defaults else 1
        self._min_resources = min_resources
        self._kept: tuple[object, object, ResourceUsage] | None = None
        """The usage of all nodes, with the columns and the resources that it is for; rows change in place."""

    def wanted(self, billionths: Mapping[str, int]) -> ScoredRequests:
        """A pod's requests, from those in billionths."""
        if self._native is not None:
            names_and_weights, lanes = self._native
            amounts = tuple(
                [clipped(whole_units(name, billionths.get(name, 0))) for name, _ in names_and_weights]
            )
            return ScoredRequests(names_and_weights, amounts, any(amounts), is_node_local=True, lanes=lanes)
        resources, requests, wanted = [], [], []
        for name, weight, is_countable, is_scalar in self._resources:
            request = clipped(whole_units(name, billionths.get(name, 0)))
            if request:
                wanted.append(is_scalar)
            if is_countable and (request or not is_scalar):
                resources.append((name, weight))
                requests.append(request)
        is_native = all(name in NATIVE_LANES for name, _ in resources)
        lanes = tuple(NATIVE_LANES[name] for name, _ in resources) if is_native else ()
        return ScoredRequests(tuple(resources), tuple(requests), bool(wanted), not any(wanted), lanes)

    def usage(self, nodes: Nodes, wanted: ScoredRequests) -> ResourceUsage:
        """How full nodes are. A resource that a node does not have does not count there."""
        if nodes.hypothetical_pods is None and wanted.lanes:
            columns = FreeColumns.of(nodes.snapshot)
            if columns.is_exact and columns.is_even(wanted.lanes):
                return self._usage_in(columns, nodes, wanted)
        return self._usage_of(nodes, wanted)

    def _usage_in(self, columns: FreeColumns, nodes: Nodes, wanted: ScoredRequests) -> ResourceUsage:
        """The usage of nodes that have all resources that count, or none."""
        min_free = columns.min_free_scoring if self._scoring_defaults else columns.min_free
        if nodes.rows is not None:
            usage = self._picked(columns, nodes, wanted)
        else:
            kept = self._kept
            if kept is None or kept[0] is not columns.free or kept[1] is not wanted.resources:
                kept = columns.free, wanted.resources, self._picked(columns, nodes, wanted)
                self._kept = kept
            usage = kept[2]
        usage.min_free = [min_free[lane] for lane in wanted.lanes]
        return usage

    def _picked(self, columns: FreeColumns, nodes: Nodes, wanted: ScoredRequests) -> ResourceUsage:
        free = columns.free_scoring if self._scoring_defaults else columns.free
        pick, lanes = nodes.pick, wanted.lanes
        return ResourceUsage(
            [pick(columns.allocatable[lane]) for lane in lanes],
            [pick(columns.divisor[lane]) for lane in lanes],
            [pick(free[lane]) for lane in lanes],
            sum([weight for _, weight in wanted.resources]),
            len(nodes),
            (),
            self._scale,
            [pick(columns.allocated[lane]) for lane in lanes] if self._scale == 1 else None,
        )

    def _usage_of(self, nodes: Nodes, wanted: ScoredRequests) -> ResourceUsage:
        """The usage of any nodes, in integers."""
        shape = len(wanted.resources), len(nodes)
        allocatable, allocated = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        allocated_on = nodes.scoring_requested if self._scoring_defaults else nodes.requested
        for lane, (name, _) in enumerate(wanted.resources):
            allocatable[lane], allocated[lane] = nodes.allocatable(name), allocated_on(name)
            backed = self._devices.of(name, nodes) if is_scalar_resource(name) else None
            if backed is not None:
                none = allocatable[lane] == 0
                allocatable[lane] = np.where(none, backed[0], allocatable[lane])
                allocated[lane] = np.where(none, backed[1], allocated[lane])
        if self._min_resources > 1:
            allocatable *= np.count_nonzero(allocatable, axis=0) >= self._min_resources
        weights = np.array([weight for _, weight in wanted.resources], np.int64) @ (allocatable != 0)
        # Negative amounts, which count as 0, could become too large for an int64.
        free = np.where(allocatable, np.maximum(allocatable - allocated, 0), 0) * self._scale
        divisor = np.maximum(allocatable, 1)
        weights = np.maximum(weights, 1)
        unknown = [-math.inf] * len(free)
        amounts = list(allocatable), list(divisor), list(free)
        return ResourceUsage(*amounts, weights, len(nodes), unknown, self._scale)

    def usages_of(self, node: NodeView, wanted: ScoredRequests) -> list[NodeUsage]:
        """As `usage`, for one node, where no device can back a resource (`ScoredRequests.is_node_local`)."""
        result = []
        allocated_on = node.scoring_requested if self._scoring_defaults else node.requested
        for (name, weight), request in zip(wanted.resources, wanted.requests, strict=True):
            allocatable = node.allocatable(name)
            if allocatable:
                allocated = allocated_on(name)
                result.append((weight, allocatable, allocated, allocated + request))
        return result


def whole_columns(nodes: Nodes) -> Nodes:
    """All nodes in place of most of them: picking from columns costs more than computing with them.

    Results must be picked for `nodes` if this is another view.
    """
    is_most = len(nodes) * 2 >= len(nodes.snapshot)
    return nodes.all if is_most and nodes.hypothetical_pods is None else nodes


def picked(result: NDArray[Any], view: Nodes, nodes: Nodes) -> NDArray[Any]:
    """Of a result for the nodes of `view`, that for `nodes`."""
    return result if view is nodes else nodes.pick(result)
