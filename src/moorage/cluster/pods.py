"""Pods on nodes, as columns.

A pod selector only looks at namespace and labels, so pods are grouped by class: a selector is judged once
per class, and one pass over the pods' class codes gives the count on every node. In the same way pods are
grouped by their own affinity terms: a new pod is compared with each distinct set of terms once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.api.affinity import NO_TERMS, PodTerms, pod_terms
from moorage.api.pod import Pod
from moorage.api.requests import PodLoad, pod_load
from moorage.api.selectors import SelectorError
from moorage.api.storage import (
    ISCSI,
    RBD,
    AWSElasticBlockStore,
    AzureDisk,
    Cinder,
    GCEPersistentDisk,
    PortworxVolume,
)
from moorage.cluster.columns import CodeColumn, Column, clipped

HostPort = tuple[str, str, int]
"""Host IP, protocol, port: what a pod takes on its node."""

ANY_IP = "0.0.0.0"

NOT_STARTED = (1 << 63) - 1
"""When a pod started that has not yet: after all others."""

Disk = GCEPersistentDisk | AWSElasticBlockStore | AzureDisk | Cinder | PortworxVolume | RBD | ISCSI
"""A disk that a pod names itself, without a claim."""

_DISK_SOURCES = (
    "gce_persistent_disk",
    "aws_elastic_block_store",
    "azure_disk",
    "cinder",
    "portworx_volume",
    "rbd",
    "iscsi",
)


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
        return frozenset(
            disk
            for v in self.pod.spec.volumes
            for source in _DISK_SOURCES
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


def _microseconds(moment: datetime | None) -> int:
    return NOT_STARTED if moment is None else round(moment.timestamp() * 1_000_000)


class PodTable:
    """All pods on nodes, in rows.

    node_rows: the row of the pod's node. classes, terms: interned; most pods have no terms.
    priority, started: how important a pod is. load, scoring_load: what it frees when it goes.
    holds: whether it holds anything beyond resources: host ports, volume claims, disks.
    """

    def __init__(self, resource_lanes: int) -> None:
        self.infos: list[PodInfo] = []
        self._row_of: dict[str, int] = {}
        self.classes: CodeColumn[PodClass] = CodeColumn()
        self.terms: CodeColumn[PodTerms] = CodeColumn()
        self._node_rows = Column(np.int32)
        self.priority = Column(np.int64)
        self.started = Column(np.int64)
        """In microseconds; pods that have not started have NOT_STARTED."""
        self.load = Column(np.int64, lanes=resource_lanes)
        self.scoring_load = Column(np.int64, lanes=2)
        self.holds = Column(bool)

    @property
    def node_rows(self) -> NDArray[np.int32]:
        """Each pod's node, by row. Shape (pods,)."""
        return self._node_rows.values

    def _columns(self) -> tuple[Column | CodeColumn[Any], ...]:
        return (
            self.classes,
            self.terms,
            self._node_rows,
            self.priority,
            self.started,
            self.load,
            self.scoring_load,
            self.holds,
        )

    def add(self, uid: str, node_row: int, info: PodInfo, amounts: list[int]) -> None:
        """A pod that was not here before; `amounts` are its requests by resource lane."""
        row = self._row_of[uid] = len(self.infos)
        self.infos.append(info)
        for column in self._columns():
            column.append()
        self.classes[row] = info.pod_class
        self.terms[row] = info.terms or None
        self._node_rows[row] = node_row
        self.priority[row] = info.pod.priority
        self.started[row] = _microseconds(info.pod.status.start_time)
        self.load[row] = amounts
        self.scoring_load[row] = (clipped(info.load.scoring_cpu_milli), clipped(info.load.scoring_memory))
        self.holds[row] = bool(info.host_ports or info.claims or info.disks)

    def remove(self, uid: str) -> None:
        """Forget a pod; the last one moves into its row."""
        row = self._row_of.pop(uid)
        last = self.infos.pop()
        if row < len(self.infos):
            self.infos[row] = last
            self._row_of[last.pod.uid] = row
        for column in self._columns():
            column.drop(row)

    def move(self, uid: str, node_row: int) -> None:
        """A pod's node has another row now."""
        self._node_rows[self._row_of[uid]] = node_row

    def rows_of(self, uids: Iterable[str]) -> list[int]:
        """The rows of pods."""
        return [self._row_of[uid] for uid in uids]

    def nodes_of(self, wanted: Callable[[PodClass], bool]) -> NDArray[np.int32]:
        """The node row of every pod whose class is wanted; a node appears once per pod."""
        chosen: NDArray[np.bool_] = self.classes.vocabulary.judge(wanted)
        if not chosen.any():
            return self.node_rows[:0]
        return self.node_rows[chosen[self.classes.codes]]
