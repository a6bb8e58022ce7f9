"""How many devices stand behind an extended resource on each node: what NodeResourcesFit scores by.

Counted as kube-scheduler counts for scoring: every slice counts, whatever its generation, and shared devices
count as allocated once anybody has a share.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from moorage.api.devices import Device, DeviceClass, ResourceClaim, ResourceSlice, ResourceSliceSpec
from moorage.api.selectors import RequiredNodes, node_terms
from moorage.cluster.objects import Objects
from moorage.devices.cel.program import CompileError, DeviceFacts, compile_selector
from moorage.devices.cel.values import CelError
from moorage.devices.extended import backing_class
from moorage.devices.flights import flights_of
from moorage.devices.holdings import Holdings
from moorage.devices.inventory import Inventory
from moorage.devices.pools import Entry
from moorage.framework.nodes import Nodes

Counts = NDArray[np.int64]


class DeviceTotals:
    """Counts devices by resource; `objects` are the live ones, whose allocations in flight count as well."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._inventory = Inventory()
        self._holdings = Holdings()

    def of(self, resource: str, nodes: Nodes) -> tuple[Counts, Counts] | None:
        """The devices there are on each node, and those in use; None if no class stands behind the resource.

        Both have shape (nodes,). A node that reaches a device for which a selector fails counts nothing.
        """
        device_class = backing_class(resource, nodes.objects.of(DeviceClass))
        if device_class is None:
            return None
        self._inventory.refresh(nodes.objects.of(ResourceSlice))
        self._holdings.refresh(nodes.objects.of(ResourceClaim), flights_of(self._objects).claims())
        places = _Places(nodes)
        there, taken = np.zeros((2, len(nodes)), np.int64)
        broken = np.zeros(len(nodes), bool)
        for source, entries in self._inventory.slices():
            by_device = source.spec.per_device_node_selection
            for entry in entries:
                where = places.reaching(entry.device if by_device else source.spec)
                try:
                    counts = _is_in(device_class, entry)
                except (CelError, CompileError):
                    broken[where] = True
                    continue
                if counts:
                    there[where] += 1
                    taken[where] += self._holdings.of(entry.id) is not None
        there[broken] = taken[broken] = 0
        return there, taken


def _is_in(device_class: DeviceClass, entry: Entry) -> bool:
    """Whether the selectors of a class choose a device; as kube-scheduler counts, none looks shareable."""
    facts = entry.kind.facts
    if entry.device.allow_multiple_allocations:
        facts = DeviceFacts(entry.id.driver, replace(entry.device, allow_multiple_allocations=False))
    expressions = [selector.cel.expression for selector in device_class.spec.selectors if selector.cel]
    return all(compile_selector(expression).matches(facts) for expression in expressions)


class _Places:
    """Which nodes of a view reach what is published somewhere."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._place = np.full(len(nodes.snapshot), -1, np.intp)
        self._place[nodes.row_numbers()] = np.arange(len(nodes))
        self._selected: dict[int, NDArray[np.bool_]] = {}

    def reaching(self, published: ResourceSliceSpec | Device) -> slice | NDArray[np.bool_]:
        """An index of the nodes that reach a slice or a device."""
        if published.node_name:
            row = self._nodes.snapshot.row_of.get(published.node_name)
            place = -1 if row is None else int(self._place[row])
            return slice(place, place + 1) if place >= 0 else slice(0)
        if published.all_nodes:
            return slice(None)
        selector = published.node_selector
        if selector is None:
            return slice(0)
        mask = self._selected.get(id(selector))
        if mask is None:
            mask = self._nodes.required_by(RequiredNodes((), node_terms(selector)))
            self._selected[id(selector)] = mask
        return mask
