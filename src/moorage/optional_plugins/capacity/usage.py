"""What the pods of each quota use: sums that follow pods as they come to nodes and go, at the cost of that.

All pods on nodes count, also those that are being bound or deleted, for their quota and all that it is part
of. Pods that have ended are on no node any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from moorage import Nodes, Objects, Pod, PodInfo, PodReader
from moorage.optional_plugins.capacity.elastic_quota import ElasticQuota, terms_of
from moorage.optional_plugins.capacity.nominated import NominatedPods, Waiting
from moorage.optional_plugins.capacity.quota_tree import QuotaTree
from moorage.optional_plugins.capacity.requests import PODS, devices_of

Used = Sequence[dict[str, int]]
"""What is used, by index of the quota."""


class Usage:
    """The tree of quotas, and what is used of each."""

    def __init__(self) -> None:
        self.tree = QuotaTree()
        self.used: list[dict[str, int]] = [{}]
        self._pods = PodReader()
        self._nominated = NominatedPods()
        self._source: tuple[Any, int] = (None, 0)
        self._with_claims: dict[PodInfo, Mapping[str, int]] = {}
        """The devices that pods were counted with: claims may be deleted before their pod."""

    def by_key(self) -> dict[str, dict[str, int]]:
        """What is used of each quota, by `namespace/name`."""
        return {quota.key: self.used[quota.index] for quota in self.tree.quotas[1:]}

    def follow(self, nodes: Nodes) -> None:
        """Know the quotas and pods of a snapshot."""
        self._follow_quotas(nodes.objects)
        moves = self._pods.moves(nodes.snapshot.pods)
        self._nominated.follow(nodes, (info for info, _ in moves))
        for info, sign in moves:
            if path := self.tree.path(info.pod.namespace):
                self._count(info, sign, path, nodes.objects)

    def _follow_quotas(self, objects: Objects) -> None:
        table = objects.of(ElasticQuota)
        if self._source == (table, table.version):
            return
        self._source = (table, table.version)
        tree = QuotaTree(map(terms_of, table))
        if tree.shape != self.tree.shape:
            self.used = [{} for _ in tree.quotas]
            self._pods = PodReader()
            self._with_claims.clear()
        self.tree = tree

    def _count(self, info: PodInfo, sign: int, path: Iterable[int], objects: Objects) -> None:
        devices = self._devices(info, sign, objects) if info.pod.spec.resource_claims else {}
        for index in path:
            used = self.used[index]
            used[PODS] = used.get(PODS, 0) + sign
            for amounts in (info.load.amounts, devices) if devices else (info.load.amounts,):
                for resource, amount in amounts.items():
                    used[resource] = used.get(resource, 0) + sign * amount

    def _devices(self, info: PodInfo, sign: int, objects: Objects) -> Mapping[str, int]:
        """The devices that a pod that comes is counted with, or those that one that goes was counted with."""
        if sign < 0:
            return self._with_claims.pop(info)
        devices = self._with_claims[info] = devices_of(info.pod, objects)
        return devices

    def with_nominated(self, pod: Pod, nodes: Nodes, but: Collection[str] = ()) -> Used:
        """What is used, with the pods that wait for room on a node and come before a pod.

        but: the uids of pods that do not count; the pod itself never does.
        """
        used: list[dict[str, int]] = list(self.used)
        copied: set[int] = set()
        for waiting, count in self._nominated.groups(nodes, (pod.uid, *but)):
            for index in self._quotas_of(waiting, pod):
                if index not in copied:
                    copied.add(index)
                    used[index] = used[index].copy()
                for resource, amount in waiting.request:
                    used[index][resource] = used[index].get(resource, 0) + count * amount
        return used if copied else self.used

    def _quotas_of(self, waiting: Waiting, pod: Pod) -> tuple[int, ...]:
        """The quotas that a nominated pod counts for, seen from another pod; none if it does not count.

        In its own quota, a pod does not wait for less important ones. What others wait for counts if it is
        guaranteed to them: the room that they made must not be borrowed meanwhile.
        """
        path, own = self.tree.path(waiting.namespace), self.tree.path(pod.namespace)
        if not path or path[0] == own[0]:
            return path if waiting.priority >= pod.priority else ()
        branch = next(index for index, above in pairwise(path) if above in own)
        is_guaranteed = self.tree.is_guaranteed(branch, dict(waiting.request), self.used)
        return path if branch in own or is_guaranteed else ()
