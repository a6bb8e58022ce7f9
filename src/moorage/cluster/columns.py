"""Columns: NumPy arrays with one value per row that grow, and rows that move.

Rows are dense: removing a row moves the last one into its place. So readers get plain arrays of exactly the
existing rows, and a removal has constant cost.

Values that are not numbers (a set of taints, a label's value) are interned: the column holds codes, and each
distinct value is evaluated once (`Vocabulary.map_values`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

V = TypeVar("V", bound=Hashable)

ABSENT = -1
"""The code of no value."""

COLUMN_MAX = ((1 << 63) - 1) // 100
"""Larger amounts are clipped to this one (92 PB of memory): a hundred times it still fits in an int64."""

_FIRST_CAPACITY = 16


def clipped(amount: int) -> int:
    """An amount clipped to the maximum of a column."""
    return min(amount, COLUMN_MAX)


def clipped_array(amounts: Sequence[int]) -> NDArray[np.int64]:
    """Many amounts, clipped in the same way."""
    try:
        return np.minimum(np.array(amounts, np.int64), COLUMN_MAX)
    except OverflowError:
        return np.array([clipped(amount) for amount in amounts], np.int64)


class Column:
    """One number per row, or one per row in each of several lanes (lanes x rows)."""

    __slots__ = ("_by_row", "_data", "_lanes", "_rows", "_shown", "values")

    values: NDArray[Any]
    """The existing rows, read-only: shape (rows,) or (lanes, rows)."""

    def __init__(self, dtype: DTypeLike, lanes: int | None = None) -> None:
        self._lanes = lanes
        self._rows = 0
        self._shown = False
        self._keep_in(np.zeros(self._shape(_FIRST_CAPACITY), dtype))

    def _shape(self, rows: int) -> tuple[int, ...]:
        return (rows,) if self._lanes is None else (self._lanes, rows)

    def __getattr__(self, name: str) -> NDArray[Any]:
        # Created on access: rows are added by the thousand, with few reads in between.
        if name != "values":
            raise AttributeError(name)
        self.values = self._data[..., : self._rows]
        self.values.flags.writeable = False
        self._shown = True
        return self.values

    def _keep_in(self, data: NDArray[Any]) -> None:
        self._data = data
        self._by_row = data.T
        """The same with the row as its first index, by which NumPy finds a row three times as fast."""

    def _hide(self) -> None:
        if self._shown:
            del self.values
            self._shown = False

    def _grow(self, rows: int) -> None:
        data, known = self._data, self._rows
        self._keep_in(np.zeros(self._shape(max(rows, 2 * known)), data.dtype))
        self._data[..., :known] = data[..., :known]

    def append(self, value: Any = 0) -> None:
        """Add a row."""
        row = self._rows
        if row == len(self._by_row):
            self._grow(row + 1)
        self._by_row[row] = value
        self._rows = row + 1
        if self._shown:
            self._hide()

    def extend(self, values: NDArray[Any]) -> None:
        """Add rows; for several lanes, the values have shape (lanes, rows)."""
        first, rows = self._rows, self._rows + values.shape[-1]
        if rows > self._data.shape[-1]:
            self._grow(rows)
        self._data[..., first:rows] = values
        self._rows = rows
        self._hide()

    def rewrite(self, rows: list[int], values: NDArray[Any]) -> None:
        """Change some rows; for several lanes, the values have shape (lanes, rows)."""
        self._data[..., rows] = values

    def truncate(self, rows: int) -> None:
        """Remove the rows from a number on, if there are any."""
        if rows < self._rows:
            self._data[..., rows : self._rows] = 0
            self._rows = rows
            self._hide()

    def drop(self, row: int) -> None:
        """Remove a row by moving the last one into its place."""
        last = self._rows - 1
        self._by_row[row] = self._by_row[last]
        self._by_row[last] = 0
        self._rows = last
        if self._shown:
            self._hide()

    def __setitem__(self, row: int, value: Any) -> None:
        self._by_row[row] = value

    def item(self, row: int) -> Any:
        """The value of one row, as a Python number; for columns without lanes."""
        return self._data.item(row)

    def __len__(self) -> int:
        return self._rows


class Vocabulary(Generic[V]):
    """Values by code. An unused value returns its code."""

    __slots__ = ("_codes", "_free", "_tables", "_uses", "values")

    def __init__(self) -> None:
        self.values: list[V | None] = []
        self._uses: list[int] = []
        self._codes: dict[V, int] = {}
        self._free: list[int] = []
        self._tables: dict[Callable[[V], Any], NDArray[Any]] = {}

    def acquire(self, value: V) -> int:
        """The code of a value, with one more use."""
        code = self._codes.get(value)
        if code is None:
            if self._free:
                code = self._free.pop()
                self.values[code] = value
            else:
                code = len(self.values)
                self.values.append(value)
                self._uses.append(0)
            self._codes[value] = code
            self._tables.clear()
            self.added(code, value)
        self._uses[code] += 1
        return code

    def release(self, code: int) -> None:
        """Remove one use of a code."""
        self._uses[code] -= 1
        if not self._uses[code]:
            value = self.values[code]
            assert value is not None
            del self._codes[value]
            self.values[code] = None
            self._free.append(code)
            self._tables.clear()
            self.removed(code, value)

    def added(self, code: int, value: V) -> None:
        """A value was added; for subclasses with an index of values."""

    def removed(self, code: int, value: V) -> None:
        """A value is no longer used."""

    def code(self, value: V) -> int:
        """The code of a value, or ABSENT if it is not in use."""
        return self._codes.get(value, ABSENT)

    def items(self) -> Iterator[tuple[int, V]]:
        """The codes in use and their values."""
        return ((code, value) for value, code in self._codes.items())

    def __len__(self) -> int:
        """Number of codes, including free ones: the size of a table by code."""
        return len(self.values)

    def map_values(
        self, function: Callable[[V], Any], dtype: DTypeLike = bool, absent: Any = 0
    ) -> NDArray[Any]:
        """A table of `function` by code, one call per distinct value; `absent` for ABSENT, at the end."""
        table = np.zeros(len(self.values) + 1, dtype)
        table[-1] = absent
        for value, code in self._codes.items():
            table[code] = function(value)
        return table

    def map_values_cached(self, function: Callable[[V], Any], dtype: DTypeLike) -> NDArray[Any]:
        """The same for a function that is used repeatedly: cached while the values stay the same."""
        table = self._tables.get(function)
        if table is None:
            table = self._tables[function] = self.map_values(function, dtype)
        return table


class CodeColumn(Generic[V]):
    """One interned value per row, or none."""

    __slots__ = ("_codes", "vocabulary")

    def __init__(self, vocabulary: Vocabulary[V] | None = None) -> None:
        self.vocabulary: Vocabulary[V] = Vocabulary() if vocabulary is None else vocabulary
        self._codes = Column(np.int32)

    @property
    def codes(self) -> NDArray[np.int32]:
        """The code of each row's value; ABSENT where there is none. Shape (rows,)."""
        return self._codes.values

    def append(self, value: V | None = None) -> int:
        """Add a row, with a value or none; returns the value's code."""
        code = ABSENT if value is None else self.vocabulary.acquire(value)
        self._codes.append(code)
        return code

    def extend(self, values: Iterable[V | None]) -> None:
        """Add rows, each with a value or none."""
        acquire = self.vocabulary.acquire
        codes = [ABSENT if value is None else acquire(value) for value in values]
        self._codes.extend(np.array(codes, np.int32))

    def drop(self, row: int) -> tuple[int, V | None]:
        """Remove a row by moving the last one into its place; returns its code and value."""
        code, value = self._codes.item(row), None
        self._codes.drop(row)
        if code != ABSENT:
            value = self.vocabulary.values[code]
            self.vocabulary.release(code)
        return code, value

    def code(self, row: int) -> int:
        """The code of one row's value; ABSENT if there is none."""
        code: int = self._codes.item(row)
        return code

    def __setitem__(self, row: int, value: V | None) -> None:
        self.replace(row, value)

    def replace(self, row: int, value: V | None) -> int:
        """Change a row's value; returns the code of the new one."""
        old: int = self._codes.item(row)
        new = ABSENT if value is None else self.vocabulary.acquire(value)
        if old != ABSENT:
            self.vocabulary.release(old)
        self._codes[row] = new
        return new

    def __getitem__(self, row: int) -> V | None:
        code = int(self._codes.values[row])
        return None if code == ABSENT else self.vocabulary.values[code]

    def __len__(self) -> int:
        return len(self._codes)
