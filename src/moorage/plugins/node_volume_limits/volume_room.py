"""How many more volumes of a CSI driver each node takes at least.

Every claim and disk of a node's pods counts as a volume of every driver, and so does every volume attached
to the node: no claim is looked up. Most nodes are far below their limits and pass by this alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.storage import CSINode, VolumeAttachment
from moorage.cluster.object_tables import Objects
from moorage.cluster.row_reader import RowReader
from moorage.cluster.snapshot import Snapshot
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.volumes.node_columns import NodeColumns

NO_LIMIT: Final = np.iinfo(np.int64).max

_ALL_DRIVERS: Final = ""


def limits_of(csi_nodes: Iterable[CSINode]) -> dict[str, int]:
    """How many volumes of each driver a node takes, where that is limited."""
    return {
        driver.name: driver.allocatable.count
        for csi_node in csi_nodes
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _attached_count(attachments: Collection[VolumeAttachment]) -> dict[str, int]:
    return {_ALL_DRIVERS: len(attachments)}


class _DriverRoom:
    """The room of every node for one driver's volumes.

    least: a lower bound of the column; lower than its minimum after a node's room has grown.
    """

    __slots__ = ("column", "least")

    def __init__(self, column: NDArray[np.int64]) -> None:
        self.column = column
        self.least = 0
        self.find_least()

    def find_least(self) -> None:
        self.least = int(self.column.min(initial=NO_LIMIT))

    def shrink(self, row: int, count: int) -> None:
        room = self.column[row] = self.column.item(row) - count
        self.least = min(self.least, room)

    def is_enough(self, count: int) -> bool:
        if count > self.least:
            self.find_least()
        return count <= self.least


class VolumeRoom:
    """The room of every node for more volumes, kept from pod to pod; only changed rows are counted again."""

    def __init__(self) -> None:
        self._limits: NodeColumns[CSINode] = NodeColumns(
            lambda csi_node: csi_node.name, limits_of, absent=NO_LIMIT
        )
        self.attached: NodeColumns[VolumeAttachment] = NodeColumns(
            lambda attachment: attachment.spec.node_name, _attached_count
        )
        self._reader = RowReader()
        self._table_positions = (0, 0)
        self._held = np.zeros(0, np.int64)
        """Number of claims and disks on each node."""
        self._rooms: dict[str, _DriverRoom] = {}

    def limited_drivers(self, objects: Objects) -> Collection[str]:
        """The drivers that have a limit on any node."""
        return self._limits.subjects(objects.of(CSINode))

    def limits(self, driver: str, nodes: Nodes) -> NDArray[np.int64]:
        """How many volumes of a driver each node takes. Shape (nodes,)."""
        return self._limits.column(nodes.objects.of(CSINode), driver, nodes)

    def is_enough(self, brought: Mapping[str, int], snapshot: Snapshot) -> bool:
        """Whether every node has room for some number of volumes of each driver."""
        self._catch_up(snapshot)
        return all(self._room(driver, snapshot).is_enough(count) for driver, count in brought.items())

    def lacking(self, brought: Mapping[str, int], nodes: Nodes) -> NDArray[np.bool_]:
        """The nodes that may lack room for some number of volumes of each driver. Shape (nodes,)."""
        snapshot = nodes.snapshot
        self._catch_up(snapshot)
        lacking = np.zeros(len(nodes), bool)
        supposed = _held_on(nodes) - nodes.pick(self._held) if nodes.hypothetical_pods is not None else 0
        for driver, count in brought.items():
            lacking |= nodes.pick(self._room(driver, snapshot).column) < count + supposed
        return lacking

    def _room(self, driver: str, snapshot: Snapshot) -> _DriverRoom:
        room = self._rooms.get(driver)
        if room is None:
            nodes = Nodes(snapshot)
            column = self.limits(driver, nodes) - self._held
            column -= self.attached.column(snapshot.objects.of(VolumeAttachment), _ALL_DRIVERS, nodes)
            room = self._rooms[driver] = _DriverRoom(column)
        return room

    def _catch_up(self, snapshot: Snapshot) -> None:
        objects = snapshot.objects
        positions = (objects.of(CSINode).changes.position, objects.of(VolumeAttachment).changes.position)
        rows = self._reader.new_rows(snapshot, snapshot.load_changes)
        if rows is None or positions != self._table_positions:
            self._rooms.clear()
            self._table_positions = positions
        if rows is None:
            self._held = _held_on(Nodes(snapshot))
            names = (name for name, _ in snapshot.nominated.items())
            rows = [snapshot.row_of[name] for name in names if name in snapshot.row_of]
        for row in rows:
            self._write(row, _held_on_row(snapshot, row))

    def _write(self, row: int, held: int) -> None:
        more = held - self._held.item(row)
        if more:
            self._held[row] = held
            for room in self._rooms.values():
                room.shrink(row, more)


def _held_on_row(snapshot: Snapshot, row: int) -> int:
    """Number of claims and disks of a node's pods, and of those nominated to it."""
    nominated = snapshot.nominated.on(snapshot.names[row]) if snapshot.nominated else ()
    return (
        len(snapshot.claims[row] or ())
        + len(snapshot.disks[row] or ())
        + sum(len(info.claims) + len(info.disks) for info in nominated)
    )


def _held_on(nodes: Nodes) -> NDArray[np.int64]:
    counts: NDArray[np.int64] = nodes.claims.map_values(len, np.int64) + nodes.disks.map_values(len, np.int64)
    return counts
