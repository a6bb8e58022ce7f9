"""The extended resources that each node shows, as a column; devices back those that it has none of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moorage.api.node import Node
from moorage.cluster.columns import CodeColumn
from moorage.cluster.row_reader import RowReader
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.dynamic_resources.extended_resources import can_be_backed

_ShownResources = frozenset[tuple[str, bool]]
"""The resources of a node that devices can back, each with whether it has any."""


class NodeExtendedResources:
    """The shown resources of the nodes of a snapshot, and the code of each row.

    Invariant: on rows with equal codes the same resources are left to devices, for every pod.
    """

    def __init__(self) -> None:
        self._reader = RowReader()
        self._node_extended_resources: CodeColumn[_ShownResources] = CodeColumn()

    def of(self, nodes: Nodes) -> NDArray[np.int32]:
        """The code of what each node shows, below `len(self)`. Shape (nodes,)."""
        there = nodes.snapshot.nodes
        rows = self._reader.new_rows(nodes.snapshot, nodes.snapshot.node_changes)
        if rows is None:
            self._node_extended_resources = CodeColumn()
            for node in there:
                self._node_extended_resources.append(_shown_resources(node))
        for row in rows or ():
            self._node_extended_resources[row] = _shown_resources(there[row])
        return nodes.pick(self._node_extended_resources.codes)

    def __len__(self) -> int:
        """How many codes there are: the size of a table by shown resources."""
        return len(self._node_extended_resources.vocabulary)


def _shown_resources(node: Node) -> _ShownResources:
    allocatable = node.status.allocatable
    return frozenset((name, bool(amount)) for name, amount in allocatable.items() if can_be_backed(name))
