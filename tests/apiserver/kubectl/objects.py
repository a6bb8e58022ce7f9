"""Objects that kubectl is given."""

from __future__ import annotations

from typing import Any

IMAGE = "registry.example/app:1"
READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}


def configmap(name: str, labels: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": IMAGE}]
    metadata = {"name": name, "labels": {"app": name}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers, **spec},
    }


def node(name: str) -> dict[str, Any]:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [READY]},
    }


def binding(pod: str, node: str) -> dict[str, Any]:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}


def replica_set(name: str, owner: dict[str, Any]) -> dict[str, Any]:
    """A ReplicaSet that a Deployment controls."""
    labels = {"app": name}
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "ownerReferences": [reference]},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod(name)["spec"]},
        },
    }


def event(name: str, about: dict[str, Any], reason: str, message: str) -> dict[str, Any]:
    """An event about an object."""
    meta = about["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name},
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": meta["name"],
            "namespace": meta["namespace"],
            "uid": meta["uid"],
        },
        "reason": reason,
        "message": message,
        "type": "Warning",
        "source": {"component": "tests"},
        "firstTimestamp": meta["creationTimestamp"],
        "lastTimestamp": meta["creationTimestamp"],
        "count": 1,
    }


def claim(name: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}
