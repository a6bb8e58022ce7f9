"""The domains of several topology keys together: what all pods with constraints about these keys share.

It depends on the labels of nodes alone, so it is computed once for all equivalence classes of pods
(`IncrementalCounts.shared`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.labels import HOSTNAME
from moorage.cluster.columns import ABSENT
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.pod_topology_spread.constraints import SpreadConstraint, having_keys, topology_keys
from moorage.plugins.topology_counts.incremental import DomainColumn, IncrementalCounts
from moorage.plugins.topology_counts.slots import Slots

_CELLS_PER_ROW: Final = 2
_MAX_SMALL_CELLS: Final = 4096
"""Cells are used if there are at most this many for each row, or at most this many in all."""
_MAX_AXES: Final = 16
"""Cells have a dimension for each constraint, of which arrays can have no more than 32 or 64."""
_KEPT_SHAPES: Final = 2
_KEPT_FEASIBLE: Final = 2
"""Number of recent shapes of a topology, and of recent sets of feasible nodes of a shape, that are kept."""


class CountedDomains:
    """The domains of one topology key, and the nodes whose pods count."""

    def __init__(self, column: DomainColumn, eligible: NDArray[np.bool_]) -> None:
        self.column = column
        self.eligible = eligible
        """Which nodes' pods count. Shape (rows,)."""
        self.slots = column.slots.where(eligible)
        """The domain of each row in which its pods count; the last place for those that do not."""
        if column.empty_code != ABSENT:
            # Nodes without the label, where they count at all, are in the domain of an empty label.
            is_outside = (column.slots.array == column.size) & eligible
            self.slots = Slots(np.where(is_outside, column.empty_code, self.slots.array), column.size)

    @cached_property
    def is_domain(self) -> NDArray[np.bool_]:
        """Which domains have an eligible node; the last entry, for no domain, is False."""
        is_domain = np.bincount(self.slots.array, minlength=self.column.size + 1) > 0
        is_domain[-1] = False
        return is_domain


@dataclass(frozen=True, slots=True, eq=False)
class FeasibleCells:
    """Some nodes, given by rows (None: all), and the cells they are in."""

    rows: NDArray[np.intp] | None
    cells: NDArray[np.intp]
    count: NDArray[np.int64]
    """How many nodes are in each cell; none in cells that are ignored."""
    sizes: tuple[int, ...]
    """For each constraint, how many domains the nodes are in; for hosts, how many nodes there are."""


class Cells:
    """Nodes that are the same to all constraints share a cell.

    A table by cell has an axis for each constraint. The places of an axis are the domains; of hosts, the
    numbers of pods on a node. The last place is for nodes without the label.
    """

    def __init__(self, topology: Topology, shape: tuple[int, ...]) -> None:
        self._topology = topology
        self.shape = shape
        self.strides: list[int] = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
        self.of_rows: NDArray[np.intp] = np.zeros(topology.rows, np.intp)
        """The cell of every row, as if there were no pods on hosts."""
        self.is_ignored = np.zeros(shape, bool)
        """The cells whose nodes score 0, because they lack a label."""
        for axis, column in enumerate(topology.columns):
            places = column.slots.array
            if topology.is_host[axis]:
                places = np.where(places == column.size, shape[axis] - 1, 0)
            self.of_rows += places * self.strides[axis]
            if topology.needs_all_keys:
                np.moveaxis(self.is_ignored, axis, 0)[-1] = True
        self._feasible: list[FeasibleCells] = []

    def free(self) -> None:
        """Free the memory of cells that are not used any more."""
        self.of_rows = np.zeros(0, np.intp)
        self._feasible = []

    def feasible(self, nodes: Nodes) -> FeasibleCells:
        """The cells of some nodes, as if there were no pods on hosts; often the same nodes again."""
        for known in self._feasible:
            if known.rows is nodes.rows:
                return known
        new = self.feasible_among(nodes, self.of_rows)
        self._feasible = [new, *self._feasible][:_KEPT_FEASIBLE]
        return new

    def feasible_among(self, nodes: Nodes, cells: NDArray[np.intp]) -> FeasibleCells:
        """The same for given cells of all rows."""
        here = cells if nodes.rows is None else cells.take(nodes.rows)
        count = np.bincount(here, minlength=self.is_ignored.size).reshape(self.shape)
        if self._topology.needs_all_keys:
            count[self.is_ignored] = 0
        return FeasibleCells(nodes.rows, here, count, tuple(self._sizes(count)))

    def _sizes(self, count: NDArray[np.int64]) -> list[int]:
        sizes = []
        for axis, column in enumerate(self._topology.columns):
            if self._topology.is_host[axis]:
                sizes.append(int(count.sum()))
                continue
            others = tuple(place for place in range(len(self.shape)) if place != axis)
            present = (count.sum(axis=others) if others else count) > 0
            sizes.append(distinct_domains(present[:-1], bool(present[-1]), column.empty_code))
        return sizes


