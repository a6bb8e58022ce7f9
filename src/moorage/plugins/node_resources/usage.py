"""What NodeResourcesFit and NodeResourcesBalancedAllocation share: how full nodes would be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage.api.names import is_scalar_resource
from moorage.api.requests import countable, whole_units
from moorage.cluster.columns import clipped
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.plugins.dynamic_resources.device_totals import DeviceTotals


@dataclass(frozen=True, slots=True)
class Wanted:
    """A pod's requests of the resources that count for scoring.

    An extended resource that the pod does not ask for does not count.
    """

    counted: tuple[tuple[str, int, int], ...]
    """(resource, weight, the pod's request in whole units)."""
    is_anything: bool
    """Whether the pod asks for any of the resources that are scored."""
    is_row_alone: bool
    """Whether nodes' own rows are sufficient: no device can back the requested resources."""


def wanted_of(names_and_weights: Sequence[tuple[str, int]], requests: Mapping[str, int]) -> Wanted:
    """A pod's request of each resource, from its requests in billionths."""
    units = [
        (name, weight, clipped(whole_units(name, requests.get(name, 0))))
        for name, weight in names_and_weights
    ]
    return Wanted(
        tuple(each for each in units if countable(each[0]) and (each[2] or not is_scalar_resource(each[0]))),
        any(request for _, _, request in units),
        not any(request and is_scalar_resource(name) for name, _, request in units),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Usage:
    """One resource on all nodes: what there is, what is taken, what would be with the pod. Shape (nodes,)."""

    weight: int
    allocatable: NDArray[np.int64]
    allocated: NDArray[np.int64]
    requested: NDArray[np.int64]
    present: NDArray[np.bool_] | None
    """Where the resource exists at all; None: on every node."""

    @property
    def divisor(self) -> NDArray[np.int64]:
        """The allocatable amount, made safe to divide by where there is none."""
        return self.allocatable if self.present is None else np.maximum(self.allocatable, 1)


def usages(nodes: Nodes, wanted: Wanted, devices: DeviceTotals, *, scoring_defaults: bool) -> list[Usage]:
    """The resources that count for scoring.

    devices: what there is of resources that devices back, on nodes that have none themselves.
    scoring_defaults: count pods that request no cpu or memory with a default.
    A resource that no node has does not count.
    """
    result = []
    for name, weight, request in wanted.counted:
        allocatable = nodes.allocatable(name)
        allocated = nodes.scoring_requested(name) if scoring_defaults else nodes.requested(name)
        backed = devices.of(name, nodes) if is_scalar_resource(name) else None
        if backed is not None:
            none = allocatable == 0
            allocatable, allocated = (
                np.where(none, backed[0], allocatable),
                np.where(none, backed[1], allocated),
            )
        present = None if allocatable.all() else allocatable != 0
        if present is None or present.any():
            result.append(Usage(weight, allocatable, allocated, allocated + request, present))
    return result


NodeUsage = tuple[int, int, int, int]
"""One resource on one node that has it: weight, allocatable, allocated, and what would be with the pod."""


def usages_of(node: NodeView, wanted: Wanted, *, scoring_defaults: bool) -> list[NodeUsage]:
    """As `usages`, for one node, where no device can back a resource (`Wanted.is_row_alone`)."""
    result = []
    allocated_on = node.scoring_requested if scoring_defaults else node.requested
    for name, weight, request in wanted.counted:
        allocatable = node.allocatable(name)
        if allocatable:
            allocated = allocated_on(name)
            result.append((weight, allocatable, allocated, allocated + request))
    return result
