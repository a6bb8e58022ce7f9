"""Conversion of HorizontalPodAutoscalers of autoscaling/v1: one field for the CPU, annotations for the rest.

The annotations hold metrics in the form that they had before autoscaling/v2, and behavior under the field
names of Kubernetes' internal types.
"""

from __future__ import annotations

import json
from typing import Any, Final

from moorage.api.manifests import Manifest, take
from moorage.apimachinery.errors import ApiError
from moorage.apimachinery.schema import schema_of

DEFAULT_CPU_UTILIZATION: Final = 80
_METRICS_ANNOTATION: Final = "autoscaling.alpha.kubernetes.io/metrics"
_STATUSES_ANNOTATION: Final = "autoscaling.alpha.kubernetes.io/current-metrics"
_BEHAVIOR_ANNOTATION: Final = "autoscaling.alpha.kubernetes.io/behavior"
_CONDITIONS_ANNOTATION: Final = "autoscaling.alpha.kubernetes.io/conditions"
_ANNOTATIONS: Final = (
    _METRICS_ANNOTATION,
    _STATUSES_ANNOTATION,
    _BEHAVIOR_ANNOTATION,
    _CONDITIONS_ANNOTATION,
)
_SHARED_SPEC: Final = ("scaleTargetRef", "minReplicas", "maxReplicas")
_SHARED_STATUS: Final = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
_RULE_FIELDS: Final = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")

Path = tuple[str, ...]
_METRIC: Final[dict[str, Path]] = {"metricName": ("metric", "name"), "selector": ("metric", "selector")}
_IDENTITIES: Final[dict[str, dict[str, Path]]] = {
    "pods": _METRIC,
    "resource": {"name": ("name",)},
    "containerResource": {"name": ("name",), "container": ("container",)},
    "object": {"target": ("describedObject",), **_METRIC},
    "external": {"metricName": ("metric", "name"), "metricSelector": ("metric", "selector")},
}
"""The old form's field names of each source, and the paths of these fields in the new form."""


def _amounts(source: str, group: str) -> dict[str, Path]:
    """The old form's names of a source's amounts, either the `target` or the `current` ones."""
    average, value = (group, "averageValue"), (group, "value")
    match source:
        case "pods":
            return {f"{group}AverageValue": average}
        case "object":
            return {f"{group}Value": value, "averageValue": average}
        case "external":
            return {f"{group}Value": value, f"{group}AverageValue": average}
    return {f"{group}AverageUtilization": (group, "averageUtilization"), f"{group}AverageValue": average}


_REQUIRED: Final = {
    ("pods", "target"): "targetAverageValue",
    ("object", "target"): "targetValue",
    ("pods", "current"): "currentAverageValue",
    ("resource", "current"): "currentAverageValue",
    ("containerResource", "current"): "currentAverageValue",
    ("object", "current"): "currentValue",
    ("external", "current"): "currentValue",
}
"""The amounts that the old form always has, with 0 as the default."""


class AutoscalerConversion:
    """Autoscalers of autoscaling/v1 are stored in the form of autoscaling/v2."""

    def from_storage(self, obj: Manifest) -> Manifest:
        """The autoscaler of autoscaling/v1."""
        return to_v1(obj)

    def to_storage(self, obj: Manifest) -> Manifest:
        """The autoscaler of autoscaling/v2."""
        return to_v2(obj)


def cpu_utilization_metric(percent: int) -> Manifest:
    """The metric for which autoscaling/v1 has a field."""
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _cpu(metric: Manifest, group: str) -> int | None:
    """The CPU utilization that a metric targets or has measured; None if it is another metric."""
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    found: int | None = (resource.get(group) or {}).get("averageUtilization")
    return found


def to_v1(obj: Manifest) -> Manifest:
    """Convert an autoscaler of autoscaling/v2 to autoscaling/v1."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    new_spec, new_status = _parts(spec, _SHARED_SPEC), _parts(status, _SHARED_STATUS)
    for key in ("currentReplicas", "desiredReplicas"):
        new_status.setdefault(key, 0)
    metrics, measured = spec.get("metrics") or (), status.get("currentMetrics") or ()
    wanted = [percent for each in metrics if (percent := _cpu(each, "target")) is not None]
    if wanted:
        new_spec["targetCPUUtilizationPercentage"] = wanted[0]
    for percent in (_cpu(each, "current") for each in measured):
        if percent is not None:
            new_status["currentCPUUtilizationPercentage"] = percent
    annotated: dict[str, Any] = {
        _METRICS_ANNOTATION: [_old(each, "target") for each in metrics if _cpu(each, "target") is None],
        _STATUSES_ANNOTATION: [_old(each, "current") for each in measured],
        _BEHAVIOR_ANNOTATION: _annotated_behavior(spec["behavior"]) if "behavior" in spec else None,
        _CONDITIONS_ANNOTATION: status.get("conditions"),
    }
    texts = {key: json.dumps(value, separators=(",", ":")) for key, value in annotated.items() if value}
    meta = _annotated(obj["metadata"], texts)
    return {**obj, "apiVersion": "autoscaling/v1", "metadata": meta, "spec": new_spec, "status": new_status}


def to_v2(obj: Manifest) -> Manifest:
    """Convert an autoscaler of autoscaling/v1 to autoscaling/v2."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    annotated = {key: _read(obj, key) for key in _ANNOTATIONS}
    new_spec, new_status = _parts(spec, _SHARED_SPEC), _parts(status, _SHARED_STATUS)
    metrics = _read_metrics(annotated[_METRICS_ANNOTATION], "target")
    percent = spec.get("targetCPUUtilizationPercentage")
    if percent is not None or not metrics:
        metrics.append(cpu_utilization_metric(DEFAULT_CPU_UTILIZATION if percent is None else percent))
    new_spec["metrics"] = metrics
    if behavior := _typed("spec", "behavior", _read_behavior(annotated[_BEHAVIOR_ANNOTATION])):
        new_spec["behavior"] = behavior
    new_status["currentMetrics"] = _read_metrics(annotated[_STATUSES_ANNOTATION], "current")
    percent = status.get("currentCPUUtilizationPercentage")
    if percent is not None and not new_status["currentMetrics"]:
        resource = {"name": "cpu", "current": {"averageUtilization": percent}}
        new_status["currentMetrics"] = [{"type": "Resource", "resource": resource}]
    if conditions := _typed("status", "conditions", annotated[_CONDITIONS_ANNOTATION]):
        new_status["conditions"] = conditions
    if not new_status.get("currentReplicas"):
        new_status.pop("currentReplicas", None)
    meta = _annotated(obj["metadata"], {})
    return {**obj, "apiVersion": "autoscaling/v2", "metadata": meta, "spec": new_spec, "status": new_status}


