"""Taints of devices, and DeviceTaintRules, with which administrators taint them."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest, Now, child, timestamp, utc_now
from moorage.apimachinery.fields import FieldError, too_many
from moorage.apimachinery.validation.checks import check_conditions, check_driver_name, check_one_of
from moorage.apimachinery.validation.names import check_label, check_label_value, check_qualified_name
from moorage_cluster.apiserver.kinds.base import StatusStrategy, keep_metadata
from moorage_cluster.apiserver.kinds.device_requests import DEVICE_EFFECTS
from moorage_cluster.apiserver.kinds.resource_claims import check_pool_name

_MAX_CONDITIONS: Final = 8
_SELECTED_BY: Final = {"driver": check_driver_name, "pool": check_pool_name, "device": check_label}


def default_taint(taint: Manifest, now: Now) -> None:
    """A taint was added now, unless it says otherwise."""
    if "timeAdded" not in taint:
        taint["timeAdded"] = timestamp(now())


def check_taint(taint: Manifest, path: str) -> list[FieldError]:
    """Validation errors of a taint."""
    errors = check_qualified_name(taint.get("key", ""), f"{path}.key")
    if taint.get("value"):
        errors += check_label_value(taint["value"], f"{path}.value")
    return errors + check_one_of(taint.get("effect", ""), DEVICE_EFFECTS, f"{path}.effect")


class DeviceTaintRuleStrategy(StatusStrategy):
    """A DeviceTaintRule."""

    has_generation = True
    allows_unconditional_update = False

    def __init__(self, now: Now = utc_now) -> None:
        self._now = now

    def default(self, obj: Manifest) -> None:
        """Set the time at which the taint was added."""
        super().default(obj)
        default_taint(child(obj["spec"], "taint"), self._now)

    def prepare_update(self, obj: Manifest, old: Manifest) -> None:
        """Another effect is a new taint: it was added now."""
        taint, before = obj["spec"]["taint"], (old.get("spec") or {}).get("taint") or {}
        if taint.get("effect") != before.get("effect") and taint["timeAdded"] == before.get("timeAdded"):
            taint["timeAdded"] = timestamp(self._now())
        super().prepare_update(obj, old)

    def prepare_status(self, obj: Manifest, old: Manifest) -> None:
        """Status updates do not change the metadata."""
        super().prepare_status(obj, old)
        keep_metadata(obj, old)

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the selector and the taint."""
        selector = obj["spec"].get("deviceSelector") or {}
        errors = [
            error
            for key, check in _SELECTED_BY.items()
            if key in selector
            for error in check(selector[key], f"spec.deviceSelector.{key}")
        ]
        return errors + check_taint(obj["spec"]["taint"], "spec.taint")

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Conditions are valid, and few."""
        conditions = (obj.get("status") or {}).get("conditions") or ()
        errors = check_conditions(conditions, "status.conditions")
        if len(conditions) > _MAX_CONDITIONS:
            errors.append(too_many("status.conditions", len(conditions), _MAX_CONDITIONS))
        return errors
