"""Growth of what is measured: a line by least squares through the second half, and when it is a leak.

Caches fill in the first half. The standard error of the slope is widened by how much neighbouring samples
resemble each other, since memory that rises and falls slowly is no proof of growth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, sqrt
from typing import Final

import msgspec
import numpy as np

from moorage_cluster.soak.samples import (
    BLOCKS,
    DESCRIPTORS,
    OBJECTS,
    PENDING,
    RESIDENT,
    TASKS,
    Curve,
    Sample,
    curves,
)

MIN_SAMPLES: Final = 16
"""Number of samples below which nothing can be said."""
_PODS: Final = 10_000
"""Slopes are for as many pods."""
STANDARD_ERRORS: Final = 3.0
"""How far above zero a slope has to be, in standard errors: by chance, one curve in 700 is."""
_MAX_RESEMBLANCE: Final = 0.9
_LIMITS: Final = {RESIDENT: 5.0, BLOCKS: 5_000.0, DESCRIPTORS: 10.0, TASKS: 10.0, PENDING: 100.0}
_OBJECT_LIMIT: Final = 1_000.0
"""Growth that is no leak, for 10,000 pods: half a kilobyte of memory or half a block for each pod, a
descriptor or a task for each thousand, an object of a type for each ten."""


_Values = np.ndarray[tuple[int], np.dtype[np.float64]]


class Trend(msgspec.Struct, frozen=True):
    """How one measure grows with the number of pods that were created."""

    what: str
    mean: float
    """Its mean in the second half."""
    slope: float
    """Its growth for every 10,000 pods."""
    error: float
    """The standard error of the slope."""
    limit: float
    """Growth up to which it is no leak."""

    @property
    def is_leak(self) -> bool:
        """Whether it grows by more than the limit, and not by chance."""
        return self.slope > self.limit and self.slope > STANDARD_ERRORS * self.error


def trends(samples: Sequence[Sample]) -> Iterator[Trend]:
    """How everything grows; nothing if there are too few samples."""
    if len(samples) >= MIN_SAMPLES:
        yield from (trend(what, curve) for what, curve in curves(samples))


def trend(what: str, curve: Curve) -> Trend:
    """The growth of one curve in its second half."""
    points = np.array(curve[len(curve) // 2 :], dtype=float)
    pods, values = points[:, 0] / _PODS, points[:, 1]
    slope, error = _line(pods, values)
    limit = _OBJECT_LIMIT if what.startswith(OBJECTS) else _LIMITS[what]
    return Trend(what, float(values.mean()), slope, error, limit)


def _line(at: _Values, values: _Values) -> tuple[float, float]:
    """The slope of a line through points, and its standard error."""
    distances = at - at.mean()
    spread = float(distances @ distances)
    if spread == 0:
        return 0.0, inf
    slope = float(distances @ values) / spread
    rests = values - values.mean() - slope * distances
    variance = float(rests @ rests) / (len(at) - 2)
    resemblance = _resemblance(rests)
    return slope, sqrt(variance / spread * (1 + resemblance) / (1 - resemblance))


def _resemblance(rests: _Values) -> float:
    """How much neighbours resemble each other: their correlation, between 0 and a maximum."""
    total = float(rests @ rests)
    if total == 0:
        return 0.0
    return min(max(float(rests[1:] @ rests[:-1]) / total, 0.0), _MAX_RESEMBLANCE)