def _parts(obj: Manifest, keys: tuple[str, ...]) -> Manifest:
    found: Manifest = {}
    for key in keys:
        take(found, obj, key)
    return found


def _annotated(meta: Manifest, texts: dict[str, str]) -> Manifest:
    """Metadata with these conversion annotations and no others."""
    kept = {key: text for key, text in (meta.get("annotations") or {}).items() if key not in _ANNOTATIONS}
    new = {**meta, "annotations": kept | texts}
    if not new["annotations"]:
        del new["annotations"]
    return new


def _read(obj: Manifest, annotation: str) -> Any:
    try:
        return json.loads((obj["metadata"].get("annotations") or {}).get(annotation, "null"))
    except (ValueError, RecursionError):
        return None


def _typed(part: str, key: str, value: Any) -> Any:
    """A value as a spec or status of autoscaling/v2; None if its types are wrong."""
    schema = schema_of("autoscaling", "v2", "HorizontalPodAutoscaler")
    assert schema is not None
    try:
        decoded = schema.decode({part: {key: value}}).obj
    except ApiError:
        return None
    return (decoded.get(part) or {}).get(key)


# -- metrics


def _source_of(metric: Manifest) -> str:
    return next((source for source in _IDENTITIES if isinstance(metric.get(source), dict)), "")


def _old(metric: Manifest, group: str) -> Manifest:
    """A metric or its measured value in the old form."""
    source = _source_of(metric)
    if not source:
        return metric
    found: Manifest = {}
    for key, path in (_IDENTITIES[source] | _amounts(source, group)).items():
        value: Any = metric[source]
        for step in path:
            value = None if value is None else value.get(step)
        if value is not None:
            found[key] = value
    if (source, group) in _REQUIRED:
        found.setdefault(_REQUIRED[source, group], "0")
    return {"type": metric.get("type", ""), source: found}


def _read_metrics(annotated: Any, group: str) -> list[Manifest]:
    if not isinstance(annotated, list):
        return []
    found = [_new(metric, group) for metric in annotated if isinstance(metric, dict)]
    place = ("spec", "metrics") if group == "target" else ("status", "currentMetrics")
    return _typed(*place, found) or []


def _new(metric: Manifest, group: str) -> Manifest:
    """A metric or its measured value in the form of autoscaling/v2."""
    source = _source_of(metric)
    if not source:
        return metric
    old, found = metric[source], dict[str, Any]()
    for key, path in (_IDENTITIES[source] | _amounts(source, group)).items():
        if old.get(key) is not None:
            place = found
            for step in path[:-1]:
                place = place.setdefault(step, {})
            place[path[-1]] = old[key]
    if group == "target":
        _settle_target(source, found.setdefault("target", {}))
    return {"type": metric.get("type", ""), source: found}


def _settle_target(source: str, target: Manifest) -> None:
    """Set the type of a target; a value of zero beside an average means no value."""
    if source == "object" and "averageValue" in target and target.get("value") == "0":
        del target["value"]
    if "averageUtilization" in target:
        target["type"] = "Utilization"
    elif source == "object":
        target["type"] = "AverageValue" if "averageValue" in target else "Value"
    else:
        target["type"] = "Value" if "value" in target else "AverageValue"


# -- behavior


def _annotated_behavior(behavior: Manifest) -> Manifest:
    return {
        _annotated_name(key): {
            _annotated_name(each): _annotated_rule(rules.get(each)) for each in _RULE_FIELDS
        }
        for key, rules in behavior.items()
    }


def _annotated_rule(value: Any) -> Any:
    if isinstance(value, list):
        return [{_annotated_name(key): each for key, each in policy.items()} for policy in value]
    return value


def _annotated_name(key: str) -> str:
    return key[:1].upper() + key[1:]


def _read_behavior(annotated: Any) -> Any:
    """Values under lowerCamelCase names, regardless of the case of their first letters; nulls are dropped."""
    if isinstance(annotated, dict):
        return {
            key[:1].lower() + key[1:]: _read_behavior(each)
            for key, each in annotated.items()
            if each is not None
        }
    if isinstance(annotated, list):
        return [_read_behavior(each) for each in annotated]
    return annotated
