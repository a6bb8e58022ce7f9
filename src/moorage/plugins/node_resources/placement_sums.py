"""Sums of columns over the nodes of several placements, added up at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.framework.interface.nodes import Nodes

_Column = Callable[[Nodes, str], NDArray[np.int64]]


class PlacementSums:
    """Placements whose nodes are added up, each on its own."""

    __slots__ = ("_ends", "_known", "_nodes")

    def __init__(self, placements: Sequence[Nodes]) -> None:
        self._nodes = Nodes(
            placements[0].snapshot, np.concatenate([nodes.row_numbers() for nodes in placements])
        )
        self._ends = np.cumsum([0, *map(len, placements)])
        self._known: dict[tuple[_Column, str], list[int]] = {}

    def of(self, column: _Column, resource: str) -> list[int]:
        """The sum of a resource's column in each placement."""
        sums = self._known.get((column, resource))
        if sums is None:
            up_to = np.concatenate(([0], np.cumsum(column(self._nodes, resource))))
            sums = self._known[column, resource] = np.diff(up_to[self._ends]).tolist()
        return sums
