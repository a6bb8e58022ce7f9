"""Go's arithmetic, where NumPy's differs, and the common normalisation of scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.framework.interface.extension_points import MAX_SCORE, Scores


def round_half_away(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Rounded to integers, halves away from zero (NumPy rounds them to even)."""
    whole = np.trunc(values)
    return (whole + np.where(np.abs(values - whole) >= 0.5, np.sign(values), 0.0)).astype(np.int64)


def divide_truncating(dividend: int, divisor: int) -> int:
    """Integer division towards zero (Python's goes towards minus infinity)."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend >= 0) == (divisor >= 0) else -quotient


def proportional(scores: NDArray[Any], *, reverse: bool = False) -> Scores:
    """Non-negative scores scaled so that the largest becomes 100; with `reverse`, 100 minus that."""
    largest = int(scores.max(initial=0))
    if largest == 0:
        return np.full(len(scores), MAX_SCORE if reverse else 0, np.int64)
    scaled: Scores = scores * MAX_SCORE // largest
    return MAX_SCORE - scaled if reverse else scaled
