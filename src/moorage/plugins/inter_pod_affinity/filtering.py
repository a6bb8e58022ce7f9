"""Required affinity and anti-affinity: counted for one pod, or incremental."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.affinity import PodTerms
from moorage.cluster.columns import ABSENT
from moorage.cluster.pod_table import PodInfo
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.inter_pod_affinity.terms import ExistingAntiAffinity, IncomingTerm, IncomingTerms
from moorage.plugins.topology_counts.domains import Counts, DomainCounts, add_existing_terms, count_by_domain
from moorage.plugins.topology_counts.incremental import (
    DomainColumn,
    ExistingTermsCounter,
    IncrementalCount,
    IncrementalCounts,
)
from moorage.plugins.topology_counts.pod_matcher import ANY_KEY, PodMatcher

FITS: Final = 0
AFFINITY_NOT_MET: Final = 1
ANTI_AFFINITY_VIOLATED: Final = 2
EXISTING_ANTI_AFFINITY_VIOLATED: Final = 3

Codes = NDArray[np.int8]
Mask = NDArray[np.bool_]

_EXISTING_RANK: Final = 1
_ANTI_RANK: Final = 2
_AFFINITY_RANK: Final = 3
"""Where several rules reject a node, the result is that of the highest rank."""
_CODE_BY_RANK: Final = np.array(
    (FITS, EXISTING_ANTI_AFFINITY_VIOLATED, ANTI_AFFINITY_VIOLATED, AFFINITY_NOT_MET), np.int8
)

_MAX_SINGLE_ROWS: Final = 24
"""Maximum number of rows that are evaluated one at a time; beyond it, columns are faster."""


class AffinityCounts:
    """Pods that matter to an incoming pod, by domain.

    affinity: pods that match all the affinity terms, by domain of each term's key. anti_affinity: pods that
    match an anti-affinity term, by domain of its key. existing_anti_affinity: pods with an anti-affinity term
    that matches the incoming pod, by domain of its key.
    """

    def __init__(
        self,
        incoming_terms: IncomingTerms,
        affinity: DomainCounts,
        anti_affinity: DomainCounts,
        existing_anti_affinity: DomainCounts,
    ) -> None:
        self.incoming_terms = incoming_terms
        self.affinity = affinity
        self.anti_affinity = anti_affinity
        self.existing_anti_affinity = existing_anti_affinity

    @property
    def is_relevant(self) -> bool:
        """Whether any node can be rejected."""
        return bool(
            self.incoming_terms.affinity
            or self.incoming_terms.anti_affinity
            or self.existing_anti_affinity.total()
        )

    def evaluate(self, nodes: Nodes) -> Codes:
        """The result for each node: affinity first, then anti-affinity, then that of existing pods."""
        codes = np.zeros(len(nodes), np.int8)
        codes[self._violates_existing_anti_affinity(nodes)] = EXISTING_ANTI_AFFINITY_VIOLATED
        codes[self._violates_anti_affinity(nodes)] = ANTI_AFFINITY_VIOLATED
        codes[~self._has_affinity(nodes)] = AFFINITY_NOT_MET
        return codes

    def _violates_existing_anti_affinity(self, nodes: Nodes) -> Mask:
        """Where the anti-affinity of an existing pod matches the incoming pod."""
        existing_anti = ExistingAntiAffinity(self.incoming_terms.incoming)
        keys = set(self.existing_anti_affinity.by_key)
        if nodes.hypothetical_pods is not None:
            in_domains = nodes.snapshot.pods.terms_codes.in_domains
            added = (in_domains(info.terms) for info in nodes.hypothetical_pods.all_added())
            keys.update(key for terms in added for key, _ in existing_anti(terms))
        mask = np.zeros(len(nodes), bool)
        for key in keys:
            domains = nodes.label(key).codes
            count = self.existing_anti_affinity.at(key, domains)
            if nodes.hypothetical_pods is not None:
                weight = partial(_existing_anti_by_key, key=key, existing_anti=existing_anti)
                count = count + nodes.hypothetical_pods.by_terms(weight) * (domains != ABSENT)
            mask |= count > 0
        return mask

    def _violates_anti_affinity(self, nodes: Nodes) -> Mask:
        """Where the incoming pod's anti-affinity matches an existing pod."""
        mask = np.zeros(len(nodes), bool)
        by_key: dict[str, list[PodMatcher]] = {}
        for each in self.incoming_terms.anti_affinity:
            by_key.setdefault(each.key, []).append(each.matcher)
        for key, matcher in by_key.items():
            domains = nodes.label(key).codes
            count = self.anti_affinity.at(key, domains)
            if nodes.hypothetical_pods is not None:
                count = count + nodes.hypothetical_pods.matching(*matcher) * (domains != ABSENT)
            mask |= count > 0
        return mask

    def _has_affinity(self, nodes: Nodes) -> Mask:
        """Where every affinity term matches a pod, or none does anywhere and the pod matches its own."""
        in_domains = np.ones(len(nodes), bool)
        affinity = self.incoming_terms.affinity
        if not affinity:
            return in_domains
        found = np.ones(len(nodes), bool)
        change = (
            None if nodes.hypothetical_pods is None else nodes.hypothetical_pods.matching(affinity[0].matcher)
        )
        terms_with = Counter(each.key for each in affinity)
        total = np.full(len(nodes), self.affinity.total())
        for each in affinity:
            domains = nodes.label(each.key).codes
            in_domains &= domains != ABSENT
            count = self.affinity.at(each.key, domains)
            if change is not None:
                # Each term with this key counts the pod once more.
                count = count + change * terms_with[each.key]
                total = total + change * (domains != ABSENT)
            found &= count > 0
        if self.incoming_terms.matches_itself:
            found |= total == 0
        return in_domains & found


