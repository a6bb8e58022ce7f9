"""Scores of all nodes where the expected pods are learned, and the framework can keep none.

There is a column for each set of amounts that pods take. It is updated where nodes changed, and made again
when other pods are expected. A bounded number is kept; the least recently used are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from moorage import Nodes, NodeView, RowReader, Scores
from moorage.optional_plugins.gpu_fragmentation.target import Target

MAX_COLUMNS: Final = 64
_FEW_ROWS: Final = 4
"""Number of nodes up to which one node at a time is faster than columns."""


class _Column:
    """The scores of all nodes for pods that take the same."""

    def __init__(self, taken: Mapping[str, int]) -> None:
        self._taken = taken
        self._reader = RowReader()
        self._target: Target | None = None
        self._scores: Scores = np.zeros(0, np.int64)

    def of(self, nodes: Nodes, target: Target) -> Scores:
        """The scores of all nodes, up to date. Shape (nodes,)."""
        snapshot = nodes.snapshot
        rows = self._reader.new_rows(snapshot, snapshot.load_changes)
        if rows is None or target is not self._target:
            self._target = target
            self._scores = target.score(nodes.all, self._taken)
        elif len(rows) <= _FEW_ROWS:
            for row in rows:
                self._scores[row] = target.score_node(NodeView(snapshot, row), self._taken)
        else:
            changed = np.array(rows, np.intp)
            self._scores[changed] = target.score(Nodes(snapshot, changed), self._taken)
        return self._scores


class ScoreColumns:
    """The columns that were used last."""

    def __init__(self) -> None:
        self._columns: dict[frozenset[tuple[str, int]], _Column] = {}
        """The least recently used first."""

    def score(self, nodes: Nodes, target: Target, taken: Mapping[str, int]) -> Scores:
        """The scores of some nodes for a pod that takes some amounts. Shape (nodes,)."""
        if nodes.hypothetical_pods is not None:
            return target.score(nodes, taken)
        key = frozenset(taken.items())
        column = self._columns.pop(key, None)
        if column is None:
            column = _Column(taken)
            if len(self._columns) >= MAX_COLUMNS:
                del self._columns[next(iter(self._columns))]
        self._columns[key] = column
        return nodes.pick(column.of(nodes, target))