class Topology:
    """The domains of some topology keys, in order."""

    def __init__(self, incremental: IncrementalCounts, keys: Sequence[str], *, needs_all_keys: bool) -> None:
        self.rows = len(incremental.snapshot)
        self.needs_all_keys = needs_all_keys
        self.columns = [incremental.domains(key) for key in keys]
        self.is_host = [key == HOSTNAME for key in keys]
        self._countable = np.ones(self.rows, bool)
        """Nodes whose pods can count at all: those that have all keys, if these are needed."""
        if needs_all_keys:
            self._countable = having_keys(Nodes(incremental.snapshot), keys)
        self._is_countable_anywhere = bool(self._countable.any())
        self._counted: dict[int, CountedDomains] = {}
        self._cells: dict[tuple[int, ...], Cells] = {}
        self.is_kept = True
        """Whether this is still shared."""

    def release(self) -> None:
        """Drop all arrays by row: who uses this makes it again."""
        self.is_kept = False
        self._counted.clear()
        for cells in self._cells.values():
            cells.free()
        self._cells.clear()

    def counted(self, axis: int, included: NDArray[np.bool_] | None) -> CountedDomains:
        """The domains of a key, where pods on some nodes count; None: all nodes."""
        if included is not None and self._is_countable_anywhere:
            return CountedDomains(self.columns[axis], self._countable & included)
        counted = self._counted.get(axis)
        if counted is None:
            counted = self._counted[axis] = CountedDomains(self.columns[axis], self._countable)
        return counted

    def cells(self, most_pods: Sequence[int]) -> Cells | None:
        """The cells of these topology keys; None if there would be too many.

        most_pods: for each key, the largest number of pods on a node, if the key is the hostname.
        """
        shape = tuple(
            _host_places(most) if is_host else column.size + 1
            for column, is_host, most in zip(self.columns, self.is_host, most_pods, strict=True)
        )
        cells = self._cells.pop(shape, None)
        if cells is None:
            if len(shape) > _MAX_AXES or prod(shape) > max(_CELLS_PER_ROW * self.rows, _MAX_SMALL_CELLS):
                return None
            cells = Cells(self, shape)
        self._cells[shape] = cells
        if len(self._cells) > _KEPT_SHAPES:
            del self._cells[next(iter(self._cells))]
        return cells


def shared_topology(
    incremental: IncrementalCounts, constraints: Sequence[SpreadConstraint], *, needs_all_keys: bool
) -> Topology:
    """The topology of some constraints, which all pods with the same topology keys share."""
    keys = tuple(topology_keys(constraints))
    return incremental.shared(
        (keys, needs_all_keys), lambda: Topology(incremental, keys, needs_all_keys=needs_all_keys)
    )


def distinct_domains(domains: NDArray[np.bool_], nowhere: bool, empty: int) -> int:
    """How many domains there are; nodes without the label count as one, together with an empty label.

    domains: whether there are nodes in each domain. nowhere: whether there are some without the label.
    """
    is_one_more = nowhere and not (ABSENT != empty < len(domains) and domains[empty])
    return int(np.count_nonzero(domains)) + int(is_one_more)


def _host_places(most: int) -> int:
    """Places for up to `most` pods and many more, a power of two: few shapes are kept."""
    return max(8, 1 << (2 * most + 3).bit_length())