def _existing_anti_by_key(terms: PodTerms, key: str, existing_anti: ExistingAntiAffinity) -> int:
    return sum(weight for each, weight in existing_anti(terms) if each == key)


def count_affinity(incoming_terms: IncomingTerms, nodes: Nodes) -> AffinityCounts:
    """Count the pods that the terms match, and those whose terms match the incoming pod."""
    affinity, anti_affinity, existing_anti_affinity = DomainCounts(), DomainCounts(), DomainCounts()
    # All affinity terms together match the same pods.
    together = (
        incoming_terms.affinity[0].matcher.candidates(nodes.snapshot.pods.class_codes)
        if incoming_terms.affinity
        else ()
    )
    rows = nodes.snapshot.pods.nodes_of(together)
    for each in incoming_terms.affinity:
        affinity.add(each.key, count_by_domain(nodes.snapshot.label(each.key), rows))
    for each in incoming_terms.anti_affinity:
        anti_affinity.add(each.key, count_matching(nodes, each.key, each.matcher))
    add_existing_terms(existing_anti_affinity, nodes.snapshot, ExistingAntiAffinity(incoming_terms.incoming))
    return AffinityCounts(incoming_terms, affinity, anti_affinity, existing_anti_affinity)


def count_matching(nodes: Nodes, key: str, matcher: PodMatcher) -> Counts:
    """The number of matching pods in each domain of a topology key."""
    pods = nodes.snapshot.pods
    return count_by_domain(nodes.snapshot.label(key), pods.nodes_of(matcher.candidates(pods.class_codes)))


def count_by_node(incoming_terms: IncomingTerms, nodes: Nodes, moving: Iterable[PodInfo]) -> bool:
    """Whether moving pods count for a node only where they are on it: none do, or domains are nodes.

    A pod that matches its own terms needs no other if there is none anywhere.
    """
    if incoming_terms.matches_itself:
        return False
    classes = {info.pod_class for info in moving}
    own = (*incoming_terms.affinity, *incoming_terms.anti_affinity)
    keys = {each.key for each in own if any(map(each.matcher.matches, classes))}
    existing_anti = ExistingAntiAffinity(incoming_terms.incoming)
    for terms in {id(info.terms): info.terms for info in moving}.values():
        keys.update(key for key, _ in existing_anti(terms))
    return all(_are_nodes(nodes.label(key).codes) for key in keys)


