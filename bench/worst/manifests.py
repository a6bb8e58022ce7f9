"""Manifests that the most expensive pods are built from, and the cluster they are measured in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moorage.api.manifests import Manifest

NODES = 5000
ZONES = 10
BACKGROUND_PODS = 10_000
BACKGROUND_APPS = 200
TENANT = "tenant"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def pod(prefix: str, name: str = "worst", *, cpu: str = "100m", labels: Any = None, **spec: Any) -> Manifest:
    containers = [{"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}]
    return {
        "kind": "Pod",
        "metadata": {"name": f"{prefix}-{name}", "namespace": TENANT, "labels": labels or {"app": prefix}},
        "spec": {"containers": containers, "terminationGracePeriodSeconds": 0, **spec},
    }


def node_affinity(terms: Sequence[Manifest], *, preferred: bool = False) -> Manifest:
    if preferred:
        weighted = [{"weight": 1 + index % 100, "preference": term} for index, term in enumerate(terms)]
        return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}
    selector = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}


def pod_affinity(field: str, terms: Sequence[Manifest], *, preferred: bool = False) -> Manifest:
    if preferred:
        weighted = [{"weight": 1 + index % 100, "podAffinityTerm": term} for index, term in enumerate(terms)]
        return {field: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}
    return {field: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def term(key: str, labels: Manifest | None = None, **fields: Any) -> Manifest:
    selector = {"matchLabels": labels} if labels is not None else {}
    return {"topologyKey": key, "labelSelector": selector, **fields}


def expression(key: str, operator: str, *values: str) -> Manifest:
    return {"key": key, "operator": operator, "values": list(values)}


def spread(key: str, labels: Manifest, when: str = "DoNotSchedule") -> Manifest:
    selector = {"matchLabels": labels}
    return {"maxSkew": 10_000, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector}


def claim(prefix: str, index: int, **spec: Any) -> Manifest:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    meta = {"name": f"{prefix}-{index}", "namespace": TENANT}
    return {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": wanted}


def claimed(prefix: str, count: int) -> list[Manifest]:
    return [
        {"name": f"v{index}", "persistentVolumeClaim": {"claimName": f"{prefix}-{index}"}}
        for index in range(count)
    ]


def node(index: int) -> Manifest:
    own = {HOSTNAME: f"node-{index}", ZONE: f"zone-{index % ZONES}", "pool": f"pool-{index % 7}"}
    own |= {f"known-{n}": f"value-{index % (n + 2)}" for n in range(20)}
    taints = [{"key": "dedicated", "value": f"team-{index % 5}", "effect": "PreferNoSchedule"}]
    room = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return {
        "kind": "Node",
        "metadata": {"name": f"node-{index}", "labels": own},
        "spec": {"taints": taints if index % 10 == 0 else []},
        "status": {"allocatable": room, "capacity": room},
    }


def background_pod(index: int) -> Manifest:
    app = f"app-{index % BACKGROUND_APPS}"
    made = pod(
        f"background-{index}", labels={"app": app, "tier": f"t{index % 3}"}, nodeName=f"node-{index % NODES}"
    )
    made["metadata"]["namespace"] = "default"
    if index % 10 == 0:
        made["spec"]["affinity"] = pod_affinity("podAntiAffinity", [term(HOSTNAME, {"app": app})])
    return made
