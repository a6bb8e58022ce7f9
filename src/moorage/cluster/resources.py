"""Amounts of resources by node: what nodes have, or what the pods on them request.

A cluster can have thousands of extended resources, each on few nodes. Amounts are therefore kept by row, and
an extended resource gets a column when a pod first requests it; of those, a bounded number is kept. cpu,
memory and ephemeral-storage always have a column.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.resource_requests import CPU, EPHEMERAL_STORAGE, MEMORY
from moorage.cluster.columns import COLUMN_MAX, Column, clipped

NATIVE_RESOURCES: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)

_MAX_CELLS: Final = 500_000
"""Maximum number of rows of all columns of extended resources together; at 8 bytes a row, 4 MB."""
_MIN_COLUMNS: Final = 8
"""Number of columns of extended resources that are kept for any number of rows."""
_NOTHING: Final[Mapping[str, int]] = {}


class ResourceColumns:
    """An amount of each resource for each row. Amounts above the maximum of a column are clipped."""

    def __init__(self) -> None:
        self.by_row: list[Mapping[str, int]] = []
        """The amounts of each row; resources of which it has none are left out."""
        self._columns = {name: Column(np.int64) for name in NATIVE_RESOURCES}
        """Those of extended resources oldest first."""
        self._rows_with: dict[str, set[int]] = {}
        """The rows with some of an extended resource."""

    def of(self, resource: str) -> NDArray[np.int64]:
        """The amount on each row, valid until the next write. Shape (rows,)."""
        column = self._columns.get(resource)
        if column is None:
            if resource not in self._rows_with:
                return np.zeros(len(self.by_row), np.int64)
            column = self._add_column(resource)
        values: NDArray[np.int64] = column.values
        return values

    def is_anywhere(self, resource: str) -> bool:
        """Whether any row has some of a resource; always true of cpu, memory and ephemeral-storage."""
        return resource in self._rows_with or resource in NATIVE_RESOURCES

    def _add_column(self, resource: str) -> Column:
        count, at_most = len(self.by_row), max(_MAX_CELLS // len(self.by_row), _MIN_COLUMNS)
        while len(self._columns) >= at_most + len(NATIVE_RESOURCES):
            del self._columns[next(name for name in self._columns if name not in NATIVE_RESOURCES)]
        rows = list(self._rows_with[resource])
        values = np.zeros(count, np.int64)
        values[rows] = [self.by_row[row][resource] for row in rows]
        column = self._columns[resource] = Column(np.int64)
        column.extend(values)
        return column

    def __setitem__(self, row: int, amounts: Mapping[str, int]) -> None:
        """Set the amounts of a row, none of which is 0. The mapping is kept: it must not change."""
        if amounts and max(amounts.values()) > COLUMN_MAX:
            amounts = {name: clipped(amount) for name, amount in amounts.items()}
        old, columns = self.by_row[row], self._columns
        self.by_row[row] = amounts
        for name, amount in amounts.items():
            if old.get(name) != amount:
                column = columns.get(name)
                if column is not None:
                    column[row] = amount
                if name not in NATIVE_RESOURCES:
                    self._rows_with.setdefault(name, set()).add(row)
        if not old.keys() <= amounts.keys():
            for name in old.keys() - amounts.keys():
                self._clear(name, row)

    def _clear(self, resource: str, row: int) -> None:
        """A row has nothing of a resource any more; if no row has, an extended one loses its column."""
        if resource in self._columns:
            self._columns[resource][row] = 0
        if resource not in NATIVE_RESOURCES:
            rows = self._rows_with[resource]
            rows.discard(row)
            if not rows:
                del self._rows_with[resource]
                self._columns.pop(resource, None)

    def append(self) -> None:
        """Add a row without any resources."""
        self.by_row.append(_NOTHING)
        for column in self._columns.values():
            column.append()

    def drop(self, row: int) -> None:
        """Remove a row by moving the last one into its place."""
        last = len(self.by_row) - 1
        self[row] = self.by_row[last]
        self[last] = _NOTHING
        self.by_row.pop()
        for column in self._columns.values():
            column.drop(last)

    @property
    def kept(self) -> list[str]:
        """The resources that have a column."""
        return list(self._columns)

    def validate(self) -> None:
        """Check every column and the index of rows: AssertionError if one is wrong."""
        extended: dict[str, set[int]] = {}
        for row, amounts in enumerate(self.by_row):
            assert all(amounts.values()), f"row {row}: {amounts}"
            for name in amounts.keys() - set(NATIVE_RESOURCES):
                extended.setdefault(name, set()).add(row)
        assert self._rows_with == extended
        for name, column in self._columns.items():
            assert column.values.tolist() == [amounts.get(name, 0) for amounts in self.by_row], name