def _are_nodes(domains: NDArray[np.int32]) -> bool:
    """Whether no two nodes are in one domain."""
    there = domains[domains != ABSENT]
    return len(np.unique(there)) == len(there)


class IncrementalAffinityCounts(AffinityCounts):
    """The same for the pods of one equivalence class, updated as pods are added and removed."""

    def __init__(self, incremental: IncrementalCounts, incoming_terms: IncomingTerms) -> None:
        super().__init__(incoming_terms, DomainCounts(), DomainCounts(), DomainCounts())
        self._incremental = incremental
        self._version = incremental.version
        self._counters = {
            each.matcher: incremental.classes.counter_for(each.matcher)
            for each in (*incoming_terms.affinity, *incoming_terms.anti_affinity)
        }
        self._existing_anti = ExistingTermsCounter(
            incremental.terms, ExistingAntiAffinity(incoming_terms.incoming)
        )
        self._affinity = [self._incremental_count(each) for each in incoming_terms.affinity]
        self._anti_affinity = [self._incremental_count(each) for each in incoming_terms.anti_affinity]
        self._existing_anti_affinity: dict[str, IncrementalCount] = {}
        self._add_existing_keys()
        self._add_up()
        self._matches_itself = incoming_terms.matches_itself
        self._affinity_total = self._count_affinity()
        self._codes: Codes | None = None
        """The result for every row; None: to be computed."""

    def _incremental_count(self, each: IncomingTerm) -> IncrementalCount:
        return self._incremental.count(self._counters[each.matcher].count(ANY_KEY), each.key)

    def _add_existing_keys(self) -> bool:
        """Add topology keys that no existing pod had before; whether there are any."""
        if len(self._existing_anti_affinity) == len(self._existing_anti.by_key):
            return False
        for key, count in self._existing_anti.by_key.items():
            if key not in self._existing_anti_affinity:
                domain_count = self._existing_anti_affinity[key] = self._incremental.count(count, key)
                self.existing_anti_affinity.by_key[key] = domain_count.by_domain
        return True

    def _add_up(self) -> None:
        self.affinity, self.anti_affinity = DomainCounts(), DomainCounts()
        for each in self._affinity:
            self.affinity.add(each.key, each.by_domain)
        for each in self._anti_affinity:
            self.anti_affinity.add(each.key, each.by_domain)

    def _count_affinity(self) -> int:
        return sum(each.pods for each in self._affinity)

    def is_valid_for(self, incremental: IncrementalCounts, incoming_terms: IncomingTerms) -> bool:
        """Whether the terms and the nodes' labels are those this was made for."""
        return (
            self._incremental is incremental
            and self._version == incremental.version
            and self.incoming_terms is incoming_terms
            and self._existing_anti.is_kept
            and (not self._counters or all(counter.is_kept for counter in self._counters.values()))
        )

    @property
    def is_unaffected(self) -> bool:
        """Whether the pod has no terms, and no existing pod has any that match it."""
        return not self._counters and not self._existing_anti.by_key

    def catch_up(self) -> None:
        """Count the pods added and removed; `IncrementalCounts.catch_up` must come first."""
        incremental = self._incremental
        self._existing_anti.touch()
        if self.is_unaffected:
            return
        for counter in self._counters.values():
            incremental.classes.touch(counter)
        crossed: list[NDArray[np.intp]] = []
        is_known = not self._add_existing_keys()
        for each in (*self._affinity, *self._anti_affinity, *self._existing_anti_affinity.values()):
            changes = each.catch_up()
            if changes is None:
                is_known = False
            elif changes:
                crossed += _crossed(each, changes)
        was_total, self._affinity_total = self._affinity_total, self._count_affinity()
        if len(self.affinity.by_key) < len(self._affinity) or len(self.anti_affinity.by_key) < len(
            self._anti_affinity
        ):
            self._add_up()  # Terms that share a key are added up; others' counts are the very same arrays.
        if not is_known or bool(was_total) != bool(self._affinity_total):
            self._codes = None
        elif crossed and self._codes is not None:
            self._codes = self._reevaluate(self._codes, np.concatenate(crossed))

    def _reevaluate(self, codes: Codes, rows: NDArray[np.intp]) -> Codes:
        codes = codes.copy()
        if len(rows) > _MAX_SINGLE_ROWS:
            codes[rows] = super().evaluate(Nodes(self._incremental.snapshot, rows))
        else:
            for row in rows.tolist():
                codes[row] = self._evaluate_one(row)
        return codes

    def _evaluate_one(self, row: int) -> int:
        found = True
        for each in self._affinity:
            if not each.column.includes(row):
                return AFFINITY_NOT_MET
            found = found and each.at(row) > 0
        if not found and not (self._matches_itself and self._affinity_total == 0):
            return AFFINITY_NOT_MET
        if any(each.at(row) > 0 for each in self._anti_affinity):
            return ANTI_AFFINITY_VIOLATED
        return (
            EXISTING_ANTI_AFFINITY_VIOLATED
            if any(each.at(row) > 0 for each in self._existing_anti_affinity.values())
            else FITS
        )

    @property
    def is_relevant(self) -> bool:
        """Whether any node can be rejected."""
        return (
            bool(self._affinity)
            or bool(self._anti_affinity)
            or any(each.pods for each in self._existing_anti_affinity.values())
        )

    def evaluate(self, nodes: Nodes) -> Codes:
        """The result for each node: affinity first, then anti-affinity, then that of existing pods."""
        if nodes.hypothetical_pods is not None:
            return super().evaluate(nodes)
        if self._codes is None:
            self._codes = self._evaluate_all()
        self._codes.flags.writeable = False
        return nodes.pick(self._codes)

    def _evaluate_all(self) -> Codes:
        """The result for every row: by domain for each topology key, then the first of these for each row."""
        tables: dict[str, Codes] = {}
        columns: dict[str, DomainColumn] = {}
        for counts, rank in (
            (self._existing_anti_affinity.values(), _EXISTING_RANK),
            (self._anti_affinity, _ANTI_RANK),
            (self._affinity, _AFFINITY_RANK),
        ):
            for each in counts:
                refused = self._lacks(each) if rank == _AFFINITY_RANK else each.by_domain > 0
                ranks = np.multiply(refused, rank, dtype=np.int8)
                known = tables.get(each.key)
                tables[each.key] = ranks if known is None else np.maximum(known, ranks)
                columns[each.key] = each.column
        if not tables:
            return np.zeros(len(self._incremental.snapshot), np.int8)
        first, *others = (table.take(columns[key].slots.array) for key, table in tables.items())
        for each_key in others:
            np.maximum(first, each_key, out=first)
        return _CODE_BY_RANK.take(first)

    def _lacks(self, count: IncrementalCount) -> Mask:
        """The domains, and no domain, where an affinity term is not met."""
        if self._matches_itself and self._affinity_total == 0:
            lacks = np.zeros(len(count.by_domain), bool)
        else:
            lacks = count.by_domain == 0
        lacks[-1] = True
        return lacks


def _crossed(domain_count: IncrementalCount, changes: Mapping[int, int]) -> list[NDArray[np.intp]]:
    """The rows of the domains that had no pods and have some, or the reverse."""
    by_domain = domain_count.by_domain
    return [
        domain_count.column.slots.rows_at(domain)
        for domain, change in changes.items()
        if (by_domain[domain] > 0) != (by_domain[domain] > change)
    ]
