"""Pods counted by node for repeated queries: counts are updated as pods are added and removed.

A query is about a pod's class (does a selector match it?) or about its affinity terms (do they match an
incoming pod?). Each distinct class or set of terms is matched once for each query. From then on a pod that
comes or goes costs one step for each query that counts it, and nothing for the others.

Users choose topology keys, but not the labels of nodes: terms with a key that no node has are not counted.
The counts of all counters together are bounded; the least recently used counters are dropped first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage.api.affinity import PodTerms
from moorage.cluster.columns import CodeColumn, V, Vocabulary
from moorage.cluster.journal import Journal
from moorage.cluster.pod_class import PodClass
from moorage.cluster.pod_table import Move, PodTable
from moorage.cluster.vocabularies import ClassVocabulary, Mark, TermsVocabulary, term_marks

Asked = TypeVar("Asked", contravariant=True)
Words = TypeVar("Words", contravariant=True)
Vocab = TypeVar("Vocab", bound=Vocabulary[Any])

_KEPT_STEPS: Final = 256
"""Minimum number of kept steps of a count; applying more is hardly cheaper than adding up by row."""
_MOST_COUNTS: Final = 4096
"""Maximum number of counts of all counters together: one for each topology key of a counter, at least one."""
_MIN_COUNTS: Final = 64
"""Number of counts that are kept for any number of rows."""
_MAX_ROWS: Final = 4_000_000
"""Maximum number of rows of all counts together, at 8 or 16 bytes."""

_MAX_MATCHES: Final = 16_384
"""Maximum number of queries times new classes or terms; beyond it, counting all pods again is cheaper."""

_NO_PODS: Final = np.zeros(0, np.int32)
_NO_WEIGHTS: Final = np.zeros(0, np.int64)


class CountQuery(Hashable, Protocol[Asked, Words]):
    """What is counted. Equal queries always have equal results."""

    @property
    def labels(self) -> Iterable[tuple[str, str]] | None:
        """Labels of which a class must have one, or terms ask for one, to count; None: any may count."""

    def candidates(self, vocabulary: Words, /) -> Iterable[int]:
        """The codes of the values that may count; of all others, no pod does."""

    def __call__(self, value: Asked, /) -> Iterable[tuple[str, int]]:
        """What a pod with this class, or these terms, counts for: topology key and weight, any number."""


class RowCount:
    """Pods, and the sum of their weights, by node row."""

    __slots__ = ("_pods", "_weight", "steps")

    def __init__(self, rows: NDArray[np.int32], weights: NDArray[np.int64] | None) -> None:
        """Count pods, given by their nodes' rows; without weights each of them, and any other, weighs 1."""
        self._pods = np.bincount(rows)
        self._weight = None if weights is None else np.bincount(rows, weights).astype(np.int64)
        self.steps: Journal[tuple[int, int, int]] = Journal(_KEPT_STEPS)
        """What was counted since, in order: node row, pods, weight."""

    def add(self, row: int, pods: int, weight: int) -> None:
        """Count pods on a node, or, negative, count them no longer."""
        if row >= len(self._pods):
            self._reach(2 * (row + 1))
        self._pods[row] += pods
        if self._weight is not None:
            self._weight[row] += weight
        self.steps.note((row, pods, weight))

    def _reach(self, rows: int) -> None:
        if rows > len(self._pods):
            more = (0, rows - len(self._pods))
            self._pods = np.pad(self._pods, more)
            if self._weight is not None:
                self._weight = np.pad(self._weight, more)

    def free(self) -> None:
        """Free the memory of a count that is not used any more."""
        self._pods, self._weight = np.zeros(0, np.int64), None
        self.steps = Journal(_KEPT_STEPS)

    def pods(self, rows: int) -> NDArray[np.int64]:
        """The number of pods that count on each of `rows` nodes; a view, valid until the next change."""
        self._reach(rows)
        return self._pods[:rows]

    def weight(self, rows: int) -> NDArray[np.int64]:
        """The sum of weights on each of `rows` nodes; a view, valid until the next change."""
        pods = self.pods(rows)
        return pods if self._weight is None else self._weight[:rows]


class PodCounter:
    """The result of one query: a count for each topology key that a node has."""

    __slots__ = ("_weighted", "by_key", "is_kept", "used")

    def __init__(self, *, weighted: bool) -> None:
        self._weighted = weighted
        self.by_key: dict[str, RowCount] = {}
        self.is_kept = True
        """Whether this is kept up to date; if not, the query must be made again."""
        self.used = 0

    def count(self, key: str) -> RowCount:
        """The count for a key, which may be empty."""
        count = self.by_key.get(key)
        if count is None:
            count = self.by_key[key] = RowCount(_NO_PODS, _NO_WEIGHTS if self._weighted else None)
        return count

    def free(self) -> None:
        """Free the memory of all counts."""
        for count in self.by_key.values():
            count.free()

    @property
    def size(self) -> int:
        """How many counts this is charged for."""
        return max(len(self.by_key), 1)


