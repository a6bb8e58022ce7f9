"""VolumeBinding's score: the storage utilization of each node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage.api.persistent_volumes import STORAGE, claim_class
from moorage.api.quantity import Quantity
from moorage.cluster.columns import COLUMN_MAX
from moorage.framework.interface.extension_points import Scores
from moorage.framework.runtime.go_arithmetic import round_half_away
from moorage.plugins.volume_binding.matching import NONE, Match
from moorage.plugins.volume_binding.planning import VolumePlan

_FULL = 100


@dataclass(slots=True, eq=False)
class _ClassUse:
    """Requested and available storage of a storage class, in bytes. Shape (nodes,)."""

    requested: NDArray[np.int64]
    capacity: NDArray[np.int64]
    present: NDArray[np.bool_]

    def percent(self) -> NDArray[np.int64]:
        """The utilization of the class' storage; a capacity of zero counts as full."""
        over = (self.capacity == 0) | (self.requested > self.capacity)
        return np.where(over, _FULL, self.requested * _FULL // np.maximum(self.capacity, 1))


def score_storage(plan: VolumePlan, by_percent: NDArray[np.int64], count: int) -> Scores:
    """The mean of all storage classes' scores, rounded.

    by_percent: the score of each percentage of use, from 0 to 100.
    Where existing volumes are taken they alone count; elsewhere new volumes do, if their driver reports its
    capacity.
    """
    existing = _existing(plan.matches, count)
    takes_existing = np.zeros(count, bool)
    for use in existing:
        takes_existing |= use.present
    new = _new(plan, count)
    for use in new:
        use.present &= ~takes_existing
    total = np.zeros(count, np.int64)
    classes = np.zeros(count, np.int64)
    for use in (*existing, *new):
        total += by_percent[use.percent()] * use.present
        classes += use.present
    return round_half_away(total / np.maximum(classes, 1))


def _existing(matches: Sequence[Match], count: int) -> list[_ClassUse]:
    by_class: dict[str, _ClassUse] = {}
    for match in matches:
        use = by_class.setdefault(claim_class(match.claim), _nothing(count))
        present = match.choice != NONE
        sizes = [_bytes(volume.spec.capacity.get(STORAGE)) for volume in match.volumes]
        use.requested += _bytes(match.claim.spec.resources.requests.get(STORAGE)) * present
        use.capacity += np.array([*sizes, 0], np.int64)[match.choice]
        use.present |= present
    return list(by_class.values())


def _new(plan: VolumePlan, count: int) -> list[_ClassUse]:
    """Claims of one class share the class' room, so its capacity counts once."""
    by_class: dict[str, _ClassUse] = {}
    for provision, needed in plan.provisions:
        if provision.capacity is None:
            continue
        use = by_class.setdefault(claim_class(provision.claim), _nothing(count))
        use.requested += _bytes(provision.claim.spec.resources.requests.get(STORAGE)) * needed
        use.capacity = np.where(needed, provision.capacity, use.capacity)
        use.present |= needed
    return list(by_class.values())


def _nothing(count: int) -> _ClassUse:
    return _ClassUse(np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, bool))


def _bytes(amount: Quantity | None) -> int:
    return 0 if amount is None else min(amount.value, COLUMN_MAX)
