"""Ranges of costs and sizes, with the arithmetic of CEL's estimates: results are capped at 64 bits."""

from __future__ import annotations

from math import ceil
from typing import Final, NamedTuple

MAX: Final = (1 << 64) - 1
"""The largest cost or size; sums and products stop there."""


class Range(NamedTuple):
    """The minimum and maximum of a cost or size."""

    low: int
    high: int

    def plus(self, other: Range) -> Range:
        """The sum."""
        return Range(capped(self.low + other.low), capped(self.high + other.high))

    def times(self, other: Range) -> Range:
        """The product."""
        return Range(capped(self.low * other.low), capped(self.high * other.high))

    def by(self, factor: float) -> Range:
        """The product with a factor, rounded up."""
        return Range(capped(ceil(self.low * factor)), capped(ceil(self.high * factor)))

    def or_else(self, other: Range) -> Range:
        """The smallest range that contains both."""
        return Range(min(self.low, other.low), max(self.high, other.high))


def capped(value: int) -> int:
    """The value, or the largest one."""
    return min(value, MAX)


def fixed(value: int) -> Range:
    """The range of one value."""
    return Range(value, value)


NOTHING, ONE, UNKNOWN = fixed(0), fixed(1), Range(0, MAX)
