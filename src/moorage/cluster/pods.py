"""Pods on nodes, as columns.

A pod selector only looks at namespace and labels, so pods are grouped by class: a selector is judged once
per class, and one pass over the pods' class codes gives the count on every node. Pods with affinity terms
of their own are kept a second time, grouped by their terms: most pods have none, and a new pod is compared
with each distinct set of terms once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage.api.affinity import NO_TERMS, PodTerms, pod_terms
from moorage.api.pod import Pod
from moorage.api.requests import PodLoad, pod_load
from moorage.api.selectors import SelectorError
from moorage.api.storage import ISCSI, RBD, AWSElasticBlockStore, GCEPersistentDisk
from moorage.cluster.columns import CodeColumn, Column, Vocabulary

V = TypeVar("V", bound=Hashable)

HostPort = tuple[str, str, int]
"""Host IP, protocol, port: what a pod takes on its node."""

ANY_IP = "0.0.0.0"

Disk = GCEPersistentDisk | AWSElasticBlockStore | RBD | ISCSI
"""A disk that a pod names itself, without a claim."""


class PodClass(NamedTuple):
    """What selectors can tell of a pod; two pods of a class are the same to every selector."""

    namespace: str
    labels: frozenset[tuple[str, str]]
    terminating: bool


class PodInfo:
    """A pod and what is worked out of it once: load, ports, class, terms."""

    def __init__(self, pod: Pod) -> None:
        self.pod = pod

    @cached_property
    def load(self) -> PodLoad:
        """What the pod takes from its node."""
        return pod_load(self.pod)

    @cached_property
    def host_ports(self) -> frozenset[HostPort]:
        """The host ports the pod takes."""
        return frozenset((p.host_ip or ANY_IP, p.protocol or "TCP", p.host_port) for p in self.pod.host_ports)

    @cached_property
    def claims(self) -> frozenset[str]:
        """The volume claims the pod uses, as namespace/name; an ephemeral volume's is named after both."""
        pod = self.pod
        named = (v.persistent_volume_claim.claim_name for v in pod.spec.volumes if v.persistent_volume_claim)
        made = (f"{pod.name}-{v.name}" for v in pod.spec.volumes if v.ephemeral)
        return frozenset(f"{pod.namespace}/{name}" for name in (*named, *made))

    @cached_property
    def disks(self) -> frozenset[Disk]:
        """The disks named in the pod itself, which pods may not be able to share."""
        sources = ("gce_persistent_disk", "aws_elastic_block_store", "rbd", "iscsi")
        return frozenset(
            disk
            for v in self.pod.spec.volumes
            for source in sources
            if (disk := getattr(v, source)) is not None
        )

    @cached_property
    def pod_class(self) -> PodClass:
        """The pod's class."""
        return PodClass(self.pod.namespace, frozenset(self.pod.labels.items()), self.pod.terminating)

    @cached_property
    def terms(self) -> PodTerms:
        """The pod's affinity terms; terms of a running pod that cannot be understood bind nobody."""
        try:
            return pod_terms(self.pod)
        except SelectorError:
            return NO_TERMS


class PodGroups(Generic[V]):
    """Pods in rows, each with its node's row and an interned group."""

    def __init__(self) -> None:
        self._groups: CodeColumn[V] = CodeColumn()
        self._nodes = Column(np.int32)
        self.row_of: dict[str, int] = {}
        self._uids: list[str] = []

    def add(self, uid: str, node_row: int, group: V) -> int:
        """A pod that was not here before; returns its row."""
        row = self.row_of[uid] = len(self._uids)
        self._uids.append(uid)
        self._groups.append()
        self._nodes.append()
        self._groups[row] = group
        self._nodes[row] = node_row
        return row

    def remove(self, uid: str) -> int | None:
        """Forget a pod; returns the row that the last pod moved into, or None if the pod is not here."""
        row = self.row_of.pop(uid, None)
        if row is None:
            return None
        last = self._uids.pop()
        if last != uid:
            self._uids[row] = last
            self.row_of[last] = row
        self._groups.drop(row)
        self._nodes.drop(row)
        return row

    def move(self, uid: str, node_row: int) -> None:
        """A pod's node has another row now."""
        row = self.row_of.get(uid)
        if row is not None:
            self._nodes[row] = node_row

    @property
    def vocabulary(self) -> Vocabulary[V]:
        """The groups there are."""
        return self._groups.vocabulary

    @property
    def codes(self) -> NDArray[np.int32]:
        """Each pod's group, by code. Shape (pods,)."""
        return self._groups.codes

    @property
    def node_rows(self) -> NDArray[np.int32]:
        """Each pod's node, by row. Shape (pods,)."""
        return self._nodes.values

    def __len__(self) -> int:
        return len(self._uids)

    def nodes_of(self, wanted: Callable[[V], bool]) -> NDArray[np.int32]:
        """The node row of every pod whose group is wanted; a node appears once per pod."""
        chosen: NDArray[np.bool_] = self.vocabulary.judge(wanted)
        if not chosen.any():
            return self.node_rows[:0]
        return self.node_rows[chosen[self.codes]]


class PodTable:
    """All pods on nodes.

    Columns by pod, in the rows of `classes`: what a pod frees when it goes, and how important it is.
    """

    def __init__(self, resource_lanes: int) -> None:
        self.classes: PodGroups[PodClass] = PodGroups()
        self.terms: PodGroups[PodTerms] = PodGroups()
        self.infos: list[PodInfo] = []
        self.priority = Column(np.int64)
        self.load = Column(np.int64, lanes=resource_lanes)
        self.scoring_load = Column(np.int64, lanes=2)
        self.holds = Column(bool)
        """Whether a pod holds anything beyond resources: host ports, volume claims, disks."""

    def add(self, uid: str, node_row: int, info: PodInfo, amounts: list[int]) -> None:
        """A pod that was not here before; `amounts` are its requests by resource lane."""
        row = self.classes.add(uid, node_row, info.pod_class)
        if info.terms:
            self.terms.add(uid, node_row, info.terms)
        self.infos.append(info)
        for column in (self.priority, self.load, self.scoring_load, self.holds):
            column.append()
        self.priority[row] = info.pod.priority
        self.load[row] = amounts
        self.scoring_load[row] = (info.load.scoring_cpu_milli, info.load.scoring_memory)
        self.holds[row] = bool(info.host_ports or info.claims or info.disks)

    def remove(self, uid: str) -> None:
        """Forget a pod."""
        self.terms.remove(uid)
        row = self.classes.remove(uid)
        if row is not None:
            self.infos[row] = self.infos[-1]
            self.infos.pop()
            for column in (self.priority, self.load, self.scoring_load, self.holds):
                column.drop(row)

    def move(self, uid: str, node_row: int) -> None:
        """A pod's node has another row now."""
        self.classes.move(uid, node_row)
        self.terms.move(uid, node_row)
