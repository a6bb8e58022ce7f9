"""Numbers by node that plugins for volumes keep from pod to pod; only what has changed is computed again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage.api.base import Object
from moorage.cluster.object_tables import ObjectTable
from moorage.cluster.row_reader import RowReader
from moorage.cluster.snapshot import Snapshot
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.volumes.persistent_volume_claims import Derived

T = TypeVar("T", bound=Object)

ByNode = Mapping[str, Mapping[str, int]]
"""Numbers by subject, and by the node's name."""


class NodeColumns(Generic[T]):
    """Values by node from objects of a kind, as columns; `absent` for nodes without a value."""

    def __init__(self, work_out: Callable[[Iterable[T]], ByNode], absent: int = 0) -> None:
        self._said: Derived[T, ByNode] = Derived(work_out)
        self._absent = absent
        self._of: ByNode | None = None
        self._reader = RowReader()
        self._columns: dict[str, NDArray[np.int64]] = {}

    def subjects(self, table: ObjectTable[T]) -> ByNode:
        """The subjects of all columns."""
        return self._said.of(table)

    def column(self, table: ObjectTable[T], subject: str, nodes: Nodes) -> NDArray[np.int64]:
        """The value of each node for a subject. Shape (nodes,)."""
        said, snapshot = self._said.of(table), nodes.snapshot
        if self._reader.new_rows(snapshot, snapshot.node_changes) is None or self._of is not said:
            self._of = said
            self._columns.clear()
        column = self._columns.get(subject)
        if column is None:
            column = self._columns[subject] = self._laid_out(said.get(subject, {}), snapshot)
        return nodes.pick(column)

    def _laid_out(self, by_name: Mapping[str, int], snapshot: Snapshot) -> NDArray[np.int64]:
        column = np.full(len(snapshot), self._absent, np.int64)
        for name, number in by_name.items():
            row = snapshot.row_of.get(name)
            if row is not None:
                column[row] = number
        return column


class HeldVolumes:
    """How many claims and disks the pods on each node, and those nominated to it, use at most."""

    def __init__(self) -> None:
        self._reader = RowReader()
        self._counts = np.zeros(0, np.int64)

    def count(self, nodes: Nodes) -> NDArray[np.int64]:
        """The number on each node, or more: what several pods use may count several times. Shape (nodes,)."""
        if nodes.hypothetical_pods is not None:
            return _counted(nodes)
        self._catch_up(nodes)
        return nodes.pick(self._counts)

    def _catch_up(self, nodes: Nodes) -> None:
        snapshot = nodes.snapshot
        rows = self._reader.new_rows(snapshot, snapshot.changes)
        if rows is None:
            self._counts = _counted(nodes.all)
            names = (name for name, _ in snapshot.nominated.items())
            rows = [snapshot.row_of[name] for name in names if name in snapshot.row_of]
        for row in rows:
            self._counts[row] = _count_on(snapshot, row)


def _count_on(snapshot: Snapshot, row: int) -> int:
    nominated = snapshot.nominated.on(snapshot.names[row]) if snapshot.nominated else ()
    return (
        len(snapshot.claims[row] or ())
        + len(snapshot.disks[row] or ())
        + sum(len(info.claims) + len(info.disks) for info in nominated)
    )


def _counted(nodes: Nodes) -> NDArray[np.int64]:
    counts: NDArray[np.int64] = nodes.claims.judge(len, np.int64) + nodes.disks.judge(len, np.int64)
    return counts
