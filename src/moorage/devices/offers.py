"""Which extended resources each node shows, as a column: where it has none itself, devices stand in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moorage.api.node import Node
from moorage.cluster.columns import CodeColumn
from moorage.cluster.rows import RowReader
from moorage.devices.extended import can_be_backed
from moorage.framework.interface.nodes import Nodes

_Offer = frozenset[tuple[str, bool]]
"""The resources a node shows behind which devices could stand, each with whether it has any."""


class Offers:
    """What the nodes of a snapshot offer, and the code of each row.

    Invariant: on rows with equal codes the same resources are left to devices, whatever a pod wants.
    """

    def __init__(self) -> None:
        self._reader = RowReader()
        self._offers: CodeColumn[_Offer] = CodeColumn()

    def of(self, nodes: Nodes) -> NDArray[np.int32]:
        """The code of what each node offers, below `len(self)`. Shape (nodes,)."""
        there = nodes.snapshot.nodes
        rows = self._reader.new_rows(nodes.snapshot, nodes.snapshot.node_changes)
        if rows is None:
            self._offers = CodeColumn()
            for node in there:
                self._offers.append(_offer(node))
        for row in rows or ():
            self._offers[row] = _offer(there[row])
        return nodes.pick(self._offers.codes)

    def __len__(self) -> int:
        """How many codes there are: the size of a table by offer."""
        return len(self._offers.vocabulary)


def _offer(node: Node) -> _Offer:
    allocatable = node.status.allocatable
    return frozenset((name, bool(amount)) for name, amount in allocatable.items() if can_be_backed(name))
