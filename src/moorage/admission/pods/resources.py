"""Defaults of pod-level resources, and the QoS class of a pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moorage.admission.pods.totals import containers_total
from moorage.api.manifests import Manifest
from moorage.api.names import HUGE_PAGES, is_pod_level_resource
from moorage.api.quantity import parse_quantity

_COUNTS_FOR_QOS: Final = ("cpu", "memory")


def default_pod_level_resources(spec: Manifest) -> None:
    """Complete pod-level resources from those of the containers, if the pod has any."""
    resources = spec["resources"]
    if not resources.get("limits") and not resources.get("requests"):
        return
    limits = dict(resources.get("limits") or {})
    asked = resources.get("requests") or {}
    for name, most in containers_total(spec, "limits").items():
        if name.startswith(HUGE_PAGES) and name not in asked and name not in limits:
            limits[name] = str(most)
    if not limits:
        return
    resources["limits"] = limits
    requests = dict(asked)
    for name, amount in containers_total(spec, "requests").items():
        if name in _COUNTS_FOR_QOS:
            requests.setdefault(name, str(amount))
    for name, limit in limits.items():
        if is_pod_level_resource(name):
            requests.setdefault(name, limit)
    if requests:
        resources["requests"] = requests


def qos_class(pod: Manifest) -> str:
    """The QoS class: Guaranteed, Burstable or BestEffort."""
    spec = pod.get("spec") or {}
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    guaranteed = True
    whole = spec.get("resources")
    if whole is not None:
        _gather(requests, whole.get("requests"))
        if whole.get("limits"):
            guaranteed = _gather(limits, whole["limits"]) == len(_COUNTS_FOR_QOS)
    else:
        for key in ("containers", "initContainers"):
            for container in spec.get(key) or ():
                resources = container.get("resources") or {}
                _gather(requests, resources.get("requests"))
                if _gather(limits, resources.get("limits")) < len(_COUNTS_FOR_QOS):
                    guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _gather(total: dict[str, int], amounts: Mapping[str, str] | None) -> int:
    """Add the positive amounts of resources that count for QoS; returns the number of these resources."""
    count = 0
    if amounts:
        for name in _COUNTS_FOR_QOS:
            if (text := amounts.get(name)) and (amount := parse_quantity(text)) > 0:
                total[name] = total.get(name, 0) + amount
                count += 1
    return count
