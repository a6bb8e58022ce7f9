"""The nodes a plugin is called with: a view of a snapshot's columns, aligned with these nodes.

Everything a `Nodes` returns has one entry per node of the view, in the same order. A filter sees only
nodes that all filters before it let pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic

import numpy as np
from numpy.typing import DTypeLike, NDArray

from moorage.api.node import Node, Taint
from moorage.api.resource_requests import CPU, MEMORY
from moorage.api.selectors import NODE_NAME_FIELD, NodeTerm, Operator, RequiredNodes, Requirement
from moorage.cluster.columns import ABSENT, COLUMN_MAX, CodeColumn, V, Vocabulary, clipped
from moorage.cluster.host_ports import HostPort
from moorage.cluster.label_columns import integers, matching
from moorage.cluster.object_tables import Objects
from moorage.cluster.pod_table import Disk, PodInfo
from moorage.cluster.snapshot import Snapshot
from moorage.cluster.vocabularies import HostPortVocabulary
from moorage.framework.interface.filter_result import Mask
from moorage.framework.interface.hypothetical_pods import HypotheticalPods

_MAX_KEPT_VALUES: Final = 64
"""Maximum number of conditions and values of required nodes that are kept for the next plugin."""


class Codes(Generic[V]):
    """Interned values, one per node: evaluated once per distinct value."""

    __slots__ = ("codes", "vocabulary")

    def __init__(self, codes: NDArray[np.int32], vocabulary: Vocabulary[V]) -> None:
        self.codes = codes
        self.vocabulary = vocabulary

    def map_values(self, function: Callable[[V], Any], dtype: DTypeLike = bool) -> NDArray[Any]:
        """`function` of every node's value, called once per distinct value. Shape (nodes,)."""
        return self.vocabulary.map_values(function, dtype)[self.codes]


class Label(Codes[str]):
    """A label's value on every node."""

    __slots__ = ()

    def equals(self, value: str) -> Mask:
        """Where the label has this value."""
        return self.is_in((value,))

    def is_in(self, values: Iterable[str]) -> Mask:
        """Where the label has one of these values."""
        return self.matches(Requirement("", Operator.IN, frozenset(values)))

    def exists(self) -> Mask:
        """Where the label is there at all."""
        return np.not_equal(self.codes, ABSENT).view(Mask)

    def matches(self, requirement: Requirement) -> Mask:
        """Where the label meets a selector's requirement."""
        return matching(requirement, self.codes, self.vocabulary).view(Mask)

    def as_int(self, default: int = 0) -> NDArray[np.int64]:
        """The label as a number; `default` where it is absent or no number."""
        return integers(self.codes, self.vocabulary, default)

    def values(self) -> list[str | None]:
        """The label as text; None where it is absent."""
        return [None if code == ABSENT else self.vocabulary.values[code] for code in self.codes.tolist()]


class HostPorts(Codes[frozenset[HostPort]]):
    """The host ports in use on every node."""

    __slots__ = ()

    def where(
        self, ports: frozenset[HostPort], is_met: Callable[[frozenset[HostPort]], bool]
    ) -> NDArray[np.bool_]:
        """Where the ports in use meet a condition; only those with an equal protocol and number can."""
        assert isinstance(self.vocabulary, HostPortVocabulary)
        table = np.zeros(len(self.vocabulary) + 1, bool)
        for code in self.vocabulary.sharing(ports):
            used = self.vocabulary.values[code]
            assert used is not None
            table[code] = is_met(used)
        return table[self.codes]


