"""What is to be read off pods and claims."""

from __future__ import annotations

from moorage.api.manifests import Manifest, status_of


def node_of(pod: Manifest) -> str:
    """Where a pod is bound; empty if nowhere."""
    name: str = pod["spec"].get("nodeName") or ""
    return name


def refusal_of(pod: Manifest) -> str:
    """Why a pod has no node, as its condition says it; empty if nobody said no."""
    for condition in status_of(pod).get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            message: str = condition["message"]
            return message
    return ""


def holds_devices(claim: Manifest, pod_uid: str) -> bool:
    """Whether a claim has devices for a pod, as the pod's own or among others."""
    holders = status_of(claim).get("reservedFor") or []
    owners = claim["metadata"].get("ownerReferences") or []
    return any(each["uid"] == pod_uid for each in (*holders, *owners))
