"""Pods to test with: whole ones, made from what a test is about."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from moorage.admission.pods.defaults import default_pod
from moorage.api.manifests import Manifest, copy
from moorage_cluster.apiserver.kinds.pods.strategy import PodStrategy

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
NOW_TEXT = "2026-03-04T05:06:07Z"


def a_container(**fields: Any) -> Manifest:
    return {"name": "main", "image": "registry.k8s.io/pause:3.10", **fields}


def a_pod(*containers: Manifest, meta: Manifest | None = None, **spec: Any) -> Manifest:
    """A pod as a client sends it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default", **(meta or {})},
        "spec": {"containers": list(containers) or [a_container()], **spec},
    }


def strategy() -> PodStrategy:
    return PodStrategy(now=lambda: NOW)


def defaulted(pod: Manifest) -> Manifest:
    pod = copy(pod)
    default_pod(pod)
    return pod


def created(pod: Manifest) -> Manifest:
    """A pod as it is stored."""
    pod = defaulted(pod)
    strategy().prepare_create(pod)
    pod["metadata"] |= {"uid": "u-1", "resourceVersion": "7"}
    return pod


def complaints(pod: Manifest) -> list[str]:
    """What validation says about a new pod."""
    pod = defaulted(pod)
    strategy().prepare_create(pod)
    return [str(error) for error in strategy().validate(pod)]


def update_complaints(new: Manifest, old: Manifest) -> list[str]:
    """What validation says about an update."""
    new = defaulted(new)
    before = copy(old)
    strategy().prepare_update(new, old)
    messages = [str(error) for error in strategy().validate_update(new, old)]
    assert old == before
    return messages
