"""The cluster state at one time, as columns: what a scheduling cycle and its plugins read.

A node is a row. `Cache.snapshot` writes the rows that changed since the last time and nothing else; between
two refreshes nothing changes, so a cycle that waits for I/O continues on the same state.

Invariants: `row_of[names[row]] == row`; every column has exactly `len(names)` rows; every write to a row is
recorded in `changes`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage.api.base import Object
from moorage.api.node import Node, Taint
from moorage.api.resource_requests import PODS, resource_amounts
from moorage.cluster.columns import CodeColumn, Column, clipped
from moorage.cluster.host_ports import HostPort
from moorage.cluster.image_table import ImageTable
from moorage.cluster.label_columns import LabelColumn, LabelColumns
from moorage.cluster.node_entry import NodeEntry
from moorage.cluster.node_tree import NodeTree
from moorage.cluster.nominations import Nominations
from moorage.cluster.object_tables import Objects
from moorage.cluster.pod_table import Disk, PodInfo, PodTable
from moorage.cluster.pods_on_node import PodsOnNode
from moorage.cluster.resources import NATIVE_RESOURCES, ResourceColumns
from moorage.cluster.row_log import RowLog
from moorage.cluster.vocabularies import HostPortVocabulary

D = TypeVar("D")


class Snapshot:
    """Nodes in rows, what is on them, and the other objects scheduling reads.

    Columns, one value per node:

    | name | type | unit | meaning |
    |---|---|---|---|
    | allocatable | int64, by resource | milli-CPU, bytes, counts | what pods may fill |
    | requested | int64, by resource | the same | what pods on the node request |
    | scoring_requested | int64, cpu and memory | the same | with defaults for pods without requests |
    | allowed_pods, pod_count | int64 | pods | how many may be there, how many are |
    | unschedulable | bool | | cordoned |
    | taints, features | code | | interned sets: taints, features the kubelet declares |
    | ports, claims, disks | code | | interned sets: host ports, volume claims and disks in use by pods |
    | label (by key, made when read) | code | | a label's value |
    """

    def __init__(self, node_tree: NodeTree | None = None) -> None:
        self._node_tree = NodeTree() if node_tree is None else node_tree
        self._search_order: NDArray[np.intp] | None = None
        self.names: list[str] = []
        self.nodes: list[Node] = []
        self.row_of: dict[str, int] = {}
        self.objects = Objects()
        self.labels = LabelColumns()
        self.pods = PodTable(self.labels.nodes_having)
        self.images = ImageTable()
        self.nominated = Nominations()
        """Nominated pods, by node name."""
        self.allocatable = ResourceColumns()
        self.requested = ResourceColumns()
        self.scoring_requested = Column(np.int64, lanes=2)
        self.allowed_pods = Column(np.int64)
        self.pod_count = Column(np.int64)
        self.unschedulable = Column(bool)
        self.taints: CodeColumn[tuple[Taint, ...]] = CodeColumn()
        self.ports: CodeColumn[frozenset[HostPort]] = CodeColumn(HostPortVocabulary())
        self.claims: CodeColumn[frozenset[str]] = CodeColumn()
        self.disks: CodeColumn[frozenset[Disk]] = CodeColumn()
        self.features: CodeColumn[frozenset[str]] = CodeColumn()
        self._pods_of: list[PodsOnNode] = []
        self.changes = RowLog()
        """The rows written recently, and those whose nominations changed."""
        self.load_changes = RowLog()
        """The same without rows where nothing but labels of pods was written."""
        self.node_changes = RowLog()
        """Of these, the rows whose node object was written."""
        self._derived: dict[type[Any], Any] = {}
        self._followed: dict[type[Object], int] = {}
        """Kinds of objects that are named after nodes, with the position up to which changes are recorded."""

    def __len__(self) -> int:
        return len(self.names)

    # Reading

    def label(self, key: str) -> LabelColumn:
        """The column of a node label, valid until the next refresh."""
        return self.labels.column(key, self.nodes)

    def search_order(self) -> NDArray[np.intp]:
        """All rows, in the order in which a percentage of the nodes is searched: alternating between zones.

        Computed on first use after a node was added or removed; a node that only changed its zone keeps its
        place until then, as in kube-scheduler. The tree is the cache's, so a cycle must call this before it
        first waits.
        """
        if self._search_order is None:
            if not self._node_tree.is_kept:
                self._node_tree.start(self.nodes)
            rows = map(self.row_of.__getitem__, self._node_tree)
            self._search_order = np.fromiter(rows, np.intp, len(self))
        return self._search_order

    def derived(self, kind: type[D]) -> D:
        """Columns that are computed from those here, shared by all that read them; made on first use.

        They are updated by their readers (`changes`), so that they cost nothing where none is called.
        """
        columns: D | None = self._derived.get(kind)
        if columns is None:
            columns = self._derived[kind] = kind()
        return columns

    def follow(self, kinds: Iterable[type[Object]]) -> None:
        """From now on, record a row as written when the object of its node's name changes, of some kinds."""
        for kind in kinds:
            self._followed.setdefault(kind, self.objects.of(kind).changes.position)

    def pods_of(self, row: int) -> PodsOnNode:
        """The pods on a node."""
        return self._pods_of[row]

    def node_index_of_pods(self, pods: NDArray[np.intp]) -> NDArray[np.int64]:
        """The index of each pod, given by its row in the pod table, in its node's list of pods."""
        place_of = np.zeros(len(self.pods.infos), np.int64)
        # NumPy loads its masked arrays at the first call of `unique`: that takes longer than many dry runs.
        rows = dict.fromkeys(self.pods.node_rows[pods].tolist())
        indexes = [self._pods_of[row].index_of for row in rows]
        places = list(chain.from_iterable(index.values() for index in indexes))
        place_of[self.pods.rows_of(chain.from_iterable(indexes))] = places
        return place_of[pods]

    # Writing: only the cache does.

    def sync_objects(self, live: Objects) -> None:
        """Update the other objects; the rows of nodes whose own objects changed are recorded as written."""
        self.objects.sync_from(live)
        for kind, position in self._followed.items():
            changes = self.objects.of(kind).changes
            if changes.position != position:
                self._followed[kind] = changes.position
                self._note_nodes(changes.since(position))

    def _note_nodes(self, keys: Iterable[tuple[str, str]] | None) -> None:
        """Record the rows of some nodes as written, as far as they are here; None: of any."""
        if keys is None:
            self._start_logs_over()
            return
        for _, name in keys:
            if (row := self.row_of.get(name)) is not None:
                self._note(row)
                self.node_changes.note(row)

    def sync_nominations(self, live: Nominations) -> None:
        """Update the nominations; the rows of changed nodes are recorded as written."""
        for name in self.nominated.sync_from(live):
            if (row := self.row_of.get(name)) is not None:
                self._note(row)

    def release(self, entry: NodeEntry) -> None:
        """Remove the pods that are no longer on a node from the pod table; `write` must follow.

        A pod that was only relabelled stays there.
        """
        row = self.row_of.get(entry.name)
        if row is None:
            return
        here = self._pods_of[row]
        if entry.moves is None:
            for uid in here:
                self.pods.remove(uid)
            self._pods_of[row] = PodsOnNode()
            return
        for uid in {uid for uid, _, is_added in entry.moves if not is_added}:
            known, now = here.get(uid), entry.pods.get(uid)
            # The load is shared only if all but the labels is equal.
            if known is not None and (now is None or now.load is not known.load):
                self.pods.remove(uid)

    def has_load_of(self, entry: NodeEntry) -> bool:
        """Whether the row of a changed node says all that is to be written of it, but for pods' labels."""
        if not entry.has_departures or not entry.has_same_load():
            return False
        row = self.row_of.get(entry.name)
        return row is not None and self.nodes[row] is entry.node

    def add(self, entries: Iterable[NodeEntry]) -> None:
        """Add the rows of new nodes, with their pods."""
        node_rows: list[int] = []
        infos: list[PodInfo] = []
        for entry in entries:
            assert entry.node is not None
            row = self._append(entry.name, entry.node)
            self._write_node(row, None, entry.node)
            self._pods_of[row] = entry.pods.copy()
            node_rows += [row] * len(entry.pods)
            infos += entry.pods.infos
            self._write_sums(row, entry)
            self._write_held(row, entry, None)
            self._note(row)
        self.pods.add_all(node_rows, infos)

    def write(self, entry: NodeEntry) -> None:
        """Write a node's row."""
        assert entry.node is not None
        row = self.row_of[entry.name]
        if self.nodes[row] is not entry.node:
            self._write_node(row, self.nodes[row], entry.node)
        self._write_pods(row, entry)
        self._note(row)

    def write_labels(self, entry: NodeEntry) -> None:
        """Write the pods of a row of which nothing but their order and labels has changed."""
        row = self.row_of[entry.name]
        if entry.moves is None:
            self.write(entry)
            return
        self._move_pods(row, entry.moves)
        entry.written()
        self.changes.note(row)

    def relabel(self, entry: NodeEntry) -> None:
        """Write the pods of a row that were relabelled, where nothing else has happened."""
        row = self.row_of[entry.name]
        if entry.moves is None:
            self.write(entry)
            return
        here, pods = self._pods_of[row], self.pods
        for uid, info, is_added in entry.moves:
            if is_added:  # By its later version.
                here.renew(uid, info)
                pods.relabel(uid, info)
        entry.written()
        self.changes.note(row)

    def _note(self, row: int) -> None:
        self.changes.note(row)
        self.load_changes.note(row)

    def remove(self, name: str) -> None:
        """Remove a node's row; the last row moves into its place."""
        row = self.row_of.pop(name, None)
        if row is None:
            return
        for uid in self._pods_of[row]:
            self.pods.remove(uid)
        last = len(self.names) - 1
        self.labels.drop(row, self.nodes)
        self.images.change(row, self.nodes[row].status.images, ())
        if row != last:
            self.images.move(last, row, self.nodes[last].status.images)
            for uid in self._pods_of[last]:
                self.pods.move(uid, row)
            self.names[row], self.nodes[row] = self.names[last], self.nodes[last]
            self._pods_of[row] = self._pods_of[last]
            self.row_of[self.names[row]] = row
        del self.names[last], self.nodes[last], self._pods_of[last]
        for column in self._columns():
            column.drop(row)
        self._rows_moved()

    def _columns(self) -> list[ResourceColumns | Column | CodeColumn[Any]]:
        return [
            self.allocatable,
            self.requested,
            self.scoring_requested,
            self.allowed_pods,
            self.pod_count,
            self.unschedulable,
            self.taints,
            self.ports,
            self.claims,
            self.disks,
            self.features,
        ]

    def _rows_moved(self) -> None:
        """No derived state by row is valid any more."""
        self._search_order = None
        self._start_logs_over()

    def _start_logs_over(self) -> None:
        self.changes.start_over()
        self.load_changes.start_over()
        self.node_changes.start_over()

    def _append(self, name: str, node: Node) -> int:
        row = self.row_of[name] = len(self.names)
        self.names.append(name)
        self.nodes.append(node)
        self._pods_of.append(PodsOnNode())
        self.labels.append()
        for column in self._columns():
            column.append()
        self._rows_moved()
        return row

    def _write_node(self, row: int, old: Node | None, node: Node) -> None:
        self.nodes[row] = node
        self.node_changes.note(row)
        allocatable = node.status.allocatable
        amounts = resource_amounts(allocatable)
        self.allocatable[row] = {name: amount for name, amount in amounts.items() if amount}
        self.allowed_pods[row] = clipped(allocatable[PODS].value) if PODS in allocatable else 0
        self.unschedulable[row] = node.spec.unschedulable
        self.taints[row] = node.spec.taints
        self.features[row] = frozenset(node.status.declared_features)
        added = self.labels.write(row, None if old is None else old.labels, node.labels)
        self.pods.terms_codes.add_keys(added)
        self.images.change(row, () if old is None else old.status.images, node.status.images)

    def _write_pods(self, row: int, entry: NodeEntry) -> None:
        moves = entry.moves
        is_new = moves is None
        if moves is None:
            moves = [(info.pod.uid, info, True) for info in entry.pods.infos]
        self._move_pods(row, moves)
        self._write_sums(row, entry)
        holders = [info for _, info, _ in moves if info.holds]
        if is_new or holders:
            self._write_held(row, entry, None if is_new else holders)

    def _write_sums(self, row: int, entry: NodeEntry) -> None:
        entry.written()
        self.requested[row] = entry.requested
        self.scoring_requested[row] = (clipped(entry.scoring_cpu_milli), clipped(entry.scoring_memory))
        self.pod_count[row] = len(entry.pods)

    def _move_pods(self, row: int, moves: Sequence[tuple[str, PodInfo, bool]]) -> None:
        """Add pods to a row and remove others, in order."""
        here = self._pods_of[row]
        for uid, info, is_added in moves:
            if is_added:
                here.append(uid, info)
            else:
                here.remove(uid)
        for uid, info, is_added in moves:
            if not is_added or here.get(uid) is not info:
                continue
            if uid in self.pods:
                self.pods.relabel(uid, info)
            else:
                self.pods.add(uid, row, info)

    def _write_held(self, row: int, entry: NodeEntry, holders: list[PodInfo] | None) -> None:
        """Write what pods hold besides resources. holders: the pods that came or went; None: unknown."""
        if holders is None or any(info.host_ports for info in holders):
            self.ports[row] = frozenset(entry.ports)
        if holders is None or any(info.claims for info in holders):
            self.claims[row] = frozenset(entry.claims)
        if holders is None or any(info.disks for info in holders):
            self.disks[row] = frozenset(entry.disks)

    # Checking

    def contents(self) -> dict[str, dict[str, Any]]:
        """The content of all columns, by node and in plain values: for comparisons and debugging."""
        return {name: self._row_contents(row) for name, row in self.row_of.items()}

    def _row_contents(self, row: int) -> dict[str, Any]:
        pods = self.pods
        here = pods.node_rows == row
        return {
            "node": self.nodes[row],
            "allocatable": dict(self.allocatable.by_row[row]),
            "requested": dict(self.requested.by_row[row]),
            "scoring_requested": self.scoring_requested.values[:, row].tolist(),
            "allowed_pods": int(self.allowed_pods.values[row]),
            "pod_count": int(self.pod_count.values[row]),
            "unschedulable": bool(self.unschedulable.values[row]),
            "taints": self.taints[row],
            "ports": self.ports[row],
            "claims": self.claims[row],
            "disks": self.disks[row],
            "features": self.features[row],
            "images": self.images.on(row),
            "pods": set(self._pods_of[row]),
            "classes": _tally(pods.classes, here),
            "terms": _tally(pods.terms, here),
            "loads": {name: sorted(pods.load(name)[here].tolist()) for name in NATIVE_RESOURCES},
        }


def _tally(column: CodeColumn[Any], rows: NDArray[np.bool_]) -> Counter[Any]:
    return Counter(column[row] for row in np.flatnonzero(rows).tolist())
