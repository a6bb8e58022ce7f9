"""ElasticQuota: the guarantee and the limit of a set of namespaces, as scheduler-plugins has it.

Two annotations go beyond it: which namespaces a quota is for, if not its own, and which quota it is part of.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from moorage import Object, ResourceList, Struct, declare_kind, whole_units

PREFIX: Final = "capacity.moorage.io/"
NAMESPACES: Final = f"{PREFIX}namespaces"
"""The annotation with the namespaces of a quota, separated by commas; without it, it is for its own."""
PARENT: Final = f"{PREFIX}parent"
"""The annotation with the quota that a quota is part of: `name` (same namespace) or `namespace/name`."""


class ElasticQuotaSpec(Struct):
    """What is guaranteed (min), and what may be used at most (max)."""

    min: ResourceList = {}
    max: ResourceList = {}


class ElasticQuotaStatus(Struct):
    """What is used."""

    used: ResourceList = {}


class ElasticQuota(Object):
    """An elastic quota."""

    spec: ElasticQuotaSpec = ElasticQuotaSpec()
    status: ElasticQuotaStatus = ElasticQuotaStatus()


ELASTIC_QUOTA: Final = declare_kind("scheduling.x-k8s.io/v1alpha1", "elasticquotas", ElasticQuota)

Amounts = Mapping[str, int]
"""By resource, in the unit that scheduling counts in."""


class QuotaTerms(NamedTuple):
    """What an ElasticQuota says; equal terms have equal consequences.

    key: `namespace/name`. parent: the same of the quota that it is part of; empty: of none.
    age: sorts older quotas first.
    """

    key: str
    parent: str
    namespaces: tuple[str, ...]
    min: Amounts
    max: Amounts
    age: tuple[float, str]


def terms_of(quota: ElasticQuota) -> QuotaTerms:
    """What an ElasticQuota says."""
    meta = quota.metadata
    created = meta.creation_timestamp
    return QuotaTerms(
        quota.key,
        _parent(quota),
        _namespaces(quota),
        _amounts(quota.spec.min),
        _amounts(quota.spec.max),
        (0.0 if created is None else created.timestamp(), quota.key),
    )


def _parent(quota: ElasticQuota) -> str:
    parent = quota.metadata.annotations.get(PARENT, "").strip()
    return parent if not parent or "/" in parent else f"{quota.namespace}/{parent}"


def _namespaces(quota: ElasticQuota) -> tuple[str, ...]:
    listed = quota.metadata.annotations.get(NAMESPACES)
    if listed is None:
        return (quota.namespace,)
    return tuple(dict.fromkeys(name for each in listed.split(",") if (name := each.strip())))


def _amounts(resources: ResourceList) -> dict[str, int]:
    return {name: max(whole_units(name, amount), 0) for name, amount in resources.items()}
