"""The Pareto front: points that no other point is better than."""

from __future__ import annotations

import math
from collections.abc import Sequence

Point = tuple[float, float]


def pareto_front(points: Sequence[Point]) -> set[int]:
    """The indices of points for which no other is at most as large in both values, and less in one.

    Less is better; equal points are on the front together.
    """
    front: set[int] = set()
    last: Point = (math.nan, math.inf)
    for index in sorted(range(len(points)), key=points.__getitem__):
        if points[index][1] < last[1] or points[index] == last:
            front.add(index)
            last = points[index]
    return front
