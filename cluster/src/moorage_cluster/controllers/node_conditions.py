"""Conditions of nodes and pods, written without changing other conditions."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from moorage.api.conditions import find_condition
from moorage.api.manifests import Manifest, status_of, timestamp
from moorage.client.kinds import POD
from moorage_cluster.controllers.cluster import Cluster

READY: Final = "Ready"
DISRUPTION_TARGET: Final = "DisruptionTarget"


def changed_condition(obj: Manifest, new: Manifest, now: datetime) -> Manifest | None:
    """A condition to write, with its last transition time; None if it is unchanged."""
    before = find_condition(status_of(obj), new["type"])
    if before is not None and all(before.get(key, "") == value for key, value in new.items()):
        return None
    has_turned = before is None or before["status"] != new["status"]
    since = timestamp(now) if has_turned or before is None else before.get("lastTransitionTime")
    return {**new, "lastTransitionTime": since}


async def mark_disrupted(
    cluster: Cluster, pod: Manifest, reason: str, message: str, **further: str
) -> Manifest:
    """Set a pod's DisruptionTarget condition with its reason, and optionally further status fields."""
    new: Manifest = {
        "type": DISRUPTION_TARGET,
        "status": "True",
        "reason": reason,
        "message": message,
        "observedGeneration": pod["metadata"].get("generation", 0),
    }
    changed = changed_condition(pod, new, cluster.clock.utc_now())
    status: Manifest = {**further, **({"conditions": [changed]} if changed else {})}
    return await patch_pod_status(cluster, pod, status) if status else pod


async def patch_pod_status(cluster: Cluster, pod: Manifest, status: Manifest) -> Manifest:
    """Patch a pod's status; other conditions are unchanged."""
    patch = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
    return await cluster.patch(POD, pod, patch, "strategic", "status")
