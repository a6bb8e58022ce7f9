"""Counting pods by topology domain: what PodTopologySpread and InterPodAffinity share.

A topology key is a label column, so a domain is a code, and counts by domain are a table by code. Tables
have one more entry at the end, for ABSENT: nodes without the label are in no domain.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.affinity import PodTerms
from moorage.cluster.columns import ABSENT
from moorage.cluster.label_columns import LabelColumn
from moorage.cluster.snapshot import Snapshot
from moorage.cluster.vocabularies import TermsVocabulary
from moorage.plugins.topology_counts.pod_counters import CountQuery
from moorage.plugins.topology_counts.row_count import RowCount
from moorage.plugins.topology_counts.slots import Slots

Counts = NDArray[np.int64]

_NO_CHANGE: Final[Mapping[int, int]] = MappingProxyType({})


def count_by_domain(column: LabelColumn, rows: NDArray[Any], weights: NDArray[Any] | None = None) -> Counts:
    """How many of `rows` (node rows, repeated as often as they count) are in each domain.

    Shape (domains + 1,); the last entry, for nodes without the label, is 0.
    """
    codes = column.codes[rows]
    size = len(column.vocabulary) + 1
    counts = np.bincount(codes + 1, weights, minlength=size)
    return _domains_first(counts).astype(np.int64, copy=False)


def _domains_first(counts: NDArray[Any]) -> NDArray[Any]:
    """From ABSENT first (as bincount has it) to ABSENT last and 0."""
    table = np.empty_like(counts)
    table[:-1] = counts[1:]
    table[-1] = 0
    return table


class DomainCounts:
    """Counts by domain for several topology keys."""

    __slots__ = ("by_key",)

    def __init__(self) -> None:
        self.by_key: dict[str, Counts] = {}

    def add(self, key: str, counts: Counts) -> None:
        """Add counts for a key."""
        present = self.by_key.get(key)
        self.by_key[key] = counts if present is None else present + counts

    def at(self, key: str, domains: NDArray[np.int32]) -> Counts:
        """The count of each of `domains`. Shape of `domains`."""
        counts = self.by_key.get(key)
        return np.zeros(len(domains), np.int64) if counts is None else counts[domains]

    def total(self) -> int:
        """All counts together."""
        return sum(int(counts.sum()) for counts in self.by_key.values())


def add_existing_terms(
    counts: DomainCounts, snapshot: Snapshot, query: CountQuery[PodTerms, TermsVocabulary]
) -> None:
    """Add, by domain, what a query counts for the terms of existing pods."""
    pods = snapshot.pods
    groups = pods.terms
    by_key: dict[str, dict[int, int]] = {}
    for code in query.candidates(pods.terms_codes):
        terms = pods.terms_codes.values[code]
        assert terms is not None
        for key, weight in query(pods.terms_codes.in_domains(terms)):
            weights = by_key.setdefault(key, {})
            weights[code] = weights.get(code, 0) + weight
    for key, weights in by_key.items():
        is_counted = np.zeros(len(groups.vocabulary) + 1, bool)
        table = np.zeros(len(groups.vocabulary) + 1, np.int64)
        is_counted[list(weights)] = True
        table[list(weights)] = list(weights.values())
        counted = np.flatnonzero(is_counted[groups.codes])
        rows = pods.node_rows[counted]
        column = snapshot.label(key)
        # A term counts, even if weights cancel out, where its pod's node is in a domain at all.
        if (column.codes[rows] != ABSENT).any():
            counts.add(key, count_by_domain(column, rows, table[groups.codes[counted]]))


class DomainCounter:
    """A count by node, added up by domain and kept up to date.

    slots: the place of each row in the table by domain; the last place is for rows that do not count.
    Valid as long as no row changes its place.
    """

    __slots__ = ("_count", "_position", "_slots", "by_domain", "pods")

    def __init__(self, count: RowCount, slots: Slots) -> None:
        self._count = count
        self._slots = slots
        self._position = count.steps.position
        self.by_domain: Counts
        """The weight in each domain; the last entry is 0."""
        self.pods: int
        """How many pods there are in all domains together."""
        self.by_domain, self.pods = count.by_slot(slots)

    def _recount(self) -> None:
        self._position = self._count.steps.position
        self.by_domain[:], self.pods = self._count.by_slot(self._slots)

    def catch_up(self) -> Mapping[int, int] | None:
        """How much each domain has more, or less, than the last time; None: all may have changed."""
        position = self._count.steps.position
        if position == self._position:
            return _NO_CHANGE
        steps = self._count.steps.since(self._position)
        if steps is None:
            self._recount()
            return None
        self._position = position
        changes: dict[int, int] = {}
        for row, pods, weight in steps:
            domain = self._slots[row]
            if domain != self._slots.nowhere:
                self.pods += pods
                changes[domain] = changes.get(domain, 0) + weight
        for domain, change in changes.items():
            self.by_domain[domain] += change
        return changes
