"""DoNotSchedule constraints: pods counted by domain for one pod, or incremental."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.cluster.columns import ABSENT
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.pod_topology_spread.constraints import (
    SpreadConstraint,
    countable,
    having_keys,
    topology_keys,
)
from moorage.plugins.pod_topology_spread.topology import CountedDomains, shared_topology
from moorage.plugins.topology_counts.domains import Counts, DomainCounter, count_by_domain
from moorage.plugins.topology_counts.incremental import DomainColumn, IncrementalCounts
from moorage.plugins.topology_counts.pod_counters import PodCounter
from moorage.plugins.topology_counts.pod_matcher import ANY_KEY, PodMatcher

FITS: Final = 0
MISSING_LABEL: Final = 1
SKEW_EXCEEDED: Final = 2

Codes = NDArray[np.int8]


@dataclass(slots=True, eq=False)
class Spread:
    """One hard constraint and the pods it counts, by domain."""

    constraint: SpreadConstraint
    matcher: PodMatcher
    own: int
    """1 if the incoming pod itself is one of those that count, else 0."""
    eligible: NDArray[np.bool_]
    """Which nodes' pods count, by row."""
    is_domain: NDArray[np.bool_]
    """Which domains exist, by code: those with an eligible node."""
    counts: Counts

    @property
    def least(self) -> int:
        """The smallest count of any domain; 0 if there are fewer domains than the constraint wants."""
        existing = self.counts[self.is_domain]
        return int(existing.min()) if len(existing) >= max(self.constraint.min_domains, 1) else 0

    @property
    def limit(self) -> int:
        """How many pods a domain may have for one more to fit."""
        return self.constraint.max_skew - self.own + self.least

    def evaluate(self, nodes: Nodes) -> Codes:
        """The constraint's result for each node. Shape (nodes,)."""
        domains = nodes.label(self.constraint.topology_key).codes
        if nodes.hypothetical_pods is None:
            too_many = self.counts[domains] > self.limit
        else:
            count, least = self._changed(nodes, domains)
            too_many = count + self.own - least > self.constraint.max_skew
        refused = np.where(too_many, SKEW_EXCEEDED, FITS)
        return np.where(domains == ABSENT, MISSING_LABEL, refused).astype(np.int8)

    def _changed(
        self, nodes: Nodes, domains: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The count of each node's domain, and the least of all, with that node's own changes made."""
        assert nodes.hypothetical_pods is not None
        more = nodes.hypothetical_pods.matching(self.matcher)
        count = self.counts[domains] + more * nodes.pick(self.eligible)
        existing = np.flatnonzero(self.is_domain)
        if len(existing) < max(self.constraint.min_domains, 1):
            return count, np.zeros(len(nodes), np.int64)
        # The least of all domains but a node's own is the least, or the next, if the own one is the least.
        order = existing[np.argsort(self.counts[existing], kind="stable")]
        least = self.counts[order[0]]
        next_least = self.counts[order[1]] if len(order) > 1 else np.iinfo(np.int64).max
        of_others = np.where(domains == order[0], next_least, least)
        return count, np.minimum(of_others, np.where(self.is_domain[domains], count, of_others))


class HardSpread:
    """All hard constraints of a pod."""

    def __init__(self, spreads: Sequence[Spread]) -> None:
        self.spreads = spreads

    def evaluate(self, nodes: Nodes) -> Codes:
        """The result of the first constraint that rejects each node. Shape (nodes,)."""
        return _first_refusals([spread.evaluate(nodes) for spread in self.spreads])


NO_SPREAD: Final = HardSpread(())
"""No hard constraint at all."""


def _first_refusals(by_spread: Sequence[Codes]) -> Codes:
    codes, *others = by_spread
    for each in others:
        codes = np.where(codes == FITS, each, codes)
    return codes


def count_spreads(pod: Pod, nodes: Nodes, hard: Sequence[SpreadConstraint]) -> HardSpread:
    """Count, for every hard constraint, the pods in each domain of the whole cluster."""
    spreads = []
    for constraint, eligible in zip(hard, _eligible(pod, nodes, hard), strict=True):
        column = nodes.snapshot.label(constraint.topology_key)
        matcher = constraint.counted(pod)
        rows = nodes.snapshot.pods.nodes_of(matcher.candidates(nodes.snapshot.pods.class_codes))
        spreads.append(
            Spread(
                constraint,
                matcher,
                int(constraint.selector.matches(pod.labels)),
                eligible,
                is_domain=count_by_domain(column, np.flatnonzero(eligible)) > 0,
                counts=count_by_domain(column, rows[eligible[rows]]),
            )
        )
    return HardSpread(spreads)


def _eligible(pod: Pod, nodes: Nodes, hard: Sequence[SpreadConstraint]) -> list[NDArray[np.bool_]]:
    """For each constraint the nodes whose pods count: those that have the labels of all constraints."""
    labelled = having_keys(nodes, topology_keys(hard))
    if not labelled.any():
        return [labelled] * len(hard)
    return [countable(pod, nodes, constraint, labelled) for constraint in hard]


class _IncrementalConstraint:
    """A constraint whose counts are updated as pods are added and removed."""

    __slots__ = ("_counts", "_limit", "_spread", "_table", "column", "counter", "spread")

    def __init__(
        self, incremental: IncrementalCounts, pod: Pod, constraint: SpreadConstraint, domains: CountedDomains
    ) -> None:
        self.column: DomainColumn = domains.column
        matcher = constraint.counted(pod)
        self.counter: PodCounter = incremental.classes.counter_for(matcher)
        self._counts = DomainCounter(self.counter.count(ANY_KEY), domains.slots)
        self.spread = Spread(
            constraint,
            matcher,
            int(constraint.selector.matches(pod.labels)),
            domains.eligible,
            domains.is_domain,
            counts=self._counts.by_domain,
        )
        self._evaluate_domains(self.spread.limit)

    def _evaluate_domains(self, limit: int) -> None:
        self._limit = limit
        self._table: Codes = np.multiply(self.spread.counts > limit, SKEW_EXCEEDED, dtype=np.int8)
        self._table[-1] = MISSING_LABEL

    def catch_up(self) -> bool:
        """Apply changes; whether the result of any domain changes."""
        changes = self._counts.catch_up()
        if changes is not None and not changes:
            return False
        counts, limit = self.spread.counts, self.spread.limit
        if changes is not None and limit == self._limit:
            codes_by_constraint = self._table
            if all((counts[domain] > limit) == (codes_by_constraint[domain] != FITS) for domain in changes):
                return False
        self._evaluate_domains(limit)
        return True

    def evaluate(self) -> Codes:
        """The constraint's result for every node. Shape (rows,)."""
        return self._table.take(self.column.slots.array)


class IncrementalSpread(HardSpread):
    """All DoNotSchedule constraints of one equivalence class, updated as pods are added and removed."""

    def __init__(self, incremental: IncrementalCounts, pod: Pod, hard: tuple[SpreadConstraint, ...]) -> None:
        self._incremental = incremental
        self._version = incremental.version
        self._hard = hard
        topology = shared_topology(incremental, hard, needs_all_keys=True)
        nodes = Nodes(incremental.snapshot)
        self._parts = [
            _IncrementalConstraint(
                incremental, pod, constraint, topology.counted(axis, constraint.included(pod, nodes))
            )
            for axis, constraint in enumerate(hard)
        ]
        super().__init__([part.spread for part in self._parts])
        self._evaluate_all()

    def _evaluate_all(self) -> None:
        self._codes = _first_refusals([part.evaluate() for part in self._parts])
        self._codes.flags.writeable = False

    def is_valid_for(self, incremental: IncrementalCounts, hard: tuple[SpreadConstraint, ...]) -> bool:
        """Whether the constraints and the nodes are those this was made for."""
        return (
            self._incremental is incremental
            and self._version == incremental.version
            and self._hard is hard
            and all(part.counter.is_kept for part in self._parts)
        )

    def catch_up(self) -> None:
        """Count the pods added and removed; `IncrementalCounts.catch_up` must come first."""
        stale = False
        for part in self._parts:
            self._incremental.classes.touch(part.counter)
            stale |= part.catch_up()
        if stale:
            self._evaluate_all()

    def evaluate(self, nodes: Nodes) -> Codes:
        """The result of the first constraint that rejects each node. Shape (nodes,)."""
        return nodes.pick(self._codes) if nodes.hypothetical_pods is None else super().evaluate(nodes)
