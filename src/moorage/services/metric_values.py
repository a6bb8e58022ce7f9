"""Numbers that are counted on hot paths and read once in a while.

prometheus-client's own counters take a lock and walk through the buckets at each observation: that costs more
than some of the plugins that are measured. Here an observation is an addition and a binary search, and
prometheus-client gets to see the numbers when somebody asks for them (`Metric.family`). There are no locks:
each cell is written by one thread.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Generic, Literal, TypeVar, cast

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.utils import floatToGoString

Kind = Literal["counter", "gauge", "histogram"]

_go_text = cast(Callable[[float], str], floatToGoString)


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """What a metric is called, what it counts, and how."""

    name: str
    kind: Kind
    stability: str
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()
    """Upper bounds, without the infinite one; histograms only."""
    is_optional: bool = False
    """Of a feature that is off by default: not shown until there is something to show."""


class Number:
    """One number that goes up, or up and down."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1.0) -> None:
        """Add."""
        self.value += amount

    def set(self, value: float) -> None:
        """Replace; only gauges do."""
        self.value = value

    def reset(self) -> None:
        """Begin anew."""
        self.value = 0.0


class Distribution:
    """How many observations fell into each bucket, and their sum."""

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    def reset(self) -> None:
        """Begin anew."""
        self.counts = [0] * len(self.counts)
        self.sum = 0.0


CellT = TypeVar("CellT", bound=Number | Distribution)


class Metric(Generic[CellT]):
    """All cells of one metric, one for each combination of label values."""

    def __init__(self, spec: MetricSpec, make: Callable[[], CellT]) -> None:
        self.spec = spec
        self._make = make
        self.cells: dict[tuple[str, ...], CellT] = {}
        if not spec.labels and not spec.is_optional:
            self.labels()

    def labels(self, *values: str) -> CellT:
        """The cell of these label values, which are in the order of the metric's labels."""
        cell = self.cells.get(values)
        if cell is None:
            if len(values) != len(self.spec.labels):
                raise ValueError(f"{self.spec.name} has the labels {self.spec.labels}, not {values}")
            cell = self.cells[values] = self._make()
        return cell

    def reset(self) -> None:
        """Begin anew, with the same cells: whoever keeps one goes on counting in it."""
        for cell in self.cells.values():
            cell.reset()

    def family(self) -> Family:
        """The metric as prometheus-client knows it."""
        spec = self.spec
        text = f"[{spec.stability}] {spec.help}"
        labels = list(spec.labels)
        cells = sorted(self.cells.items())
        if spec.kind == "histogram":
            histogram = HistogramMetricFamily(spec.name, text, labels=labels)
            bounds = [*map(_bound, spec.buckets), "+Inf"]
            for values, cell in cells:
                assert isinstance(cell, Distribution)
                counts = [float(count) for count in accumulate(cell.counts)]
                histogram.add_metric(values, list(zip(bounds, counts, strict=True)), cell.sum)
            return histogram
        counter_or_gauge: CounterMetricFamily | GaugeMetricFamily
        if spec.kind == "counter":
            counter_or_gauge = CounterMetricFamily(spec.name, text, labels=labels)
        else:
            counter_or_gauge = GaugeMetricFamily(spec.name, text, labels=labels)
        for values, cell in cells:
            assert isinstance(cell, Number)
            counter_or_gauge.add_metric(values, cell.value)
        return counter_or_gauge


def _bound(value: float) -> str:
    """A bucket's bound as Go writes it: queries compare these texts."""
    return _go_text(value).removesuffix(".0")


def numbers(spec: MetricSpec) -> Metric[Number]:
    """A counter or a gauge."""
    assert spec.kind != "histogram", spec.name
    return Metric(spec, Number)


def distributions(spec: MetricSpec) -> Metric[Distribution]:
    """A histogram."""
    assert spec.kind == "histogram", spec.name
    return Metric(spec, lambda: Distribution(spec.buckets))
