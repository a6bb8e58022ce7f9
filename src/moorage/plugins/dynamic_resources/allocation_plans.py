"""Allocation plans of a pod: one for each group of equivalent nodes, resolved to each node's own devices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moorage.cluster.snapshot import Snapshot
from moorage.framework.interface.extension_points import Scores
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.dynamic_resources.outcomes import AllocationPlan, Outcomes
from moorage.plugins.dynamic_resources.structured.inventory import Inventory, NodeDevices

_NO_PLAN = -1
"""Where no outcome is known; as an index, the entry behind all others."""


class Groups:
    """Nodes of a view with equal codes, each below `size`; groups are in the order of their first nodes."""

    __slots__ = ("firsts", "numbers")

    def __init__(self, codes: NDArray[np.integer], size: int) -> None:
        count = len(codes)
        first = np.full(size, count, np.intp)
        np.minimum.at(first, codes, np.arange(count))
        there = np.flatnonzero(first < count)
        order = there[np.argsort(first[there])]
        number = np.zeros(size, np.intp)
        number[order] = np.arange(len(order))
        self.firsts: list[int] = first[order].tolist()
        """The place in the view of each group's first node."""
        self.numbers: NDArray[np.intp] = number[codes]
        """The group of each node."""


class AllocationPlans:
    """The plans of a pod for the nodes of a snapshot; valid until that is updated."""

    def __init__(self, snapshot: Snapshot, inventory: Inventory, outcomes: Outcomes) -> None:
        self.snapshot = snapshot
        self._inventory = inventory
        self._outcomes = outcomes
        self._of_row: NDArray[np.integer] | None = None
        """The number of the outcome for each row; None: no row has one."""

    def note(self, nodes: Nodes, numbers: NDArray[np.integer], passing: NDArray[np.bool_] | None) -> None:
        """Store the number of the outcome for each node, which is valid for nodes that pass; None: all."""
        if passing is not None:
            numbers = np.where(passing, numbers, _NO_PLAN)
        if nodes.rows is None:
            self._of_row = numbers
            return
        if self._of_row is None:
            self._of_row = np.full(len(self.snapshot), _NO_PLAN, np.int32)
        self._of_row[nodes.row_numbers()] = numbers

    def get(self, node_name: str) -> tuple[AllocationPlan, NodeDevices] | None:
        """The plan for a node, and the node's devices; None if there is no plan."""
        row = self.snapshot.row_of.get(node_name)
        number = _NO_PLAN if row is None or self._of_row is None else int(self._of_row[row])
        plan = None if number == _NO_PLAN else self._outcomes.plan(number)
        if plan is None or row is None:
            return None
        return plan, self._inventory.seen_from(self.snapshot.nodes[row])

    def scores(self, nodes: Nodes, earlier: int) -> Scores:
        """The score of the devices planned on each node, and what earlier allocations add to it.

        0 where no devices are planned. Shape (nodes,).
        """
        if self._of_row is None:
            return np.zeros(len(nodes), np.int64)
        scores = self._outcomes.scores(earlier)
        if not scores.any():
            return np.zeros(len(nodes), np.int64)
        return np.append(scores, 0).take(nodes.pick(self._of_row))
