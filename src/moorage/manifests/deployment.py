"""The scheduler's Deployment, ConfigMap and PodDisruptionBudget."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

from moorage.api.manifests import Manifest
from moorage.api.quantity import format_quantity, parse_quantity
from moorage.manifests.defaults import CONTROL_PLANE
from moorage.manifests.installation import CONFIG_FILE, Installation
from moorage.manifests.objects import labels, new_object, selector
from moorage.services.ports import SECURE_PORT

PORT_NAME: Final = "https"
USER_ID: Final = 65532
"""User id of the process: the image's user, which does not exist on nodes."""
FOLDER: Final = "/etc/moorage"
"""Mount path of the configuration and the plugins."""
_CPU_REQUEST: Final = "250m"
_STOPS_WITHIN_SECONDS: Final = 30
_LEAVES_A_DEAD_NODE_AFTER_SECONDS: Final = 30


def workload(installation: Installation) -> Iterator[Manifest]:
    """The configuration, the Deployment, and its disruption budget."""
    name, namespace = installation.name, installation.namespace
    yield new_object("v1", "ConfigMap", name, namespace, installation, data=dict(installation.files))
    yield new_object("apps/v1", "Deployment", name, namespace, installation, spec=_deployment(installation))
    budget = {"maxUnavailable": 1, "selector": {"matchLabels": selector(installation)}}
    yield new_object("policy/v1", "PodDisruptionBudget", name, namespace, installation, spec=budget)


def _deployment(installation: Installation) -> Manifest:
    # A changed configuration changes the pod template, so that applying it rolls out new pods.
    annotations = {"moorage.io/configuration": _digest(installation)}
    return {
        "replicas": installation.replicas,
        "selector": {"matchLabels": selector(installation)},
        "template": {
            "metadata": {"labels": labels(installation), "annotations": annotations},
            "spec": _pod(installation),
        },
    }


def _digest(installation: Installation) -> str:
    digest = hashlib.sha256()
    for name, text in sorted(installation.files.items()):
        digest.update(f"{name}\0{text}\0".encode())
    return digest.hexdigest()[:16]


def _pod(installation: Installation) -> Manifest:
    pod: Manifest = {
        "serviceAccountName": installation.name,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": _STOPS_WITHIN_SECONDS,
        "tolerations": _TOLERATIONS,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER_ID,
            "runAsGroup": USER_ID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(installation)],
        "volumes": [
            {"name": "config", "configMap": {"name": installation.name}},
            # OpenSSL reads keys from files only; this volume is in memory, so they are never on a disk.
            {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
        ],
    }
    if installation.namespace == CONTROL_PLANE:
        pod["priorityClassName"] = "system-cluster-critical"
    if installation.node:
        pod["nodeName"] = installation.node
    else:
        pod["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": selector(installation)},
            }
        ]
    return pod


_TOLERATIONS: Final = (
    {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "CriticalAddonsOnly", "operator": "Exists"},
    *(
        {
            "key": f"node.kubernetes.io/{problem}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": _LEAVES_A_DEAD_NODE_AFTER_SECONDS,
        }
        for problem in ("not-ready", "unreachable")
    ),
)


def _container(installation: Installation) -> Manifest:
    flags = [*(f"--plugin={FOLDER}/{name}" for name in installation.plugins), *installation.flags]
    if installation.is_shadow:
        flags.append("--shadow")
    return {
        "name": "scheduler",
        "image": installation.image,
        "command": ["moorage"],
        "args": ["run", f"--config={FOLDER}/{CONFIG_FILE}", "--bind-address=0.0.0.0", *flags],
        "ports": [{"name": PORT_NAME, "containerPort": SECURE_PORT}],
        # Ready means that all informers have synced, leading or not; a leader that hangs exits by itself.
        "livenessProbe": _probe("/livez", period_seconds=10, failures=8),
        "readinessProbe": _probe("/readyz", period_seconds=5, failures=3),
        "resources": resources(installation.memory_limit),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "config", "mountPath": FOLDER, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }


def resources(memory_limit: str) -> Manifest:
    """Requests and limits. CPU has no limit: a throttled scheduler may miss its lease's renewal."""
    half = format_quantity(parse_quantity(memory_limit) // 2)
    return {"requests": {"cpu": _CPU_REQUEST, "memory": half}, "limits": {"memory": memory_limit}}


def _probe(path: str, *, period_seconds: int, failures: int) -> Manifest:
    return {
        "httpGet": {"path": path, "port": PORT_NAME, "scheme": "HTTPS"},
        "periodSeconds": period_seconds,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }
