"""Pods counted by node for repeated queries: counts are updated as pods are added and removed.

A query is about a pod's class (does a selector match it?) or about its affinity terms (do they match an
incoming pod?). Each distinct class or set of terms is matched once for each query. From then on a pod that
comes or goes costs one step for each query that counts it, and nothing for the others. Pods are grouped by
class, or terms, so that a new query is answered from the groups that it may match.

Users choose topology keys, but not the labels of nodes: terms with a key that no node has are not counted.
The counts of all counters together are bounded; the least recently used counters are dropped first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage.api.affinity import PodTerms
from moorage.cluster.columns import ABSENT, CodeColumn, V, Vocabulary
from moorage.cluster.journal import Journal
from moorage.cluster.pod_class import PodClass
from moorage.cluster.pod_table import Move, PodTable
from moorage.cluster.vocabularies import ClassVocabulary, Mark, TermsVocabulary, term_marks
from moorage.plugins.topology_counts.row_count import FEW_ROWS_CELLS, MAX_FEW_ROWS, RowCount

Asked = TypeVar("Asked", contravariant=True)
Words = TypeVar("Words", contravariant=True)
Vocab = TypeVar("Vocab", bound=Vocabulary[Any])

_MAX_CELLS: Final = 16_777_216
"""Maximum size of all counts of a `PodCounters` together; at 8 bytes, 128 MB."""
_MAX_COUNTERS_PER_GROUP: Final = 1024
"""Maximum number of counters that count the pods of one class, or with one set of terms."""
_MAX_MATCHES: Final = 16_384
"""Maximum number of matches of queries with new classes or terms; beyond it, all counters are dropped."""


class CountQuery(Hashable, Protocol[Asked, Words]):
    """What is counted. Equal queries always have equal results."""

    @property
    def labels(self) -> Iterable[tuple[str, str]] | None:
        """Labels of which a class must have one, or terms ask for one, to count; None: any may count."""

    def candidates(self, vocabulary: Words, /) -> Iterable[int]:
        """The codes of the values that may count; of all others, no pod does."""

    def __call__(self, value: Asked, /) -> Iterable[tuple[str, int]]:
        """What a pod with this class, or these terms, counts for: topology key and weight, any number."""


class PodCounter:
    """The result of one query: a count for each topology key that a node has."""

    __slots__ = ("_is_weighted", "by_key", "is_kept", "query", "used")

    def __init__(self, query: CountQuery[Any, Any], *, is_weighted: bool) -> None:
        self.query = query
        self._is_weighted = is_weighted
        self.by_key: dict[str, RowCount] = {}
        self.is_kept = True
        """Whether this is kept up to date; if not, the query must be made again."""
        self.used = 0

    def count(self, key: str) -> RowCount:
        """The count for a key, which may be empty."""
        count = self.by_key.get(key)
        if count is None:
            count = self.by_key[key] = RowCount(is_weighted=self._is_weighted)
        return count

    def free(self) -> None:
        """Free the memory of all counts."""
        for count in self.by_key.values():
            count.free()

    @property
    def size(self) -> int:
        """The size of all counts, as a number of array elements."""
        return sum(count.size for count in self.by_key.values()) or FEW_ROWS_CELLS


class _Group:
    """The pods with one class, or one set of terms: their number by node row, and where they are counted."""

    __slots__ = ("counts", "rows")

    def __init__(self) -> None:
        self.rows: dict[int, int] = {}
        self.counts: list[tuple[RowCount, int, PodCounter]] = []
        """Counts, and the weight of each of the pods."""

    def add(self, row: int, pods: int) -> None:
        """Pods were added to a node, or, negative, removed from it."""
        now = self.rows.get(row, 0) + pods
        if now:
            self.rows[row] = now
        else:
            del self.rows[row]


class PodCounters(Generic[V, Vocab]):
    """The results of recent queries about one column of the pod table."""

    def __init__(
        self,
        column: CodeColumn[V],
        vocabulary: Vocab,
        moves: Journal[Move[V]],
        node_rows: Callable[[], NDArray[np.int32]],
        labels_of: Callable[[V], Collection[Mark]],
        countable: Callable[[V], V],
        match_work: Callable[[V], int],
        *,
        is_weighted: bool,
    ) -> None:
        """labels_of: the labels of a class, or those that terms ask for. countable: the part that can count.

        judgements: the work of matching one query with a value.
        """
        self._column = column
        self._vocabulary = vocabulary
        self._moves = moves
        self._node_rows = node_rows
        self._labels_of = labels_of
        self._countable = countable
        self._match_work = match_work
        self._is_weighted = is_weighted
        self._position = moves.position
        self._counters: dict[CountQuery[V, Vocab], PodCounter] = {}
        self._by_label: dict[Mark, dict[CountQuery[V, Vocab], PodCounter]] = {}
        """The same by the labels without which no pod counts, so that a new class is not matched with all."""
        self._groups: dict[int, _Group] | None = None
        """The pods by code, each matched with all queries; None until the first query."""
        self._size = 0
        """The size of all counters together."""
        self._dropped: list[PodCounter] = []
        """Dropped counters whose counts are not freed yet."""
        self._uses = 0

    def catch_up(self) -> None:
        """Count the pods added and removed since the last time."""
        position = self._moves.position
        if position == self._position:
            return
        since, self._position = self._position, position
        groups = self._groups
        if groups is None:
            return
        moves = self._moves.since(since)
        if moves is None:
            self.clear()
            self._groups = None
            return
        matches = 0
        for code, value, node_row, sign in moves:
            group = groups.get(code)
            if group is None:
                group = groups[code] = _Group()
                matches = self._match(group, value, matches)
            group.add(node_row, sign)
            if not group.rows:
                del groups[code]
            for count, weight, _ in group.counts:
                self._size += count.add(node_row, sign, sign * weight)

    def free_dropped(self) -> None:
        """Free the counts of dropped counters: equivalence classes refer to them until the next use.

        Call it between attempts: within one, counters that a later query dropped are still read.
        """
        for counter in self._dropped:
            counter.free()
        self._dropped.clear()

    def clear(self) -> None:
        """Drop all counters."""
        self._drop(list(self._counters.values()))

    def counter_for(self, query: CountQuery[V, Vocab]) -> PodCounter:
        """The counter of a query, updated at every `catch_up`."""
        self.catch_up()
        counter = self._counters.get(query)
        if counter is None:
            self._evict()
            counter = self._counters[query] = PodCounter(query, is_weighted=self._is_weighted)
            for label in _labels(query):
                self._by_label.setdefault(label, {})[query] = counter
            self.touch(counter)
            self._count(query, counter)
            self._size += counter.size
        self.touch(counter)
        return counter

    def touch(self, counter: PodCounter) -> None:
        """Record a use: counters are dropped in least-recently-used order."""
        self._uses += 1
        counter.used = self._uses

    def _match(self, group: _Group, value: V, matches: int) -> int:
        """Match a new class, or set of terms, with all queries.

        matches: the work so far, which is returned with this; beyond a limit all counters are dropped.
        """
        value = self._countable(value)
        found = self._queries_for(value)
        matches += self._match_work(value) * sum(map(len, found))
        if matches > _MAX_MATCHES:
            self.clear()
            return 0
        queries = found[0] if len(found) == 1 else dict(chain.from_iterable(map(dict.items, found)))
        for query, counter in queries.items():
            size = counter.size
            for key, weight in _by_key(query(value)).items():
                group.counts.append((counter.count(key), weight, counter))
            self._size += counter.size - size
            if self._size > _MAX_CELLS:
                self.clear()
                return matches
        self._thin_out(group)
        return matches

    def _queries_for(self, value: V) -> list[dict[CountQuery[V, Vocab], PodCounter]]:
        """The queries that may count a class, or a set of terms; some perhaps several times."""
        labels = self._labels_of(value)
        if None in labels:
            return [self._counters]
        return [found for label in (None, *labels) if (found := self._by_label.get(label))]

    def _count(self, query: CountQuery[V, Vocab], counter: PodCounter) -> None:
        """Count the pods of a new query."""
        groups = self._groups
        if groups is None:
            groups = self._groups = self._grouped()
        found: dict[str, list[tuple[int, int]]] = {}
        for code in query.candidates(self._vocabulary):
            value: V | None = self._vocabulary.values[code]
            assert value is not None
            for key, weight in _by_key(query(self._countable(value))).items():
                found.setdefault(key, []).append((code, weight))
        for key, chosen in found.items():
            count = counter.count(key)
            self._count_pods(count, groups, chosen)
            for code, weight in chosen:
                groups[code].counts.append((count, weight, counter))
                self._thin_out(groups[code])

    def _grouped(self) -> dict[int, _Group]:
        """All pods by code."""
        groups: dict[int, _Group] = {}
        pods = np.flatnonzero(self._column.codes != ABSENT)
        codes, rows = self._column.codes[pods].tolist(), self._node_rows()[pods].tolist()
        for code, row in zip(codes, rows, strict=True):
            group = groups.get(code)
            if group is None:
                group = groups[code] = _Group()
            group.add(row, 1)
        return groups

    def _count_pods(
        self, count: RowCount, groups: Mapping[int, _Group], chosen: Sequence[tuple[int, int]]
    ) -> None:
        """Count all pods that have one of some codes, with its weight."""
        if sum(len(groups[code].rows) for code, _ in chosen) <= MAX_FEW_ROWS:
            count.count_few(
                (row, pods, pods * weight)
                for code, weight in chosen
                for row, pods in groups[code].rows.items()
            )
            return
        size = len(self._column.vocabulary) + 1
        is_chosen, weight_of = np.zeros(size, bool), np.zeros(size, np.int64)
        codes = [code for code, _ in chosen]
        is_chosen[codes], weight_of[codes] = True, [weight for _, weight in chosen]
        pods_chosen = np.flatnonzero(is_chosen[self._column.codes])
        count.count_all(self._node_rows()[pods_chosen], weight_of[self._column.codes[pods_chosen]])

    def _thin_out(self, group: _Group) -> None:
        """Drop the least recently used half of the counters of a group that has too many.

        Each of them costs a step whenever a pod of the group is added or removed.
        """
        if len(group.counts) > _MAX_COUNTERS_PER_GROUP:
            counters = {counter for _, _, counter in group.counts}
            if len(counters) > 1:
                self._drop_unused(counters)

    def _evict(self) -> None:
        while self._counters and self._size >= _MAX_CELLS:
            self._drop_unused(self._counters.values())

    def _drop_unused(self, counters: Collection[PodCounter]) -> None:
        """Drop the least recently used half of some counters."""
        longest_unused = sorted(counters, key=lambda counter: counter.used)
        self._drop(longest_unused[: (len(longest_unused) + 1) // 2])

    def _drop(self, counters: Iterable[PodCounter]) -> None:
        for counter in counters:
            del self._counters[counter.query]
            counter.is_kept = False
            self._dropped.append(counter)
            self._size -= counter.size
            for label in _labels(counter.query):
                del self._by_label[label][counter.query]
                if not self._by_label[label]:
                    del self._by_label[label]
        for group in (self._groups or {}).values():
            group.counts = [each for each in group.counts if each[2].is_kept]


def of_classes(pods: PodTable) -> PodCounters[PodClass, ClassVocabulary]:
    """Counters for queries about namespaces and labels of pods on nodes."""
    return PodCounters(
        pods.classes,
        pods.class_codes,
        pods.class_moves,
        lambda: pods.node_rows,
        lambda each: each.labels,
        lambda each: each,
        lambda each: 1,
        is_weighted=False,
    )


class TermsCounters(PodCounters[PodTerms, TermsVocabulary]):
    """Counters for queries about the affinity terms of pods on nodes."""

    def may_count(self, query: CountQuery[PodTerms, TermsVocabulary]) -> bool:
        """Whether there are terms that a query may count; if not, it counts nothing."""
        labels = query.labels
        return self._vocabulary.any_may_mean(() if labels is None else labels)


def of_terms(pods: PodTable) -> TermsCounters:
    """Counters for queries about the affinity terms of pods on nodes."""
    return TermsCounters(
        pods.terms,
        pods.terms_codes,
        pods.terms_moves,
        lambda: pods.node_rows,
        term_marks,
        pods.terms_codes.in_domains,
        len,
        is_weighted=True,
    )


def _labels(query: CountQuery[Any, Any]) -> Iterable[Mark]:
    labels = query.labels
    return (None,) if labels is None else labels


def _by_key(weighted: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Weights added up by topology key."""
    weights: dict[str, int] = {}
    for key, weight in weighted:
        weights[key] = weights.get(key, 0) + weight
    return weights
