"""Scoring functions that a configuration gives as points: utilization in percent, score from 0 to 10."""

from __future__ import annotations

import pytest

from moorage.config.args import UtilizationShapePoint
from moorage.plugins.utilization_shape import on_shape

RISING = ((0, 0), (100, 10))
PEAK = ((20, 0), (50, 10), (80, 4))

RULES = {
    "a point": (RISING, 0, 0),
    "between two points": (RISING, 37, 37),
    "the last point": (RISING, 100, 100),
    "below the first point its score counts": (PEAK, 10, 0),
    "above the last point its score counts": (PEAK, 90, 40),
    "rising": (PEAK, 35, 50),
    "falling": (PEAK, 65, 70),
    "fractions are cut off": (PEAK, 21, 3),
}


@pytest.mark.parametrize(("points", "percent", "score"), RULES.values(), ids=RULES.keys())
def test_scores(points: tuple[tuple[int, int], ...], percent: int, score: int) -> None:
    shape = tuple(UtilizationShapePoint(utilization=x, score=y) for x, y in points)
    assert on_shape(shape, percent) == score
