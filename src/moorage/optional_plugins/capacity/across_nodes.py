"""Victims on several nodes, for a pod that a quota refuses: what one node has may free too little of it.

A node for the pod is found first, if possible one with room. Victims are the least important pods that free
enough of the quota; PodDisruptionBudgets are violated only if it cannot be done without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage import HypotheticalPods, Nodes
from moorage.optional_plugins.capacity.columns import below
from moorage.optional_plugins.capacity.quota_tree import Excess
from moorage.optional_plugins.capacity.victims import Reclaim

Unit = tuple[int, ...]
"""Pods that are evicted together, by row of the pod table."""

PassingOf = Callable[[Nodes], Nodes]
"""The nodes that pass all filters but that of the quota."""


@dataclass(frozen=True)
class AcrossNodes:
    """A search for victims.

    chosen: the pods that may be evicted, all of them together. violates: those that violate a budget.
    """

    reclaim: Reclaim
    excesses: Sequence[Excess]
    chosen: NDArray[np.bool_]
    violates: NDArray[np.bool_]
    passing: PassingOf
    pick: Callable[[int], int]

    def find(self) -> tuple[int, list[int]] | None:
        """The row of a node, and the rows of the victims, the most important first; None: there are none."""
        units = list(self._units())
        gone = self._enough(units)
        if gone is None:
            return None
        row = self._node(gone)
        if row is None:
            row = self._node(units)
            if row is None:
                return None
            node_rows = self.reclaim.nodes.snapshot.pods.node_rows
            gone += [unit for unit in units if unit not in gone and row in node_rows[list(unit)]]
        gone = self._reprieved(gone, lambda left: self._node(left, row) is not None)
        victims = np.array([each for unit in gone for each in unit], np.intp)
        return row, self.reclaim.least_important_first(victims)[::-1].tolist()

    def _units(self) -> Iterator[Unit]:
        """What may be evicted, in order: what leaves already, the least important, and PDB violators last."""
        rows = self.reclaim.least_important_first(np.flatnonzero(self.chosen))
        rank = np.where(self.reclaim.leaving[rows], 0, 1 + self.violates[rows])
        unit_of = self.reclaim.unit_of
        ordered = rows[np.argsort(rank, kind="stable")].tolist()
        return iter(dict.fromkeys(tuple(unit_of.get(row, (row,))) for row in ordered))

    def _enough(self, units: Iterable[Unit]) -> list[Unit] | None:
        """The first units that free enough of all quotas; None: all of them do not."""
        gone: list[Unit] = []
        over = self._over(())
        for unit in units:
            if not any(each > 0 for each in over.values()):
                break
            freed = self._freed(unit)
            if any(over[excess] > 0 and freed[excess] for excess in over):
                gone.append(unit)
                over = {excess: each - freed[excess] for excess, each in over.items()}
        return None if any(each > 0 for each in over.values()) else gone

    def _over(self, gone: Iterable[Unit]) -> Mapping[Excess, int]:
        """How much of each quota is still to be freed."""
        over = {excess: excess.over for excess in self.excesses}
        for unit in gone:
            for excess, amount in self._freed(unit).items():
                over[excess] -= amount
        return over

    def _freed(self, unit: Unit) -> Mapping[Excess, int]:
        """How much a unit frees of each quota."""
        quotas, pods = self.reclaim.quotas[list(unit)], self.reclaim.pods
        return {
            excess: int(
                pods.amounts(excess.resource)[list(unit)][
                    below(self.reclaim.tree, excess.quota.index)[quotas]
                ].sum()
            )
            for excess in self.excesses
        }

    def _node(self, gone: Iterable[Unit], row: int | None = None) -> int | None:
        """A node that has room without some units, or a certain one; None: it has none."""
        snapshot = self.reclaim.nodes.snapshot
        removed = np.array([each for unit in gone for each in unit], np.intp)
        places = snapshot.pods.node_rows[removed].astype(np.intp)
        changes = HypotheticalPods(snapshot, len(snapshot), places, removed)
        nodes = Nodes(snapshot, np.arange(len(snapshot)), changes)
        rows = self.passing(nodes if row is None else nodes.at(np.array((row,)))).row_numbers()
        return int(rows[self.pick(len(rows))]) if len(rows) else None

    def _reprieved(self, gone: list[Unit], has_room: Callable[[list[Unit]], bool]) -> list[Unit]:
        """The units that cannot be spared: tried are PDB violators first, then the most important."""
        order = {unit: place for place, unit in enumerate(self._units())}
        for unit in sorted(gone, key=order.__getitem__, reverse=True):
            left = [each for each in gone if each is not unit]
            if all(each <= 0 for each in self._over(left).values()) and has_room(left):
                gone = left
        return gone
