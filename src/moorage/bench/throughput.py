"""Pods per second, counted as in scheduler_perf: in windows of one second."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

WINDOW_SECONDS: Final = 1.0


def windows(bound_at: Sequence[float], began_at: float, ended_at: float) -> list[float]:
    """The rate in each window; `bound_at` is sorted.

    The window in which the first pod is bound does not count: it began before there was work.
    Windows without bindings share the average rate up to the end of the next one that has some.
    """
    rates: list[float] = []
    last_count = last_tick = 0
    ticks = int((ended_at - began_at) / WINDOW_SECONDS)
    for tick in range(1, ticks + 1):
        count = bisect_right(bound_at, began_at + tick * WINDOW_SECONDS)
        if not last_tick:
            last_count, last_tick = count, tick if count else 0
        elif count > last_count:
            length = tick - last_tick
            rates += [(count - last_count) / (length * WINDOW_SECONDS)] * length
            last_count, last_tick = count, tick
    return rates
