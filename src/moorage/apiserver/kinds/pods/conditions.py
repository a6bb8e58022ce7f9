"""Conditions: what is the case with an object, and since when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from moorage.api.manifests import Manifest, timestamp


def find_condition(status: Manifest, kind: str) -> Manifest | None:
    """A condition by its type."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == kind:
            found: Manifest = condition
            return found
    return None


def set_condition(conditions: Sequence[Manifest], condition: Manifest, now: datetime) -> list[Manifest]:
    """The conditions with one set; it keeps the time of its last transition if its status stays."""
    changed = list(conditions)
    for index, before in enumerate(changed):
        if before.get("type") == condition["type"]:
            since = before.get("lastTransitionTime") if before.get("status") == condition["status"] else None
            changed[index] = {**condition, "lastTransitionTime": since or timestamp(now)}
            return changed
    changed.append({**condition, "lastTransitionTime": timestamp(now)})
    return changed


def is_ready(pod: Manifest) -> bool:
    """Whether a pod says it is ready."""
    condition = find_condition(pod.get("status") or {}, "Ready")
    return condition is not None and condition.get("status") == "True"
