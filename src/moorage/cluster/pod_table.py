"""Pods on nodes, as columns.

A pod selector only looks at namespace and labels, so pods are grouped by class: a selector is judged once
per class, and one pass over the pods' class codes gives the count on every node. In the same way pods are
grouped by their own affinity terms: a new pod is compared with each distinct set of terms once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.affinity import NO_TERMS, PodTerms, placed_pod_terms
from moorage.api.limits import has_too_many_terms
from moorage.api.manifests import microseconds
from moorage.api.pod import Pod
from moorage.api.resource_requests import PodLoad, have_equal_resources_in_status, pod_load
from moorage.api.storage import (
    ISCSI,
    RBD,
    AWSElasticBlockStore,
    AzureDisk,
    Cinder,
    GCEPersistentDisk,
    PortworxVolume,
)
from moorage.cluster.columns import ABSENT, CodeColumn, Column, V, clipped_array
from moorage.cluster.host_ports import ANY_IP, HostPort
from moorage.cluster.journal import Journal
from moorage.cluster.pod_class import PodClass, class_of
from moorage.cluster.resources import NATIVE_RESOURCES
from moorage.cluster.row_log import RowLog
from moorage.cluster.vocabularies import ClassVocabulary, TermsVocabulary
from moorage.klog import Logger, kobj

log = Logger(__name__)

NOT_STARTED = (1 << 63) - 1
"""The start time of a pod that has not started: after all others."""

Disk = GCEPersistentDisk | AWSElasticBlockStore | AzureDisk | Cinder | PortworxVolume | RBD | ISCSI
"""A disk that a pod names itself, without a claim."""

_MIN_KEPT_MOVES: Final = 4096
"""Minimum number of kept moves; a reader that is further behind has to count all pods again."""
_MAX_NEW: Final = 512
"""Number of pods added or removed after which columns are updated even if they are not read."""
_MAX_EXTENDED_LOADS: Final = 8
"""Number of extended resources whose requests are kept as a column."""

_disk_sources = attrgetter(
    "gce_persistent_disk",
    "aws_elastic_block_store",
    "azure_disk",
    "cinder",
    "portworx_volume",
    "rbd",
    "iscsi",
)


def claims_of(pod: Pod) -> frozenset[str]:
    """The volume claims a pod uses, as namespace/name; an ephemeral volume's is named after both."""
    names = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            names.append(volume.persistent_volume_claim.claim_name)
        if volume.ephemeral is not None:
            names.append(f"{pod.name}-{volume.name}")
    return frozenset([f"{pod.namespace}/{name}" for name in names])


def disks_of(pod: Pod) -> frozenset[Disk]:
    """The disks named in a pod itself, which pods may not be able to share."""
    return frozenset(
        disk for volume in pod.spec.volumes for disk in _disk_sources(volume) if disk is not None
    )


class PodInfo:
    """A pod and the values computed from it when they are first read: load, ports, class, terms.

    There is one for each pod on a node, so it is small, and values are shared by those of a template.
    """

    __slots__ = ("claims", "disks", "holds", "host_ports", "load", "pod", "pod_class", "priority", "terms")

    load: PodLoad
    """What the pod requests of its node."""
    host_ports: frozenset[HostPort]
    """The host ports the pod uses."""
    claims: frozenset[str]
    """The volume claims the pod uses, as namespace/name."""
    disks: frozenset[Disk]
    """The disks named in the pod itself, which pods may not be able to share."""
    holds: bool
    """Whether the pod holds anything besides resources: host ports, volume claims, disks."""
    pod_class: PodClass
    """The pod's class."""
    priority: int
    """The pod's priority."""
    terms: PodTerms
    """The pod's affinity terms, as far as they apply to other pods."""

    def __init__(self, pod: Pod) -> None:
        self.pod = pod

    def __getattr__(self, name: str) -> Any:
        # Called for values that have not been read before.
        work_out = _INFO_VALUES.get(name)
        if work_out is None:
            raise AttributeError(name)
        value = work_out(self)
        setattr(self, name, value)
        return value

    def renewed(self, pod: Pod) -> PodInfo:
        """The same for another pod with the same values, but for the names of claims."""
        twin = self.relabelled(pod)
        twin.pod_class = self.pod_class
        return twin

    def relabelled(self, pod: Pod) -> PodInfo:
        """The same for a version of the pod with other labels: servers add those of its node's zone."""
        twin = PodInfo(pod)
        twin.load = self.load
        twin.host_ports = self.host_ports
        twin.claims = claims_of(pod) if self.claims else self.claims
        twin.disks = self.disks
        twin.holds = self.holds
        twin.priority = self.priority
        twin.terms = self.terms
        return twin

    def holds_but_for_labels(self, pod: Pod) -> bool:
        """Whether a later version has the same values for everything that scheduling reads but labels."""
        old = self.pod
        if old.metadata.deletion_timestamp != pod.metadata.deletion_timestamp:
            return False
        if old.metadata.annotations != pod.metadata.annotations:
            return False
        if old.status.start_time != pod.status.start_time or old.spec != pod.spec:
            return False
        return have_equal_resources_in_status(old, pod) or self.load == pod_load(pod)


