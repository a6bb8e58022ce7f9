"""Conditions in the status of nodes and pods: reading them, and writing one without disturbing others."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from moorage.api.manifests import Manifest, timestamp
from moorage.client.kinds import POD
from moorage.controllers.cluster import Cluster

READY: Final = "Ready"
DISRUPTION_TARGET: Final = "DisruptionTarget"


def condition(obj: Manifest, type: str) -> Manifest | None:
    """One condition, if the object has it."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == type), None)


def condition_status(obj: Manifest, type: str) -> str:
    """Whether a condition is True, False or Unknown; empty if the object does not have it."""
    found = condition(obj, type)
    status: str = found["status"] if found else ""
    return status


def changed_condition(obj: Manifest, new: Manifest, now: datetime) -> Manifest | None:
    """A condition as it is to be written, with the time it last turned; None if it is like that already."""
    before = condition(obj, new["type"])
    if before is not None and all(before.get(key, "") == value for key, value in new.items()):
        return None
    has_turned = before is None or before["status"] != new["status"]
    since = timestamp(now) if has_turned or before is None else before.get("lastTransitionTime")
    return {**new, "lastTransitionTime": since}


async def mark_disrupted(
    cluster: Cluster, pod: Manifest, reason: str, message: str, **further: str
) -> Manifest:
    """Say in a pod's status who ends it and why, and, if wanted, further fields of the status."""
    new: Manifest = {
        "type": DISRUPTION_TARGET,
        "status": "True",
        "reason": reason,
        "message": message,
        "observedGeneration": pod["metadata"].get("generation", 0),
    }
    changed = changed_condition(pod, new, cluster.now())
    status: Manifest = {**further, **({"conditions": [changed]} if changed else {})}
    return await patch_pod_status(cluster, pod, status) if status else pod


async def patch_pod_status(cluster: Cluster, pod: Manifest, status: Manifest) -> Manifest:
    """Change some of a pod's status; conditions that are not named stay as they are."""
    patch = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
    return await cluster.patch(POD, pod, patch, "strategic", "status")
