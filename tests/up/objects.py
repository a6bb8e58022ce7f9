"""Objects for a whole cluster, as users write them; what else is needed comes as further fields."""

from __future__ import annotations

from typing import Any

Manifest = dict[str, Any]

IMAGE = "registry.example/app:1"
"""The same for all, so that nodes have it after the first pod and others start sooner."""
POOL = "pool"
"""A label of nodes that a test has for itself."""


def pod_spec(
    *, cpu: str = "", memory: str = "", limits: dict[str, str] | None = None, **spec: Any
) -> Manifest:
    requests = {name: text for name, text in (("cpu", cpu), ("memory", memory)) if text}
    resources = {"requests": requests, "limits": limits or {}}
    return {"containers": [{"name": "main", "image": IMAGE, "resources": resources}], **spec}


def pod(name: str, *, says: dict[str, str] | None = None, **spec: Any) -> Manifest:
    """A pod; `says` are annotations without their `moorage.io/`."""
    metadata = {"name": name, "labels": {"app": name}, "annotations": _annotations(says)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(**spec)}


def workload(
    kind: str,
    name: str,
    *,
    pods: Manifest | None = None,
    says: dict[str, str] | None = None,
    **spec: Any,
) -> Manifest:
    """A Deployment, StatefulSet or DaemonSet whose pods have a label `app` with its name."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": _annotations(says)},
                "spec": pod_spec(**(pods or {})),
            },
            **spec,
        },
    }


def job(name: str, *, says: dict[str, str], **spec: Any) -> Manifest:
    """A job whose pods do what they say."""
    template = {
        "metadata": {"annotations": _annotations(says)},
        "spec": pod_spec(restartPolicy="Never"),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def claim_template(name: str) -> Manifest:
    """Whoever says no class gets the default one."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": spec}


def claim(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim_template(name)}


def budget(app: str, **spec: Any) -> Manifest:
    """A PodDisruptionBudget for the pods of a workload."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


def node(name: str, *, cpu: str = "4", memory: str = "8Gi", **labels: str) -> Manifest:
    """A machine that somebody has added; the image of all tests is there already, so that pods start soon."""
    amounts = {"cpu": cpu, "memory": memory, "pods": "110"}
    images = [{"names": [IMAGE], "sizeBytes": 50_000_000}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts, "images": images},
    }


def priority_class(name: str, value: int) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def binding(pod: str, node: str) -> Manifest:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}


def apart(app: str) -> Manifest:
    """An affinity: no two pods of a workload on the same node."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _annotations(says: dict[str, str] | None) -> dict[str, str]:
    return {f"moorage.io/{key}": value for key, value in (says or {}).items()}
