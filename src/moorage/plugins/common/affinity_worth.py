"""What nodes are worth for the pods there: wishes in both directions, counted anew or kept for a template."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from moorage.framework.interface.extension_points import Scores
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.common.affinity_filter import count_meant
from moorage.plugins.common.affinity_terms import Claims, Wants
from moorage.plugins.common.domains import Counts, DomainCounts, add_claims
from moorage.plugins.common.following import FollowedCount, Following
from moorage.plugins.common.pods_meant import ANY_KEY

_MANY: Final = 8
"""If a change is about one row in so many, all rows are as well added up anew."""


class Worth(Protocol):
    """What nodes are worth to one pod."""

    @property
    def matters(self) -> bool:
        """Whether anybody has a wish that means anybody."""

    def of(self, nodes: Nodes) -> Scores:
        """The sum over topology keys of what each node's domain is worth; may be negative."""


class PlainWorth:
    """Counted for one pod."""

    def __init__(self, wants: Wants, claims: Claims, nodes: Nodes) -> None:
        self._by_domain = DomainCounts()
        for each in wants.preferred:
            counts = count_meant(nodes, each.key, each.meant)
            if counts.any():
                self._by_domain.add(each.key, counts * each.weight)
        add_claims(self._by_domain, nodes.snapshot, claims)

    @property
    def matters(self) -> bool:
        """Whether anybody has a wish that means anybody."""
        return bool(self._by_domain.by_key)

    def of(self, nodes: Nodes) -> Scores:
        """The sum over topology keys of what each node's domain is worth; may be negative."""
        scores = np.zeros(len(nodes), np.int64)
        for key, worth in self._by_domain.by_key.items():
            scores += worth[nodes.label(key).codes]
        return scores


class FollowedWorth:
    """The same for the pods of one template, followed from pod to pod."""

    def __init__(self, following: Following, wants: Wants, claims: Claims) -> None:
        self._following = following
        self._version = following.version
        self._wants = wants
        rows = len(following.snapshot)
        self._asked = {each.meant: following.classes.ask(each.meant, rows) for each in wants.preferred}
        self._claims = following.terms.ask(claims, rows)
        self._counts: list[tuple[FollowedCount, int]] = [
            (following.count(self._asked[each.meant].count(ANY_KEY), each.key), each.weight)
            for each in wants.preferred
        ]
        """What the pod wishes, then what others wish of it: counts, and what each of them is worth."""
        self._claimed: set[str] = set()
        self._by_row: Scores | None = None
        """What every row is worth; None if that is not known."""
        self._follow_claims()

    def _follow_claims(self) -> None:
        """Take in topology keys that no pod has named before."""
        if len(self._claimed) == len(self._claims.by_key):
            return
        for key in self._claims.by_key.keys() - self._claimed:
            self._counts.append((self._following.count(self._claims.by_key[key], key), 1))
            self._claimed.add(key)
        self._by_row = None

    def holds(self, following: Following, wants: Wants) -> bool:
        """Whether this is about the same terms, and the nodes are what they were."""
        return (
            self._following is following
            and self._version == following.version
            and self._wants is wants
            and self._claims.is_kept
            and (not self._asked or all(tally.is_kept for tally in self._asked.values()))
        )

    @property
    def is_alone(self) -> bool:
        """Whether the pod wishes nothing, and no pod that was on any node wishes anything of it."""
        return not self._asked and not self._claims.by_key

    def catch_up(self) -> None:
        """Count the pods that came and went; `Following.catch_up` must come first."""
        self._following.terms.touch(self._claims)
        if self.is_alone:
            return
        for tally in self._asked.values():
            self._following.classes.touch(tally)
        self._follow_claims()
        for count, weight in self._counts:
            changes = count.catch_up()
            if changes is None:
                self._by_row = None
            elif changes and self._by_row is not None:
                self._change(count, {domain: change * weight for domain, change in changes.items()})

    def _change(self, count: FollowedCount, changes: dict[int, int]) -> None:
        assert self._by_row is not None
        for domain, change in changes.items():
            rows = count.column.rows_in(domain)
            if len(rows) * _MANY > len(self._by_row):
                self._by_row = None
                return
            self._by_row[rows] += change

    @property
    def matters(self) -> bool:
        """Whether anybody has a wish that means anybody."""
        return bool(self._counts) and any(count.pods for count, _ in self._counts)

    def of(self, nodes: Nodes) -> Scores:
        """The sum over topology keys of what each node's domain is worth; may be negative."""
        if self._by_row is None:
            self._by_row = self._add_up()
        return self._by_row.copy() if nodes.rows is None else self._by_row.take(nodes.rows)

    def _add_up(self) -> Scores:
        by_key: dict[str, Counts] = {}
        for count, weight in self._counts:
            key, worth = count.column.key, count.by_domain * weight
            by_key[key] = by_key[key] + worth if key in by_key else worth
        first, *others = (worth.take(self._following.domains(key).slots) for key, worth in by_key.items())
        for each in others:
            first += each
        return first
