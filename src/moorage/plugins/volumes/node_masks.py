"""Which nodes fulfil a condition that rests on the node objects alone; kept from pod to pod."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage.cluster.row_reader import RowReader
from moorage.framework.interface.nodes import Nodes

K = TypeVar("K", bound=Hashable)

_MAX_BYTES: Final = 16 << 20
"""Maximum size of the masks of one kind of condition."""
_CONDITION_BYTES: Final = 1024
"""Size of a condition and of an empty mask."""


class _KeptMask:
    __slots__ = ("reader", "values")

    def __init__(self) -> None:
        self.reader = RowReader()
        self.values = np.zeros(0, bool)


class NodeMasks(Generic[K]):
    """The masks of the most recently used conditions; only changed nodes are evaluated again.

    evaluate: which nodes of a view fulfil a condition.
    """

    def __init__(self, evaluate: Callable[[K, Nodes], NDArray[np.bool_]]) -> None:
        self._evaluate = evaluate
        self._kept: OrderedDict[K, _KeptMask] = OrderedDict()

    def __len__(self) -> int:
        """Number of kept masks."""
        return len(self._kept)

    def mask(self, condition: K, nodes: Nodes) -> NDArray[np.bool_]:
        """Which nodes fulfil a condition. Shape (nodes,), read-only."""
        kept, snapshot = self._kept.get(condition), nodes.snapshot
        if kept is None:
            kept = self._kept[condition] = _KeptMask()
            while len(self._kept) * (len(snapshot) + _CONDITION_BYTES) > _MAX_BYTES and len(self._kept) > 1:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(condition)
        rows = kept.reader.new_rows(snapshot, snapshot.node_changes)
        if rows is None:
            self._write(kept, self._evaluate(condition, Nodes(snapshot)))
        elif rows:
            # A copy: a filter's result may be a view of the mask.
            values, changed = kept.values.copy(), np.array(rows, np.intp)
            values[changed] = self._evaluate(condition, Nodes(snapshot, changed))
            self._write(kept, values)
        return nodes.pick(kept.values)

    def _write(self, kept: _KeptMask, values: NDArray[np.bool_]) -> None:
        kept.values = values
        kept.values.flags.writeable = False
