"""Room for pods on nodes, as far as the pods of campaigns need any; shares nothing with the plugins."""

from __future__ import annotations

from moorage.api.manifests import Manifest
from moorage_cluster.chaos.monitor import Amounts, amounts_of, billionths


def would_fit(pod: Manifest, node: Manifest, others: list[Manifest]) -> bool:
    """Whether a node has room for a pod, if of all pods with a node these others stay."""
    if node["spec"].get("unschedulable") or node["spec"].get("taints"):
        return False
    selector = pod["spec"].get("nodeSelector") or {}
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    name, wanted = node["metadata"]["name"], amounts_of(pod)
    here = [each for each in others if each["spec"].get("nodeName") == name]
    if _ports(pod) & {port for each in here for port in _ports(each)}:
        return False
    used = sum(map(amounts_of, here), wanted)
    return _used_fits(used, wanted, node)


def _used_fits(used: Amounts, wanted: Amounts, node: Manifest) -> bool:
    """Whether amounts are at most what a node has of the resources that are wanted."""
    allocatable = node["status"]["allocatable"]
    return all(used[resource] <= billionths(allocatable.get(resource, "0")) for resource in wanted)


def _ports(pod: Manifest) -> set[int]:
    containers = pod["spec"]["containers"]
    return {
        port["hostPort"] for each in containers for port in each.get("ports") or () if port.get("hostPort")
    }


def priority_of(pod: Manifest) -> int:
    """The priority of a pod."""
    return int(pod["spec"].get("priority") or 0)
