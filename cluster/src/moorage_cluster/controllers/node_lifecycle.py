"""Node lifecycle: nodes without heartbeats become Unknown and tainted, and their pods not ready.

A heartbeat costs one entry in a dict. Each node has at most one timer, for the moment when its grace period
ends if there was no heartbeat since its last reconciliation.
"""

from __future__ import annotations

from typing import Final

from moorage.api.conditions import condition_status, find_condition
from moorage.api.manifests import Manifest, labels_of, moment, status_of, timestamp
from moorage.client.informer import EventType, Index
from moorage.client.kinds import LEASE, NODE, POD
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.controller import Controller
from moorage_cluster.controllers.node_conditions import READY, changed_condition, patch_pod_status
from moorage_cluster.controllers.node_taints import (
    changed_taints,
    has_no_execute_taint,
    no_execute_taint,
    no_schedule_taints,
)
from moorage_cluster.controllers.node_zones import Zones, zone_of

MONITOR_GRACE_SECONDS: Final = 50.0
"""Grace period for the heartbeats of a node that was ready, in seconds."""
STARTUP_GRACE_SECONDS: Final = 60.0
"""Grace period for the first heartbeat of a new node, in seconds."""
_RECHECK_SECONDS: Final = 5.0
_LEASES: Final = "kube-node-lease"
_REPORTED: Final = (READY, "MemoryPressure", "DiskPressure", "PIDPressure")
"""The conditions that only the kubelet can report."""
_OLD_LABELS: Final = {
    "kubernetes.io/os": "beta.kubernetes.io/os",
    "kubernetes.io/arch": "beta.kubernetes.io/arch",
}


