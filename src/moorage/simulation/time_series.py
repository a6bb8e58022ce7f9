"""The course of some amounts over time, in a bounded number of buckets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

_MAX_BUCKETS: Final = 600
_FIRST_BUCKET_SECONDS: Final = 1.0


class Bucket(NamedTuple):
    """A span of time."""

    start_seconds: float
    seconds: float
    means: tuple[float, ...]
    """The mean of each amount over the span."""


class TimeSeries:
    """Amounts that change at times; their means are kept by bucket.

    When there are too many buckets, each two become one: a simulation may last a minute or a year.
    """

    def __init__(self, size: int) -> None:
        """size: the number of amounts."""
        self.peaks = [0.0] * size
        """The largest value of each amount so far."""
        self.seconds = 0.0
        """The time up to which amounts are known."""
        self._values = [0.0] * size
        self._bucket_seconds = _FIRST_BUCKET_SECONDS
        self._sums: list[list[float]] = []
        """By bucket, the integral of each amount over time."""

    def new_amount(self) -> int:
        """The index of one more amount, which was zero until now."""
        for each in (self.peaks, self._values, *self._sums):
            each.append(0.0)
        return len(self._values) - 1

    def add(self, now: float, changes: Iterable[tuple[int, float]]) -> None:
        """Amounts, by index, change by something from now on."""
        self.advance(now)
        for index, change in changes:
            value = self._values[index] = self._values[index] + change
            if value > self.peaks[index]:
                self.peaks[index] = value

    def value(self, index: int) -> float:
        """An amount now."""
        return self._values[index]

    def advance(self, now: float) -> None:
        """Time passes."""
        while self.seconds < now:
            index = int(self.seconds / self._bucket_seconds)
            if index >= _MAX_BUCKETS:
                self._merge()
                continue
            while len(self._sums) <= index:
                self._sums.append([0.0] * len(self._values))
            until = min(now, (index + 1) * self._bucket_seconds)
            elapsed, sums = until - self.seconds, self._sums[index]
            for place, value in enumerate(self._values):
                if value:
                    sums[place] += value * elapsed
            self.seconds = until

    def _merge(self) -> None:
        """Make one bucket of each two."""
        pairs = zip(self._sums[::2], self._sums[1::2], strict=True)
        self._sums = [[one + other for one, other in zip(*pair, strict=True)] for pair in pairs]
        self._bucket_seconds *= 2

    def buckets(self) -> Iterator[Bucket]:
        """All buckets; the last may be shorter."""
        for index, sums in enumerate(self._sums):
            start = index * self._bucket_seconds
            seconds = min(self._bucket_seconds, self.seconds - start)
            yield Bucket(start, seconds, tuple(each / seconds for each in sums))

    def means(self) -> list[float]:
        """The mean of each amount over all time."""
        if not self.seconds:
            return list(self._values)
        return [sum(each) / self.seconds for each in zip(*self._sums, strict=True)]
