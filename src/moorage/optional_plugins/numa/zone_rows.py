"""The zones of every row of a snapshot, and the pods there that their objects do not account for.

What is read of a row is kept, and read again when the row or the object of its node has changed. Columns of a
resource are made when a pod first requests it, and follow the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage import Nodes, NodeView, PodInfo
from moorage.optional_plugins.numa.accounting import Accounting
from moorage.optional_plugins.numa.requests import Amounts, pinned_of
from moorage.optional_plugins.numa.topology import (
    NOT_LISTED,
    POD,
    POLICIES,
    NodeResourceTopology,
    zones_of,
)

Column = NDArray[np.int64]

_KEPT_AMOUNTS: Final = 4096
"""Number of loads of pods whose amounts are kept."""


class PinnedAmounts:
    """What pods on nodes may hold of zones; pods of one template share the load by which it is known."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, Amounts]] = {}

    def of(self, info: PodInfo) -> Amounts:
        """What a pod may hold."""
        load = info.load
        known = self._known.get(id(load))
        if known is None:
            if len(self._known) >= _KEPT_AMOUNTS:
                self._known.clear()
            known = self._known[id(load)] = (load, pinned_of(info.pod))
        return known[1]


class ZoneRow:
    """The zones of a node, the pods its object accounts for, and what the others may hold of every zone.

    is_matched: whether it is known which pods the object accounts for; if not, more may turn out to be.
    """

    __slots__ = ("_free", "accounted", "held", "is_matched", "topology", "zones")

    def __init__(self, topology: NodeResourceTopology) -> None:
        self.topology = topology
        self.zones = zones_of(topology)
        self.accounted: frozenset[str] = frozenset()
        self.is_matched = False
        self.held: dict[str, int] = {}
        self._free: dict[str, list[int]] = {}

    def update(self, infos: Sequence[PodInfo], pinned: PinnedAmounts) -> None:
        """Take note of the pods on the node."""
        accounted = self.accounted
        self._free = {}
        held: dict[str, int] = {}
        for info in infos:
            if info.pod.metadata.uid not in accounted:
                for name, amount in pinned.of(info).items():
                    held[name] = held.get(name, 0) + amount
        self.held = held

    def is_reserved_with(
        self, here: Iterable[PodInfo], added: Iterable[PodInfo], removed: Iterable[PodInfo]
    ) -> bool:
        """Whether pods may hold what the object does not account for, with pods added and others removed."""
        gone = {info.pod.uid for info in removed} | self.accounted
        return any(pinned_of(info.pod) for info in (*here, *added) if info.pod.uid not in gone)

    def free(self, names: Iterable[str]) -> dict[str, list[int]]:
        """What is left of some resources in each zone; those that no zone lists are left out.

        The lists are kept for the next call, and must not be changed.
        """
        free, resources = self._free, self.zones.resources
        found = {}
        for name in names:
            left = free.get(name)
            if left is None:
                zones = resources.get(name)
                if zones is None:
                    continue
                taken = self.held.get(name, 0)
                left = free[name] = [
                    each if each <= 0 else each - taken if each > taken else 0 for each in zones.available
                ]
            found[name] = left
        return found

    def free_with(
        self,
        names: Iterable[str],
        here: Iterable[PodInfo],
        added: Iterable[PodInfo],
        removed: Sequence[PodInfo],
    ) -> dict[str, list[int]]:
        """The same with pods added and others removed: at least so much is left, wherever they run.

        In which zones the removed pods are is not known. Certain is that no zone uses more than all pods that
        stay may hold, and what is used by nothing that is known.
        """
        names = [name for name in names if name in self.zones.resources]
        gone = {info.pod.uid for info in removed}
        stay = [info for info in here if info.pod.uid not in gone]
        held = _sums([*(each for each in stay if each.pod.uid not in self.accounted), *added])
        staying = _sums([each for each in stay if each.pod.uid in self.accounted])
        leaving = _sums([each for each in removed if each.pod.uid in self.accounted])
        free = {}
        for name in names:
            _, allocatable, available = self.zones.resources[name]
            taken, rest = held.get(name, 0), staying.get(name, 0)
            if leaving.get(name):
                used = sum(max(of - left, 0) for of, left in zip(allocatable, available, strict=True))
                rest += max(used - rest - leaving[name], 0)
                least = [max(left, of - rest) for of, left in zip(allocatable, available, strict=True)]
            else:
                least = list(available)
            free[name] = [left if left <= 0 else max(left - taken, 0) for left in least]
        return free


def _sums(infos: Iterable[PodInfo]) -> dict[str, int]:
    """What pods may hold of zones, together."""
    total: dict[str, int] = {}
    for info in infos:
        for name, amount in pinned_of(info.pod).items():
            total[name] = total.get(name, 0) + amount
    return total


class ResourceColumns(NamedTuple):
    """A resource in the zones of every row, NOT_LISTED where a zone does not list it or does not exist.

    capacity, allocatable, available: shape (zones, rows).
    held: what pods may hold of every zone. Shape (rows,).
    """

    capacity: Column
    allocatable: Column
    available: Column
    held: Column


