"""Metrics recorded by plugins themselves, which cannot be derived from their results."""

from __future__ import annotations

from collections.abc import Iterable


class PluginMetrics:
    """Receives metrics from plugins; this implementation records nothing."""

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