def _host_ports(info: PodInfo) -> frozenset[HostPort]:
    return frozenset((p.host_ip or ANY_IP, p.protocol or "TCP", p.host_port) for p in info.pod.host_ports)


def _terms(info: PodInfo) -> PodTerms:
    pod = info.pod
    if has_too_many_terms(pod):
        message = "Ignoring the inter-pod affinity terms of a pod on a node: they exceed the limits"
        log.warning(message, pod=kobj(pod), node=pod.spec.node_name)
        return NO_TERMS
    return placed_pod_terms(pod)


_INFO_VALUES: Final[Mapping[str, Callable[[PodInfo], Any]]] = {
    "load": lambda info: pod_load(info.pod),
    "host_ports": _host_ports,
    "claims": lambda info: claims_of(info.pod),
    "disks": lambda info: disks_of(info.pod),
    "holds": lambda info: bool(info.host_ports or info.claims or info.disks),
    "pod_class": lambda info: class_of(info.pod),
    "priority": lambda info: info.pod.priority,
    "terms": _terms,
}
"""How the values of an info are computed."""


def _priorities(infos: Sequence[PodInfo]) -> NDArray[np.int64]:
    return np.array([info.priority for info in infos], np.int64)


def _starts(infos: Sequence[PodInfo]) -> NDArray[np.int64]:
    return np.array([start_microseconds(info) for info in infos], np.int64)


def start_microseconds(info: PodInfo) -> int:
    """When a pod started, in microseconds; NOT_STARTED if it has not."""
    moment = info.pod.status.start_time
    return NOT_STARTED if moment is None else microseconds(moment)


def _scoring_loads(infos: Sequence[PodInfo]) -> NDArray[np.int64]:
    cpu = clipped_array([info.load.scoring_cpu_milli for info in infos])
    return np.array([cpu, clipped_array([info.load.scoring_memory for info in infos])])


def _holding(infos: Sequence[PodInfo]) -> NDArray[np.bool_]:
    return np.array([info.holds for info in infos], bool)


Move = tuple[int, V, int, int]
"""A pod was added to a node or removed from it: code and value of its class or terms, node's row, +1 or -1.

A code can be reused before this is read; the value is what it stood for. While a code stands for the same
value, the value is the same object.
"""