class NodeView:
    """One node of a view, for plugins that look at one node at a time.

    added: pods assumed to be on the node. removed: pods assumed to be removed from it.
    """

    __slots__ = ("_requested", "added", "removed", "row", "snapshot")

    def __init__(self, snapshot: Snapshot, row: int, added: tuple[PodInfo, ...] = ()) -> None:
        self.snapshot = snapshot
        self.row = row
        self.added = added
        self.removed: tuple[PodInfo, ...] = ()
        self._requested: Mapping[str, int] = snapshot.requested.by_row[row]
        """What the pods on the node request, without those that are added."""

    def without(self, pods: Iterable[PodInfo]) -> NodeView:
        """The node as it would be without some of the pods that are on it now."""
        leaving = tuple(pods)
        return self._supposing(self.removed + leaving, leaving, -1)

    def putting_back(self, info: PodInfo) -> NodeView:
        """The node with one of the removed pods put back."""
        return self._supposing(tuple([each for each in self.removed if each is not info]), (info,), 1)

    def _supposing(self, removed: tuple[PodInfo, ...], moved: tuple[PodInfo, ...], sign: int) -> NodeView:
        twin = NodeView(self.snapshot, self.row, self.added)
        twin.removed = removed
        twin._requested = requested = dict(self._requested)
        for info in moved:
            for resource, amount in info.load.amounts.items():
                if amount > COLUMN_MAX:
                    amount = COLUMN_MAX
                requested[resource] = requested.get(resource, 0) + sign * amount
        return twin

    @property
    def name(self) -> str:
        """The node's name."""
        return self.snapshot.names[self.row]

    @property
    def node(self) -> Node:
        """The node object."""
        return self.snapshot.nodes[self.row]

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels."""
        return self.node.labels

    @property
    def objects(self) -> Objects:
        """The other objects of the cluster: services, namespaces, claims."""
        return self.snapshot.objects

    def as_nodes(self) -> Nodes:
        """The same as columns, of one node."""
        row = np.array((self.row,), np.intp)
        if not self.added and not self.removed:
            return Nodes(self.snapshot, row)
        uids = (info.pod.uid for info in self.removed)
        removed = np.array(self.snapshot.pods.rows_of(uids), np.intp)
        added = [(0, info) for info in self.added]
        return Nodes(
            self.snapshot, row, HypotheticalPods(self.snapshot, 1, np.zeros_like(removed), removed, added)
        )

    @property
    def pods(self) -> list[PodInfo]:
        """The pods on the node."""
        here = self.snapshot.pods_of(self.row).infos
        if self.removed:
            removed = set(self.removed)
            here = [info for info in here if info not in removed]
        return [*here, *self.added]

    @property
    def allowed_pods(self) -> int:
        """How many pods the node takes."""
        allowed: int = self.snapshot.allowed_pods.item(self.row)
        return allowed

    @property
    def pod_count(self) -> int:
        """How many pods are on the node."""
        count: int = self.snapshot.pod_count.item(self.row)
        return count + len(self.added) - len(self.removed)

    @property
    def ports(self) -> frozenset[HostPort]:
        """The host ports in use on the node."""
        if self.added or self.removed:
            return frozenset().union(*(info.host_ports for info in self.pods))
        return self.snapshot.ports[self.row] or frozenset()

    def allocatable(self, resource: str) -> int:
        """How much of a resource pods may fill: milli-CPU, bytes or a count."""
        return self.snapshot.allocatable.by_row[self.row].get(resource, 0)

    def free(self, resource: str) -> int:
        """How much of a resource is left; negative where pods request more than there is."""
        return self.allocatable(resource) - self.requested(resource)

    def short_of(self, needs: Mapping[str, int]) -> list[str]:
        """Of some resources, those of which less is left than the given amounts."""
        allocatable, requested = self.snapshot.allocatable.by_row[self.row], self._requested
        short = []
        for resource, amount in needs.items():
            free = allocatable.get(resource, 0) - requested.get(resource, 0)
            for info in self.added:
                free -= info.load.amounts.get(resource, 0)
            if free < amount:
                short.append(resource)
        return short

    def requested(self, resource: str) -> int:
        """How much of a resource the pods on the node request."""
        requested = self._requested.get(resource, 0)
        for info in self.added:
            requested += info.load.amounts.get(resource, 0)
        return requested

    def scoring_requested(self, resource: str) -> int:
        """As `requested`, but pods that request no cpu or memory count with a default."""
        if resource not in (CPU, MEMORY):
            return self.requested(resource)
        lane = 0 if resource == CPU else 1
        requested = int(self.snapshot.scoring_requested.values[lane, self.row])
        for info in self.added:
            requested += info.load.scoring_memory if lane else info.load.scoring_cpu_milli
        for info in self.removed:
            requested -= clipped(info.load.scoring_memory if lane else info.load.scoring_cpu_milli)
        return requested


class Nodes:
    """Some nodes of a snapshot (all of them where `rows` is None), as columns.

    With `hypothetical_pods` the columns include these changes.
    """

    __slots__ = ("hypothetical_pods", "rows", "snapshot")

    def __init__(
        self,
        snapshot: Snapshot,
        rows: NDArray[np.intp] | None = None,
        hypothetical_pods: HypotheticalPods | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.rows = rows
        self.hypothetical_pods = hypothetical_pods

    # Which nodes

    def __len__(self) -> int:
        return len(self.snapshot) if self.rows is None else len(self.rows)

    def __iter__(self) -> Iterator[NodeView]:
        rows, hypothetical_pods = self.row_numbers().tolist(), self.hypothetical_pods
        if hypothetical_pods is None:
            return (NodeView(self.snapshot, row) for row in rows)
        return (
            NodeView(self.snapshot, row, tuple(hypothetical_pods.added_on(index))).without(
                hypothetical_pods.removed_on(index)
            )
            for index, row in enumerate(rows)
        )

    @property
    def names(self) -> list[str]:
        """The nodes' names."""
        names = self.snapshot.names
        return list(names) if self.rows is None else [names[row] for row in self.rows.tolist()]

    def name(self, index: int) -> str:
        """The name of one of them."""
        return self.snapshot.names[index if self.rows is None else int(self.rows[index])]

    @property
    def all(self) -> Nodes:
        """Every node of the cluster as it is, regardless of filters."""
        return self if self.rows is None and self.hypothetical_pods is None else Nodes(self.snapshot)

    @property
    def objects(self) -> Objects:
        """The other objects of the cluster: services, namespaces, claims."""
        return self.snapshot.objects

    def row_numbers(self) -> NDArray[np.intp]:
        """The snapshot's row of each node."""
        return np.arange(len(self.snapshot)) if self.rows is None else self.rows

    def where(self, mask: NDArray[np.bool_]) -> Nodes:
        """The nodes for which `mask` is True."""
        return self.at(np.flatnonzero(mask))

    def at(self, indices: NDArray[np.intp]) -> Nodes:
        """The nodes at these places of the view, in that order."""
        rows = indices if self.rows is None else self.rows[indices]
        return Nodes(
            self.snapshot,
            rows,
            None if self.hypothetical_pods is None else self.hypothetical_pods.take(indices),
        )

    def named(self, names: Iterable[str]) -> Nodes:
        """The nodes of the whole cluster with these names; unknown names are left out."""
        row_of = self.snapshot.row_of
        rows = sorted(row_of[name] for name in names if name in row_of)
        return Nodes(self.snapshot, np.array(rows, np.intp))

    def within(self, others: Nodes) -> Nodes:
        """Those of the nodes that are among others of the same snapshot."""
        if others.rows is None:
            return self
        if self.rows is None and self.hypothetical_pods is None:
            return others
        return self.where(np.isin(self.row_numbers(), others.rows))

    def pick(self, column: NDArray[Any]) -> NDArray[Any]:
        """A whole column's entries for these nodes: the last axis goes from rows to nodes."""
        return column if self.rows is None else column.take(self.rows, -1)

    # Columns

    def allocatable(self, resource: str) -> NDArray[np.int64]:
        """How much of a resource pods may fill: milli-CPU, bytes or a count."""
        return self.pick(self.snapshot.allocatable.of(resource))

    def requested(self, resource: str) -> NDArray[np.int64]:
        """How much of a resource the pods on each node request."""
        requested = self.pick(self.snapshot.requested.of(resource))
        return (
            requested if self.hypothetical_pods is None else requested + self.hypothetical_pods.load(resource)
        )

    def scoring_requested(self, resource: str) -> NDArray[np.int64]:
        """As `requested`, but pods that request no cpu or memory count with a default."""
        if resource not in (CPU, MEMORY):
            return self.requested(resource)
        lane = 0 if resource == CPU else 1
        requested = self.pick(self.snapshot.scoring_requested.values[lane])
        return (
            requested
            if self.hypothetical_pods is None
            else requested + self.hypothetical_pods.scoring_load(lane)
        )

    @property
    def allowed_pods(self) -> NDArray[np.int64]:
        """How many pods each node takes."""
        return self.pick(self.snapshot.allowed_pods.values)

    @property
    def pod_count(self) -> NDArray[np.int64]:
        """How many pods are on each node."""
        count = self.pick(self.snapshot.pod_count.values)
        return count if self.hypothetical_pods is None else count + self.hypothetical_pods.pods()

    @property
    def unschedulable(self) -> Mask:
        """Which nodes are cordoned."""
        return self.pick(self.snapshot.unschedulable.values).view(Mask)

    @property
    def taints(self) -> Codes[tuple[Taint, ...]]:
        """Each node's taints."""
        return self._codes(self.snapshot.taints)

    @property
    def ports(self) -> HostPorts:
        """The host ports in use on each node."""
        held = self._held(self.snapshot.ports, lambda info: info.host_ports, HostPortVocabulary)
        return HostPorts(held.codes, held.vocabulary)

    @property
    def claims(self) -> Codes[frozenset[str]]:
        """The volume claims (namespace/name) that pods on each node use."""
        return self._held(self.snapshot.claims, lambda info: info.claims, Vocabulary)

    @property
    def disks(self) -> Codes[frozenset[Disk]]:
        """The disks that pods on each node name themselves."""
        return self._held(self.snapshot.disks, lambda info: info.disks, Vocabulary)

    def pods_on(self, index: int) -> list[PodInfo]:
        """The pods on one node of this view."""
        row = index if self.rows is None else int(self.rows[index])
        if self.hypothetical_pods is None:
            return list(self.snapshot.pods_of(row).infos)
        return self.hypothetical_pods.pods_on(index, row)

    @property
    def features(self) -> Codes[frozenset[str]]:
        """The features each node's kubelet declares."""
        return self._codes(self.snapshot.features)

    def _codes(self, column: CodeColumn[V]) -> Codes[V]:
        return Codes(self.pick(column.codes), column.vocabulary)

    def _held(
        self,
        column: CodeColumn[frozenset[V]],
        held: Callable[[PodInfo], frozenset[V]],
        new_vocabulary: Callable[[], Vocabulary[frozenset[V]]],
    ) -> Codes[frozenset[V]]:
        """What pods on each node hold; computed again for nodes where holders are added or removed."""
        changed = [] if self.hypothetical_pods is None else self.hypothetical_pods.holders()
        if not changed:
            return self._codes(column)
        vocabulary = new_vocabulary()
        sets = [column.vocabulary.values[code] for code in self.pick(column.codes).tolist()]
        for index in changed:
            sets[index] = frozenset().union(*map(held, self.pods_on(index)))
        codes = [ABSENT if each is None else vocabulary.acquire(each) for each in sets]
        return Codes(np.array(codes, np.int32), vocabulary)

    def label(self, key: str) -> Label:
        """A label of each node."""
        column = self.snapshot.label(key)
        return Label(self.pick(column.codes), column.vocabulary)

    def required_by(self, wanted: RequiredNodes) -> NDArray[np.bool_]:
        """Which nodes a pod's nodeSelector and required node affinity accept; read-only. Shape (nodes,)."""
        if self.rows is not None or _count_values(wanted) > _MAX_KEPT_VALUES:
            return self._required_by(wanted)
        last, position = self.snapshot.derived(_LastRequired), self.snapshot.node_changes.position
        if last.position != position or last.wanted != wanted:
            last.mask = self._required_by(wanted)
            last.mask.flags.writeable = False
            last.wanted, last.position = wanted, position
        return last.mask

    def _required_by(self, wanted: RequiredNodes) -> NDArray[np.bool_]:
        masks = [self._meeting(requirement) for requirement in wanted.labels]
        if wanted.terms is not None:
            terms = [self.matching_term(term) for term in wanted.terms]
            masks.append(_combined(np.logical_or, terms, len(self)))
        return _combined(np.logical_and, masks, len(self))

    def _meeting(self, requirement: Requirement) -> NDArray[np.bool_]:
        """Which nodes have a label that meets a requirement."""
        column = self.snapshot.label(requirement.key)
        return matching(requirement, self.pick(column.codes), column.vocabulary)

    def matching_term(self, term: NodeTerm) -> NDArray[np.bool_]:
        """Which nodes meet all conditions of a node selector term. Shape (nodes,)."""
        masks = [self._meeting(requirement) for requirement in term.labels]
        for field in term.fields:
            if field.key == NODE_NAME_FIELD:
                row = self.snapshot.row_of.get(field.value, ABSENT)
                masks.append((self.row_numbers() == row) != field.negated)
            elif not field.matches(""):
                masks.append(np.zeros(len(self), bool))
        return _combined(np.logical_and, masks, len(self))


class _LastRequired:
    """The nodes of a snapshot that were required last: several plugins ask for those of the same pod."""

    __slots__ = ("mask", "position", "wanted")

    def __init__(self) -> None:
        self.wanted: RequiredNodes | None = None
        self.position = -1
        self.mask = np.zeros(0, bool)


def _count_values(wanted: RequiredNodes) -> int:
    """The number of conditions and their values."""
    terms = wanted.terms or ()
    conditions = [*wanted.labels, *(each for term in terms for each in term.labels)]
    fields = sum([1 + len(term.fields) for term in terms])
    return fields + sum([1 + len(each.values) for each in conditions])


def _combined(operation: np.ufunc, masks: list[NDArray[np.bool_]], count: int) -> NDArray[np.bool_]:
    """Masks combined by "and" or "or"; without any, what that is of nothing."""
    if not masks:
        return np.full(count, operation.identity, bool)
    mask = masks[0]
    for each in masks[1:]:
        mask = operation(mask, each)
    return mask
