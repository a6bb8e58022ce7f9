"""Which pods may be evicted: of borrowers, for what is guaranteed to others, and of one's own quota.

Two quotas meet where both are part of the same one. A pod may be evicted for one of another quota if what the
latter requests is guaranteed on its side: to the quota just below the place where they meet. On the side of
the victim, all quotas below that place keep what is guaranteed to them. The least important pods go first:
those of the lowest priority, and of these the newest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage import Nodes, Pod
from moorage.optional_plugins.capacity.columns import NO_QUOTA, PodColumns
from moorage.optional_plugins.capacity.elastic_quota import Amounts
from moorage.optional_plugins.capacity.quota_tree import ROOT, QuotaTree
from moorage.optional_plugins.capacity.usage import Used

Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]

_UNBOUNDED: Final = 1 << 62
"""The surplus where nothing is guaranteed."""
_NO_ENTRY: Final = -1


@dataclass(frozen=True)
class Reclaim:
    """What a preemptor may reclaim.

    path, request: its quotas, and what it requests. used: what is used. claimed: that with nominated pods.
    priorities: of each pod, by row. evicted: the uids of pods that are about to be deleted.
    units: pods that are only evicted together.
    """

    tree: QuotaTree
    pods: PodColumns
    nodes: Nodes
    path: Sequence[int]
    request: Amounts
    used: Used
    claimed: Used
    priorities: NDArray[np.int64]
    evicted: Collection[str]
    units: Sequence[Sequence[Pod]]

    def on_each_node(self) -> Mask:
        """The potential victims, as many on each node as could be evicted if none were elsewhere.

        Pods that are only evicted together are left out, if they do not leave already.
        """
        candidates = self._candidates.copy()
        candidates[list(self.unit_of)] = False
        return self._chosen(candidates, self.nodes.snapshot.pods.node_rows.astype(np.intp))

    def anywhere(self, *, as_requested: bool = False) -> Mask:
        """The potential victims, all of which could be evicted together.

        as_requested: only as many as use together what is requested.
        """
        going = self.leaving & self._of_borrowers
        chosen = going.copy()
        left = self._surplus.copy()
        needed = self._requested - self._amounts[:, going].sum(axis=1)
        seen: set[int] = set()
        for row in self.least_important_first(np.flatnonzero(self._candidates)).tolist():
            if as_requested and (needed <= 0).all():
                break
            if row in seen:
                continue
            unit = self.unit_of.get(row, [row])
            seen.update(unit)
            if (self._candidates | going)[unit].all() and self._take(unit, left):
                chosen[unit] = True
                needed -= self._amounts[:, unit].sum(axis=1)
        return chosen

    def _take(self, unit: Sequence[int], left: NDArray[np.int64]) -> bool:
        """Take what pods use from what is left of each quota, if there is enough of it."""
        taken: dict[int, NDArray[np.int64]] = {}
        for row in unit:
            if not self.leaving[row]:
                for quota in self._between[self.quotas[row]]:
                    taken[quota] = taken.get(quota, 0) + self._amounts[:, row]
        if not all(((each <= left[quota]) | (each == 0)).all() for quota, each in taken.items()):
            return False
        for quota, each in taken.items():
            left[quota] -= each
        return True

    @cached_property
    def unit_of(self) -> dict[int, list[int]]:
        """For each pod that is only evicted with others, the rows of all of them."""
        table = self.nodes.snapshot.pods
        rows = [table.rows_of(pod.uid for pod in unit if pod.uid in table) for unit in self.units]
        return {row: unit for unit in rows for row in unit}

    # Columns over all pods

    @cached_property
    def quotas(self) -> NDArray[np.intp]:
        """The index of each pod's quota."""
        return self.pods.quotas(self.tree)

    @cached_property
    def leaving(self) -> Mask:
        """The pods that are terminating, or about to be."""
        return self.pods.leaving(self.evicted)

    @cached_property
    def _resources(self) -> list[str]:
        """The resources that anything is guaranteed of."""
        return list(self.tree.quotas[ROOT].guaranteed)

    @cached_property
    def _requested(self) -> NDArray[np.int64]:
        """What is requested of these."""
        return np.array([self.request.get(each, 0) for each in self._resources], np.int64)

    @cached_property
    def _amounts(self) -> NDArray[np.int64]:
        """What each pod counts with of these. Shape (resources, pods)."""
        columns = [self.pods.amounts(each) for each in self._resources]
        return np.array(columns, np.int64).reshape(len(columns), len(self.priorities))

    @cached_property
    def _between(self) -> list[tuple[int, ...]]:
        """For each quota: itself and those above it, below the place where it meets the preemptor's."""
        own = set(self.path)
        return [tuple(index for index in quota.path if index not in own) for quota in self.tree.quotas]

    @cached_property
    def _open(self) -> Mask:
        """Which quotas may be reclaimed from, as far as the preemptor's side is concerned."""
        guaranteed = [self.tree.is_guaranteed(index, self.request, self.claimed) for index in self.path]
        is_open = [self._side(quota.path, guaranteed) for quota in self.tree.quotas]
        return np.array([*is_open, False])

    def _side(self, path: Sequence[int], guaranteed: Sequence[bool]) -> bool:
        """Whether the preemptor's side has a claim where its path meets another one."""
        meeting = next(place for place, index in enumerate(self.path) if index in path)
        return meeting > 0 and guaranteed[meeting - 1]

    @cached_property
    def _of_borrowers(self) -> Mask:
        """The pods of quotas that may be reclaimed from, if they use what the preemptor needs."""
        counted = [number for number, each in enumerate(self._resources) if self.request.get(each)]
        uses = (self._amounts[counted] > 0).any(axis=0) if counted else np.zeros(len(self.quotas), np.bool_)
        mask: Mask = uses & self._open[self.quotas]
        return mask

    @cached_property
    def _surplus(self) -> NDArray[np.int64]:
        """By how much the pods that stay exceed what is guaranteed. Shape (quotas, resources)."""
        surplus = np.full((len(self.tree.quotas), len(self._resources)), _UNBOUNDED, np.int64)
        going = self._going
        for number, resource in enumerate(self._resources):
            for quota in self.tree.quotas:
                if guaranteed := quota.guaranteed.get(resource):
                    stays = self.used[quota.index].get(resource, 0) - going[quota.index, number]
                    surplus[quota.index, number] = stays - guaranteed
        return surplus

    @cached_property
    def _going(self) -> NDArray[np.int64]:
        """What the pods that leave use, of each quota. Shape (quotas, resources)."""
        going = np.zeros((len(self.tree.quotas), len(self._resources)), np.int64)
        rows = np.flatnonzero(self.leaving & (self.quotas != NO_QUOTA))
        of_quota = np.zeros_like(going)
        np.add.at(of_quota, self.quotas[rows], self._amounts[:, rows].T)
        for index in np.flatnonzero(of_quota.any(axis=1)).tolist():
            going[list(self.tree.quotas[index].path)] += of_quota[index]
        return going

    @cached_property
    def _candidates(self) -> Mask:
        """The pods any of which could be evicted alone."""
        candidates = self._of_borrowers & ~self.leaving
        rows = np.flatnonzero(candidates)
        amounts = self._amounts[:, rows]
        for quotas in self._levels:
            above = quotas[self.quotas[rows]]
            fits = (amounts <= self._surplus[above].T) | (amounts == 0)
            candidates[rows] &= (above == _NO_ENTRY) | fits.all(axis=0)
        return candidates

    @cached_property
    def _levels(self) -> list[NDArray[np.intp]]:
        """The quotas between, level by level: of each quota the first, the second, and so on; -1: none."""
        depth = max(map(len, self._between))
        return [
            np.array([each[level] if level < len(each) else _NO_ENTRY for each in self._between])
            for level in range(depth)
        ]

    def least_important_first(self, rows: Rows) -> Rows:
        """Pods in the order in which they are evicted."""
        newest_first = [-key[rows] for key in self.pods.newest_last()]
        return rows[np.lexsort((*newest_first, self.priorities[rows]))]

    def _chosen(self, candidates: Mask, places: NDArray[np.intp]) -> Mask:
        """Of the candidates of each place, the least important whose quotas keep their guarantee."""
        rows = self.least_important_first(np.flatnonzero(candidates))
        rows = rows[np.argsort(places[rows], kind="stable")]
        chosen = self.leaving & self._of_borrowers
        entries, left = self._entries(rows, places)
        amounts = self._amounts[:, rows]
        for turn in _rounds(places[rows]):
            fits = np.ones(len(turn), np.bool_)
            for of_level in entries:
                entry = of_level[turn]
                enough = (amounts[:, turn] <= left[:, entry]) | (amounts[:, turn] == 0)
                fits &= enough.all(axis=0) | (entry == _NO_ENTRY)
            taken = turn[fits]
            for of_level in entries:
                has_entry = taken[of_level[taken] != _NO_ENTRY]
                left[:, of_level[has_entry]] -= amounts[:, has_entry]
            chosen[rows[taken]] = True
        return chosen

    def _entries(
        self, rows: Rows, places: NDArray[np.intp]
    ) -> tuple[list[NDArray[np.intp]], NDArray[np.int64]]:
        """For each level, an entry for each pod's place and quota; what is left there."""
        count = len(self.tree.quotas)
        above = [level[self.quotas[rows]] for level in self._levels]
        keys = [np.where(each == _NO_ENTRY, _NO_ENTRY, places[rows] * count + each) for each in above]
        distinct = np.unique(np.concatenate(keys)) if keys else np.zeros(0, np.intp)
        distinct = distinct[distinct != _NO_ENTRY]
        entries = [np.where(each == _NO_ENTRY, _NO_ENTRY, np.searchsorted(distinct, each)) for each in keys]
        # One more entry at the end, for levels that a quota does not have.
        left = np.concatenate((self._surplus[distinct % count], self._surplus[:1]))
        return entries, left.T.copy()


def _rounds(places: NDArray[np.intp]) -> Iterator[Rows]:
    """Entries in rounds: the first of every place, the second, and so on; equal places are together."""
    rank = np.arange(len(places)) - np.searchsorted(places, places)
    order = np.argsort(rank, kind="stable")
    return iter(np.split(order, np.cumsum(np.bincount(rank))[:-1])) if len(order) else iter(())
