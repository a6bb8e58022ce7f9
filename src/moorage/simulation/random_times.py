"""When generated pods arrive, and how long they run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import StrEnum
from random import Random
from typing import Final

_SIGMA: Final = 1.0
"""Standard deviation of the logarithm of run times: nine in ten are between 0.1 and 3 times the mean."""
_DAY_SECONDS: Final = 86_400.0
_SWING: Final = 0.8
"""How far the rate of arrivals is from its mean at noon and at midnight, as a share of the mean."""
_DIGITS: Final = 3
"""Number of decimals of times."""


class Arrivals(StrEnum):
    """How pods arrive."""

    POISSON = "poisson"
    """At random, one independently of another."""
    STEADY = "steady"
    """Each as long after the one before."""
    BURSTS = "bursts"
    """Many at once; bursts arrive at random."""
    DIURNAL = "diurnal"
    """At random, nine times as often at noon as at midnight, when a simulation begins."""


class Durations(StrEnum):
    """How run times are distributed."""

    LOGNORMAL = "lognormal"
    EXPONENTIAL = "exponential"
    FIXED = "fixed"


def arrival_times(
    arrivals: Arrivals, interval_seconds: float, burst_size: int, random: Random
) -> Iterator[float]:
    """The time of each pod, in seconds, without end; the first arrives at 0.

    interval_seconds: the mean time between two pods; 0: all arrive at 0.
    """
    now, number = 0.0, 0
    while True:
        yield now
        number += 1
        if interval_seconds and (arrivals is not Arrivals.BURSTS or number % burst_size == 0):
            now = round(now + _pause(arrivals, interval_seconds, burst_size, now, random), _DIGITS)


def _pause(arrivals: Arrivals, mean: float, burst_size: int, now: float, random: Random) -> float:
    match arrivals:
        case Arrivals.POISSON:
            return random.expovariate(1 / mean)
        case Arrivals.STEADY:
            return mean
        case Arrivals.BURSTS:
            return random.expovariate(1 / (mean * burst_size))
        case Arrivals.DIURNAL:
            return _diurnal_pause(mean, now, random)


def _diurnal_pause(mean: float, now: float, random: Random) -> float:
    """The time to the next arrival at a rate that changes: one of those at the highest rate."""
    highest, at = (1 + _SWING) / mean, now
    while True:
        at += random.expovariate(highest)
        rate = (1 - _SWING * math.cos(2 * math.pi * at / _DAY_SECONDS)) / mean
        if random.random() * highest < rate:
            return at - now


def run_time(durations: Durations, mean: float, random: Random) -> float | None:
    """A run time, in seconds; None, which is without end, if the mean is 0."""
    if not mean:
        return None
    match durations:
        case Durations.LOGNORMAL:
            seconds = random.lognormvariate(math.log(mean) - _SIGMA**2 / 2, _SIGMA)
        case Durations.EXPONENTIAL:
            seconds = random.expovariate(1 / mean)
        case Durations.FIXED:
            seconds = mean
    return round(seconds, _DIGITS)
