"""Node objects, as kubelets register them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from moorage.api.manifests import Manifest
from moorage.api.names import is_extended_resource
from moorage.api.quantity import format_quantity, parse_quantity
from moorage.api.resource_requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from moorage_cluster.nodes.settings import NodeTemplate
from moorage_cluster.nodes.thresholds import (
    DISK_PRESSURE,
    MEMORY_AVAILABLE,
    MEMORY_PRESSURE,
    NODEFS_AVAILABLE,
    PID_PRESSURE,
    Threshold,
)

_ARCHITECTURE: Final = "amd64"
_SYSTEM: Final = "linux"
_REGION: Final = "region-1"

_PRESSURES: Final[Mapping[str, tuple[tuple[str, str], tuple[str, str]]]] = {
    MEMORY_PRESSURE: (
        ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
    ),
    DISK_PRESSURE: (
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("KubeletHasDiskPressure", "kubelet has disk pressure"),
    ),
    PID_PRESSURE: (
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
    ),
}
"""Reason and message, without and with pressure."""

PRESSURE_EVENTS: Final[Mapping[str, tuple[str, str]]] = {
    MEMORY_PRESSURE: ("NodeHasSufficientMemory", "NodeHasInsufficientMemory"),
    DISK_PRESSURE: ("NodeHasNoDiskPressure", "NodeHasDiskPressure"),
    PID_PRESSURE: ("NodeHasSufficientPID", "NodeHasInsufficientPID"),
}
"""Event reasons for the end and the begin of a pressure."""


def conditions(pressures: Sequence[str], before: Sequence[Manifest], now: str) -> list[Manifest]:
    """A node's conditions now; unchanged ones keep their last transition time."""
    known = {each["type"]: each for each in before}
    listed = []
    for type, texts in _PRESSURES.items():
        is_short = type in pressures
        listed.append(_condition(type, is_short, *texts[is_short], known, now))
    ready = _condition("Ready", True, "KubeletReady", "kubelet is posting ready status", known, now)
    return [*listed, ready]


def _condition(
    type: str, holds: bool, reason: str, message: str, known: Mapping[str, Manifest], now: str
) -> Manifest:
    status = "True" if holds else "False"
    before = known.get(type, {})
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    return {
        "type": type,
        "status": status,
        "lastHeartbeatTime": now,
        "lastTransitionTime": since or now,
        "reason": reason,
        "message": message,
    }


def new_node(
    template: NodeTemplate,
    index: int,
    host: str,
    network: str,
    thresholds: Sequence[Threshold],
    kubelet_version: str,
    now: str,
) -> Manifest:
    """The node that a kubelet registers: number `index` of those from a template."""
    name = f"{template.name_prefix}-{index}"
    capacity = {
        CPU: template.cpu,
        MEMORY: template.memory,
        PODS: str(template.pods),
        EPHEMERAL_STORAGE: template.ephemeral_storage,
        **template.resources,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                **own_labels(name),
                "node.kubernetes.io/instance-type": template.instance_type,
                "topology.kubernetes.io/region": _REGION,
                "topology.kubernetes.io/zone": f"zone-{index % max(template.zones, 1) + 1}",
                **template.labels,
            },
        },
        "spec": {
            "podCIDR": network,
            "podCIDRs": [network],
            "providerID": f"moorage://{name}",
            **({"taints": [dict(taint) for taint in template.taints]} if template.taints else {}),
        },
        "status": {
            "capacity": capacity,
            "allocatable": allocatable(capacity, template.reserved, thresholds),
            "addresses": addresses(name, host),
            "nodeInfo": node_info(name, kubelet_version),
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "conditions": conditions((), (), now),
            "images": [],
        },
    }


def allocatable(
    capacity: Mapping[str, str], reserved: Mapping[str, str], thresholds: Sequence[Threshold]
) -> dict[str, str]:
    """Allocatable resources: the capacity, less what is reserved, less what hard eviction keeps free."""
    left = {name: int(parse_quantity(text)) for name, text in capacity.items()}
    for name, text in reserved.items():
        left[name] = left.get(name, 0) - parse_quantity(text)
    kept = {MEMORY_AVAILABLE: MEMORY, NODEFS_AVAILABLE: EPHEMERAL_STORAGE}
    for threshold in thresholds:
        if threshold.signal in kept and not threshold.grace_seconds:
            name = kept[threshold.signal]
            whole = parse_quantity(capacity[name])
            left[name] -= threshold.value.of(whole.value) * 1_000_000_000
    return {name: format_quantity(max(amount, 0)) for name, amount in left.items()}


def allocatable_change(status: Manifest) -> dict[str, str | None]:
    """A patch of allocatable for extended resources that were added to the capacity or removed from it."""
    capacity, known = status.get("capacity") or {}, status.get("allocatable") or {}
    return {name: capacity.get(name) for name in capacity.keys() ^ known.keys() if is_extended_resource(name)}


def own_labels(name: str) -> dict[str, str]:
    """The labels that a kubelet gives its node."""
    return {
        "beta.kubernetes.io/arch": _ARCHITECTURE,
        "beta.kubernetes.io/os": _SYSTEM,
        "kubernetes.io/arch": _ARCHITECTURE,
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": _SYSTEM,
    }


def addresses(name: str, host: str) -> list[Manifest]:
    """The addresses of a node."""
    return [{"type": "InternalIP", "address": host}, {"type": "Hostname", "address": name}]


def node_info(name: str, kubelet_version: str) -> Manifest:
    """The nodeInfo of a node; its ids are simulated, but always the same."""
    return {
        "architecture": _ARCHITECTURE,
        "bootID": _made_up_uuid(f"{name} boot"),
        "containerRuntimeVersion": "containerd://2.1.4",
        "kernelVersion": "6.8.0-moorage",
        "kubeProxyVersion": "",
        "kubeletVersion": f"v{kubelet_version}",
        "machineID": _made_up_uuid(f"{name} machine").replace("-", ""),
        "operatingSystem": _SYSTEM,
        "osImage": "Moorage simulated Linux",
        "systemUUID": _made_up_uuid(f"{name} system"),
    }


def _made_up_uuid(text: str) -> str:
    return str(UUID(bytes=hashlib.sha256(text.encode()).digest()[:16], version=4))


def missing_parts(node: Manifest, network: str) -> Manifest:
    """The missing fields of a node that existed before its kubelet, without its status, as a patch."""
    meta, spec = node["metadata"], node.get("spec") or {}
    labels = {
        key: value for key, value in own_labels(meta["name"]).items() if key not in (meta.get("labels") or {})
    }
    change: Manifest = {}
    if labels:
        change["metadata"] = {"labels": labels}
    if not spec.get("podCIDR"):
        change["spec"] = {"podCIDR": network, "podCIDRs": [network]}
    return change


def missing_status(node: Manifest, host: str, kubelet_version: str) -> Manifest:
    """The missing fields of such a node's status; its capacity is unchanged."""
    name, status = node["metadata"]["name"], node.get("status") or {}
    missing: Manifest = {}
    if not status.get("addresses"):
        missing["addresses"] = addresses(name, host)
    if not (status.get("nodeInfo") or {}).get("kubeletVersion"):
        missing["nodeInfo"] = node_info(name, kubelet_version)
    return missing
