"""Conditions in the status of plain objects, and their transition times."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from moorage.api.manifests import Manifest, status_of, timestamp


def find_condition(status: Manifest, kind: str) -> Manifest | None:
    """The condition of a type in a status."""
    conditions: Sequence[Manifest] = status.get("conditions") or ()
    return next((each for each in conditions if each.get("type") == kind), None)


def condition_status(obj: Manifest, kind: str) -> str:
    """Whether a condition is True, False or Unknown; empty if the object does not have it."""
    found = find_condition(status_of(obj), kind)
    status: str = found.get("status", "") if found else ""
    return status


def is_ready(obj: Manifest) -> bool:
    """Whether the condition Ready of a pod or node is True."""
    return condition_status(obj, "Ready") == "True"


def set_condition(conditions: Sequence[Manifest], condition: Manifest, now: datetime) -> list[Manifest]:
    """The conditions with one set; it keeps the time of its last transition if its status stays."""
    changed = list(conditions)
    for index, before in enumerate(changed):
        if before.get("type") == condition["type"]:
            since = before.get("lastTransitionTime") if before.get("status") == condition["status"] else None
            changed[index] = {**condition, "lastTransitionTime": since or timestamp(now)}
            return changed
    return [*changed, {**condition, "lastTransitionTime": timestamp(now)}]
