"""What NodeResourcesFit and NodeResourcesBalancedAllocation share: how full nodes would be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage.api.names import is_scalar_resource
from moorage.api.requests import countable, whole_units
from moorage.cluster.columns import clipped
from moorage.devices.totals import DeviceTotals
from moorage.framework.nodes import Nodes


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


def usages(
    nodes: Nodes, wanted: Sequence[tuple[str, int, int]], devices: DeviceTotals, *, scoring_defaults: bool
) -> list[Usage]:
    """The resources that count for scoring.

    wanted: (resource, weight, the pod's request in whole units).
    devices: what there is of resources that devices back, on nodes that have none themselves.
    scoring_defaults: count pods that request no cpu or memory with a default.
    An extended resource that the pod does not ask for does not count, nor does one that no node has.
    """
    result = []
    for name, weight, request in wanted:
        if not countable(name) or (request == 0 and is_scalar_resource(name)):
            continue
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


def is_row_alone(wanted: Sequence[tuple[str, int, int]]) -> bool:
    """Whether `usages` looks at nothing but nodes' own rows: no device can stand in for what is wanted."""
    return not any(request and is_scalar_resource(name) for name, _, request in wanted)


def requested_units(
    names_and_weights: Sequence[tuple[str, int]], requests: Mapping[str, int]
) -> list[tuple[str, int, int]]:
    """(resource, weight, request in whole units) for each resource, from a pod's requests in billionths."""
    return [
        (name, weight, clipped(whole_units(name, requests.get(name, 0))))
        for name, weight in names_and_weights
    ]
