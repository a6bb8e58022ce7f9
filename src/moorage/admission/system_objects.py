"""The namespaces and priority classes that every cluster has."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest

SYSTEM_NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")

HIGHEST_USER_PRIORITY: Final = 1_000_000_000
SYSTEM_PRIORITIES: Final = {
    "system-node-critical": 2 * HIGHEST_USER_PRIORITY + 1000,
    "system-cluster-critical": 2 * HIGHEST_USER_PRIORITY,
}
"""The values of the system priority classes, by their names."""
_DESCRIPTIONS: Final = {
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, but can be moved to another node if "
        "necessary."
    ),
}


def system_namespaces() -> list[Manifest]:
    """The namespaces that a new cluster has."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }
        for name in SYSTEM_NAMESPACES
    ]


def system_priority_classes() -> list[Manifest]:
    """The priority classes that a new cluster has."""
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": _DESCRIPTIONS[name],
            "preemptionPolicy": "PreemptLowerPriority",
        }
        for name, value in SYSTEM_PRIORITIES.items()
    ]
