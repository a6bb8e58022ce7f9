"""The tree of all quotas: the parent of each, what it may use, and what is guaranteed to it.

Quotas without a parent are children of the root. The root is no object; its limit is the sum of all
guarantees, as in scheduler-plugins. So guarantees that are not in use can be borrowed, and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from moorage import format_amount
from moorage.optional_plugins.capacity.elastic_quota import Amounts, QuotaTerms

ROOT: Final = 0
"""The index of the root."""
_ALL_QUOTAS: Final = "all ElasticQuotas"

log = logging.getLogger("moorage.capacity")


class Excess(NamedTuple):
    """A limit that a request would exceed."""

    quota: Quota
    resource: str
    used: int
    requested: int

    @property
    def limit(self) -> int:
        """The limit."""
        return self.quota.limits[self.resource]

    @property
    def over(self) -> int:
        """How much has to be freed."""
        return self.used + self.requested - self.limit

    @property
    def is_for_ever(self) -> bool:
        """Whether the request alone is more than the limit."""
        return self.requested > self.limit

    def __str__(self) -> str:
        amounts = (self.used, self.requested, self.limit)
        used, requested, limit = (format_amount(self.resource, each) for each in amounts)
        whose, what = (
            (_ALL_QUOTAS, "min") if self.quota.index == ROOT else (f"ElasticQuota {self.quota.key}", "max")
        )
        return f"{whose}: {self.resource}: used {used}, requested {requested}, {what} {limit}"


@dataclass(slots=True, eq=False)
class Quota:
    """A quota in the tree.

    key: `namespace/name`; empty for the root. path: the indices of the quota itself, of the one that it is
    part of, and so on to the root. limits: what it may use at most. guaranteed: its min, or the sum of what
    is guaranteed to its parts where that is more.
    """

    key: str
    index: int
    min: Amounts = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    path: tuple[int, ...] = ()
    guaranteed: dict[str, int] = field(default_factory=dict)


class QuotaTree:
    """All quotas.

    quotas: in no particular order but that the root is the first. of_namespace: the index of each
    namespace's quota. shape: equal for trees in which each pod counts for the same quotas.
    """

    def __init__(self, terms: Iterable[QuotaTerms] = ()) -> None:
        ordered = sorted(terms, key=lambda each: each.age)
        self.quotas = [Quota("", ROOT, path=(ROOT,))]
        self.quotas += [
            Quota(each.key, index, each.min, dict(each.max)) for index, each in enumerate(ordered, 1)
        ]
        index_of = {quota.key: quota.index for quota in self.quotas}
        parents = _parents(ordered, index_of)
        for quota in self.quotas[1:]:
            quota.path = tuple(_upwards(quota.index, parents))
        self.of_namespace = _of_namespace(ordered, index_of)
        self.shape = (tuple(self.of_namespace.items()), tuple(quota.path for quota in self.quotas))
        self._guarantee()

    def _guarantee(self) -> None:
        """Work out what is guaranteed to each quota: those deepest in the tree first."""
        for quota in sorted(self.quotas, key=lambda each: -len(each.path)):
            for resource, amount in quota.min.items():
                quota.guaranteed[resource] = max(amount, quota.guaranteed.get(resource, 0))
            if quota.index != ROOT:
                above = self.quotas[quota.path[1]].guaranteed
                for resource, amount in quota.guaranteed.items():
                    above[resource] = above.get(resource, 0) + amount
        root = self.quotas[ROOT]
        root.limits = root.guaranteed

    def __bool__(self) -> bool:
        """Whether there are any."""
        return len(self.quotas) > 1

    def path(self, namespace: str) -> tuple[int, ...]:
        """The quotas that pods of a namespace count for; none if it has no quota."""
        index = self.of_namespace.get(namespace)
        return () if index is None else self.quotas[index].path

    def excess(
        self, path: Sequence[int], request: Amounts, used: Sequence[Mapping[str, int]]
    ) -> Iterator[Excess]:
        """The limits of the quotas on a path that a request would exceed. used: by index."""
        for index in path:
            limits, of_quota = self.quotas[index].limits, used[index]
            for resource, amount in request.items():
                limit = limits.get(resource)
                if limit is not None and amount and of_quota.get(resource, 0) + amount > limit:
                    yield Excess(self.quotas[index], resource, of_quota.get(resource, 0), amount)

    def is_guaranteed(self, index: int, request: Amounts, used: Sequence[Mapping[str, int]]) -> bool:
        """Whether a quota uses no more than is guaranteed to it, with a request."""
        guaranteed, of_quota = self.quotas[index].guaranteed, used[index]
        counted = self.quotas[ROOT].guaranteed
        return all(
            of_quota.get(resource, 0) + amount <= guaranteed.get(resource, 0)
            for resource, amount in request.items()
            if amount and resource in counted
        )


def _parents(terms: Sequence[QuotaTerms], index_of: Mapping[str, int]) -> dict[int, int]:
    """The index of the quota that each is part of."""
    parents = {index_of[each.key]: index_of.get(each.parent, ROOT) for each in terms}
    for each in terms:
        index = index_of[each.key]
        if each.parent and each.parent not in index_of:
            log.warning("ElasticQuota %s: there is no ElasticQuota %s to be part of", each.key, each.parent)
        elif _is_in_circle(index, parents):
            log.warning("ElasticQuota %s: it is a part of itself; its parent is ignored", each.key)
            parents[index] = ROOT
    return parents


def _is_in_circle(start: int, parents: Mapping[int, int]) -> bool:
    index = parents[start]
    for _ in parents:
        if index in (start, ROOT):
            break
        index = parents[index]
    return index == start


def _upwards(index: int, parents: Mapping[int, int]) -> Iterator[int]:
    while index != ROOT:
        yield index
        index = parents[index]
    yield ROOT


def _of_namespace(terms: Sequence[QuotaTerms], index_of: Mapping[str, int]) -> dict[str, int]:
    """The quota of each namespace: the oldest, if there are several."""
    found: dict[str, int] = {}
    for each in terms:
        for namespace in each.namespaces:
            if found.setdefault(namespace, index_of[each.key]) != index_of[each.key]:
                message = "ElasticQuota %s: namespace %s has an older quota, which counts"
                log.warning(message, each.key, namespace)
    return found
