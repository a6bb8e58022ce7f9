"""Metrics recorded by plugins themselves, which cannot be derived from their results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol


class MetricValue(Protocol):
    """The value of a counter or gauge."""

    def inc(self, amount: float = 1.0) -> None:
        """Add."""

    def set(self, value: float) -> None:
        """Replace; gauges only."""


class LabelledMetric(Protocol):
    """A counter or gauge, with one value for each combination of label values."""

    def labels(self, *values: str) -> MetricValue:
        """The value for these label values, in the order of the metric's labels."""

    def remove(self, *values: str) -> None:
        """Show no value for these label values any more."""


class PluginMetrics:
    """Receives metrics from plugins; this implementation records nothing."""

    def counter(self, name: str, help: str, labels: Sequence[str] = ()) -> LabelledMetric:
        """A counter of a plugin at `/metrics`; its name should end in `_total`.

        Asked for again, such as in a second profile, it is the same one. ValueError if the name is invalid,
        or that of another metric.
        """
        return _NOT_RECORDED

    def gauge(self, name: str, help: str, labels: Sequence[str] = ()) -> LabelledMetric:
        """A gauge of a plugin at `/metrics`, in the same way."""
        return _NOT_RECORDED

    def volumes_failed(self, stage: str) -> None:
        """An operation on volumes failed: in the stage `predicate` (filter), `assume`, or `bind`."""

    def claim_created(self, succeeded: bool) -> None:
        """A claim was created for a pod's extended resources, or could not be."""

    def devices_awaited(
        self, status: str, seconds: float, drivers: Iterable[str], slow_drivers: Iterable[str]
    ) -> None:
        """A pod has waited for its devices: until `success`, `failure`, `timeout` or `error`.

        drivers: that of each device the pod has; slow_drivers: of each device that takes time to get ready.
        """

    def slow_call(self, plugin: str, point: str) -> None:
        """A plugin took too long at an extension point."""


class _NotRecorded:
    """A metric that nothing reads."""

    def labels(self, *values: str) -> _NotRecorded:
        """The same for all label values."""
        return self

    def remove(self, *values: str) -> None:
        """Do nothing."""

    def inc(self, amount: float = 1.0) -> None:
        """Do nothing."""

    def set(self, value: float) -> None:
        """Do nothing."""


_NOT_RECORDED = _NotRecorded()
