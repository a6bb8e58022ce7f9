"""Where required affinity and anti-affinity let a pod go: counted anew, or kept from pod to pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.affinity import PodTerms
from moorage.cluster.columns import ABSENT
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.common.affinity_terms import NearBy, Refusals, Wants
from moorage.plugins.common.domains import Counts, DomainCounts, add_claims, count_by_domain
from moorage.plugins.common.following import FollowedCount, Following
from moorage.plugins.common.pods_meant import ANY_KEY, PodsMeant

FITS: Final = 0
NOT_NEAR: Final = 1
TOO_CLOSE: Final = 2
UNWELCOME: Final = 3

Codes = NDArray[np.int8]
Mask = NDArray[np.bool_]

_FEW_ROWS: Final = 24
"""So many rows at most are faster judged one at a time."""


class Neighbours:
    """Which domains have what matters to an incoming pod.

    near: pods that match all the affinity terms, by domain of each term's key. away: pods that match an
    anti-affinity term, by domain of its key. unwelcoming: pods with an anti-affinity term that means the
    incoming pod, by domain of its key.
    """

    def __init__(
        self, wants: Wants, near: DomainCounts, away: DomainCounts, unwelcoming: DomainCounts
    ) -> None:
        self.wants = wants
        self.near = near
        self.away = away
        self.unwelcoming = unwelcoming

    @property
    def matters(self) -> bool:
        """Whether anything here could keep the pod from any node."""
        return bool(self.wants.near or self.wants.away or self.unwelcoming.total())

    def judge(self, nodes: Nodes) -> Codes:
        """What is said of each node: affinity first, then anti-affinity, then that of pods there."""
        codes = np.zeros(len(nodes), np.int8)
        codes[self._unwelcome(nodes)] = UNWELCOME
        codes[self._too_close(nodes)] = TOO_CLOSE
        codes[~self._near_enough(nodes)] = NOT_NEAR
        return codes

    def _unwelcome(self, nodes: Nodes) -> Mask:
        """Where a pod's anti-affinity keeps the incoming pod away."""
        refusals = Refusals(self.wants.incoming)
        keys = set(self.unwelcoming.by_key)
        if nodes.hypothetical_pods is not None:
            keys.update(key for _, info in nodes.hypothetical_pods.added for key, _ in refusals(info.terms))
        mask = np.zeros(len(nodes), bool)
        for key in keys:
            domains = nodes.label(key).codes
            count = self.unwelcoming.at(key, domains)
            if nodes.hypothetical_pods is not None:
                weight = partial(_refusals_by_key, key=key, refusals=refusals)
                count = count + nodes.hypothetical_pods.by_terms(weight) * (domains != ABSENT)
            mask |= count > 0
        return mask

    def _too_close(self, nodes: Nodes) -> Mask:
        """Where the incoming pod's own anti-affinity keeps it away."""
        mask = np.zeros(len(nodes), bool)
        by_key: dict[str, list[PodsMeant]] = {}
        for each in self.wants.away:
            by_key.setdefault(each.key, []).append(each.meant)
        for key, meant in by_key.items():
            domains = nodes.label(key).codes
            count = self.away.at(key, domains)
            if nodes.hypothetical_pods is not None:
                count = count + nodes.hypothetical_pods.matching(*meant) * (domains != ABSENT)
            mask |= count > 0
        return mask

    def _near_enough(self, nodes: Nodes) -> Mask:
        """Where every affinity term finds a pod, or where the first pod of a kind may start."""
        in_domains = np.ones(len(nodes), bool)
        near = self.wants.near
        if not near:
            return in_domains
        found = np.ones(len(nodes), bool)
        change = None if nodes.hypothetical_pods is None else nodes.hypothetical_pods.matching(near[0].meant)
        terms_with = Counter(each.key for each in near)
        total = np.full(len(nodes), self.near.total())
        for each in near:
            domains = nodes.label(each.key).codes
            in_domains &= domains != ABSENT
            count = self.near.at(each.key, domains)
            if change is not None:
                # Each term with this key counts the pod once more.
                count = count + change * terms_with[each.key]
                total = total + change * (domains != ABSENT)
            found &= count > 0
        if self.wants.is_own_kind:
            found |= total == 0
        return in_domains & found


def _refusals_by_key(terms: PodTerms, key: str, refusals: Refusals) -> int:
    return sum(weight for each, weight in refusals(terms) if each == key)


def count_neighbours(wants: Wants, nodes: Nodes) -> Neighbours:
    """Count pods that matter to an incoming pod, and pods to which it matters."""
    near, away, unwelcoming = DomainCounts(), DomainCounts(), DomainCounts()
    # All affinity terms together mean the same pods.
    together = wants.near[0].meant.candidates(nodes.snapshot.pods.class_codes) if wants.near else ()
    rows = nodes.snapshot.pods.nodes_of(together)
    for each in wants.near:
        near.add(each.key, count_by_domain(nodes.snapshot.label(each.key), rows))
    for each in wants.away:
        away.add(each.key, count_meant(nodes, each.key, each.meant))
    add_claims(unwelcoming, nodes.snapshot, Refusals(wants.incoming))
    return Neighbours(wants, near, away, unwelcoming)


