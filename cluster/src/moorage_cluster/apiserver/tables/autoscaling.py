"""Autoscalers: what they scale, and how far."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.kinds.autoscaler_versions import to_v2
from moorage_cluster.apiserver.tables.base import Printer
from moorage_cluster.apiserver.tables.cells import NONE, UNKNOWN, UNSET, at, items, mapping, number, text
from moorage_cluster.apiserver.tables.columns import AGED, NAMED, Columns, count_at, derived

_MAX_SHOWN: Final = 2
_SOURCES: Final = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _reference(autoscaler: Manifest) -> str:
    target = mapping(autoscaler, "spec", "scaleTargetRef")
    return f"{text(target, 'kind')}/{text(target, 'name')}"


def _least(autoscaler: Manifest) -> str:
    least = at(autoscaler, "spec", "minReplicas")
    return UNSET if least is None else str(number(autoscaler, "spec", "minReplicas"))


def _targets(autoscaler: Manifest) -> str:
    """What is measured and what is wanted, metric by metric; both versions show the same."""
    if text(autoscaler, "apiVersion") == "autoscaling/v1":
        autoscaler = to_v2(autoscaler)
    metrics, measured = items(autoscaler, "spec", "metrics"), items(autoscaler, "status", "currentMetrics")
    measured += [{}] * (len(metrics) - len(measured))
    shown = [_target(metric, status) for metric, status in zip(metrics, measured, strict=False)]
    more = len(shown) - _MAX_SHOWN
    listed = ", ".join(shown[:_MAX_SHOWN])
    return f"{listed} + {more} more..." if more > 0 else listed or NONE


def _target(metric: Manifest, status: Manifest) -> str:
    source = _SOURCES.get(text(metric, "type"))
    if source is None:
        return "<unknown type>"
    wanted, current = mapping(metric, source, "target"), mapping(status, source, "current")
    if source in ("resource", "containerResource"):
        name = text(metric, source, "name")
        if "averageValue" in wanted:
            return f"{name}: {text(current, 'averageValue') or UNKNOWN}/{text(wanted, 'averageValue')}"
        used, target = at(current, "averageUtilization"), at(wanted, "averageUtilization")
        shown = UNKNOWN if used is None else f"{used}%"
        return f"{name}: {shown}/{'<auto>' if target is None else f'{target}%'}"
    if "averageValue" in wanted:
        pair = f"{text(current, 'averageValue') or UNKNOWN}/{text(wanted, 'averageValue')}"
        return pair if source == "pods" else f"{pair} (avg)"
    return f"{text(current, 'value') or UNKNOWN}/{text(wanted, 'value')}"


PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    ("autoscaling", "HorizontalPodAutoscaler"): Columns(
        NAMED,
        derived("Reference", _reference, "What is scaled."),
        derived("Targets", _targets, "What is measured, of what is wanted."),
        derived("MinPods", _least, "The fewest pods."),
        count_at("MaxPods", "spec.maxReplicas", "The most pods.", type="string"),
        count_at("Replicas", "status.currentReplicas", "How many pods there are.", type="string"),
        AGED,
    ),
}
"""The tables of this family, by group and kind."""
