"""Adding up what is stored: usage is computed when asked for, never kept."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from moorage.api.amounts import Amount, Amounts, Style
from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.admission.base import Reader
from moorage_cluster.apiserver.admission.quota.charges import Meter
from moorage_cluster.apiserver.admission.quota.scopes import Scope

RESOURCE_QUOTAS: Final = "/resourcequotas"
_FEW_PLACES: Final = 8


def in_scopes(obj: Manifest, scopes: list[Scope], meter: Meter) -> bool:
    """Whether an object meets all conditions of a quota."""
    return all(meter.in_scope(scope, obj) for scope in scopes)


class Tally:
    """Sums of charges.

    A stored object's charge is remembered until another version replaces it: a resourceVersion is given out
    once, so equal versions mean equal objects.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], dict[str, Amounts]] = {}
        self._next_check = _FEW_PLACES
        """With how many places it is looked which of them still matter: each time after they have doubled."""

    def used(
        self,
        namespace: str,
        names: Iterable[str],
        scopes: list[Scope],
        meter: Meter,
        reader: Reader,
        now: datetime,
    ) -> Amounts:
        """What the stored objects of a kind use of some resources."""
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
            # What is being deleted counts until a certain time, and what was never stored has no version.
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
        """Let go of namespaces that have no quota any more, above all of those that are gone."""
        self._known = {
            place: charges
            for place, charges in self._known.items()
            if any(reader.all(RESOURCE_QUOTAS, place[1]))
        }
        self._next_check = 2 * len(self._known) + _FEW_PLACES
