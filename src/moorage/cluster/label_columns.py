"""Label columns: the labels of all nodes as codes, by the keys that pods select nodes by.

Users choose the keys that they select by, but not the labels of nodes, so what is kept of a key is bounded by
the nodes that have it. Of a key that few nodes have, the values are kept by row, and a reader gets a column
that is made from them. A key that many nodes have gets a column when it is first read; of those, a bounded
number is kept. Values of a key that was read keep their codes, whether its column is kept or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.node import Node
from moorage.api.selectors import Operator, Requirement, parse_integer
from moorage.cluster.columns import ABSENT, Column, Vocabulary

_MAX_CELLS: Final = 8_000_000
"""Maximum number of rows of all kept columns together; at 4 bytes a row, 32 MB."""
_MIN_COLUMNS: Final = 64
"""Number of columns that are kept for any number of rows."""
_MIN_FEW_NODES: Final = 16
_ROWS_PER_FEW_NODES: Final = 64
"""Few nodes have a key: at most this many, or at most one in this many of all nodes."""

_NO_VALUES: Final[Vocabulary[str]] = Vocabulary()
_NO_LABELS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True, eq=False)
class LabelColumn:
    """A label of all nodes, valid until a node changes."""

    codes: NDArray[np.int32]
    """The code of each row's value; ABSENT where there is none. Shape (rows,)."""
    vocabulary: Vocabulary[str]

    def __getitem__(self, row: int) -> str | None:
        code = int(self.codes[row])
        return None if code == ABSENT else self.vocabulary.values[code]


