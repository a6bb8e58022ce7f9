"""Leases: a holder's identity and the duration of its lease."""

from __future__ import annotations

from moorage.api.manifests import Manifest
from moorage.apimachinery.fields import NOT_NEGATIVE, FieldError, forbidden, invalid, not_supported
from moorage.apimachinery.validation.names import check_qualified_name
from moorage_cluster.apiserver.strategy import Strategy

_STRATEGIES = ("OldestEmulationVersion",)


class LeaseStrategy(Strategy):
    """A Lease."""

    allows_create_on_update = True
    allows_unconditional_update = False

    def default(self, obj: Manifest) -> None:
        """Add an empty spec if it is missing."""
        obj.setdefault("spec", {})

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the duration, the transitions and the strategy."""
        spec = obj.get("spec") or {}
        errors = []
        seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        if seconds is not None and seconds <= 0:
            errors.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
        if transitions is not None and transitions < 0:
            errors.append(invalid("spec.leaseTransitions", transitions, NOT_NEGATIVE))
        strategy = spec.get("strategy")
        if strategy is not None:
            path = "spec.strategy.strategy"
            if "/" in strategy:
                errors += check_qualified_name(strategy, path)
            elif strategy not in _STRATEGIES:
                errors.append(not_supported(path, strategy, _STRATEGIES))
        if spec.get("preferredHolder") and not strategy:
            why = "may only be specified if `strategy` is defined"
            errors.append(forbidden("spec.preferredHolder", why))
        return errors
