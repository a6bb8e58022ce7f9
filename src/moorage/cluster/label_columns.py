"""Label columns: a code column for each label key that pods select nodes by.

Users choose the keys that they select by, but not the labels of nodes. A key that no node has needs no column
of its own, so what users ask for is bounded by what nodes have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.node import Node
from moorage.api.selectors import Operator, Requirement, parse_integer
from moorage.cluster.columns import ABSENT, CodeColumn, Vocabulary

_MAX_CELLS: Final = 8_000_000
"""Maximum number of rows of all columns together; at 4 bytes a row, 32 MB."""
_MIN_COLUMNS: Final = 64
"""Number of columns that are kept for any number of rows."""


class LabelColumns:
    """The labels of all nodes, by key. Columns are made on first use; `nodes` are those of the rows."""

    def __init__(self) -> None:
        self.nodes_having: Counter[str] = Counter()
        """Number of nodes with a label, by key; keys without nodes are left out."""
        self.keys_version = 0
        """Incremented when a node has a label key that no node had."""
        self._columns: dict[str, CodeColumn[str]] = {}
        """Oldest first."""
        self._absent: CodeColumn[str] = CodeColumn()
        """The column of every key that no node has."""

    def column(self, key: str, nodes: Sequence[Node]) -> CodeColumn[str]:
        """The column of a key; it is updated until it is evicted."""
        column = self._columns.get(key)
        if column is not None:
            return column
        if key not in self.nodes_having:
            return self._absent
        while len(self._columns) >= max(_MAX_CELLS // len(nodes), _MIN_COLUMNS):
            del self._columns[next(iter(self._columns))]
        column = self._columns[key] = CodeColumn()
        column.extend(node.labels.get(key) for node in nodes)
        return column

    def write(self, row: int, old: Mapping[str, str] | None, new: Mapping[str, str]) -> set[str]:
        """Set the labels of an existing row's node, and return the keys that no node had.

        old: its labels before; None for a new node.
        """
        if old == new:
            return set()
        added = {key for key in new if key not in self.nodes_having}
        if added:
            self.keys_version += 1
        self.nodes_having.update(new.keys())
        self.forget(old or {})
        for key, column in self._columns.items():
            column[row] = new.get(key)
        return added

    def forget(self, labels: Mapping[str, str]) -> None:
        """Remove a node's labels; the column of a key that no other node has is removed."""
        for key in labels:
            self.nodes_having[key] -= 1
            if not self.nodes_having[key]:
                del self.nodes_having[key]
                self._columns.pop(key, None)

    def at(self, row: int) -> dict[str, str | None]:
        """The values of a row, by key."""
        return {key: column[row] for key, column in self._columns.items()}

    @property
    def kept_keys(self) -> list[str]:
        """The keys that have a column."""
        return list(self._columns)

    def __iter__(self) -> Iterator[CodeColumn[str]]:
        """All columns, which have the same rows."""
        yield self._absent
        yield from self._columns.values()


def matching(
    requirement: Requirement, codes: NDArray[np.int32], vocabulary: Vocabulary[str]
) -> NDArray[np.bool_]:
    """Which codes of a label's column meet a requirement. Shape of `codes`."""
    match requirement.operator:
        case Operator.IN:
            return _isin(requirement.values, codes, vocabulary)
        case Operator.NOT_IN:
            return ~_isin(requirement.values, codes, vocabulary)
        case Operator.EXISTS:
            return np.not_equal(codes, ABSENT)
        case Operator.DOES_NOT_EXIST:
            return np.equal(codes, ABSENT)
        case Operator.GT | Operator.LT:
            return _compared(requirement, vocabulary)[codes]


def _compared(requirement: Requirement, vocabulary: Vocabulary[str]) -> NDArray[np.bool_]:
    """Which values are integers above or below a requirement's, by code."""
    numbers = vocabulary.map_values_cached(_integer_or_zero, np.int64)
    is_beyond = np.greater if requirement.operator is Operator.GT else np.less
    table: NDArray[np.bool_] = is_beyond(numbers, requirement.bound) & vocabulary.map_values_cached(
        _is_integer, bool
    )
    return table


def _isin(values: frozenset[str], codes: NDArray[np.int32], vocabulary: Vocabulary[str]) -> NDArray[np.bool_]:
    wanted = [code for value in values if (code := vocabulary.code(value)) != ABSENT]
    if not wanted:
        return np.zeros(codes.shape, bool)
    if len(wanted) == 1:
        return np.equal(codes, wanted[0])
    table = np.zeros(len(vocabulary) + 1, bool)
    table[wanted] = True
    return table[codes]


def _is_integer(value: str) -> bool:
    return parse_integer(value) is not None


def _integer_or_zero(value: str) -> int:
    return parse_integer(value) or 0


def integers(codes: NDArray[np.int32], vocabulary: Vocabulary[str], default: int) -> NDArray[np.int64]:
    """Label values as integers; `default` where the label is absent or no integer. Shape of `codes`."""

    def number(value: str) -> int:
        parsed = parse_integer(value)
        return default if parsed is None else parsed

    table: NDArray[np.int64] = vocabulary.map_values(number, np.int64, absent=default)
    return table[codes]
