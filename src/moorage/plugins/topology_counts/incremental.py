"""Counts of pods that are kept up to date with a snapshot, shared by all equivalence classes of a plugin.

Counts by node are updated as pods are added and removed (`pod_counters`). The domains of nodes seldom change:
results that depend on nodes' labels or taints are valid as long as `version` stays the same. Topology keys
that no node has share one column of no domains.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar, cast

import numpy as np

from moorage.api.affinity import PodTerms
from moorage.cluster.columns import ABSENT
from moorage.cluster.label_columns import LabelColumn
from moorage.cluster.snapshot import Snapshot
from moorage.cluster.vocabularies import TermsVocabulary
from moorage.plugins.topology_counts.domains import DomainCounter
from moorage.plugins.topology_counts.pod_counters import CountQuery, TermsCounters, of_classes, of_terms
from moorage.plugins.topology_counts.row_count import RowCount
from moorage.plugins.topology_counts.slots import Slots

_MAX_CELLS: Final = 1_000_000
"""Maximum number of rows of all columns together, at 8 to 24 bytes."""
_MIN_COLUMNS: Final = 16
"""Number of columns that are kept for any number of rows."""
_MAX_RESULT_CELLS: Final = 4_000_000
"""Maximum number of rows of the results of all equivalence classes together, at some 8 to 24 bytes."""
_MIN_RESULTS: Final = 16
"""Number of equivalence classes whose results are kept for any number of rows."""

_NO_COUNTS: Final[Mapping[str, RowCount]] = MappingProxyType({})

Kept = TypeVar("Kept")


class DomainColumn:
    """The domain of every row for one topology key; valid as long as no node changes its labels."""

    def __init__(self, column: LabelColumn) -> None:
        self.size = len(column.vocabulary)
        """How many codes of domains there are; a table by domain has one entry more, for no domain."""
        codes = column.codes
        self.slots = Slots(np.where(codes == ABSENT, self.size, codes).astype(np.intp), self.size)
        """The domain of each row as a place in a table by domain."""
        self.empty_code = column.vocabulary.code("")
        """The domain of nodes whose label is empty; ABSENT if there are none."""

    def includes(self, row: int) -> bool:
        """Whether a row is in any domain."""
        return self.slots[row] != self.size


class IncrementalCount(DomainCounter):
    """A count by domain of one topology key, kept up to date."""

    __slots__ = ("column", "key")

    def __init__(self, count: RowCount, key: str, column: DomainColumn) -> None:
        super().__init__(count, column.slots)
        self.key = key
        self.column = column

    def at(self, row: int) -> int:
        """What there is in the domain of a row; 0 if it is in none."""
        return int(self.by_domain[self.column.slots[row]])


class ClassResults(Protocol):
    """What a plugin keeps for one equivalence class."""

    def release(self) -> None:
        """Drop all results by row: they are computed again from the counts when they are needed."""


class SharedResults(Protocol):
    """What a plugin keeps for all equivalence classes together."""

    def release(self) -> None:
        """Drop all arrays by row: these results are no longer shared, and made again by who needs them."""


Shared = TypeVar("Shared", bound=SharedResults)


class RecentResults:
    """The results by row of the most recently used equivalence classes.

    Counts of a few pods are small, but results by row are not: classes that are used seldom have none. They
    are freed with their class: where nodes are few, the limit on rows allows many more classes than are kept.
    """

    def __init__(self) -> None:
        self._sizes: dict[weakref.ref[ClassResults], int] = {}
        """The number of rows of each, the least recently used first."""
        self._last: ClassResults | None = None
        self._last_size = 0
        self._size = 0

    def use(self, results: ClassResults, size: int) -> None:
        """Record a use of results, and release those that were not used for longest. size: as rows."""
        if results is self._last and size == self._last_size:
            return
        self._last, self._last_size = results, size
        reference = weakref.ref(results, self._forget)
        self._size += size - self._sizes.pop(reference, 0)
        self._sizes[reference] = size
        while self._size > _MAX_RESULT_CELLS and len(self._sizes) > _MIN_RESULTS:
            oldest = next(iter(self._sizes))
            self._size -= self._sizes.pop(oldest)
            if (unused := oldest()) is not None:
                unused.release()

    def _forget(self, reference: weakref.ref[ClassResults]) -> None:
        """Results were freed with their class."""
        self._size -= self._sizes.pop(reference, 0)


class IncrementalCounts:
    """Counts and domains of one snapshot as it changes."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.version = 0
        """Incremented when nodes are added or deleted, or their labels or taints change."""
        self.classes = of_classes(snapshot.pods)
        self.terms = of_terms(snapshot.pods)
        self._nodes = list(snapshot.nodes)
        self._position = snapshot.node_changes.position
        self._keys_version = snapshot.labels.keys_version
        self._domains: dict[str, DomainColumn] = {}
        """By topology keys that nodes have, the least recently used first."""
        self._no_domains: DomainColumn | None = None
        """The column of every key that no node has."""
        self._shared: dict[Hashable, SharedResults] = {}
        """Values that depend on nodes' labels and taints alone, the least recently used first."""
        self.recent_results = RecentResults()

    def catch_up(self) -> None:
        """Apply the changes since the last call."""
        self.classes.free_dropped()
        self.terms.free_dropped()
        if self.snapshot.node_changes.position != self._position:
            self._check_nodes()
        self.classes.catch_up()
        self.terms.catch_up()

    def _check_nodes(self) -> None:
        changes, nodes = self.snapshot.node_changes, self.snapshot.nodes
        rows = changes.since(self._position)
        self._position = changes.position
        if rows is None:
            self._nodes = list(nodes)
            self._invalidate()
            return
        for row in rows:
            old, new = self._nodes[row], nodes[row]
            self._nodes[row] = new
            if old.labels != new.labels or old.spec.taints != new.spec.taints:
                self._invalidate()

    def _invalidate(self) -> None:
        self.version += 1
        self._domains.clear()
        for each in self._shared.values():
            each.release()
        self._shared.clear()
        self._no_domains = None
        if self._keys_version != self.snapshot.labels.keys_version:
            self._keys_version = self.snapshot.labels.keys_version
            self.terms.clear()

    def domains(self, key: str) -> DomainColumn:
        """The domains of a topology key, as they are now."""
        if key not in self.snapshot.labels.nodes_having:
            if self._no_domains is None:
                self._no_domains = DomainColumn(self.snapshot.label(key))
            return self._no_domains
        column, _ = self._keep(self._domains, key, lambda: DomainColumn(self.snapshot.label(key)))
        return column

    def shared(self, key: Hashable, make: Callable[[], Shared]) -> Shared:
        """A value with arrays by row that depends on nodes' labels and taints alone.

        All equivalence classes share it, as long as `version` stays.
        """
        value, evicted = self._keep(self._shared, key, make)
        if evicted is not None:
            evicted.release()
        return cast("Shared", value)

    def _keep(
        self, values: dict[Any, Kept], key: Hashable, make: Callable[[], Kept]
    ) -> tuple[Kept, Kept | None]:
        """A value, made if it is not there, and the least recently used one if it had to go for it."""
        value = values[key] = values.pop(key) if key in values else make()
        if len(values) > max(_MAX_CELLS // len(self.snapshot), _MIN_COLUMNS):
            return value, values.pop(next(iter(values)))
        return value, None

    def count(self, count: RowCount, key: str) -> IncrementalCount:
        """A count by node as one by domain, as long as `version` stays."""
        return IncrementalCount(count, key, self.domains(key))


class ExistingTermsCounter:
    """The counter of a query about the terms of existing pods; there is none while no terms may count."""

    __slots__ = ("_counter", "_counters", "_query", "by_key")

    def __init__(self, counters: TermsCounters, query: CountQuery[PodTerms, TermsVocabulary]) -> None:
        self._counters = counters
        self._query = query
        self._counter = counters.counter_for(query) if counters.may_count(query) else None
        self.by_key: Mapping[str, RowCount] = _NO_COUNTS if self._counter is None else self._counter.by_key
        """The counts by topology key."""

    @property
    def is_kept(self) -> bool:
        """Whether the counter is kept up to date, and whether there is still none if there is none."""
        if self._counter is None:
            return not self._counters.may_count(self._query)
        return self._counter.is_kept

    def touch(self) -> None:
        """Record a use."""
        if self._counter is not None:
            self._counters.touch(self._counter)


class LatestIncrementalCounts:
    """The incremental counts of the snapshot that a plugin was last called with, usually always the same."""

    __slots__ = ("_incremental",)

    def __init__(self) -> None:
        self._incremental: IncrementalCounts | None = None

    def of(self, snapshot: Snapshot) -> IncrementalCounts:
        """The counts of a snapshot, brought up to date."""
        incremental = self._incremental
        if incremental is None or incremental.snapshot is not snapshot:
            incremental = self._incremental = IncrementalCounts(snapshot)
        else:
            incremental.catch_up()
        return incremental
