"""The metrics of a HorizontalPodAutoscaler of autoscaling/v2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from moorage.api.manifests import Manifest
from moorage.api.quantity import parse_quantity
from moorage.apimachinery.fields import (
    FieldError,
    complaints,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.apimachinery.validation.names import check_label, check_path_segment
from moorage.apimachinery.validation.resource_names import container_resource_problems
from moorage_cluster.apiserver.kinds.object_references import check_versioned_reference

_SOURCE_TYPES: Final = ("ContainerResource", "External", "Object", "Pods", "Resource")
_SOURCES: Final = ("object", "external", "pods", "resource", "containerResource")
"""The fields of a metric's sources, in the order in which they are validated."""
_TARGET_TYPES: Final = ("Utilization", "Value", "AverageValue")


def check_metrics(metrics: Sequence[Manifest], path: str) -> list[FieldError]:
    """Each metric has exactly one source, the one of its type."""
    errors: list[FieldError] = []
    for index, metric in enumerate(metrics):
        errors += _check_metric(metric, f"{path}[{index}]")
    return errors


def _check_metric(metric: Manifest, path: str) -> list[FieldError]:
    kind = metric.get("type", "")
    errors: list[FieldError] = []
    unknown = not_supported(f"{path}.type", kind, _SOURCE_TYPES)
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric source type"))
    if kind not in _SOURCE_TYPES:
        errors.append(unknown)
    present = [source for source in _SOURCES if source in metric]
    if present:
        errors += _CHECKS[present[0]](metric[present[0]], f"{path}.{present[0]}")
    expected = kind[:1].lower() + kind[1:] if kind in _SOURCE_TYPES else ""
    if not expected:
        errors.append(unknown)
    elif expected not in present:
        why = "must populate information for the given metric source"
        errors.append(required(f"{path}.{expected}", why))
    if len(present) != 1:
        why = "must populate the given metric source only"
        errors += [forbidden(f"{path}.{source}", why) for source in present if source != expected]
    return errors


def _check_object(source: Manifest, path: str) -> list[FieldError]:
    described = source.get("describedObject") or {}
    errors = check_versioned_reference(described, f"{path}.describedObject", needs_group=False)
    errors += _check_identifier(source, path) + _check_target(source, path)
    target = _target_of(source)
    if "value" not in target and "averageValue" not in target:
        why = "must set either a target value or averageValue"
        errors.append(required(f"{path}.target.averageValue", why))
    return errors


def _check_external(source: Manifest, path: str) -> list[FieldError]:
    errors = _check_identifier(source, path) + _check_target(source, path)
    target = _target_of(source)
    if "value" not in target and "averageValue" not in target:
        why = "must set either a target value for metric or a per-pod target"
        errors.append(required(f"{path}.target.averageValue", why))
    if "value" in target and "averageValue" in target:
        why = "may not set both a target value for metric and a per-pod target"
        errors.append(forbidden(f"{path}.target.value", why))
    return errors


def _check_pods(source: Manifest, path: str) -> list[FieldError]:
    errors = _check_identifier(source, path) + _check_target(source, path)
    if "averageValue" not in _target_of(source):
        why = "must specify a positive target averageValue"
        errors.append(required(f"{path}.target.averageValue", why))
    return errors


def _check_resource(source: Manifest, path: str) -> list[FieldError]:
    named = bool(source.get("name"))
    errors = [] if named else [required(f"{path}.name", "must specify a resource name")]
    return errors + _check_usage(source, path)


def _check_container_resource(source: Manifest, path: str) -> list[FieldError]:
    name, container = source.get("name", ""), source.get("container", "")
    errors = [] if name else [required(f"{path}.name", "must specify a resource name")]
    if name:
        errors += complaints(f"{path}.name", name, container_resource_problems(name))
    if container:
        errors += check_label(container, f"{path}.container")
    else:
        errors.append(required(f"{path}.container", "must specify a container"))
    return errors + _check_usage(source, path)


def _check_usage(source: Manifest, path: str) -> list[FieldError]:
    """A target for the resource usage of pods, either as an amount or as a percentage of their requests."""
    errors = _check_target(source, path)
    target = _target_of(source)
    if "averageUtilization" not in target and "averageValue" not in target:
        why = "must set either a target raw value or a target utilization"
        errors.append(required(f"{path}.target.averageUtilization", why))
    if "averageUtilization" in target and "averageValue" in target:
        why = "may not set both a target raw value and a target utilization"
        errors.append(forbidden(f"{path}.target.averageValue", why))
    return errors


def _target_of(source: Manifest) -> Manifest:
    target: Manifest = source.get("target") or {}
    return target


def _check_target(source: Manifest, path: str) -> list[FieldError]:
    target, path = _target_of(source), f"{path}.target"
    kind = target.get("type", "")
    errors = [] if kind else [required(f"{path}.type", "must specify a metric target type")]
    if kind not in _TARGET_TYPES:
        why = "must be either Utilization, Value, or AverageValue"
        errors.append(invalid(f"{path}.type", kind, why))
    for key in ("value", "averageValue"):
        if key in target and parse_quantity(target[key]) <= 0:
            errors.append(invalid(f"{path}.{key}", target[key], "must be positive"))
    if target.get("averageUtilization", 1) < 1:
        share = target["averageUtilization"]
        errors.append(invalid(f"{path}.averageUtilization", share, "must be greater than 0"))
    return errors


def _check_identifier(source: Manifest, path: str) -> list[FieldError]:
    name, path = (source.get("metric") or {}).get("name", ""), f"{path}.metric.name"
    return check_path_segment(name, path) if name else [required(path, "must specify a metric name")]


_CHECKS: Final[dict[str, Callable[[Manifest, str], list[FieldError]]]] = {
    "object": _check_object,
    "external": _check_external,
    "pods": _check_pods,
    "resource": _check_resource,
    "containerResource": _check_container_resource,
}
