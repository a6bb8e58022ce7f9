"""The situation of every node, as a column: nodes in the same one get the same devices, place by place.

A situation is what the pools look like that a node sees, and what is taken of them. It is written in two
steps, so that each kind of change costs what it concerns:

    row ──► standing ──► situation
            narrow pools with what is taken of them,      the same, with what is
            wide pools by name                            taken of wide pools

When devices of a narrow pool are given out, the rows of the nodes that it names get another standing. A wide
pool is seen by many nodes, which have few standings: only those get another situation.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from moorage.api.devices import ResourceClaim, ResourceSlice
from moorage.cluster.columns import CodeColumn
from moorage.cluster.objects import Objects
from moorage.cluster.rows import RowReader
from moorage.cluster.snapshot import Snapshot
from moorage.devices.holdings import Holdings
from moorage.devices.inventory import Inventory
from moorage.devices.pools import PoolId, View
from moorage.framework.interface.nodes import Nodes

_Part = tuple[Hashable, Hashable]
"""What a pool looks like, and what is taken of it."""

_Standing = tuple[_Part | View, ...]
"""The parts of narrow pools and the views of wide ones, in the order in which devices are tried."""

_Situation = tuple[_Part, ...]


class Situations:
    """What there is and what is taken, for one snapshot after the other, and the code of each row.

    Invariant: rows with equal codes see pools in which every search goes the same way.
    """

    def __init__(self) -> None:
        self.inventory = Inventory()
        self.holdings = Holdings()
        self._reader = RowReader()
        self._concerned: set[str] | None = None
        """The nodes that may see something else than their rows say; None: all of them."""
        self._touched: set[PoolId] = set()
        """The pools of which something else may be taken than the rows say."""
        self._standings: CodeColumn[_Standing] = CodeColumn()
        self._situations: CodeColumn[_Situation] = CodeColumn()
        """The situation of each standing, by the standing's code."""
        self._settled: list[_Standing | None] = []
        """For which standing the situation is, by the standing's code: codes are used again."""
        self._onlookers: dict[PoolId, set[int]] = {}
        """The standings with a view of each wide pool, by their codes."""

    def refresh(self, objects: Objects, pending: Mapping[str, ResourceClaim]) -> None:
        """Take up what changed in slices and claims; `pending` are those with an unwritten allocation."""
        concerned = self.inventory.refresh(objects.of(ResourceSlice))
        if self._concerned is not None:
            self._concerned |= concerned
        self._touched |= self.holdings.refresh(objects.of(ResourceClaim), pending)

    def of(self, nodes: Nodes) -> NDArray[np.int32]:
        """The code of each node's situation, below `len(self)`. Shape (nodes,)."""
        self._catch_up(nodes.snapshot)
        codes: NDArray[np.int32] = self._situations.codes[nodes.pick(self._standings.codes)]
        return codes

    def __len__(self) -> int:
        """How many codes there are: the size of a table by situation."""
        return len(self._situations.vocabulary)

    def named(self, codes: Iterable[int]) -> list[Hashable]:
        """The situations with some codes; they stay comparable when codes are used again."""
        values = self._situations.vocabulary.values
        return [values[code] for code in codes]

    # Keeping up

    def _catch_up(self, snapshot: Snapshot) -> None:
        rows = self._reader.new_rows(snapshot, snapshot.node_changes)
        concerned, self._concerned = self._concerned, None  # whatever fails here, the next time starts anew
        if rows is None or concerned is None:
            self._start_anew(snapshot)
        else:
            narrow = [pool for pool in self._touched if not self.inventory.is_wide(pool)]
            names = concerned.union(*map(self.inventory.named_by, narrow))
            known = (snapshot.row_of[name] for name in names if name in snapshot.row_of)
            self._look_at(snapshot, {*rows, *known})
            for pool in self._touched:
                for code in list(self._onlookers.get(pool, ())):
                    self._settle(code)
        self._concerned = set()
        self._touched.clear()

    def _start_anew(self, snapshot: Snapshot) -> None:
        self.inventory.forget_all_but(snapshot.row_of)
        self._standings, self._situations = CodeColumn(), CodeColumn()
        self._settled.clear()
        self._onlookers.clear()
        for _ in range(len(snapshot)):
            self._standings.append()
        self._look_at(snapshot, range(len(snapshot)))

    def _look_at(self, snapshot: Snapshot, rows: Iterable[int]) -> None:
        """Write the standings of rows, and the situations of standings that nobody had before."""
        standings = self._standings
        for row in rows:
            views = self.inventory.seen_from(snapshot.nodes[row]).views
            standings[row] = tuple(v if self.inventory.is_wide(v.id) else self._part(v) for v in views)
            code = int(standings.codes[row])
            if code == len(self._settled):
                self._settled.append(None)
                self._situations.append()
            if self._settled[code] is not standings.vocabulary.values[code]:
                self._settle(code)

    def _settle(self, code: int) -> None:
        """Write the situation of a standing, or of none if nobody has it any more."""
        standing = self._standings.vocabulary.values[code]
        for view in _wide_views(self._settled[code]):
            self._onlookers[view.id].discard(code)
        for view in _wide_views(standing):
            self._onlookers.setdefault(view.id, set()).add(code)
        self._settled[code] = standing
        if standing is None:
            self._situations[code] = None
        else:
            self._situations[code] = tuple(self._part(p) if isinstance(p, View) else p for p in standing)

    def _part(self, view: View) -> _Part:
        return view.look, self.holdings.signature(view)


def _wide_views(standing: _Standing | None) -> list[View]:
    return [part for part in standing or () if isinstance(part, View)]
