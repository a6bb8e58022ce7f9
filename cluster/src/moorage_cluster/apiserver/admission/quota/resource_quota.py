"""ResourceQuota: a namespace's usage stays within its quotas.

Usage is not tracked: it is summed from stored objects whenever a write is checked against a quota, so it
cannot drift, and namespaces without quotas cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from moorage.admission.attributes import Attributes, Reader
from moorage.admission.plugin import ANY, PODS, Call, Plugin, refusal
from moorage.api.amounts import ZERO, Amount, Amounts, amounts_of
from moorage.api.manifests import Manifest, Now, utc_now
from moorage_cluster.apiserver.admission.quota.charges import (
    CLAIMS,
    DEVICE_CLAIMS,
    SERVICES,
    Meter,
    count_meter,
    counted_storage,
)
from moorage_cluster.apiserver.admission.quota.pods import POD_METER
from moorage_cluster.apiserver.admission.quota.scopes import Scope, ends_by_itself, scopes_of
from moorage_cluster.apiserver.admission.quota.tally import RESOURCE_QUOTAS, QuotaUsage, in_scopes

_METERS: Final = {meter.storage: meter for meter in (POD_METER, SERVICES, CLAIMS, DEVICE_CLAIMS)}
_NEVER_CHARGED: Final = frozenset(
    (
        "/bindings",
        "/componentstatuses",
        "/events",
        "authentication.k8s.io/selfsubjectreviews",
        "authentication.k8s.io/tokenreviews",
        "authorization.k8s.io/localsubjectaccessreviews",
        "authorization.k8s.io/selfsubjectaccessreviews",
        "authorization.k8s.io/selfsubjectrulesreviews",
        "authorization.k8s.io/subjectaccessreviews",
        "events.k8s.io/events",
    )
)


class _MatchedQuota(NamedTuple):
    """A quota that a write is charged to, with its resources for this kind."""

    quota: Manifest
    scopes: list[Scope]
    hard: Amounts


class ResourceQuota:
    """Rejects writes that would exceed a quota.

    now: returns the current time; pods with an overdue deletion are not charged.
    """

    def __init__(self, now: Now = utc_now) -> None:
        self._now = now
        self._tally = QuotaUsage()

    def admit(self, attributes: Attributes, reader: Reader) -> None:
        """Check a write against the quotas of its namespace."""
        resource = attributes.resource
        if not resource.namespaced or resource.storage in _NEVER_CHARGED:
            return
        quotas = list(reader.all(RESOURCE_QUOTAS, attributes.namespace))
        if quotas:
            meter = _METERS.get(resource.storage) or count_meter(resource.storage)
            self._check(attributes, reader, quotas, meter)

    def admit_pod_update(self, attributes: Attributes, reader: Reader) -> None:
        """Check an update of a pod, if it moves the pod from one scope to another."""
        if ends_by_itself(attributes.obj) != ends_by_itself(attributes.old or {}):
            self.admit(attributes, reader)

    def _check(
        self, attributes: Attributes, reader: Reader, quotas: Iterable[Manifest], meter: Meter
    ) -> None:
        is_new = attributes.operation == "CREATE"
        obj = _as_created(attributes.obj) if is_new else attributes.obj
        matched = []
        for quota in quotas:
            hard = _hard(quota, meter)
            scopes = scopes_of(quota)
            if not hard or not in_scopes(obj, scopes, meter):
                continue
            if missing := meter.missing(list(hard), obj):
                raise refusal(attributes, f"failed quota: {quota['metadata']['name']}: {missing}")
            matched.append(_MatchedQuota(quota, scopes, hard))
        if not matched:
            return
        now = self._now()
        usage = meter.charge(obj, now)
        negative = sorted(name for name, amount in usage.items() if amount.billionths < 0)
        if negative:
            raise refusal(attributes, f"quota usage is negative for resource(s): {','.join(negative)}")
        before = None if is_new or attributes.old is None else attributes.old
        for each in matched:
            already = {}
            if before is not None and in_scopes(before, each.scopes, meter):
                already = meter.charge(before, now)
            more = {name: usage[name].minus(already.get(name, ZERO)) for name in each.hard if name in usage}
            requested = {name: amount for name, amount in more.items() if amount.billionths}
            if requested:
                used = self._tally.used(attributes.namespace, requested, each.scopes, meter, reader, now)
                _compare(attributes, each, requested, used)


def quota_usage(quota: Manifest, reader: Reader, now: datetime | None = None) -> Manifest:
    """A quota's status: its hard limits and their usage; `now` defaults to the wall clock's time."""
    moment = now or utc_now()
    hard = quota.get("spec", {}).get("hard") or {}
    namespace, scopes = quota["metadata"].get("namespace", ""), scopes_of(quota)
    by_meter: dict[str, tuple[Meter, list[str]]] = {}
    for name in hard:
        meter = _meter_of(name)
        if meter is not None:
            by_meter.setdefault(meter.storage, (meter, []))[1].append(name)
    totals: Amounts = {}
    tally = QuotaUsage()
    for meter, names in by_meter.values():
        totals.update(tally.used(namespace, names, scopes, meter, reader, moment))
    usage = {"hard": dict(hard), "used": {name: str(totals[name]) for name in hard if name in totals}}
    return {part: amounts for part, amounts in usage.items() if amounts}


def _meter_of(name: str) -> Meter | None:
    """The meter of a quota's resource, if there is one."""
    for meter in _METERS.values():
        if meter.measures(name):
            return meter
    storage = counted_storage(name)
    return count_meter(storage) if storage is not None else None


def _as_created(obj: Manifest) -> Manifest:
    """A new object without fields that clients may not set: a pod created as terminated is still charged."""
    metadata = dict(obj.get("metadata") or {})
    metadata.pop("deletionTimestamp", None)
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata}


def _hard(quota: Manifest, meter: Meter) -> Amounts:
    hard = quota.get("spec", {}).get("hard") or {}
    return amounts_of({name: text for name, text in hard.items() if meter.measures(name)})


def _compare(attributes: Attributes, matched: _MatchedQuota, requested: Amounts, used: Amounts) -> None:
    hard = matched.hard
    exceeded = sorted(
        name
        for name, amount in requested.items()
        if used[name].billionths + amount.billionths > hard[name].billionths
    )
    if exceeded:
        name = matched.quota["metadata"]["name"]
        raise refusal(
            attributes,
            f"exceeded quota: {name}, requested: {_listed(requested, exceeded)}, "
            f"used: {_listed(used, exceeded)}, limited: {_listed(hard, exceeded)}",
        )


def _listed(amounts: Mapping[str, Amount], names: list[str]) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in names)


def plugins(now: Now = utc_now) -> tuple[Plugin, ...]:
    """The plugins for creations, and for updates that may increase the usage."""
    quotas = ResourceQuota(now)
    updates = tuple(Call("UPDATE", storage) for storage in _METERS if storage != PODS)
    return (
        Plugin(
            "ResourceQuota", quotas.admit, (Call("CREATE", ANY), *updates, Call("UPDATE", PODS, "resize"))
        ),
        Plugin("ResourceQuota", quotas.admit_pod_update, (Call("UPDATE", PODS),)),
    )
