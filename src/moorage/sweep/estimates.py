"""Means with 95 % confidence intervals, by Student's t distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Final

import msgspec

_QUANTILES: Final = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)  # fmt: skip
"""The 97.5 % quantiles of the t distribution with 1, 2, ... degrees of freedom."""
_NORMAL: Final = 1.959964
"""The same of the normal distribution."""
_DIGITS: Final = 6
"""Number of decimals in results."""


class Estimate(msgspec.Struct, rename="camel", frozen=True):
    """A mean, and the 95 % confidence interval around it."""

    mean: float
    half_width: float | None
    """Half the width of the interval; None for a single value, which says nothing about others."""

    @property
    def low(self) -> float:
        """The lower end of the interval; the mean if there is none."""
        return round(self.mean - (self.half_width or 0.0), _DIGITS)

    @property
    def high(self) -> float:
        """The upper end of the interval; the mean if there is none."""
        return round(self.mean + (self.half_width or 0.0), _DIGITS)


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of at least one value."""
    mean = round(fmean(values), _DIGITS)
    if len(values) == 1:
        return Estimate(mean, None)
    half = t_quantile(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return Estimate(mean, round(half, _DIGITS))


def t_quantile(freedom: int) -> float:
    """The 97.5 % quantile of the t distribution; above the table, by its expansion around the normal one."""
    if freedom <= len(_QUANTILES):
        return _QUANTILES[freedom - 1]
    z = _NORMAL
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / float(freedom) ** power for power, term in enumerate(terms, 1))
