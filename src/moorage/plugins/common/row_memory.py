"""What a plugin has worked out for each node and one kind of pod, kept from pod to pod.

Between two pods of a kind only a few nodes change, by the pods that came to them. What is worked out from a
node's own row alone need only be worked out anew for the rows whose generation has moved.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.cluster.snapshot import Snapshot
from moorage.framework.nodes import Nodes
from moorage.framework.points import Scores

_MOST_KINDS: Final = 16
_WORTH_ALL: Final = 4
"""All rows are worked out for the sake of some if these are at least one in so many."""


@dataclass(slots=True, eq=False)
class _Known:
    """What is known for one kind of pod; arrays have shape (rows,)."""

    scores: Scores
    generations: NDArray[np.int64]


class RowMemory:
    """Remembers scores for the kinds of pods that came last."""

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self._known: OrderedDict[Hashable, _Known] = OrderedDict()

    def scores(self, kind: Hashable, nodes: Nodes, score: Callable[[Nodes], Scores]) -> Scores:
        """What `score` says of these nodes; it may look at nothing but `kind` and the nodes' own rows."""
        if nodes.changes is not None:
            return score(nodes)  # What would be if pods came and went is nobody's row.
        snapshot = nodes.snapshot
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            self._known.clear()
        known = self._known.get(kind)
        generations = snapshot.generation.values
        if known is None or len(known.generations) != len(generations):
            if len(nodes) * _WORTH_ALL < len(snapshot):
                return score(nodes)
            self._known[kind] = known = _Known(score(Nodes(snapshot)), generations.copy())
            if len(self._known) > _MOST_KINDS:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(kind)
            stale = np.flatnonzero(known.generations != generations)
            if len(stale):
                known.scores[stale] = score(Nodes(snapshot, stale))
                known.generations[stale] = generations[stale]
        return known.scores.copy() if nodes.rows is None else known.scores[nodes.rows]