class InfoColumn:
    """Numbers computed from each pod's info, which only preemption and nominations read.

    Thousands of pods are added and removed before they are read, and are computed together then.
    infos: the table's own. written: the rows that removals have changed.
    work_out: values of several pods, shape (pods,) or (lanes, pods).
    """

    __slots__ = ("_column", "_infos", "_seen", "_work_out", "_written")

    def __init__(
        self,
        infos: Sequence[PodInfo],
        written: RowLog,
        column: Column,
        work_out: Callable[[Sequence[PodInfo]], NDArray[Any]],
    ) -> None:
        self._infos = infos
        self._written = written
        self._seen = written.position
        self._column = column
        self._work_out = work_out

    @property
    def values(self) -> NDArray[Any]:
        """One value for each pod, or one in each of several lanes: shape (pods,) or (lanes, pods)."""
        self.catch_up()
        return self._column.values

    def catch_up(self) -> None:
        """Compute the values of the rows that have another pod since the last time."""
        infos, column = self._infos, self._column
        if self._seen != self._written.position:
            column.truncate(len(infos))
            known = len(column)
            written = self._written.since(self._seen)
            rows = [row for row in (range(known) if written is None else written) if row < known]
            if rows:
                column.rewrite(rows, self._work_out([infos[row] for row in rows]))
            self._seen = self._written.position
        if len(column) < len(infos):
            column.extend(self._work_out(infos[len(column) :]))

    def renew(self, rows: list[int]) -> None:
        """Compute the values of some rows again: they depend on something whose changes are not noticed."""
        self.catch_up()
        self._column.rewrite(rows, self._work_out([self._infos[row] for row in rows]))


