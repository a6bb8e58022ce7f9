"""A number for each pod on nodes, for plugins that compute with all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from moorage.cluster.columns import Column
from moorage.cluster.pod_table import InfoColumn, PodInfo, PodTable


class PodColumn:
    """Numbers by row of the pod table, mostly that of one snapshot; each is computed once, when it is read.

    number_of: the number of a pod. It is computed again after changes of the pod's spec, annotations,
    deletion and start time. If it depends on other things, such as conditions, call `renew`.
    """

    __slots__ = ("_column", "_dtype", "_number_of", "_table")

    def __init__(self, dtype: DTypeLike, number_of: Callable[[PodInfo], int | float]) -> None:
        self._dtype = dtype
        self._number_of = number_of
        self._table: PodTable | None = None
        self._column: InfoColumn | None = None

    def values(self, table: PodTable) -> NDArray[Any]:
        """The numbers of all pods in a table. Shape (pods,)."""
        return self._of(table).values

    def renew(self, table: PodTable, rows: list[int]) -> None:
        """Compute the numbers of the pods in some rows again."""
        self._of(table).renew(rows)

    def _of(self, table: PodTable) -> InfoColumn:
        column = self._column
        if column is None or table is not self._table:
            self._table = table
            column = self._column = InfoColumn(table.infos, table.written, Column(self._dtype), self._numbers)
        return column

    def _numbers(self, infos: Sequence[PodInfo]) -> NDArray[Any]:
        return np.array([self._number_of(info) for info in infos], self._dtype)
