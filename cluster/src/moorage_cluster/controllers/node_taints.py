"""Which taints a node gets from its conditions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from moorage.api.conditions import condition_status
from moorage.api.manifests import Manifest, timestamp
from moorage.api.taints import NO_EXECUTE, NO_SCHEDULE
from moorage_cluster.controllers.node_conditions import READY

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"

_BY_CONDITION: Final = {
    (READY, "False"): NOT_READY,
    (READY, "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
_MANAGED: Final = frozenset(
    {(key, NO_SCHEDULE) for key in (*_BY_CONDITION.values(), UNSCHEDULABLE)}
    | {(NOT_READY, NO_EXECUTE), (UNREACHABLE, NO_EXECUTE)}
)
"""Keys and effects of the taints that follow conditions; all others belong to users."""

TaintId = tuple[str, str]


def no_schedule_taints(node: Manifest) -> set[TaintId]:
    """The NoSchedule taints for a node's conditions, and for `unschedulable`."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    keys = {_BY_CONDITION.get((each["type"], each["status"])) for each in conditions}
    if node["spec"].get("unschedulable"):
        keys.add(UNSCHEDULABLE)
    return {(key, NO_SCHEDULE) for key in keys if key}


def no_execute_taint(node: Manifest) -> TaintId | None:
    """The NoExecute taint of a node that is not ready."""
    key = _BY_CONDITION.get((READY, condition_status(node, READY)))
    return (key, NO_EXECUTE) if key else None


def has_no_execute_taint(node: Manifest) -> bool:
    """Whether a node already has the NoExecute taint for not being ready."""
    return any(
        taint["effect"] == NO_EXECUTE and taint["key"] in (NOT_READY, UNREACHABLE)
        for taint in node["spec"].get("taints") or ()
    )


def changed_taints(node: Manifest, wanted: Iterable[TaintId], now: datetime) -> list[Manifest] | None:
    """All taints of a node, with exactly these of the managed ones; None if unchanged."""
    missing = set(wanted)
    before: list[Manifest] = node["spec"].get("taints") or []
    after = []
    for taint in before:
        name = (taint["key"], taint["effect"])
        if name not in _MANAGED or name in missing:
            after.append(taint)
            missing.discard(name)
    added = timestamp(now)
    after += [{"key": key, "effect": effect, "timeAdded": added} for key, effect in sorted(missing)]
    return after if after != before else None
