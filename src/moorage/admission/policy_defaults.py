"""Defaults of LimitRanges and PriorityClasses, which the admission of pods reads."""

from __future__ import annotations

from moorage.api.manifests import Manifest, child


def default_limit_range(limit_range: Manifest) -> None:
    """A container's default limit is the maximum, its default request the limit, or else the minimum."""
    for item in child(limit_range, "spec").setdefault("limits", []):
        if item.get("type") != "Container":
            continue
        limits, requests = dict(item.get("default") or {}), dict(item.get("defaultRequest") or {})
        limits = {**(item.get("max") or {}), **limits}
        requests = {**(item.get("min") or {}), **limits, **requests}
        for key, amounts in (("default", limits), ("defaultRequest", requests)):
            if amounts:
                item[key] = amounts


def default_priority_class(priority_class: Manifest) -> None:
    """The value is 0, the preemption policy PreemptLowerPriority."""
    priority_class.setdefault("value", 0)
    priority_class.setdefault("preemptionPolicy", "PreemptLowerPriority")
