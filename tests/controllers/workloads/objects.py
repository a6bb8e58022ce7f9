"""Workloads for tests, with as little in them as they can have."""

from __future__ import annotations

from typing import Any

from moorage.api.manifests import Manifest

LABELS = {"app": "web"}


def template(image: str = "app:1", labels: dict[str, str] | None = None, **spec: Any) -> Manifest:
    return {
        "metadata": {"labels": labels or LABELS},
        "spec": {"containers": [{"name": "main", "image": image}], **spec},
    }


def workload(name: str = "web", labels: dict[str, str] | None = None, **spec: Any) -> Manifest:
    """A Deployment, ReplicaSet, StatefulSet or DaemonSet, by the kind it is created with."""
    wanted = labels or LABELS
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": wanted}, "template": template(labels=wanted), **spec},
    }


def bare_pod(name: str, labels: dict[str, str] | None = None, **meta: Any) -> Manifest:
    spec = {"containers": [{"name": "main", "image": "app:1"}]}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels or LABELS, **meta},
        "spec": spec,
    }
