"""Allocation plans of a pod: one for each group of equivalent nodes, resolved to each node's own devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage.cluster.snapshot import Snapshot
from moorage.framework.interface.extension_points import Scores
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.dynamic_resources.extended_resources import NodeClaim
from moorage.plugins.dynamic_resources.structured.claim_requests import ClaimRequest
from moorage.plugins.dynamic_resources.structured.inventory import Inventory, NodeDevices
from moorage.plugins.dynamic_resources.structured.search_results import Picks

_NO_PLAN = -1


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


@dataclass(frozen=True, slots=True)
class AllocationPlan:
    """The devices for each claim of a pod on a group of equivalent nodes."""

    claim_requests: tuple[ClaimRequest, ...]
    picks: Picks
    extended: NodeClaim | None


class AllocationPlans:
    """The plans of a pod for the nodes of a snapshot; valid until that is updated."""

    def __init__(self, snapshot: Snapshot, inventory: Inventory) -> None:
        self.snapshot = snapshot
        self._inventory = inventory
        self._plans: list[AllocationPlan | None] = []
        self._of_row = np.full(len(snapshot), _NO_PLAN, np.int32)

    def note(
        self,
        nodes: Nodes,
        numbers: NDArray[np.integer],
        plans: Sequence[AllocationPlan | None],
        passing: NDArray[np.bool_],
    ) -> None:
        """Store plans, and the number of the plan for each node, which is valid for nodes that pass."""
        self._of_row[nodes.row_numbers()] = np.where(passing, numbers + len(self._plans), _NO_PLAN)
        self._plans += plans

    def get(self, node_name: str) -> tuple[AllocationPlan, NodeDevices] | None:
        """The plan for a node, and the node's devices; None if there is no plan."""
        row = self.snapshot.row_of.get(node_name)
        number = _NO_PLAN if row is None else int(self._of_row[row])
        plan = None if number == _NO_PLAN else self._plans[number]
        if plan is None or row is None:
            return None
        return plan, self._inventory.seen_from(self.snapshot.nodes[row])

    def scores(self, nodes: Nodes, score_of: Callable[[Picks], int]) -> Scores:
        """The score of the devices planned on each node; 0 where there are none. Shape (nodes,)."""
        plan_scores = [0 if plan is None else score_of(plan.picks) for plan in (*self._plans, None)]
        return np.array(plan_scores, np.int64)[self._of_row[nodes.row_numbers()]]
