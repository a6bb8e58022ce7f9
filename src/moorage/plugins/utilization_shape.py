"""Scoring functions that configurations define as piecewise linear: utilization to score."""

from __future__ import annotations

from moorage.config.args import UtilizationShapePoint
from moorage.framework.interface.extension_points import MAX_SCORE
from moorage.framework.runtime.go_arithmetic import divide_truncating

MAX_SHAPE_SCORE = 10
"""Shapes score from 0 to 10, plugins from 0 to 100."""


def on_shape(shape: tuple[UtilizationShapePoint, ...], percent: int) -> int:
    """The piecewise linear function through the shape's points, in kube-scheduler's integer arithmetic."""
    scale = MAX_SCORE // MAX_SHAPE_SCORE
    for left, right in zip((None, *shape), shape, strict=False):
        if percent <= right.utilization:
            if left is None:
                return right.score * scale
            rise = (right.score - left.score) * scale * (percent - left.utilization)
            return left.score * scale + divide_truncating(rise, right.utilization - left.utilization)
    return shape[-1].score * scale
