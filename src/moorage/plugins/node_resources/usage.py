"""What NodeResourcesFit and NodeResourcesBalancedAllocation share: how full nodes would be.

Scores are quotients of amounts, rounded down. A division of float64 is several times faster than one of
int64, and gives the same integers if no node has more than `EXACT_MAX` of a resource; otherwise integers are
used. A quotient of integers a / b that is no integer is at least 1 / b below the next one, and rounding a
quotient of up to 100 to float64 moves it by at most 2 ** -47: it stays below as long as b is below 2 ** 47.
All amounts up to 100 * b are exact as long as that is below 2 ** 53; a sum of requests that is not exact is
larger than b, and counts as b.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.names import is_scalar_resource
from moorage.api.resource_requests import countable, whole_units
from moorage.cluster.columns import clipped
from moorage.cluster.row_reader import RowReader
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.plugins.dynamic_resources.device_totals import DeviceTotals

EXACT_MAX: Final = 1 << 46
"""The largest allocatable amount (64 TiB of memory) for which scores may be computed with floats."""

Amounts = NDArray[Any]
"""Amounts of resources as float64 where that is exact, as int64 otherwise. Shape (resources, nodes)."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True, eq=False)
class Capacity:
    """What nodes have of the resources that count."""

    allocatable: Amounts
    divisor: Amounts
    """The allocatable amount, made safe to divide by where there is none."""
    weights: NDArray[Any]
    """The sum of the weights of the resources a node has, at least 1. Shape (nodes,)."""


@dataclass(frozen=True, slots=True, eq=False)
class ResourceUsage:
    """What nodes have of the resources that count, and what is allocated of it."""

    capacity: Capacity
    allocated: list[NDArray[np.int64]]
    """By resource, shape (nodes,)."""

    def used(self, requests: Sequence[int]) -> Amounts:
        """What would be in use with these requests, at most what there is; a new array."""
        used = np.empty_like(self.capacity.allocatable)
        for lane, (allocated, request) in enumerate(zip(self.allocated, requests, strict=True)):
            used[lane] = allocated + request if request else allocated
        return np.minimum(used, self.capacity.allocatable, out=used)


NodeUsage = tuple[int, int, int, int]
"""One resource on one node that has it: weight, allocatable, allocated, and what would be with the pod."""


class ScoredResources:
    """The resources that a plugin scores nodes by.

    devices: what there is of resources that devices back, on nodes that have none themselves.
    scoring_defaults: count pods that request no cpu or memory with a default.
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
        self._devices = devices
        self._scoring_defaults = scoring_defaults
        self._min_resources = min_resources
        self._capacity: Capacity | None = None
        """That of all nodes for pods that request no extended resource, kept until a node changes."""
        self._nodes_reader = RowReader()

    def wanted(self, billionths: Mapping[str, int]) -> ScoredRequests:
        """A pod's requests, from those in billionths."""
        resources, requests, wanted = [], [], []
        for name, weight, is_countable, is_scalar in self._resources:
            request = clipped(whole_units(name, billionths.get(name, 0)))
            if request:
                wanted.append(is_scalar)
            if is_countable and (request or not is_scalar):
                resources.append((name, weight))
                requests.append(request)
        return ScoredRequests(tuple(resources), tuple(requests), bool(wanted), not any(wanted))

    def usage(self, nodes: Nodes, wanted: ScoredRequests) -> ResourceUsage:
        """How full nodes are. A resource that a node does not have does not count there."""
        allocated_on = nodes.scoring_requested if self._scoring_defaults else nodes.requested
        allocated = [allocated_on(name) for name, _ in wanted.resources]
        if nodes.rows is None and wanted.is_node_local:
            return ResourceUsage(self._whole_capacity(nodes, wanted), allocated)
        allocatable = [nodes.allocatable(name) for name, _ in wanted.resources]
        for lane, (name, _) in enumerate(wanted.resources):
            backed = self._devices.of(name, nodes) if is_scalar_resource(name) else None
            if backed is not None:
                none = allocatable[lane] == 0
                allocatable[lane] = np.where(none, backed[0], allocatable[lane])
                allocated[lane] = np.where(none, backed[1], allocated[lane])
        return ResourceUsage(self._capacity_of(allocatable, wanted, len(nodes)), allocated)

    def _whole_capacity(self, nodes: Nodes, wanted: ScoredRequests) -> Capacity:
        changed = self._nodes_reader.new_rows(nodes.snapshot, nodes.snapshot.node_changes)
        if self._capacity is None or changed is None or changed:
            allocatable = [nodes.allocatable(name) for name, _ in wanted.resources]
            self._capacity = self._capacity_of(allocatable, wanted, len(nodes))
        return self._capacity

    def _capacity_of(self, columns: list[NDArray[np.int64]], wanted: ScoredRequests, count: int) -> Capacity:
        shape = len(columns), count
        allocatable: Amounts = np.array(columns, np.int64).reshape(shape)
        if self._min_resources > 1:
            allocatable *= np.count_nonzero(allocatable, axis=0) >= self._min_resources
        weights = np.array([weight for _, weight in wanted.resources], np.int64) @ (allocatable != 0)
        if allocatable.max(initial=0) <= EXACT_MAX:
            allocatable = allocatable.astype(np.float64)
        return Capacity(
            allocatable, np.maximum(allocatable, 1), np.maximum(weights, 1).astype(allocatable.dtype)
        )

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
