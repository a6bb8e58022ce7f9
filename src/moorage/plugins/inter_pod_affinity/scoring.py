"""Preferred affinity in both directions: counted for one pod, or incremental."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from moorage.framework.interface.extension_points import Scores
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.inter_pod_affinity.filtering import count_matching
from moorage.plugins.inter_pod_affinity.terms import ExistingTermWeights, IncomingTerms
from moorage.plugins.topology_counts.domains import Counts, DomainCounts, add_existing_terms
from moorage.plugins.topology_counts.incremental import (
    ExistingTermsCounter,
    IncrementalCount,
    IncrementalCounts,
)
from moorage.plugins.topology_counts.pod_matcher import ANY_KEY

_RECOUNT_DIVISOR: Final = 8
"""A change of more than one row in this many adds up all rows again."""


class AffinityScores(Protocol):
    """Raw scores of nodes for one pod."""

    @property
    def is_relevant(self) -> bool:
        """Whether any term matches any pod."""

    def of(self, nodes: Nodes) -> Scores:
        """The sum over topology keys of the weights in each node's domain; may be negative."""


class CountedAffinityScores:
    """Counted for one pod."""

    def __init__(
        self, incoming_terms: IncomingTerms, existing_terms: ExistingTermWeights, nodes: Nodes
    ) -> None:
        self._by_domain = DomainCounts()
        for each in incoming_terms.preferred:
            counts = count_matching(nodes, each.key, each.matcher)
            if counts.any():
                self._by_domain.add(each.key, counts * each.weight)
        add_existing_terms(self._by_domain, nodes.snapshot, existing_terms)

    @property
    def is_relevant(self) -> bool:
        """Whether any term matches any pod."""
        return bool(self._by_domain.by_key)

    def of(self, nodes: Nodes) -> Scores:
        """The sum over topology keys of the weights in each node's domain; may be negative."""
        scores = np.zeros(len(nodes), np.int64)
        for key, weighted in self._by_domain.by_key.items():
            scores += weighted[nodes.label(key).codes]
        return scores


class IncrementalAffinityScores:
    """The same for the pods of one equivalence class, updated as pods are added and removed."""

    def __init__(
        self,
        incremental: IncrementalCounts,
        incoming_terms: IncomingTerms,
        existing_terms: ExistingTermWeights,
    ) -> None:
        self._incremental = incremental
        self._version = incremental.version
        self._incoming_terms = incoming_terms
        self._counters = {
            each.matcher: incremental.classes.counter_for(each.matcher) for each in incoming_terms.preferred
        }
        self._existing_terms = ExistingTermsCounter(incremental.terms, existing_terms)
        self._counts: list[tuple[IncrementalCount, int]] = [
            (incremental.count(self._counters[each.matcher].count(ANY_KEY), each.key), each.weight)
            for each in incoming_terms.preferred
        ]
        """Counts and their weights: first the pod's own terms, then those of existing pods."""
        self._existing_keys: set[str] = set()
        self._by_row: Scores | None = None
        """The raw score of every row; None: to be computed."""
        self._add_existing_keys()

    def _add_existing_keys(self) -> None:
        """Add topology keys that no existing pod had before."""
        if len(self._existing_keys) == len(self._existing_terms.by_key):
            return
        for key in self._existing_terms.by_key.keys() - self._existing_keys:
            self._counts.append((self._incremental.count(self._existing_terms.by_key[key], key), 1))
            self._existing_keys.add(key)
        self._by_row = None

    def is_valid_for(self, incremental: IncrementalCounts, incoming_terms: IncomingTerms) -> bool:
        """Whether the terms and the nodes' labels are those this was made for."""
        return (
            self._incremental is incremental
            and self._version == incremental.version
            and self._incoming_terms is incoming_terms
            and self._existing_terms.is_kept
            and (not self._counters or all(counter.is_kept for counter in self._counters.values()))
        )

    @property
    def is_unaffected(self) -> bool:
        """Whether the pod has no preferred terms, and no existing pod has any that match it."""
        return not self._counters and not self._existing_terms.by_key

    def catch_up(self) -> None:
        """Count the pods added and removed; `IncrementalCounts.catch_up` must come first."""
        self._existing_terms.touch()
        if self.is_unaffected:
            return
        for counter in self._counters.values():
            self._incremental.classes.touch(counter)
        self._add_existing_keys()
        for count, weight in self._counts:
            changes = count.catch_up()
            if changes is None:
                self._by_row = None
            elif changes and self._by_row is not None:
                self._change(count, {domain: change * weight for domain, change in changes.items()})

    def _change(self, count: IncrementalCount, changes: dict[int, int]) -> None:
        assert self._by_row is not None
        for domain, change in changes.items():
            rows = count.column.slots.rows_at(domain)
            if len(rows) * _RECOUNT_DIVISOR > len(self._by_row):
                self._by_row = None
                return
            self._by_row[rows] += change

    @property
    def is_relevant(self) -> bool:
        """Whether any term matches any pod."""
        return bool(self._counts) and any(count.pods for count, _ in self._counts)

    def of(self, nodes: Nodes) -> Scores:
        """The sum over topology keys of the weights in each node's domain; may be negative."""
        if self._by_row is None:
            self._by_row = self._add_up()
        return self._by_row.copy() if nodes.rows is None else self._by_row.take(nodes.rows)

    def _add_up(self) -> Scores:
        by_key: dict[str, Counts] = {}
        for count, weight in self._counts:
            key, weighted = count.key, count.by_domain * weight
            by_key[key] = by_key[key] + weighted if key in by_key else weighted
        if not by_key:
            return np.zeros(len(self._incremental.snapshot), np.int64)
        first, *others = (
            weighted.take(self._incremental.domains(key).slots.array) for key, weighted in by_key.items()
        )
        for each in others:
            first += each
        return first
