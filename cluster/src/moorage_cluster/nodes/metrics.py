"""metrics.k8s.io/v1beta1: the usage of nodes and pods, for `kubectl top`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from moorage.api.manifests import Manifest, labels_of, timestamp
from moorage_cluster.nodes.containers import Running
from moorage_cluster.nodes.eviction import node_usage
from moorage_cluster.nodes.kubelet import Kubelet
from moorage_cluster.nodes.podrun import PodRun
from moorage_cluster.nodes.usage import ContainerUsage

API_VERSION: Final = "metrics.k8s.io/v1beta1"
_WINDOW: Final = "10s"


def node_metrics(kubelets: Iterable[Kubelet], seconds: float, now: datetime) -> Manifest:
    """A NodeMetricsList of all connected nodes."""
    stamp = timestamp(now)
    items = [
        {
            **_head("NodeMetrics", kubelet.node, stamp),
            "usage": _usage(node_usage(kubelet, seconds)),
        }
        for kubelet in kubelets
        if not kubelet.is_cut_off
    ]
    return _list("NodeMetricsList", items)


def pod_metrics(
    kubelets: Iterable[Kubelet], namespace: str | None, seconds: float, now: datetime
) -> Manifest:
    """A PodMetricsList of all running pods, or of those in a namespace."""
    stamp = timestamp(now)
    items = [
        {**_head("PodMetrics", run.manifest, stamp), "containers": _containers(run, seconds)}
        for kubelet in kubelets
        if not kubelet.is_cut_off
        for run in kubelet.pods.values()
        if namespace in (None, run.namespace) and run.phase == "Running"
    ]
    return _list("PodMetricsList", items)


def _list(kind: str, items: list[Manifest]) -> Manifest:
    return {"kind": kind, "apiVersion": API_VERSION, "metadata": {}, "items": items}


def _head(kind: str, obj: Manifest, stamp: str) -> Manifest:
    meta: Manifest = {"name": obj["metadata"]["name"], "creationTimestamp": stamp}
    if "namespace" in obj["metadata"]:
        meta["namespace"] = obj["metadata"]["namespace"]
    if labels := labels_of(obj):
        meta["labels"] = dict(labels)
    return {
        "kind": kind,
        "apiVersion": API_VERSION,
        "metadata": meta,
        "timestamp": stamp,
        "window": _WINDOW,
    }


def _containers(run: PodRun, seconds: float) -> list[Manifest]:
    return [
        {"name": each.name, "usage": _usage(each.usage(seconds))}
        for each in run.containers
        if isinstance(each.state, Running)
    ]


def _usage(usage: ContainerUsage) -> dict[str, str]:
    return {"cpu": f"{usage.cpu_nano}n" if usage.cpu_nano else "0", "memory": f"{usage.memory >> 10}Ki"}