class PodTable:
    """All pods on nodes, in rows.

    node_rows: the row of the pod's node. classes, terms: interned; most pods have no terms.
    priority, started: how important a pod is. load (by resource), scoring_load: what it frees when it goes.
    holds: whether it holds anything beyond resources: host ports, volume claims, disks.
    class_moves, terms_moves: which pods came and went, in order; the second only has pods with terms.
    written: the rows that removals have changed: those that are vacated, and those that a pod moves into.
    """

    def __init__(self, node_keys: Container[str]) -> None:
        """node_keys: the label keys that nodes have; the snapshot's own, which change."""
        self.infos: list[PodInfo] = []
        self._row_of: dict[str, int] = {}
        self.class_codes, self.terms_codes = ClassVocabulary(), TermsVocabulary(node_keys)
        self.classes: CodeColumn[PodClass] = CodeColumn(self.class_codes)
        self.terms: CodeColumn[PodTerms] = CodeColumn(self.terms_codes)
        self._node_rows = Column(np.int32)
        self.written = RowLog()
        self._caught_up = self.written.position
        self.priority = self._info_column(Column(np.int64), _priorities)
        self.started = self._info_column(Column(np.int64), _starts)
        """In microseconds; pods that have not started have NOT_STARTED."""
        self._loads = {name: self._load_column(name) for name in NATIVE_RESOURCES}
        """Those of extended resources oldest first."""
        self.scoring_load = self._info_column(Column(np.int64, lanes=2), _scoring_loads)
        self.holds = self._info_column(Column(bool), _holding)
        self.class_moves: Journal[Move[PodClass]] = Journal(_MIN_KEPT_MOVES)
        self.terms_moves: Journal[Move[PodTerms]] = Journal(_MIN_KEPT_MOVES)

    @property
    def node_rows(self) -> NDArray[np.int32]:
        """Each pod's node, by row. Shape (pods,)."""
        return self._node_rows.values

    def _info_column(
        self, column: Column, work_out: Callable[[Sequence[PodInfo]], NDArray[Any]]
    ) -> InfoColumn:
        return InfoColumn(self.infos, self.written, column, work_out)

    def _info_columns(self) -> tuple[InfoColumn, ...]:
        return self.priority, self.started, self.scoring_load, self.holds, *self._loads.values()

    def load(self, resource: str) -> NDArray[np.int64]:
        """What each pod requests of a resource. Shape (pods,)."""
        column = self._loads.get(resource)
        if column is None:
            if len(self._loads) >= _MAX_EXTENDED_LOADS + len(NATIVE_RESOURCES):
                del self._loads[next(name for name in self._loads if name not in NATIVE_RESOURCES)]
            column = self._loads[resource] = self._load_column(resource)
        return column.values

    def _load_column(self, resource: str) -> InfoColumn:
        def loads(infos: Sequence[PodInfo]) -> NDArray[np.int64]:
            return clipped_array([info.load.amounts.get(resource, 0) for info in infos])

        return self._info_column(Column(np.int64), loads)

    def __contains__(self, uid: str) -> bool:
        return uid in self._row_of

    def add(self, uid: str, node_row: int, info: PodInfo) -> None:
        """Add a pod."""
        row = self._row_of[uid] = len(self.infos)
        self.infos.append(info)
        class_code = self.classes.append(info.pod_class)
        terms_code = self.terms.append(info.terms or None)
        self._node_rows.append(node_row)
        _note_move(self.class_moves, self.classes, class_code, node_row, 1)
        if terms_code != ABSENT:
            _note_move(self.terms_moves, self.terms, terms_code, node_row, 1)
        if row % _MAX_NEW == 0:
            self._catch_up()

    def add_all(self, node_rows: Sequence[int], infos: Sequence[PodInfo]) -> None:
        """Add pods, each to the node of a row; of many, no moves are kept: their readers start over."""
        uids = [info.pod.uid for info in infos]
        if len(infos) <= _MIN_KEPT_MOVES:
            for uid, node_row, info in zip(uids, node_rows, infos, strict=True):
                self.add(uid, node_row, info)
            return
        self._row_of.update(zip(uids, range(len(self.infos), len(self.infos) + len(infos)), strict=True))
        self.infos.extend(infos)
        self.classes.extend([info.pod_class for info in infos])
        self.terms.extend([info.terms or None for info in infos])
        self._node_rows.extend(np.array(node_rows, np.int32))
        self.class_moves.start_over()
        self.terms_moves.start_over()
        self._catch_up()

    def _catch_up(self) -> None:
        """Compute what is new in all columns that are computed from infos."""
        for column in self._info_columns():
            column.catch_up()
        self._caught_up = self.written.position

    def relabel(self, uid: str, info: PodInfo) -> None:
        """Change a pod's labels, and nothing else."""
        row = self._row_of[uid]
        self.infos[row] = info
        node_row = self._node_rows.item(row)
        _note_move(self.class_moves, self.classes, self.classes.code(row), node_row, -1)
        class_code = self.classes.replace(row, info.pod_class)
        _note_move(self.class_moves, self.classes, class_code, node_row, 1)

    def remove(self, uid: str) -> None:
        """Remove a pod; the last one moves into its row."""
        row = self._row_of.pop(uid)
        node_row = self._node_rows.item(row)
        self._node_rows.drop(row)
        class_code, pod_class = self.classes.drop(row)
        if pod_class is not None:
            self.class_moves.note((class_code, pod_class, node_row, -1))
        terms_code, terms = self.terms.drop(row)
        if terms is not None:
            self.terms_moves.note((terms_code, terms, node_row, -1))
        last, vacated = self.infos.pop(), len(self.infos)
        if row < vacated:
            self.infos[row] = last
            self._row_of[last.pod.uid] = row
            self.written.note(row)
        self.written.note(vacated)
        if self.written.position - self._caught_up > _MAX_NEW:
            self._catch_up()

    def move(self, uid: str, node_row: int) -> None:
        """A pod's node moved to another row."""
        row = self._row_of[uid]
        self._note(row, -1)
        self._node_rows[row] = node_row
        self._note(row, 1)

    def _note(self, row: int, sign: int) -> None:
        node_row = self._node_rows.item(row)
        _note_move(self.class_moves, self.classes, self.classes.code(row), node_row, sign)
        _note_move(self.terms_moves, self.terms, self.terms.code(row), node_row, sign)

    def rows_of(self, uids: Iterable[str]) -> list[int]:
        """The rows of pods."""
        return list(map(self._row_of.__getitem__, uids))

    def nodes_of(self, classes: Collection[int]) -> NDArray[np.int32]:
        """The node row of every pod of some classes, given by code; a node appears once per pod."""
        if not classes:
            return self.node_rows[:0]
        chosen = np.zeros(len(self.class_codes) + 1, bool)
        chosen[list(classes)] = True
        return self.node_rows[chosen[self.classes.codes]]


def _note_move(journal: Journal[Move[V]], column: CodeColumn[V], code: int, node_row: int, sign: int) -> None:
    if code != ABSENT:
        # The vocabulary's own object: readers compare values by identity.
        value = column.vocabulary.values[code]
        assert value is not None
        journal.note((code, value, node_row, sign))
