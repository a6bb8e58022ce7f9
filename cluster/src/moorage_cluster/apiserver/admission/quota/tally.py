"""Summing the usage of stored objects: it is computed on demand, never tracked."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from moorage.admission.attributes import Reader
from moorage.api.amounts import Amount, Amounts, Style
from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.admission.quota.charges import Meter
from moorage_cluster.apiserver.admission.quota.scopes import Scope

RESOURCE_QUOTAS: Final = "/resourcequotas"
_MIN_CHECKED_ENTRIES: Final = 8


def in_scopes(obj: Manifest, scopes: list[Scope], meter: Meter) -> bool:
    """Whether an object meets all conditions of a quota."""
    return all(meter.in_scope(scope, obj) for scope in scopes)


class QuotaUsage:
    """Sums of charges.

    A stored object's charge is cached until another version replaces it: a resourceVersion is assigned
    once, so equal versions mean equal objects.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], dict[str, Amounts]] = {}
        self._next_check = _MIN_CHECKED_ENTRIES
        """Cache size at which unneeded entries are next removed: about twice the size after the last time."""

    def used(
        self,
        namespace: str,
        names: Iterable[str],
        scopes: list[Scope],
        meter: Meter,
        reader: Reader,
        now: datetime,
    ) -> Amounts:
        """The usage of some resources by the stored objects of a kind."""
        wanted = list(names)
        sums = [0] * len(wanted)
        styles = [Style.DECIMAL] * len(wanted)
        place = (meter.storage, namespace)
        if place not in self._known and len(self._known) >= self._next_check:
            self._forget_unlimited(reader)
        known = self._known.get(place, {})
        seen: dict[str, Amounts] = {}
        for obj in reader.all(meter.storage, namespace):
            metadata = obj["metadata"]
            version = metadata.get("resourceVersion", "")
            charge = known.get(version)
            if charge is None:
                charge = meter.charge(obj, now)
            # Objects in deletion count until a certain time, and objects not stored yet have no version.
            if version and "deletionTimestamp" not in metadata:
                seen[version] = charge
            if scopes and not in_scopes(obj, scopes, meter):
                continue
            for index, name in enumerate(wanted):
                amount = charge.get(name)
                if amount is not None:
                    if not sums[index]:
                        styles[index] = amount.style
                    sums[index] += amount.billionths
        self._known[place] = seen
        return {name: Amount(total, style) for name, total, style in zip(wanted, sums, styles, strict=True)}

    def _forget_unlimited(self, reader: Reader) -> None:
        """Drop the entries of namespaces that have no quota any more, deleted ones above all."""
        self._known = {
            place: charges
            for place, charges in self._known.items()
            if any(reader.all(RESOURCE_QUOTAS, place[1]))
        }
        self._next_check = 2 * len(self._known) + _MIN_CHECKED_ENTRIES