class _Links(Generic[V]):
    """Where pods with one class, or one set of terms, are counted, and with which weight."""

    __slots__ = ("counts", "value")

    def __init__(self, value: V) -> None:
        self.value = value
        self.counts: list[tuple[RowCount, int, PodCounter]] = []


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
        judgements: Callable[[V], int],
        *,
        weighted: bool,
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
        self._judgements = judgements
        self._weighted = weighted
        self._position = moves.position
        self._counters: dict[CountQuery[V, Vocab], PodCounter] = {}
        self._by_label: dict[Mark, dict[CountQuery[V, Vocab], PodCounter]] = {}
        """The same by the labels without which no pod counts, so that a new class is not matched with all."""
        self._links: dict[int, _Links[V]] = {}
        self._size = 0
        """The number of counts of all counters together."""
        self._max_size = _MOST_COUNTS
        self._dropped: list[PodCounter] = []
        """Dropped counters whose counts are not freed yet."""
        self._uses = 0

    def catch_up(self) -> None:
        """Count the pods added and removed since the last time."""
        position = self._moves.position
        if position == self._position:
            return
        since, self._position = self._position, position
        if not self._counters:
            return
        moves = self._moves.since(since)
        if moves is None or self._work(moves) > _MAX_MATCHES:
            self.clear()
            return
        for code, value, node_row, sign in moves:
            links = self._links.get(code)
            if links is None or links.value is not value:
                links = self._match(code, value)
                if self._size > self._max_size:
                    self.clear()
                    return
            for count, weight, _ in links.counts:
                count.add(node_row, sign, sign * weight)

    def free_dropped(self) -> None:
        """Free the counts of dropped counters: equivalence classes refer to them until the next use.

        Call it between attempts: within one, counters that a later query dropped are still read.
        """
        for counter in self._dropped:
            counter.free()
        self._dropped.clear()

    def clear(self) -> None:
        """Drop all counters."""
        self._drop(list(self._counters))

    def _work(self, moves: Iterable[Move[V]]) -> int:
        """An upper bound of the matches of classes, or sets of terms, that no query was matched with."""
        known = self._links
        unknown = {
            code: value for code, value, _, _ in moves if code not in known or known[code].value is not value
        }
        return sum(map(self._judgements, unknown.values())) * len(self._counters)

    def counter_for(self, query: CountQuery[V, Vocab], rows: int) -> PodCounter:
        """The counter of a query, updated at every `catch_up`. rows: the number of nodes."""
        self.catch_up()
        counter = self._counters.get(query)
        if counter is None:
            self._make_room(rows)
            counter = self._counters[query] = PodCounter(weighted=self._weighted)
            for label in _labels(query):
                self._by_label.setdefault(label, {})[query] = counter
            self._count(query, counter)
            self._size += counter.size
        self.touch(counter)
        return counter

    def touch(self, counter: PodCounter) -> None:
        """Record a use: counters are dropped in least-recently-used order."""
        self._uses += 1
        counter.used = self._uses

    def _match(self, code: int, value: V) -> _Links[V]:
        """Match a class, or a set of terms, with all queries."""
        links = self._links[code] = _Links(value)
        value = self._countable(value)
        for query, counter in self._queries_for(value).items():
            size = counter.size
            for key, weight in _by_key(query(value)).items():
                links.counts.append((counter.count(key), weight, counter))
            self._size += counter.size - size
            if self._size > self._max_size:
                break
        return links

    def _queries_for(self, value: V) -> Mapping[CountQuery[V, Vocab], PodCounter]:
        """The queries that may count a class, or a set of terms."""
        labels = self._labels_of(value)
        if None in labels:
            return self._counters
        found = dict(self._by_label.get(None, {}))
        for label in labels:
            found |= self._by_label.get(label, {})
        return found

    def _count(self, query: CountQuery[V, Vocab], counter: PodCounter) -> None:
        """Count the pods of a new query."""
        vocabulary = self._vocabulary
        # Classes and terms without pods are dropped; they are judged again if a pod with them is added.
        self._links = {
            code: links for code, links in self._links.items() if vocabulary.values[code] is links.value
        }
        found: dict[str, list[tuple[int, int]]] = {}
        for code in query.candidates(vocabulary):
            value: V | None = vocabulary.values[code]
            assert value is not None
            for key, weight in _by_key(query(self._countable(value))).items():
                found.setdefault(key, []).append((code, weight))
        for key, chosen in found.items():
            codes, weights = [code for code, _ in chosen], [weight for _, weight in chosen]
            count = counter.by_key[key] = self._counted(codes, weights)
            for code, weight in chosen:
                if code in self._links:
                    self._links[code].counts.append((count, weight, counter))

    def _counted(self, codes: list[int], weights: list[int]) -> RowCount:
        """All pods that have one of some codes, with its weight."""
        size = len(self._column.vocabulary) + 1
        chosen, weight_of = np.zeros(size, bool), np.zeros(size, np.int64)
        chosen[codes], weight_of[codes] = True, weights
        pods = np.flatnonzero(chosen[self._column.codes])
        rows = self._node_rows()[pods]
        return RowCount(rows, weight_of[self._column.codes[pods]] if self._weighted else None)

    def _make_room(self, rows: int) -> None:
        self._max_size = min(_MOST_COUNTS, max(_MAX_ROWS // max(rows, 1), _MIN_COUNTS))
        while self._counters and self._size >= self._max_size:
            longest_unused = sorted(self._counters, key=lambda query: self._counters[query].used)
            self._drop(longest_unused[: (len(longest_unused) + 1) // 2])

    def _drop(self, queries: Iterable[CountQuery[V, Vocab]]) -> None:
        for query in queries:
            counter = self._counters.pop(query)
            counter.is_kept = False
            self._dropped.append(counter)
            self._size -= counter.size
            for label in _labels(query):
                del self._by_label[label][query]
                if not self._by_label[label]:
                    del self._by_label[label]
        for links in self._links.values():
            links.counts = [each for each in links.counts if each[2].is_kept]


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
        weighted=False,
    )


def of_terms(pods: PodTable) -> PodCounters[PodTerms, TermsVocabulary]:
    """Counters for queries about the affinity terms of pods on nodes."""
    return PodCounters(
        pods.terms,
        pods.terms_codes,
        pods.terms_moves,
        lambda: pods.node_rows,
        term_marks,
        pods.terms_codes.in_domains,
        len,
        weighted=True,
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
