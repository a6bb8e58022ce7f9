"""Number of devices that back an extended resource on each node: used by NodeResourcesFit for scoring.

Counted as kube-scheduler counts for scoring: slices of every generation count, and shared devices
count as allocated once any claim has a share.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from moorage.api.devices import Device, DeviceClass, ResourceClaim, ResourceSlice, ResourceSliceSpec
from moorage.api.node import Node
from moorage.api.selectors import RequiredNodes, node_terms
from moorage.cel.budget import WorkBudget, WorkLimitError
from moorage.cel.program import CompileError, DeviceFacts, compile_selector
from moorage.cel.values import CelError
from moorage.client import kinds
from moorage.cluster.object_tables import Objects
from moorage.cluster.row_reader import RowReader
from moorage.cluster.snapshot import Snapshot
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.dynamic_resources.extended_resources import backing_class
from moorage.plugins.dynamic_resources.in_flight_allocations import InFlightAllocations
from moorage.plugins.dynamic_resources.structured.allocated_devices import AllocatedDevices
from moorage.plugins.dynamic_resources.structured.device_kinds import DeviceKind
from moorage.plugins.dynamic_resources.structured.inventory import Inventory
from moorage.plugins.dynamic_resources.structured.pools import DeviceEntry, DeviceId, PoolId

DEVICE_KINDS: Final = (kinds.RESOURCE_CLAIM, kinds.RESOURCE_SLICE, kinds.DEVICE_CLASS)
"""The kinds that determine which devices exist and which of them are allocated."""

Counts = NDArray[np.int64]

_Where = slice | NDArray[np.bool_]
"""An index of some rows."""


class DeviceTotals:
    """Counts devices by resource; `objects` are the live ones, with in-flight allocations.

    Counts are updated as devices are allocated. When slices or nodes' labels change, all is counted again.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._inventory = Inventory()
        self._allocated = AllocatedDevices()
        self._reader = RowReader()
        self._nodes: list[Node] = []
        self._generation = 0
        self._counts: dict[str, _ClassCount] = {}

    def of(self, resource: str, nodes: Nodes) -> tuple[Counts, Counts] | None:
        """The devices on each node, and those in use; None if no class backs the resource.

        Both have shape (nodes,). A node that reaches a device for which a selector fails counts nothing.
        """
        device_class = backing_class(resource, nodes.objects.of(DeviceClass))
        if device_class is None:
            return None
        self._catch_up(nodes.snapshot)
        count = self._counts.get(device_class.name)
        if count is None or count.device_class is not device_class:
            count = _ClassCount(device_class, nodes.snapshot, self._inventory, self._allocated)
            self._counts[device_class.name] = count
        counts = nodes.pick(~count.is_broken)
        return nodes.pick(count.there) * counts, nodes.pick(count.taken) * counts

    def _catch_up(self, snapshot: Snapshot) -> None:
        self._inventory.refresh(snapshot.objects.of(ResourceSlice))
        pending = self._objects.shared(InFlightAllocations).claims()
        touched = self._allocated.refresh(snapshot.objects.of(ResourceClaim), pending)
        rows, generation = self._reader.new_rows(snapshot, snapshot.node_changes), self._inventory.generation
        if rows is None or generation != self._generation or self._are_moved(rows, snapshot):
            self._counts.clear()
            self._generation, self._nodes = generation, list(snapshot.nodes)
        for count in self._counts.values():
            count.count_pools(touched)

    def _are_moved(self, rows: Iterable[int], snapshot: Snapshot) -> bool:
        """Whether the devices that some node reaches may have changed."""
        return any(self._nodes[row].labels != snapshot.nodes[row].labels for row in rows)


class _ClassCount:
    """The devices of a class on each row of a snapshot, and how many of them are in use."""

    def __init__(
        self, device_class: DeviceClass, snapshot: Snapshot, inventory: Inventory, allocated: AllocatedDevices
    ) -> None:
        self.device_class = device_class
        self.there, self.taken = np.zeros((2, len(snapshot)), np.int64)
        self.is_broken = np.zeros(len(snapshot), bool)
        """Where some selector fails."""
        self._allocated = allocated
        self._members: dict[PoolId, list[tuple[DeviceId, _Where]]] = {}
        self._in_use: set[DeviceId] = set()
        self._selector_results: dict[DeviceKind, bool | None] = {}
        places = _Places(Nodes(snapshot))
        for source, entries in inventory.slices():
            by_device = source.spec.per_device_node_selection
            for entry in entries:
                self._add(entry, places.reaching(entry.device if by_device else source.spec))
        self.count_pools(self._members)

    def _add(self, entry: DeviceEntry, where: _Where) -> None:
        if entry.kind not in self._selector_results:
            self._selector_results[entry.kind] = _is_in(self.device_class, entry)
        selector_result = self._selector_results[entry.kind]
        if selector_result is None:
            self.is_broken[where] = True
        elif selector_result:
            self.there[where] += 1
            self._members.setdefault((entry.id.driver, entry.id.pool), []).append((entry.id, where))

    def count_pools(self, pools: Iterable[PoolId]) -> None:
        """Recount the devices in use of some pools."""
        for pool in pools:
            members = self._members.get(pool, ())
            now = {device for device, _ in members if self._allocated.of(device) is not None}
            for device, where in members:  # one device may have been published twice, and counts twice
                self.taken[where] += (device in now) - (device in self._in_use)
            self._in_use.difference_update(device for device, _ in members)
            self._in_use |= now


def _is_in(device_class: DeviceClass, entry: DeviceEntry) -> bool | None:
    """Whether the selectors of a class choose devices of a kind; None if one of them fails.

    As in kube-scheduler, devices are evaluated as not shareable.
    """
    facts = entry.kind.facts
    if entry.device.allow_multiple_allocations:
        facts = DeviceFacts(entry.id.driver, replace(entry.device, allow_multiple_allocations=False))
    expressions = [selector.cel.expression for selector in device_class.spec.selectors if selector.cel]
    try:
        return all(compile_selector(expression).matches(facts, WorkBudget()) for expression in expressions)
    except (CelError, CompileError, WorkLimitError):
        return None


class _Places:
    """Which nodes reach a slice or a device, as an index of rows."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._selected: dict[int, NDArray[np.bool_]] = {}

    def reaching(self, published: ResourceSliceSpec | Device) -> _Where:
        """The nodes that reach a slice or a device."""
        if published.node_name:
            row = self._nodes.snapshot.row_of.get(published.node_name)
            return slice(0) if row is None else slice(row, row + 1)
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
