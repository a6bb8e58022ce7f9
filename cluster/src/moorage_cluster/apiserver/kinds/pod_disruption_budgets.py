"""PodDisruptionBudgets: how many pods may be unavailable at a time."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest
from moorage.apimachinery.fields import FieldError, invalid
from moorage.apimachinery.validation.checks import (
    check_at_most_100_percent,
    check_conditions,
    check_int_or_percent,
    check_not_negative,
    check_optional_word,
)
from moorage.apimachinery.validation.selectors import check_label_selector
from moorage_cluster.apiserver.kinds.base import StatusStrategy

_EVICTION_POLICIES: Final = ("AlwaysAllow", "IfHealthyBudget")


class PodDisruptionBudgetStrategy(StatusStrategy):
    """A PodDisruptionBudget."""

    has_generation = True
    allows_unconditional_update = False
    empty_status = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the budget."""
        spec = obj.get("spec") or {}
        errors = []
        if "minAvailable" in spec and "maxUnavailable" in spec:
            why = "minAvailable and maxUnavailable cannot be both set"
            errors.append(invalid("spec", spec, why))
        for key in ("minAvailable", "maxUnavailable"):
            if key in spec:
                errors += check_int_or_percent(spec[key], f"spec.{key}")
                errors += check_at_most_100_percent(spec[key], f"spec.{key}")
        errors += check_label_selector(spec.get("selector"), "spec.selector")
        if "unhealthyPodEvictionPolicy" in spec:
            path = "spec.unhealthyPodEvictionPolicy"
            errors += check_optional_word(spec["unhealthyPodEvictionPolicy"], _EVICTION_POLICIES, path)
        return errors

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The conditions are valid, and the counters are not negative."""
        status = obj.get("status") or {}
        errors = check_conditions(status.get("conditions") or (), "status.conditions")
        counts = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
        return errors + check_not_negative(status, counts, "status")
