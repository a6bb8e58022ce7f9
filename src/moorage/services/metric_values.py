"""Metric values that are written on hot paths and read rarely.

prometheus-client's counters take a lock and walk through the buckets at each observation: that costs more
than some of the measured plugins. Here an observation is an addition, or a value appended to a list, and the
exposition text is built on request. There are no locks: each cell is written by one thread, and read and
settled by the scheduler's, which may be another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Generic, Literal, TypeVar, cast

import numpy as np
from prometheus_client.utils import floatToGoString

Kind = Literal["counter", "gauge", "histogram"]

UNEXPECTED: Final = "unexpected"
"""Shown instead of label values that are not allowed."""
_ESCAPED: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_ESCAPED_HELP: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})
_go_text = cast(Callable[[float], str], floatToGoString)


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """The definition of a metric."""

    name: str
    kind: Kind
    stability: str
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()
    """Upper bounds, without the infinite one; histograms only."""
    gate: str = ""
    """The feature gate without which it is not registered; empty: there is none."""


class Number:
    """A counter or gauge."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1.0) -> None:
        """Add."""
        self.value += amount

    def set(self, value: float) -> None:
        """Replace; gauges only."""
        self.value = value

    def reset(self) -> None:
        """Set to zero."""
        self.value = 0.0


class Distribution:
    """A histogram: observations by bucket, and their sum.

    Observing only stores the value: `observe` is the `append` of a list, which costs a twentieth of a Python
    function that finds a bucket. Buckets are counted for many values at a time, when they are read or when
    `settle` is called to bound the list.
    """

    __slots__ = ("_bounds", "_counts", "_noted", "_sum", "observe")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = np.asarray(bounds)
        self._counts = np.zeros(len(bounds) + 1, np.int64)
        self._sum = 0.0
        self._noted: list[float] = []
        self.observe: Callable[[float], None] = self._noted.append
        """Observe a value."""

    @property
    def stored(self) -> int:
        """Number of stored values."""
        return len(self._noted)

    def settle(self) -> None:
        """Count the stored values."""
        count = len(self._noted)
        if count:
            values = np.array(self._noted[:count])
            del self._noted[:count]  # Values that another thread has stored meanwhile stay.
            buckets = np.searchsorted(self._bounds, values)
            self._counts += np.bincount(buckets, minlength=len(self._counts))
            self._sum += float(values.sum())

    @property
    def counts(self) -> list[int]:
        """Number of observations in each bucket; the last one has no upper bound."""
        self.settle()
        return [int(count) for count in self._counts]

    @property
    def sum(self) -> float:
        """Sum of all observations."""
        self.settle()
        return self._sum

    def reset(self) -> None:
        """Set to zero."""
        self._noted.clear()
        self._counts[:] = 0
        self._sum = 0.0


CellT = TypeVar("CellT", bound=Number | Distribution)


class Metric(Generic[CellT]):
    """All cells of a metric, one for each combination of label values."""

    def __init__(self, spec: MetricSpec, make: Callable[[], CellT]) -> None:
        self.spec = spec
        self._make = make
        self._allowed: Mapping[str, frozenset[str]] = {}
        self._on_unexpected: Callable[[], None] = lambda: None
        self.cells: dict[tuple[str, ...], CellT] = {}
        self._aliases: set[tuple[str, ...]] = set()
        """Label values whose cell is shown under others."""
        if not spec.labels:
            self.labels()

    def labels(self, *values: str) -> CellT:
        """The cell of these label values, in the order of the metric's labels."""
        cell = self.cells.get(values)
        if cell is None:
            if len(values) != len(self.spec.labels):
                raise ValueError(f"{self.spec.name} has the labels {self.spec.labels}, not {values}")
            shown = self._shown(values)
            if shown == values:
                cell = self._make()
            else:
                cell = self.labels(*shown)
                self._aliases.add(values)
                self._on_unexpected()
            self.cells[values] = cell
        return cell

    def remove(self, *values: str) -> None:
        """Show no cell of these label values any more."""
        self.cells.pop(values, None)

    def allow(self, allowed: Mapping[str, frozenset[str]], on_unexpected: Callable[[], None]) -> None:
        """Show only these values of some labels, all others as one; called before any observation."""
        self._allowed = allowed
        self._on_unexpected = on_unexpected

    def _shown(self, values: tuple[str, ...]) -> tuple[str, ...]:
        if not self._allowed:
            return values
        return tuple(
            value if value in self._allowed.get(label, (value,)) else UNEXPECTED
            for label, value in zip(self.spec.labels, values, strict=True)
        )

    def reset(self) -> None:
        """Set all cells to zero; they stay valid for callers that keep them."""
        for cell in list(self.cells.values()):
            cell.reset()

    def text(self) -> str:
        """The metric in Prometheus' text format."""
        spec = self.spec
        lines = [
            f"# HELP {spec.name} [{spec.stability}] {spec.help.translate(_ESCAPED_HELP)}",
            f"# TYPE {spec.name} {spec.kind}",
        ]
        for values, cell in sorted(self.cells.items()):
            if values not in self._aliases and not _is_unused(cell, values):
                labels = [
                    f'{label}="{value.translate(_ESCAPED)}"'
                    for label, value in sorted(zip(spec.labels, values, strict=True))
                ]
                lines += self._samples(labels, cell)
        return "\n".join(lines) + "\n"

    def _samples(self, labels: list[str], cell: CellT) -> Iterator[str]:
        name = self.spec.name
        joined = f"{{{','.join(labels)}}}" if labels else ""
        if isinstance(cell, Number):
            yield f"{name}{joined} {_number(cell.value)}"
            return
        assert isinstance(cell, Distribution)
        counts = list(accumulate(cell.counts))
        for bound, count in zip((*map(_bound, self.spec.buckets), "+Inf"), counts, strict=True):
            bounded = ",".join((*labels, f'le="{bound}"'))
            yield f"{name}_bucket{{{bounded}}} {count}"
        yield f"{name}_sum{joined} {_number(cell.sum)}"
        yield f"{name}_count{joined} {counts[-1]}"


def _is_unused(cell: Number | Distribution, values: tuple[str, ...]) -> bool:
    """Whether a cell was only created in advance: histograms without observations are not shown."""
    return bool(values) and isinstance(cell, Distribution) and not any(cell.counts)


def _bound(value: float) -> str:
    """A bucket's bound in Go's format: queries compare it as text."""
    return _go_text(value).removesuffix(".0")


def _number(value: float) -> str:
    return _bound(float(value))


def numbers(spec: MetricSpec) -> Metric[Number]:
    """A counter or a gauge."""
    assert spec.kind != "histogram", spec.name
    return Metric(spec, Number)


def distributions(spec: MetricSpec) -> Metric[Distribution]:
    """A histogram."""
    assert spec.kind == "histogram", spec.name
    return Metric(spec, lambda: Distribution(spec.buckets))
