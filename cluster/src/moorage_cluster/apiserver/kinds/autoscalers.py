"""HorizontalPodAutoscalers: the allowed number of pods of a workload. They are stored; nothing is scaled.

Both versions are stored as one object, in the form of autoscaling/v2.
"""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest, child, copy
from moorage.apimachinery.fields import (
    NOT_POSITIVE,
    FieldError,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.apimachinery.validation.checks import check_not_negative, check_quantity_not_negative
from moorage_cluster.apiserver.kinds.autoscaler_metrics import check_metrics
from moorage_cluster.apiserver.kinds.autoscaler_versions import (
    DEFAULT_CPU_UTILIZATION,
    cpu_utilization_metric,
    to_v1,
    to_v2,
)
from moorage_cluster.apiserver.kinds.base import StatusStrategy
from moorage_cluster.apiserver.kinds.object_references import check_versioned_reference

_SELECT_POLICIES: Final = ("Disabled", "Max", "Min")
_POLICY_TYPES: Final = ("Percent", "Pods")
_MAX_WINDOW_SECONDS: Final = 3600
_MAX_PERIOD_SECONDS: Final = 1800
_SCALE_UP: Final = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN: Final = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}


class AutoscalerStrategy(StatusStrategy):
    """A HorizontalPodAutoscaler of autoscaling/v2."""

    empty_status = {"currentMetrics": [], "desiredReplicas": 0}

    def default(self, obj: Manifest) -> None:
        """At least one pod, at 80% of its CPU request; scaling rules are filled in."""
        super().default(obj)
        spec = obj["spec"]
        spec.setdefault("minReplicas", 1)
        if not spec.get("metrics"):
            spec["metrics"] = [cpu_utilization_metric(DEFAULT_CPU_UTILIZATION)]
        if "behavior" in spec:
            for key, rules in (("scaleUp", _SCALE_UP), ("scaleDown", _SCALE_DOWN)):
                spec["behavior"][key] = {**copy(rules), **(spec["behavior"].get(key) or {})}

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the replica bounds, the scale target and the metrics."""
        return _check_spec(obj["spec"], None)

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """All fields may change."""
        return _check_spec(obj["spec"], old.get("spec") or {})

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Replica counts are not negative."""
        return check_not_negative(obj["status"], ("currentReplicas", "desiredReplicas"), "status")


class AutoscalerV1Strategy(AutoscalerStrategy):
    """A HorizontalPodAutoscaler of autoscaling/v1: the same rules, for the stored form."""

    empty_status = {"currentReplicas": 0, "desiredReplicas": 0}
    _stored = AutoscalerStrategy()

    def default(self, obj: Manifest) -> None:
        """The defaults of autoscaling/v2."""
        child(obj, "metadata")
        stored = to_v2(obj)
        self._stored.default(stored)
        obj.update(to_v1(stored))

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the replica bounds, the scale target and the metrics."""
        return self._stored.validate(to_v2(obj))

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """All fields may change."""
        return self._stored.validate_update(to_v2(obj), old)


def _check_spec(spec: Manifest, before: Manifest | None) -> list[FieldError]:
    least, most = spec["minReplicas"], spec.get("maxReplicas", 0)
    errors = []
    if least < 1:
        errors.append(invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
    if most == 0:
        errors.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif most < 0:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than or equal to 1"))
    if most < least:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    errors += _check_target(spec.get("scaleTargetRef") or {}, before)
    errors += check_metrics(spec["metrics"], "spec.metrics")
    if least == 0 and not any(each.get("type") in ("Object", "External") for each in spec["metrics"]):
        why = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(forbidden("spec.metrics", why))
    behavior = spec.get("behavior") or {}
    for key in ("scaleUp", "scaleDown"):
        if key in behavior:
            errors += _check_rules(behavior[key], f"spec.behavior.{key}")
    return errors


def _check_target(target: Manifest, before: Manifest | None) -> list[FieldError]:
    """The scale target has a group, unless it is of the core group or was accepted before."""
    known = (before or {}).get("scaleTargetRef") or {}
    is_known = before is not None and all(known.get(key) == target.get(key) for key in ("apiVersion", "kind"))
    needs_group = not is_known and target.get("kind") != "ReplicationController"
    return check_versioned_reference(
        target, "spec.scaleTargetRef", needs_group=needs_group, check_version=not is_known
    )


def _check_rules(rules: Manifest, path: str) -> list[FieldError]:
    errors = []
    window = rules.get("stabilizationWindowSeconds", 0)
    if window < 0:
        why = "must be greater than or equal to zero"
        errors.append(invalid(f"{path}.stabilizationWindowSeconds", window, why))
    if window > _MAX_WINDOW_SECONDS:
        why = f"must be less than or equal to {_MAX_WINDOW_SECONDS}"
        errors.append(invalid(f"{path}.stabilizationWindowSeconds", window, why))
    if rules.get("selectPolicy", "Max") not in _SELECT_POLICIES:
        errors.append(not_supported(f"{path}.selectPolicy", rules["selectPolicy"], _SELECT_POLICIES))
    if not rules.get("policies"):
        errors.append(required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(rules.get("policies") or ()):
        errors += _check_policy(policy, f"{path}.policies[{index}]")
    if "tolerance" in rules:
        errors += check_quantity_not_negative(rules["tolerance"], f"{path}.tolerance")
    return errors


def _check_policy(policy: Manifest, path: str) -> list[FieldError]:
    kind, value, period = policy.get("type", ""), policy.get("value", 0), policy.get("periodSeconds", 0)
    errors = [] if kind in _POLICY_TYPES else [not_supported(f"{path}.type", kind, _POLICY_TYPES)]
    if value <= 0:
        errors.append(invalid(f"{path}.value", value, NOT_POSITIVE))
    if period <= 0:
        errors.append(invalid(f"{path}.periodSeconds", period, NOT_POSITIVE))
    if period > _MAX_PERIOD_SECONDS:
        why = f"must be less than or equal to {_MAX_PERIOD_SECONDS}"
        errors.append(invalid(f"{path}.periodSeconds", period, why))
    return errors
