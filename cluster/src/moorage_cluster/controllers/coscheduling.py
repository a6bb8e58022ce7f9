"""The status of scheduler-plugins' PodGroups: their phase, and how many of their pods run or have ended.

    (none) ─► Pending ─► Scheduling ─► Running ─► Finished
                 ▲            │           │
                 └────────────┴───────────┴─────► Failed

A group is Pending while it has fewer pods than it needs, and Scheduling until enough of them run. Finished
and Failed are final.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from moorage.api.coscheduling import POD_GROUP_LABEL
from moorage.api.manifests import Manifest, labels_of, moment, status_of
from moorage.client.informer import EventType, Index
from moorage.client.kinds import COSCHEDULING_POD_GROUP, POD
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.controller import Controller

PENDING: Final = "Pending"
SCHEDULING: Final = "Scheduling"
RUNNING: Final = "Running"
FINISHED: Final = "Finished"
FAILED: Final = "Failed"

_MAX_WAIT: Final = timedelta(hours=48)
"""Time from the creation of a group to the start of its scheduling after which its status is not kept."""


class PodGroupController(Controller):
    """Keeps the status of PodGroups."""

    name = "PodGroupController"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._groups = cluster.informer(COSCHEDULING_POD_GROUP)
        self._members = Index(cluster.informer(POD), _group_keys)
        self.watch(COSCHEDULING_POD_GROUP)
        self.watch(POD, self._pod_changed)

    def _pod_changed(self, type: EventType, pod: Manifest, before: Manifest | None) -> None:
        for each in (pod, before):
            if each and (name := labels_of(each).get(POD_GROUP_LABEL)):
                self.enqueue(each["metadata"]["namespace"], name)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Write the status of one group, if it changes."""
        group = self._groups.get(namespace, name)
        if group is None or status_of(group).get("phase") in (FINISHED, FAILED):
            return None
        if _is_overdue(group):
            message = "schedule time longer than 48 hours"
            await self.cluster.record_event(group, "Warning", "Timeout", message, self.name)
            return None
        pods = sorted(
            self._members.get(f"{namespace}/{name}"),
            key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]),
        )
        if changes := status_changes(group, pods):
            await self.cluster.patch(COSCHEDULING_POD_GROUP, group, {"status": changes}, subresource="status")
        return None


def status_changes(group: Manifest, pods: Sequence[Manifest]) -> Manifest:
    """The fields of a group's status that change, None where one is removed.

    pods: the group's pods, the oldest first.
    """
    old = status_of(group)
    return {field: value for field, value in _fields(group, old, pods).items() if old.get(field) != value}


def _fields(group: Manifest, old: Manifest, pods: Sequence[Manifest]) -> Manifest:
    needed = (group.get("spec") or {}).get("minMember", 0)
    match old.get("phase"):
        case None | "":
            return {"phase": PENDING}
        case "Pending":
            if len(pods) < needed:
                return {}
            occupants = _occupants(pods[0]) if pods else ""
            return {"phase": SCHEDULING, **({"occupiedBy": occupants} if occupants else {})}
    phases = Counter(status_of(pod).get("phase") for pod in pods)
    running, succeeded, failed = (phases[phase] for phase in ("Running", "Succeeded", "Failed"))
    counts = {"running": running or None, "succeeded": succeeded or None, "failed": failed or None}
    if len(pods) < needed:
        return {"phase": PENDING, **counts}
    return {"phase": _phase(needed, running, succeeded, failed), **counts}


def _phase(needed: int, running: int, succeeded: int, failed: int) -> str:
    """The phase of a group that has enough pods."""
    if succeeded >= needed:
        return FINISHED
    if failed and failed + running + succeeded >= needed:
        return FAILED
    return RUNNING if succeeded + running >= needed else SCHEDULING


def _occupants(pod: Manifest) -> str:
    """The owners of a pod."""
    meta = pod["metadata"]
    owners = meta.get("ownerReferences") or ()
    return ",".join(sorted(f"{meta['namespace']}/{owner['name']}" for owner in owners))


def _is_overdue(group: Manifest) -> bool:
    """Whether scheduling began so late that pods may have been removed since."""
    status = status_of(group)
    if status.get("phase") not in (SCHEDULING, PENDING) or status.get("running"):
        return False
    start = status.get("scheduleStartTime")
    return start is not None and moment(start) - moment(group["metadata"]["creationTimestamp"]) > _MAX_WAIT


def _group_keys(pod: Manifest) -> list[str]:
    name = labels_of(pod).get(POD_GROUP_LABEL)
    return [f"{pod['metadata']['namespace']}/{name}"] if name else []