class NodeLifecycle(Controller):
    """Reconciles nodes and, under namespace and name, newly bound pods."""

    name = "node-controller"

    def __init__(self, cluster: Cluster, grace_seconds: float = MONITOR_GRACE_SECONDS) -> None:
        super().__init__(cluster)
        self._grace_seconds = grace_seconds
        self._nodes = cluster.informer(NODE)
        self._pods = cluster.informer(POD)
        self._pods_on = Index(self._pods, _node_names)
        self._zones = Zones()
        self._last_seen: dict[str, float] = {}
        self._registered: dict[str, Manifest] = {}
        self._all_disrupted = False
        self.watch(NODE, self._node_changed)
        self.watch(LEASE, self._lease_changed)
        self.watch(POD, self._pod_changed)

    # -- heartbeats

    def _lease_changed(self, type: EventType, lease: Manifest, before: Manifest | None) -> None:
        meta = lease["metadata"]
        if meta["namespace"] == _LEASES and (
            before is None or before["spec"].get("renewTime") != lease["spec"].get("renewTime")
        ):
            self._last_seen[meta["name"]] = self.cluster.clock.now()

    def _node_changed(self, type: EventType, node: Manifest, before: Manifest | None) -> None:
        name = node["metadata"]["name"]
        if type == "DELETED":
            self._last_seen.pop(name, None)
            self._zones.remove(name)
        else:
            if _heartbeat(node) != (_heartbeat(before) if before else None):
                self._last_seen[name] = self.cluster.clock.now()
            self._zones.put(node)
        self.enqueue("", name)
        if self._zones.all_disrupted != self._all_disrupted:
            self._all_disrupted = not self._all_disrupted
            self._reset_probe_times()

    def _reset_probe_times(self) -> None:
        """When the first node is ready again, the grace periods of all nodes restart."""
        for _, name in self._nodes.objects:
            if not self._all_disrupted:
                self._last_seen[name] = self.cluster.clock.now()
            self.enqueue("", name)

    def _pod_changed(self, type: EventType, pod: Manifest, before: Manifest | None) -> None:
        node_name = pod["spec"].get("nodeName")
        if type != "DELETED" and node_name and (before is None or not before["spec"].get("nodeName")):
            self.enqueue(pod["metadata"]["namespace"], pod["metadata"]["name"])

    # -- reconciling one

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Reconcile one node, or one newly bound pod."""
        if namespace:
            await self._reconcile_pod(namespace, name)
            return None
        node = self._nodes.get("", name)
        await self._record_registration(name, node)
        if node is None:
            return None
        node, overdue_after = await self._update_health(node)
        turn_after = await self._update_taints(node)
        return min((each for each in (overdue_after, turn_after) if each is not None), default=None)

    async def _reconcile_pod(self, namespace: str, name: str) -> None:
        pod = self._pods.get(namespace, name)
        node = self._nodes.get("", pod["spec"]["nodeName"]) if pod else None
        if pod and node and condition_status(node, READY) in ("False", "Unknown"):
            await self._mark_pod_not_ready(pod)

    async def _record_registration(self, name: str, node: Manifest | None) -> None:
        known = self._registered.get(name)
        if known is not None and (node is None or node["metadata"]["uid"] != known["metadata"]["uid"]):
            del self._registered[name]
            message = f"Node {name} event: Removing Node {name} from Controller"
            await self.cluster.record_event(known, "Normal", "RemovingNode", message, self.name)
        if node is not None and name not in self._registered:
            self._registered[name] = node
            message = f"Node {name} event: Registered Node {name} in Controller"
            await self.cluster.record_event(node, "Normal", "RegisteredNode", message, self.name)

    async def _update_health(self, node: Manifest) -> tuple[Manifest, float | None]:
        """Set a node's conditions to Unknown after its grace period; else return the seconds until then."""
        status = condition_status(node, READY)
        if status == "Unknown":
            return node, None
        grace = self._grace_seconds if status else STARTUP_GRACE_SECONDS
        left = self._last_seen_at(node) + grace - self.cluster.clock.now()
        if left > 0:
            return node, left
        now = self.cluster.clock.utc_now()
        marks = [changed_condition(node, _unknown(node, type), now) for type in _REPORTED]
        patch = {
            "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
            "status": {"conditions": [mark for mark in marks if mark]},
        }
        node = await self.cluster.patch(NODE, node, patch, "strategic", "status")
        if status == "True":
            message = f"Node {node['metadata']['name']} status is now: NodeNotReady"
            await self.cluster.record_event(node, "Normal", "NodeNotReady", message, self.name)
            for pod in self._pods_on.get(node["metadata"]["name"]):
                await self._mark_pod_not_ready(pod)
        return node, None

    def _last_seen_at(self, node: Manifest) -> float:
        """The last heartbeat of a node; without one, its creation."""
        last_seen = self._last_seen.get(node["metadata"]["name"])
        if last_seen is not None:
            return last_seen
        age = self.cluster.clock.utc_now() - moment(node["metadata"]["creationTimestamp"])
        return self.cluster.clock.now() - age.total_seconds()

    async def _mark_pod_not_ready(self, pod: Manifest) -> None:
        ready = find_condition(status_of(pod), READY)
        if ready is None or ready["status"] == "False":
            return
        since = timestamp(self.cluster.clock.utc_now())
        turned = {**ready, "status": "False", "lastTransitionTime": since}
        await patch_pod_status(self.cluster, pod, {"conditions": [turned]})
        await self.cluster.record_event(pod, "Warning", "NodeNotReady", "Node is not ready", self.name)

    # -- taints and labels

    async def _update_taints(self, node: Manifest) -> float | None:
        """Update a node's taints and labels from its conditions; returns the seconds until a retry."""
        wanted = no_schedule_taints(node)
        wait = None
        no_execute = no_execute_taint(node)
        if no_execute is not None:
            wait = self._seconds_to_eviction(node)
            if wait == 0:
                wanted.add(no_execute)
                wait = None
        taints = changed_taints(node, wanted, self.cluster.clock.utc_now())
        labels = _missing_labels(node)
        if taints is not None or labels:
            patch: Manifest = {"metadata": {"resourceVersion": node["metadata"]["resourceVersion"]}}
            if labels:
                patch["metadata"]["labels"] = labels
            if taints is not None:
                patch["spec"] = {"taints": taints}
            await self.cluster.patch(NODE, node, patch)
        return wait

    def _seconds_to_eviction(self, node: Manifest) -> float:
        """Seconds until a node that is not ready may get its NoExecute taint."""
        if self._zones.all_disrupted:
            return _RECHECK_SECONDS
        if has_no_execute_taint(node):
            return 0.0
        turn = self._zones.take_turn(zone_of(node), self.cluster.clock.now())
        return _RECHECK_SECONDS if turn is None else turn


def _node_names(pod: Manifest) -> list[str]:
    name = pod["spec"].get("nodeName")
    return [name] if name else []


def _heartbeat(node: Manifest) -> str | None:
    """The last heartbeat time of a node's Ready condition."""
    ready = find_condition(status_of(node), READY)
    return (ready.get("lastHeartbeatTime") or "") if ready else None


def _unknown(node: Manifest, type: str) -> Manifest:
    """A condition that is no longer reported, or never was."""
    before = find_condition(status_of(node), type)
    if before is None:
        return {
            "type": type,
            "status": "Unknown",
            "reason": "NodeStatusNeverUpdated",
            "message": "Kubelet never posted node status.",
            "lastHeartbeatTime": node["metadata"]["creationTimestamp"],
        }
    if before["status"] == "Unknown":
        return before
    return {
        **before,
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
    }


def _missing_labels(node: Manifest) -> dict[str, str]:
    """The deprecated labels that copy the current ones."""
    labels = labels_of(node)
    return {
        old: labels[new]
        for new, old in _OLD_LABELS.items()
        if new in labels and labels.get(old) != labels[new]
    }
