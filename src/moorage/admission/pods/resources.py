"""Defaults of pod-level resources, and the QoS class of a pod."""

from __future__ import annotations

from collections.abc import Mapping

from moorage.admission.pods.totals import containers_total
from moorage.api.manifests import Manifest
from moorage.api.names import HUGE_PAGES, is_pod_level_resource
from moorage.api.qos import COUNTED_FOR_QOS, qos_of
from moorage.api.quantity import parse_quantity


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
        if name in COUNTED_FOR_QOS:
            requests.setdefault(name, str(amount))
    for name, limit in limits.items():
        if is_pod_level_resource(name):
            requests.setdefault(name, limit)
    if requests:
        resources["requests"] = requests


def qos_class(pod: Manifest) -> str:
    """The QoS class: Guaranteed, Burstable or BestEffort."""
    spec = pod.get("spec") or {}
    if (whole := spec.get("resources")) is not None:
        return str(qos_of([_amounts(whole)]))
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    return str(qos_of(_amounts(each.get("resources") or {}) for each in containers))


def _amounts(resources: Manifest) -> tuple[dict[str, int], dict[str, int]]:
    """Requests and limits of the resources that count for QoS."""
    return _parsed(resources.get("requests")), _parsed(resources.get("limits"))


def _parsed(written: Mapping[str, str] | None) -> dict[str, int]:
    return {name: parse_quantity(text) for name in COUNTED_FOR_QOS if (text := (written or {}).get(name))}
