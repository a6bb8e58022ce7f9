"""Writing statuses and conditions, and counts that are given as percentages."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from moorage.api.conditions import find_condition
from moorage.api.manifests import Manifest, status_of, timestamp
from moorage.client.kinds import Kind
from moorage_cluster.controllers.cluster import Cluster


async def write_status(cluster: Cluster, kind: Kind, obj: Manifest, new: Manifest) -> Manifest:
    """Write an object's status, if it has changed; None removes a field, other fields are unchanged.

    Zero, empty and absent are the same: servers omit empty fields.
    """
    old = status_of(obj)
    if all(
        _without_zero_values(old.get(field)) == _without_zero_values(value) for field, value in new.items()
    ):
        return obj
    # The uid protects a new object of the same name.
    patch = {"metadata": {"uid": obj["metadata"]["uid"]}, "status": new}
    return await cluster.patch(kind, obj, patch, "merge", "status")


def _without_zero_values(value: Any) -> Any:
    """A value without empty parts; None if nothing is left."""
    if isinstance(value, dict):
        value = {
            key: cleaned for key, item in value.items() if (cleaned := _without_zero_values(item)) is not None
        }
    return value or None


def new_condition(
    now: datetime, type: str, status: str, reason: str, message: str, updated: bool = False
) -> Manifest:
    """A condition with the current transition time; those of deployments also have an `updated` time."""
    made: Manifest = {"type": type, "status": status, "reason": reason, "message": message}
    made["lastTransitionTime"] = timestamp(now)
    if updated:
        made["lastUpdateTime"] = timestamp(now)
    return made


def with_condition(conditions: list[Manifest], new: Manifest) -> list[Manifest]:
    """Conditions with one set; they are unchanged if its status and reason are the same."""
    known = find_condition({"conditions": conditions}, new["type"])
    if known is not None and known["status"] == new["status"]:
        if known.get("reason") == new.get("reason"):
            return conditions
        new = {**new, "lastTransitionTime": known.get("lastTransitionTime", new["lastTransitionTime"])}
    return [*without_condition(conditions, new["type"]), new]


def without_condition(conditions: list[Manifest], type: str) -> list[Manifest]:
    """Conditions without one type."""
    return [each for each in conditions if each["type"] != type]


def share(value: Any, total: int, *, round_up: bool) -> int:
    """A count that may be given as a percentage of a total."""
    if isinstance(value, str) and value.endswith("%"):
        part = int(value[:-1]) * total / 100
        return math.ceil(part) if round_up else math.floor(part)
    return int(value or 0)