class LabelColumns:
    """The labels of all nodes, by key."""

    def __init__(self) -> None:
        self.nodes_having: Counter[str] = Counter()
        """Number of nodes with a label, by key; keys without nodes are left out."""
        self.keys_version = 0
        """Incremented when a node has a label key that no node had."""
        self._few: dict[str, dict[int, str]] = {}
        """Values by row of keys that few nodes have. Others may be missing here until they are read."""
        self._vocabularies: dict[str, Vocabulary[str]] = {}
        """Of the keys that were read. A value is used once for each node that has it."""
        self._columns: dict[str, Column] = {}
        """Codes of keys that many nodes have, the least recently read first."""
        self._absent = Column(np.int32)
        """The codes of a key that no node has."""

    # Reading

    def column(self, key: str, nodes: Sequence[Node]) -> LabelColumn:
        """The column of a key. nodes: those of the rows."""
        if key not in self.nodes_having:
            return LabelColumn(self._absent.values, _NO_VALUES)
        few = self._few_values(key, nodes)
        vocabulary = self._vocabularies.get(key)
        if vocabulary is None:
            vocabulary = self._vocabularies[key] = Vocabulary()
            for value in _values(key, nodes) if few is None else few.values():
                vocabulary.acquire(value)
        if few is None:
            return LabelColumn(self._kept_column(key, vocabulary, nodes).values, vocabulary)
        codes = self._absent.values.copy()
        codes[list(few)] = list(map(vocabulary.code, few.values()))
        codes.flags.writeable = False
        return LabelColumn(codes, vocabulary)

    def _few_values(self, key: str, nodes: Sequence[Node]) -> Mapping[int, str] | None:
        """The values of a key by row; None if more than a few nodes have it."""
        few = self._few.get(key)
        if few is None and self.nodes_having[key] <= self._max_few:
            few = self._few[key] = {
                row: node.labels[key] for row, node in enumerate(nodes) if key in node.labels
            }
            self._columns.pop(key, None)
        return few

    @property
    def _max_few(self) -> int:
        return max(_MIN_FEW_NODES, len(self._absent) // _ROWS_PER_FEW_NODES)

    def _kept_column(self, key: str, vocabulary: Vocabulary[str], nodes: Sequence[Node]) -> Column:
        column = self._columns.pop(key, None)
        if column is None:
            while len(self._columns) >= max(_MAX_CELLS // len(nodes), _MIN_COLUMNS):
                del self._columns[next(iter(self._columns))]
            codes = [
                ABSENT if (value := node.labels.get(key)) is None else vocabulary.code(value)
                for node in nodes
            ]
            column = Column(np.int32)
            column.extend(np.array(codes, np.int32))
        self._columns[key] = column
        return column

    # Writing

    def append(self) -> None:
        """Add a row without labels."""
        self._absent.append(ABSENT)
        for column in self._columns.values():
            column.append(ABSENT)

    def write(self, row: int, old: Mapping[str, str] | None, new: Mapping[str, str]) -> set[str]:
        """Set the labels of an existing row's node, and return the keys that no node had.

        old: its labels before; None for a new node.
        """
        if old == new:
            return set()
        old = old or _NO_LABELS
        added = {key for key in new if key not in self.nodes_having}
        if added:
            self.keys_version += 1
        for key, value in new.items():
            if old.get(key) != value:
                self._set(row, key, old.get(key), value)
        for key in old.keys() - new.keys():
            self._set(row, key, old[key], None)
        return added

    def _set(self, row: int, key: str, old: str | None, new: str | None) -> None:
        """Change one label of a row from `old` to `new`; None: there is none."""
        vocabulary = self._vocabularies.get(key)
        if vocabulary is not None:
            code = ABSENT if new is None else vocabulary.acquire(new)
            if old is not None:
                vocabulary.release(vocabulary.code(old))
            if key in self._columns:
                self._columns[key][row] = code
        if old is None and key not in self.nodes_having:
            self._few[key] = {}
        few = self._few.get(key)
        if few is not None:
            if new is None:
                del few[row]
            else:
                few[row] = new
                # The factor keeps a key at the limit from changing its form with every node.
                if len(few) > 2 * self._max_few:
                    del self._few[key]
        self.nodes_having[key] += (new is not None) - (old is not None)
        if not self.nodes_having[key]:
            self._forget(key)

    def _forget(self, key: str) -> None:
        """No node has a key any more."""
        del self.nodes_having[key]
        self._few.pop(key, None)
        self._vocabularies.pop(key, None)
        self._columns.pop(key, None)

    def drop(self, row: int, nodes: Sequence[Node]) -> None:
        """Remove a row by moving the last one into its place. nodes: those of the rows before."""
        last = len(nodes) - 1
        for key, value in nodes[row].labels.items():
            self._set(row, key, value, None)
        if row != last:
            for key in nodes[last].labels:
                if key in self._few:
                    self._few[key][row] = self._few[key].pop(last)
        self._absent.drop(row)
        for column in self._columns.values():
            column.drop(row)

    # Checking

    @property
    def read_keys(self) -> list[str]:
        """The keys that nodes have and that were read."""
        return list(self._vocabularies)

    @property
    def kept_columns(self) -> list[str]:
        """The keys whose column is kept."""
        return list(self._columns)

    def validate(self, nodes: Sequence[Node]) -> None:
        """Check everything that is kept: AssertionError if something is wrong."""
        assert self.nodes_having == Counter(key for node in nodes for key in node.labels)
        assert self._absent.values.tolist() == [ABSENT] * len(nodes)
        for key, few in self._few.items():
            assert few == {row: node.labels[key] for row, node in enumerate(nodes) if key in node.labels}, key
        assert self._columns.keys() <= self._vocabularies.keys() <= self.nodes_having.keys()
        for key, vocabulary in self._vocabularies.items():
            assert {value for _, value in vocabulary.items()} == set(_values(key, nodes)), key
        for key in self.read_keys:
            column = self.column(key, nodes)
            assert [column[row] for row in range(len(nodes))] == [node.labels.get(key) for node in nodes], key


def _values(key: str, nodes: Sequence[Node]) -> list[str]:
    """The values of a label, one for each node that has it."""
    return [value for node in nodes if (value := node.labels.get(key)) is not None]


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
