"""Writing what a controller found out: statuses, conditions, and counts that are given as percentages."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from moorage.api.conditions import find_condition
from moorage.api.manifests import Manifest, status_of, timestamp
from moorage.client.kinds import Kind
from moorage_cluster.controllers.cluster import Cluster


async def write_status(cluster: Cluster, kind: Kind, obj: Manifest, new: Manifest) -> Manifest:
    """Make an object's status this one, unless it is already; None removes a field, others are left alone.

    Zero, empty and absent are the same: servers do not keep what says nothing.
    """
    old = status_of(obj)
    if all(_said(old.get(field)) == _said(value) for field, value in new.items()):
        return obj
    # The uid keeps this from an object of the same name that was made meanwhile.
    patch = {"metadata": {"uid": obj["metadata"]["uid"]}, "status": new}
    return await cluster.patch(kind, obj, patch, "merge", "status")


def _said(value: Any) -> Any:
    """What a value says: nothing, if it is empty or has only empty parts."""
    if isinstance(value, dict):
        value = {key: said for key, item in value.items() if (said := _said(item)) is not None}
    return value or None


def new_condition(
    now: datetime, type: str, status: str, reason: str, message: str, updated: bool = False
) -> Manifest:
    """A condition that holds from now on; deployments also say when theirs were `updated`."""
    made: Manifest = {"type": type, "status": status, "reason": reason, "message": message}
    made["lastTransitionTime"] = timestamp(now)
    if updated:
        made["lastUpdateTime"] = timestamp(now)
    return made


def with_condition(conditions: list[Manifest], new: Manifest) -> list[Manifest]:
    """Conditions with one set; if it says nothing new, they stay as they are."""
    known = find_condition({"conditions": conditions}, new["type"])
    if known is not None and known["status"] == new["status"]:
        if known.get("reason") == new.get("reason"):
            return conditions
        new = {**new, "lastTransitionTime": known.get("lastTransitionTime", new["lastTransitionTime"])}
    return [*without_condition(conditions, new["type"]), new]


def without_condition(conditions: list[Manifest], type: str) -> list[Manifest]:
    """Conditions but for one."""
    return [each for each in conditions if each["type"] != type]


def share(value: Any, total: int, *, round_up: bool) -> int:
    """A count that may be given as a percentage of a total."""
    if isinstance(value, str) and value.endswith("%"):
        part = int(value[:-1]) * total / 100
        return math.ceil(part) if round_up else math.floor(part)
    return int(value or 0)
