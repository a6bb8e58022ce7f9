"""Nodes and pods from short keyword arguments, for tests of plugins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.api.decode import convert
from moorage.api.node import Node
from moorage.api.pod import Pod


def node(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Iterable[str] = (),
    unschedulable: bool = False,
    allocatable: Mapping[str, str] | None = None,
    images: Mapping[str, int] | None = None,
    features: Iterable[str] = (),
) -> Node:
    """A node; without `allocatable` it takes ten pods.

    taints: as kubectl writes them, `key=value:Effect` or `key:Effect`. images: their sizes in bytes, by name.
    """
    room = {"cpu": "4", "memory": "8Gi", "pods": "10"} if allocatable is None else dict(allocatable)
    return convert(
        {
            "metadata": _metadata(name, labels, annotations),
            "spec": {"unschedulable": unschedulable, "taints": [_taint(text) for text in taints]},
            "status": {
                "allocatable": room,
                "images": [{"names": [image], "sizeBytes": size} for image, size in (images or {}).items()],
                "declaredFeatures": list(features),
            },
        },
        Node,
        f"node {name}",
    )


def pod(
    name: str,
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    on: str = "",
    requests: Mapping[str, str] | None = None,
    owner: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    """A pod with one container; `on` is its node, if it is bound; `spec` has further fields as in the API.

    owner: the owner reference to the pod's controller.
    """
    metadata = {**_metadata(name, labels, annotations), "namespace": namespace, "uid": f"uid-of-{name}"}
    if owner is not None:
        metadata["ownerReferences"] = [{"controller": True, **owner}]
    containers = [{"name": "main", "resources": {"requests": dict(requests or {})}}]
    where = {"nodeName": on} if on else {}
    return convert(
        {"metadata": metadata, "spec": {"containers": containers, **where, **spec}}, Pod, f"pod {name}"
    )


def _metadata(
    name: str, labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None
) -> dict[str, Any]:
    return {"name": name, "labels": dict(labels or {}), "annotations": dict(annotations or {})}


def _taint(text: str) -> dict[str, str]:
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect}
