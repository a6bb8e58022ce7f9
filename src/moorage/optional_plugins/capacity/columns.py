"""What quotas need to know of all pods on nodes, as columns: one entry per row of the pod table."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage import Nodes, Objects, PodColumn, PodInfo
from moorage.optional_plugins.capacity.quota_tree import QuotaTree
from moorage.optional_plugins.capacity.requests import DEVICES_OF_CLASS, PODS, devices_of

NO_QUOTA = -1

Amount = NDArray[np.int64]


class PodColumns:
    """The pods of a snapshot."""

    def __init__(self) -> None:
        self._table: Any = None
        self._objects = Objects()
        self._leaving = PodColumn(np.bool_, lambda info: info.pod.terminating)
        self._created = PodColumn(np.int64, _creation_seconds)
        self._devices: dict[str, PodColumn] = {}

    def follow(self, nodes: Nodes) -> None:
        """Look at the pods of a snapshot."""
        self._table, self._objects = nodes.snapshot.pods, nodes.objects

    def quotas(self, tree: QuotaTree, rows: NDArray[np.intp] | None = None) -> NDArray[np.intp]:
        """The index of each pod's quota, or of the pods in some rows; -1: it has none."""
        classes, of_namespace = self._table.classes, tree.of_namespace

        def index_of(pod_class: Any) -> int:
            return of_namespace.get(pod_class.namespace, NO_QUOTA)

        codes = classes.codes if rows is None else classes.codes[rows]
        quotas: NDArray[np.intp] = classes.vocabulary.map_values(index_of, np.intp)[codes]
        return quotas

    def leaving(self, evicted: Collection[str]) -> NDArray[np.bool_]:
        """Which pods are terminating, or about to be. evicted: the uids of those about to be."""
        leaving: NDArray[np.bool_] = self._leaving.values(self._table)
        known = [uid for uid in evicted if uid in self._table]
        if known:
            leaving = leaving.copy()
            leaving[self._table.rows_of(known)] = True
        return leaving

    def newest_last(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Sort keys: when each pod started, those that have not started last, and when it was created."""
        return self._created.values(self._table), self._table.started.values

    def amounts(self, resource: str) -> Amount:
        """What each pod counts with."""
        if resource == PODS:
            return np.ones(len(self._table.infos), np.int64)
        is_claimed = resource.endswith(DEVICES_OF_CLASS)
        amounts: Amount = self._claimed(resource) if is_claimed else self._table.load(resource)
        return amounts

    def _claimed(self, resource: str) -> Amount:
        """The devices of a class that each pod claims."""

        def count(info: PodInfo) -> int:
            return devices_of(info.pod, self._objects).get(resource, 0)

        if resource not in self._devices:
            self._devices[resource] = PodColumn(np.int64, count)
        counts: Amount = self._devices[resource].values(self._table)
        return counts


def below(tree: QuotaTree, index: int) -> NDArray[np.bool_]:
    """Which quotas are part of one, or it itself; one more entry at the end, for pods without a quota."""
    return np.array([*(index in quota.path for quota in tree.quotas), False])


def _creation_seconds(info: PodInfo) -> int:
    created = info.pod.metadata.creation_timestamp
    return 0 if created is None else int(created.timestamp())
