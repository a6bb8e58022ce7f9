"""The usage that a pod adds to a quota."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from moorage.admission.plugin import PODS
from moorage.admission.pods.totals import charged_totals, has_pod_level_resources
from moorage.api.amounts import ONE, Amounts
from moorage.api.manifests import Manifest
from moorage.api.names import HUGE_PAGES, is_extended_resource, is_native_resource
from moorage_cluster.apiserver.admission.quota.charges import Meter, count_name
from moorage_cluster.apiserver.admission.quota.scopes import pod_in_scope

_COUNT: Final = count_name(PODS)
_REQUESTS: Final = "requests."
_DEVICE_CLASS: Final = "deviceclass.resource.kubernetes.io/"

_REQUEST_NAMES: Final = {name: (name, _REQUESTS + name) for name in ("cpu", "memory", "ephemeral-storage")}
"""The resource names by which a quota may limit a request."""
_LIMIT_NAMES: Final = {name: f"limits.{name}" for name in _REQUEST_NAMES}

_NAMES: Final = frozenset(
    (_COUNT, "pods", *_LIMIT_NAMES.values(), *(name for names in _REQUEST_NAMES.values() for name in names))
)
_REQUIRED_RESOURCES: Final = {
    quota_name: ("requests", name) for name in ("cpu", "memory") for quota_name in _REQUEST_NAMES[name]
} | {_LIMIT_NAMES[name]: ("limits", name) for name in ("cpu", "memory")}
"""Quota resources for which every container must specify its own request or limit."""


def _measures(name: str) -> bool:
    if name in _NAMES or name.startswith((HUGE_PAGES, _REQUESTS + HUGE_PAGES)):
        return True
    if not name.startswith(_REQUESTS):
        return False
    return not is_native_resource(name) or name.startswith(_REQUESTS + _DEVICE_CLASS)


def _charge(pod: Manifest, now: datetime) -> Amounts:
    if not _is_alive(pod, now):
        return {_COUNT: ONE}
    usage: Amounts = {_COUNT: ONE, "pods": ONE}
    for name, amount in charged_totals(pod, "requests").items():
        if name in _REQUEST_NAMES:
            for quota_name in _REQUEST_NAMES[name]:
                usage[quota_name] = amount
        elif name.startswith(HUGE_PAGES):
            usage[name] = usage[_REQUESTS + name] = amount
        elif is_extended_resource(name) or name.startswith(_DEVICE_CLASS):
            usage[_REQUESTS + name] = amount
    for name, amount in charged_totals(pod, "limits").items():
        if name in _LIMIT_NAMES:
            usage[_LIMIT_NAMES[name]] = amount
    return usage


def _is_alive(pod: Manifest, now: datetime) -> bool:
    """Whether a pod still counts: not once it has terminated, nor when its deletion is overdue."""
    if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return False
    metadata = pod.get("metadata", {})
    deleted, grace = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    if deleted is None or grace is None:
        return True
    return (now - datetime.fromisoformat(deleted)).total_seconds() <= float(grace)


def _missing(names: list[str], pod: Manifest) -> str:
    if has_pod_level_resources(pod):
        return ""
    spec = pod.get("spec", {})
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    said = []
    for quota_name in sorted(names):
        if quota_name not in _REQUIRED_RESOURCES:
            continue
        part, name = _REQUIRED_RESOURCES[quota_name]
        silent = {
            each.get("name", "")
            for each in containers
            if name not in (each.get("resources") or {}).get(part, {})
        }
        if silent:
            said.append(f"{quota_name} for: {','.join(sorted(silent))}")
    return f"must specify {'; '.join(said)}" if said else ""


POD_METER: Final = Meter(PODS, _measures, _charge, pod_in_scope, _missing)
