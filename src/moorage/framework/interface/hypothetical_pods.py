"""Pods assumed to be removed from nodes, or added to them: the framework's dry runs.

Preemption removes victims, and nominated pods are added. Each node of a view has its own changes, and is
evaluated with those alone: a pod removed from one node is not removed from the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from moorage.api.affinity import PodTerms
from moorage.cluster.pod_class import PodClass
from moorage.cluster.pod_table import PodInfo
from moorage.cluster.snapshot import Snapshot
from moorage.cluster.vocabularies import ClassVocabulary


class WantedPods(Protocol):
    """A set of pods, given by their classes."""

    def candidates(self, classes: ClassVocabulary, /) -> Collection[int]:
        """The codes of their classes."""

    def matches(self, each: PodClass, /) -> bool:
        """Whether pods of a class are among them."""


class HypotheticalPods:
    """Pods added to, and removed from, the nodes of a view, which are named by their index in it.

    removed: pods on nodes, as (node index, row in the snapshot's pod table), two arrays of one length.
    added: pods that are on no node yet, as (node index, pod). on_each: pods that are added to every node.
    """

    __slots__ = ("_snapshot", "added", "count", "on_each", "removed_from", "removed_pods")

    def __init__(
        self,
        snapshot: Snapshot,
        count: int,
        removed_from: NDArray[np.intp] | None = None,
        removed_pods: NDArray[np.intp] | None = None,
        added: Sequence[tuple[int, PodInfo]] = (),
        on_each: Sequence[PodInfo] = (),
    ) -> None:
        none = np.zeros(0, np.intp)
        self._snapshot = snapshot
        self.count = count
        self.removed_from = none if removed_from is None else removed_from
        self.removed_pods = none if removed_pods is None else removed_pods
        self.added = added
        self.on_each = on_each

    def take(self, indices: NDArray[np.intp]) -> HypotheticalPods:
        """The changes of some of the nodes, which in the result are named by their place in `indices`."""
        place = np.full(self.count, -1, np.intp)
        place[indices] = np.arange(len(indices))
        kept = place[self.removed_from] >= 0
        return HypotheticalPods(
            self._snapshot,
            len(indices),
            place[self.removed_from[kept]],
            self.removed_pods[kept],
            [(int(place[index]), info) for index, info in self.added if place[index] >= 0],
            self.on_each,
        )

    def adding(self, added: Sequence[tuple[int, PodInfo]]) -> HypotheticalPods:
        """These changes and more pods added."""
        return HypotheticalPods(
            self._snapshot,
            self.count,
            self.removed_from,
            self.removed_pods,
            (*self.added, *added),
            self.on_each,
        )

    def all_added(self) -> list[PodInfo]:
        """The pods added to any node."""
        return [*self.on_each, *(info for _, info in self.added)]

    def indices(self) -> list[int]:
        """The nodes where anything changes."""
        if self.on_each:
            return list(range(self.count))
        return sorted({*self.removed_from.tolist(), *(index for index, _ in self.added)})

    # What plugins read. All arrays have shape (nodes,).

    def pods(self) -> NDArray[np.int64]:
        """How many pods more (or, negative, fewer) each node has."""
        return self._sum(None, lambda info: 1)

    def load(self, resource: str) -> NDArray[np.int64]:
        """How much more of a resource is requested on each node."""
        table = self._snapshot.pods
        is_anywhere = self._snapshot.requested.is_anywhere(resource)
        by_pod = table.load(resource) if is_anywhere else np.zeros(len(table.infos), np.int64)
        return self._sum(by_pod, lambda info: info.load.amounts.get(resource, 0))

    def scoring_load(self, lane: int) -> NDArray[np.int64]:
        """As `load` for cpu (lane 0) and memory (1), with the defaults for scoring."""
        return self._sum(
            self._snapshot.pods.scoring_load.values[lane],
            lambda info: info.load.scoring_memory if lane else info.load.scoring_cpu_milli,
        )

    def matching(self, *wanted: WantedPods) -> NDArray[np.int64]:
        """How many more matching pods each node has; one that matches several times counts as often."""
        pods = self._snapshot.pods
        table = np.zeros(len(pods.class_codes) + 1, np.int64)
        for each in wanted:
            table[list(each.candidates(pods.class_codes))] += 1
        return self._sum(
            table[pods.classes.codes], lambda info: sum(each.matches(info.pod_class) for each in wanted)
        )

    def by_terms(self, weight: Callable[[PodTerms], int]) -> NDArray[np.int64]:
        """The sum of `weight` over the affinity terms of the pods, negative for those gone."""
        terms = self._snapshot.pods.terms
        table = terms.vocabulary.map_values(weight, np.int64)
        return self._sum(table[terms.codes], lambda info: weight(info.terms) if info.terms else 0)

    def holders(self) -> list[int]:
        """The nodes where a pod with ports, claims or disks is added or removed."""
        if any(info.holds for info in self.on_each):
            return list(range(self.count))
        removed = self.removed_from[self._snapshot.pods.holds.values[self.removed_pods]]
        added = [index for index, info in self.added if info.host_ports or info.claims or info.disks]
        return sorted({*removed.tolist(), *added})

    def _sum(self, by_pod: NDArray[np.int64] | None, of_added: Callable[[PodInfo], int]) -> NDArray[np.int64]:
        weights = None if by_pod is None else by_pod[self.removed_pods]
        total = -np.bincount(self.removed_from, weights, minlength=self.count).astype(np.int64)
        for index, info in self.added:
            total[index] += of_added(info)
        return total + sum(map(of_added, self.on_each)) if self.on_each else total

    def removed_on(self, index: int) -> list[PodInfo]:
        """The pods removed from one node."""
        infos = self._snapshot.pods.infos
        return [infos[pod] for pod in self.removed_pods[self.removed_from == index].tolist()]

    def added_on(self, index: int) -> list[PodInfo]:
        """The pods added to one node."""
        return [*self.on_each, *(info for place, info in self.added if place == index)]

    def pods_on(self, index: int, row: int) -> list[PodInfo]:
        """The pods on one node, as if the changes had been made."""
        removed = {info.pod.uid for info in self.removed_on(index)}
        stay = [info for info in self._snapshot.pods_of(row).infos if info.pod.uid not in removed]
        return stay + self.added_on(index)