def count_meant(nodes: Nodes, key: str, meant: PodsMeant) -> Counts:
    """How many of the pods that are meant are in each domain of a topology key."""
    pods = nodes.snapshot.pods
    return count_by_domain(nodes.snapshot.label(key), pods.nodes_of(meant.candidates(pods.class_codes)))


class FollowedNeighbours(Neighbours):
    """The same for the pods of one template, followed from pod to pod."""

    def __init__(self, following: Following, wants: Wants) -> None:
        super().__init__(wants, DomainCounts(), DomainCounts(), DomainCounts())
        self._following = following
        self._version = following.version
        rows = len(following.snapshot)
        self._asked = {
            each.meant: following.classes.ask(each.meant, rows) for each in (*wants.near, *wants.away)
        }
        self._refusals = following.terms.ask(Refusals(wants.incoming), rows)
        self._near = [self._follow(each) for each in wants.near]
        self._away = [self._follow(each) for each in wants.away]
        self._unwelcoming: dict[str, FollowedCount] = {}
        self._follow_refusals()
        self._add_up()
        self._is_own_kind = wants.is_own_kind
        self._near_total = self._count_near()
        self._codes: Codes | None = None
        """What is said of every row; None if that is not known."""

    def _follow(self, each: NearBy) -> FollowedCount:
        return self._following.count(self._asked[each.meant].count(ANY_KEY), each.key)

    def _follow_refusals(self) -> bool:
        """Take in topology keys that no pod has named before; whether there are any."""
        if len(self._unwelcoming) == len(self._refusals.by_key):
            return False
        for key, count in self._refusals.by_key.items():
            if key not in self._unwelcoming:
                followed = self._unwelcoming[key] = self._following.count(count, key)
                self.unwelcoming.by_key[key] = followed.by_domain
        return True

    def _add_up(self) -> None:
        self.near, self.away = DomainCounts(), DomainCounts()
        for each in self._near:
            self.near.add(each.column.key, each.by_domain)
        for each in self._away:
            self.away.add(each.column.key, each.by_domain)

    def _count_near(self) -> int:
        return sum(each.pods for each in self._near)

    def holds(self, following: Following, wants: Wants) -> bool:
        """Whether this is about the same terms, and the nodes are what they were."""
        return (
            self._following is following
            and self._version == following.version
            and self.wants is wants
            and self._refusals.is_kept
            and (not self._asked or all(tally.is_kept for tally in self._asked.values()))
        )

    @property
    def is_alone(self) -> bool:
        """Whether the pod wants nothing, and no pod that was on any node keeps it away."""
        return not self._asked and not self._refusals.by_key

    def catch_up(self) -> None:
        """Count the pods that came and went; `Following.catch_up` must come first."""
        following = self._following
        following.terms.touch(self._refusals)
        if self.is_alone:
            return
        for tally in self._asked.values():
            following.classes.touch(tally)
        crossed: list[NDArray[np.intp]] = []
        is_known = not self._follow_refusals()
        for each in (*self._near, *self._away, *self._unwelcoming.values()):
            changes = each.catch_up()
            if changes is None:
                is_known = False
            elif changes:
                crossed += _crossed(each, changes)
        was_total, self._near_total = self._near_total, self._count_near()
        if len(self.near.by_key) < len(self._near) or len(self.away.by_key) < len(self._away):
            self._add_up()  # Terms that share a key are added up; others' counts are the very same arrays.
        if not is_known or bool(was_total) != bool(self._near_total):
            self._codes = None
        elif crossed and self._codes is not None:
            self._codes = self._judge_again(self._codes, np.concatenate(crossed))

    def _judge_again(self, codes: Codes, rows: NDArray[np.intp]) -> Codes:
        codes = codes.copy()
        if len(rows) > _FEW_ROWS:
            codes[rows] = super().judge(Nodes(self._following.snapshot, rows))
        else:
            for row in rows.tolist():
                codes[row] = self._judge_one(row)
        return codes

    def _judge_one(self, row: int) -> int:
        found = True
        for each in self._near:
            if each.column.codes[row] == ABSENT:
                return NOT_NEAR
            found = found and each.at(row) > 0
        if not found and not (self._is_own_kind and self._near_total == 0):
            return NOT_NEAR
        if any(each.at(row) > 0 for each in self._away):
            return TOO_CLOSE
        return UNWELCOME if any(each.at(row) > 0 for each in self._unwelcoming.values()) else FITS

    @property
    def matters(self) -> bool:
        """Whether anything here could keep the pod from any node."""
        return bool(self._near) or bool(self._away) or any(each.pods for each in self._unwelcoming.values())

    def judge(self, nodes: Nodes) -> Codes:
        """What is said of each node: affinity first, then anti-affinity, then that of pods there."""
        if nodes.hypothetical_pods is not None:
            return super().judge(nodes)
        if self._codes is None:
            self._codes = super().judge(Nodes(nodes.snapshot))
        self._codes.flags.writeable = False
        return nodes.pick(self._codes)


def _crossed(followed: FollowedCount, changes: Mapping[int, int]) -> list[NDArray[np.intp]]:
    """The rows of the domains that had no pods and have some, or the reverse."""
    by_domain = followed.by_domain
    return [
        followed.column.rows_in(domain)
        for domain, change in changes.items()
        if (by_domain[domain] > 0) != (by_domain[domain] > change)
    ]
