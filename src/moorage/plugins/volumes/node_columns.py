"""Numbers by node that plugins for volumes keep from pod to pod; only what has changed is computed again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage.api.base import Object
from moorage.cluster.grouped_objects import GroupedObjects
from moorage.cluster.journal import JournalReader
from moorage.cluster.object_tables import ObjectTable
from moorage.cluster.row_reader import RowReader
from moorage.cluster.snapshot import Snapshot
from moorage.framework.interface.nodes import Nodes

T = TypeVar("T", bound=Object)

Values = Mapping[str, int]
"""Numbers by subject, such as a CSI driver."""


class NodeColumns(Generic[T]):
    """Values by node from objects of a kind, as columns; `absent` for nodes without a value.

    node_of: the name of the node that an object is about. values_of: the values from all objects of a node.
    """

    def __init__(
        self,
        node_of: Callable[[T], str],
        values_of: Callable[[Collection[T]], Values],
        absent: int = 0,
    ) -> None:
        self.objects = GroupedObjects(node_of)
        """The objects by the name of their node."""
        self._values_of = values_of
        self._absent = absent
        self._values: dict[str, dict[str, int]] = {}
        """By subject, and by the node's name."""
        self._object_reader: JournalReader[str] = JournalReader()
        self._reader = RowReader()
        self._columns: dict[str, NDArray[np.int64]] = {}
        self._stale: dict[str, None] = {}
        """The names of nodes whose values have changed since the columns were written."""

    def subjects(self, table: ObjectTable[T]) -> Collection[str]:
        """The subjects that have a value on any node."""
        self._follow(table)
        return self._values.keys()

    def column(self, table: ObjectTable[T], subject: str, nodes: Nodes) -> NDArray[np.int64]:
        """The value of each node for a subject. Shape (nodes,)."""
        self._follow(table)
        snapshot = nodes.snapshot
        if self._reader.new_rows(snapshot, snapshot.node_changes) is None:
            self._columns.clear()
        for each, column in self._columns.items():
            self._write(column, each, self._stale, snapshot)
        self._stale.clear()
        known = self._columns.get(subject)
        if known is None:
            known = self._columns[subject] = np.full(len(snapshot), self._absent, np.int64)
            self._write(known, subject, self._values.get(subject, ()), snapshot)
        return nodes.pick(known)

    def _write(
        self, column: NDArray[np.int64], subject: str, names: Iterable[str], snapshot: Snapshot
    ) -> None:
        values = self._values.get(subject, {})
        for name in names:
            row = snapshot.row_of.get(name)
            if row is not None:
                column[row] = values.get(name, self._absent)

    def _follow(self, table: ObjectTable[T]) -> None:
        self.objects.follow(table)
        names: Iterable[str] | None = self._object_reader.new_entries(self.objects.changes)
        if names is None:
            self._values.clear()
            self._columns.clear()
            names = self.objects.keys()
        for name in dict.fromkeys(names):
            self._update(name, self._values_of(self.objects.members(table, name)))

    def _update(self, name: str, values: Values) -> None:
        """Replace the values of a node."""
        for subject in [each for each, by_node in self._values.items() if name in by_node]:
            del self._values[subject][name]
            if not self._values[subject]:
                del self._values[subject]
        for subject, value in values.items():
            self._values.setdefault(subject, {})[name] = value
        self._stale[name] = None