class ZoneRows:
    """The zones of a snapshot's rows, which is mostly the snapshot of the last call."""

    def __init__(self, accounting: Accounting) -> None:
        self._accounting = accounting
        self._pinned = PinnedAmounts()
        self._snapshot: object = None
        self._position = self._objects_position = -1
        self.rows: list[ZoneRow | None] = []
        """The zones of each row; None where nothing is known of them."""
        self._clear_columns()

    def _clear_columns(self) -> None:
        self.width = 0
        """The largest number of zones of a node."""
        self._resources: dict[str, ResourceColumns] = {}
        self.policy = self.zone_count = self.max_zones = np.zeros(0, np.int64)
        self.is_by_pod = self.is_reserved = np.zeros(0, bool)
        self._has_columns = False

    def of(self, node: NodeView) -> ZoneRow | None:
        """The zones of one node; None if nothing is known of them."""
        self._follow(node)
        return self.rows[node.row]

    def follow(self, nodes: Nodes) -> None:
        """Bring rows up to date, and have columns of them."""
        self._follow(nodes)
        if not self._has_columns:
            self._make_columns()

    def _follow(self, nodes: Nodes | NodeView) -> None:
        snapshot = nodes.snapshot
        log, table = snapshot.load_changes, snapshot.objects.of(NodeResourceTopology)
        changes = table.changes
        if (
            snapshot is self._snapshot
            and log.position == self._position
            and changes.position == self._objects_position
        ):
            return
        is_known = snapshot is self._snapshot
        written = log.since(self._position) if is_known else None
        keys: Sequence[tuple[str, str]] | None = ()
        if not is_known or changes.position != self._objects_position:
            keys = changes.since(self._objects_position) if is_known else None
        self._snapshot, self._position, self._objects_position = snapshot, log.position, changes.position
        if written is None or keys is None:
            self.rows = [None] * len(snapshot)
            self._clear_columns()
            self._accounting.start()
            written = list(range(len(snapshot)))
        elif keys:
            named = (snapshot.row_of.get(name) for _, name in keys)
            written = [*dict.fromkeys((*written, *(row for row in named if row is not None)))]
        for row in written:
            self._renew(row, table.get("", snapshot.names[row]), snapshot.pods_of(row).infos)

    def _renew(self, row: int, topology: NodeResourceTopology | None, infos: Sequence[PodInfo]) -> None:
        """Read a row again: the object of its node, and the pods there."""
        if topology is None:
            self.rows[row] = None
            if self._has_columns:
                self._write(row, None)
            return
        known = self.rows[row]
        is_new = known is None or known.topology is not topology
        if known is None or is_new:
            known = self.rows[row] = ZoneRow(topology)
        if is_new or not known.is_matched:
            pods = [info.pod for info in infos]
            known.accounted, known.is_matched = self._accounting.accounted(topology, pods)
        known.update(infos, self._pinned)
        if self._has_columns:
            if is_new:
                self._write(row, known)
            else:
                self._write_held(row, known.held)

    # Columns

    def resource(self, name: str) -> ResourceColumns | None:
        """The columns of a resource; None if no zone lists it."""
        columns = self._resources.get(name)
        if columns is None and any(row is not None and name in row.zones.resources for row in self.rows):
            columns = self._resources[name] = self._new_resource()
            for number, row in enumerate(self.rows):
                if row is not None:
                    _write_resource(columns, name, number, row)
        return columns

    def _new_resource(self) -> ResourceColumns:
        count = len(self.rows)
        empty = np.full((self.width, count), NOT_LISTED, np.int64)
        return ResourceColumns(empty, empty.copy(), empty.copy(), np.zeros(count, np.int64))

    def _make_columns(self) -> None:
        count = len(self.rows)
        self.width = max([row.zones.zone_count for row in self.rows if row is not None], default=0)
        self.policy, self.zone_count = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.max_zones = np.ones(count, np.int64)
        self.is_by_pod, self.is_reserved = np.zeros(count, bool), np.zeros(count, bool)
        self._has_columns = True
        for number, row in enumerate(self.rows):
            self._write(number, row)

    def _write(self, number: int, row: ZoneRow | None) -> None:
        """Write a row into the columns; if it has more zones than they hold, they are dropped."""
        zones = None if row is None else row.zones
        if zones is not None and zones.zone_count > self.width:
            self._clear_columns()
            return
        self.policy[number] = 0 if zones is None or not zones.zone_count else POLICIES.index(zones.policy)
        self.zone_count[number] = 0 if zones is None else zones.zone_count
        self.max_zones[number] = 1 if zones is None else zones.max_zones
        self.is_by_pod[number] = zones is not None and zones.scope == POD
        self.is_reserved[number] = row is not None and bool(row.held)
        for name, columns in self._resources.items():
            _write_resource(columns, name, number, row)

    def _write_held(self, number: int, held: Amounts) -> None:
        """Write what pods may hold on a row."""
        self.is_reserved[number] = bool(held)
        for name, columns in self._resources.items():
            columns.held[number] = held.get(name, 0)

    def costs(self, rows: Iterable[int]) -> NDArray[np.int64]:
        """The distances between the zones of some rows. Shape (zones, zones, rows)."""
        rows = list(rows)
        costs = np.zeros((self.width, self.width, len(rows)), np.int64)
        for place, row in enumerate(rows):
            known = self.rows[row]
            if known is not None and (count := known.zones.zone_count):
                costs[:count, :count, place] = known.zones.distances.costs
        return costs


def _write_resource(columns: ResourceColumns, name: str, number: int, row: ZoneRow | None) -> None:
    zones = None if row is None else row.zones.resources.get(name)
    for place, column in enumerate((columns.capacity, columns.allocatable, columns.available)):
        column[:, number] = NOT_LISTED
        if zones is not None:
            column[: len(zones[place]), number] = zones[place]
    columns.held[number] = 0 if row is None else row.held.get(name, 0)
