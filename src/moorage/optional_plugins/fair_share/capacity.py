"""What the cluster has of each resource: the sum over all nodes, as the latest scheduling cycle saw them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from moorage import Handle, Nodes
from moorage.optional_plugins.fair_share.usage import PODS


class Capacity:
    """Totals by resource. They are summed up again where a node has changed."""

    def __init__(self, handle: Handle, counted: Collection[str]) -> None:
        """counted: the resources that count; empty: all of them."""
        self._handle = handle
        self._counted = frozenset(counted)
        self._totals: dict[str, float] = {}
        self._changes = handle.nodes().snapshot.node_changes
        self._position = -1

    def has_changed(self) -> bool:
        """Whether the cluster has more or less of a resource than at the last call."""
        position = self._changes.position
        if position == self._position:
            return False
        self._position = position
        nodes = self._handle.nodes()
        former, self._totals = self._totals, {name: _total(nodes, name) for name in self._totals}
        return former != self._totals

    def dominant_share(self, amounts: Mapping[str, float]) -> float:
        """The largest share that some amounts are of the cluster's resources; 0 if it has none of these."""
        largest, totals = 0.0, self._totals
        for name, amount in amounts.items():
            total = totals.get(name)
            if total is None:
                total = totals[name] = self._total(name)
            if total and amount > largest * total:
                largest = amount / total
        return largest

    def _total(self, name: str) -> float:
        """The total of a resource that is asked for the first time."""
        if self._counted and name not in self._counted:
            return 0.0
        return _total(self._handle.nodes(), name)


def _total(nodes: Nodes, name: str) -> float:
    column = nodes.allowed_pods if name == PODS else nodes.allocatable(name)
    return float(column.sum(dtype=float))
