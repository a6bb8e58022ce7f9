"""More devices on a node: of a device driver (ResourceSlices), or of a device plugin (extended resources)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from msgspec.structs import replace as replaced

from moorage.api.base import ObjectMeta
from moorage.api.devices import Device, ResourcePool, ResourceSlice, ResourceSliceSpec
from moorage.api.names import is_extended_resource
from moorage.api.node import Node
from moorage.api.quantity import NANO, Quantity
from moorage.explain.help.change import Situation
from moorage.explain.help.problem import Offer, Problem

_ALLOCATION: Final = "DynamicResources"
_FIT: Final = "NodeResourcesFit"
_MAX_GROUPS: Final = 2
_MAX_TEMPLATES: Final = 4
_COUNTS: Final = (1, 2, 4, 8, 16)
"""Numbers of devices that are tried; what is found is made as small as possible."""


@dataclass(frozen=True, slots=True)
class AddDevices:
    """Publish more devices on a node, like one that a driver has."""

    node: Node
    driver: str
    like: Device
    size: int

    kind: str = "devices"

    def __str__(self) -> str:
        noun = "device" if self.size == 1 else "devices"
        return f"add {self.size} {noun} like {self.like.name} of {self.driver} to node {self.node.name}"

    def resized(self, size: int) -> AddDevices:
        """With another number of devices."""
        return replace(self, size=size)

    def apply(self, situation: Situation) -> Situation:
        """With a pool of its own for the devices."""
        like = replaced(self.like, consumes_counters=(), node_name=None, node_selector=None, all_nodes=False)
        name = f"more-{self.like.name}-{self.node.name}"
        spec = ResourceSliceSpec(
            driver=self.driver,
            pool=ResourcePool(name=name, generation=1, resource_slice_count=1),
            node_name=self.node.name,
            devices=tuple(replaced(like, name=f"more-{number}") for number in range(self.size)),
        )
        return situation.putting(ResourceSlice(metadata=ObjectMeta(name=name), spec=spec))

    def details(self) -> dict[str, Any]:
        """The node, and the devices."""
        return {"node": self.node.name, "driver": self.driver, "like": self.like.name, "count": self.size}


@dataclass(frozen=True, slots=True)
class AddExtendedResource:
    """Let a node have more of an extended resource."""

    node: Node
    resource: str
    size: int

    kind: str = "devices"

    def __str__(self) -> str:
        return f"add {self.size} {self.resource} to node {self.node.name}"

    def resized(self, size: int) -> AddExtendedResource:
        """With another number."""
        return replace(self, size=size)

    def apply(self, situation: Situation) -> Situation:
        """With more of it allocatable."""
        node = situation.current(self.node)
        room = dict(node.status.allocatable)
        room[self.resource] = Quantity(room.get(self.resource, 0) + self.size * NANO)
        return situation.putting(replaced(node, status=replaced(node.status, allocatable=room)))

    def details(self) -> dict[str, Any]:
        """The node, and the resource."""
        return {"node": self.node.name, "resource": self.resource, "count": self.size}


def offers(problem: Problem) -> Iterator[Offer]:
    """Devices for one node of each group that other filters treat alike."""
    yield from _extended(problem)
    templates = _templates(problem)
    for _, rows in zip(range(_MAX_GROUPS), problem.groups(_ALLOCATION), strict=False):
        node = problem.snapshot.nodes[int(rows[0])]
        for driver, device in templates:
            added = _enough(problem, node, driver, device)
            if added is not None:
                yield problem.on_row(int(rows[0]), _ALLOCATION, added)
                break


def _templates(problem: Problem) -> list[tuple[str, Device]]:
    """A device of each driver and kind."""
    found: dict[Hashable, tuple[str, Device]] = {}
    for each in problem.snapshot.objects.of(ResourceSlice):
        for device in each.spec.devices:
            found.setdefault((each.spec.driver, frozenset(device.capacity)), (each.spec.driver, device))
            if len(found) >= _MAX_TEMPLATES:
                return list(found.values())
    return list(found.values())


def _enough(problem: Problem, node: Node, driver: str, device: Device) -> AddDevices | None:
    """As many devices as make the allocation succeed on a node."""
    for count in _COUNTS:
        change = AddDevices(node, driver, device, count)
        if _ALLOCATION not in problem.trials.refusing((change,), node.name):
            return change
    return None


def _extended(problem: Problem) -> Iterator[Offer]:
    """The extended resources that are missing, on nodes that lack nothing else."""
    wanted = {name: amount for name, amount in problem.requests.items() if is_extended_resource(name)}
    if not wanted:
        return
    nodes = problem.nodes
    has_rest = nodes.pod_count < nodes.allowed_pods
    for name, amount in problem.requests.items():
        if name not in wanted:
            has_rest &= nodes.allocatable(name) - nodes.requested(name) >= amount
    missing = {
        name: np.maximum(amount - (nodes.allocatable(name) - nodes.requested(name)), 0)
        for name, amount in wanted.items()
    }
    total = np.sum(list(missing.values()), axis=0)
    for _, rows in zip(range(_MAX_GROUPS), problem.groups(_FIT, has_rest), strict=False):
        for row in dict.fromkeys((int(rows[0]), int(rows[total[rows].argmin()]))):
            node = problem.snapshot.nodes[row]
            short = {name: int(amounts[row]) for name, amounts in missing.items() if amounts[row]}
            changes = (AddExtendedResource(node, name, amount) for name, amount in short.items())
            yield problem.on_row(row, _FIT, *changes)
