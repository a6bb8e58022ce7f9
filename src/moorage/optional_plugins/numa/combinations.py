"""Sets of zones of one size, by index, in the order in which the topology manager prefers them."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

MAX_SETS: Final = 1024
"""Number of sets of one size up to which they are tried; where there are more, the kubelet decides alone."""

ZoneSet = tuple[int, ...]


def sets_of(zones: int, size: int) -> tuple[ZoneSet, ...] | None:
    """The sets of some zones, the lower zones first; None if there are too many."""
    return _sets(zones, size) if math.comb(zones, size) <= MAX_SETS else None


@lru_cache(maxsize=256)
def _sets(zones: int, size: int) -> tuple[ZoneSet, ...]:
    """In the order of their bit masks: (0, 1), (0, 2), (1, 2), (0, 3)."""
    return tuple(sorted(itertools.combinations(range(zones), size), key=lambda each: each[::-1]))


@lru_cache(maxsize=256)
def masks_of(zones: int, size: int) -> NDArray[np.int64] | None:
    """The same as rows of ones and zeros. Shape (sets, zones)."""
    sets = sets_of(zones, size)
    if sets is None:
        return None
    masks = np.zeros((len(sets), zones), np.int64)
    for number, each in enumerate(sets):
        masks[number, list(each)] = 1
    masks.flags.writeable = False
    return masks
