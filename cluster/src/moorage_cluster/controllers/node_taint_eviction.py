"""Taint-based eviction: pods leave a node with a NoExecute taint when they no longer tolerate it."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.api.decode import convert
from moorage.api.manifests import Manifest
from moorage.api.node import Taint
from moorage.api.pod import Toleration
from moorage.api.taints import NO_EXECUTE, tolerates
from moorage.client.informer import EventType, Index
from moorage.client.kinds import NODE, POD
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.controller import Controller, Key
from moorage_cluster.controllers.node_conditions import mark_disrupted


@dataclass(frozen=True, slots=True)
class _Plan:
    """A pending eviction: the pod, when it was planned, and when it is due."""

    uid: str
    since: float
    due: float


class TaintEviction(Controller):
    """Reconciles pods on tainted nodes."""

    name = "taint-eviction-controller"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._pods = cluster.informer(POD)
        self._nodes = cluster.informer(NODE)
        self._pods_on = Index(self._pods, lambda pod: [pod["spec"].get("nodeName") or ""])
        self._plans: dict[Key, _Plan] = {}
        self.watch(NODE, self._node_changed)
        self.watch(POD, self._pod_changed)

    def _node_changed(self, type: EventType, node: Manifest, before: Manifest | None) -> None:
        if _no_execute_taints(node) != (_no_execute_taints(before) if before else []):
            for pod in self._pods_on.get(node["metadata"]["name"]):
                self._enqueue(pod)

    def _pod_changed(self, type: EventType, pod: Manifest, before: Manifest | None) -> None:
        if type == "MODIFIED" and before and _placement(pod) == _placement(before):
            return
        node = self._nodes.get("", pod["spec"].get("nodeName") or "")
        if (node and _no_execute_taints(node)) or self._key(pod) in self._plans:
            self._enqueue(pod)

    def _key(self, pod: Manifest) -> Key:
        return pod["metadata"]["namespace"], pod["metadata"]["name"]

    def _enqueue(self, pod: Manifest) -> None:
        self.enqueue(*self._key(pod))

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Evict one pod, or return the seconds until it is due."""
        key = (namespace, name)
        pod = self._pods.get(namespace, name)
        plan = self._plans.get(key)
        if pod is None or (plan and plan.uid != pod["metadata"]["uid"]):
            self._plans.pop(key, None)
            plan = None
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            self._plans.pop(key, None)
            return None
        node = self._nodes.get("", pod["spec"].get("nodeName") or "")
        tolerated_seconds = _tolerated_seconds(pod, _no_execute_taints(node) if node else [])
        if tolerated_seconds is None:
            if plan is not None:
                await self._cancel(pod)
            return None
        now = self.cluster.clock.now()
        if plan is None or tolerated_seconds == 0:
            plan = self._plans[key] = _Plan(pod["metadata"]["uid"], now, now + tolerated_seconds)
        if plan.due > now:
            return plan.due - now
        await self._evict(pod)
        return None

    async def _evict(self, pod: Manifest) -> None:
        where = "/".join(self._key(pod))
        message = f"Marking for deletion Pod {where}"
        await self.cluster.record_event(pod, "Normal", "TaintManagerEviction", message, self.name)
        why = "Taint manager: deleting due to NoExecute taint"
        pod = await mark_disrupted(self.cluster, pod, "DeletionByTaintManager", why)
        await self.cluster.delete(POD, pod)
        self._plans.pop(self._key(pod), None)

    async def _cancel(self, pod: Manifest) -> None:
        del self._plans[self._key(pod)]
        message = f"Cancelling deletion of Pod {'/'.join(self._key(pod))}"
        await self.cluster.record_event(pod, "Normal", "TaintManagerEviction", message, self.name)


def _no_execute_taints(node: Manifest) -> list[tuple[str, str]]:
    """Keys and values of a node's NoExecute taints."""
    taints = node["spec"].get("taints") or ()
    return [(taint["key"], taint.get("value", "")) for taint in taints if taint["effect"] == NO_EXECUTE]


def _placement(pod: Manifest) -> tuple[object, object]:
    return pod["spec"].get("nodeName"), pod["spec"].get("tolerations")


def _tolerated_seconds(pod: Manifest, taints: list[tuple[str, str]]) -> float | None:
    """How long a pod tolerates taints, in seconds; None: for ever."""
    tolerations = [convert(each, Toleration) for each in pod["spec"].get("tolerations") or ()]
    shortest: float | None = None
    for key, value in taints:
        taint = Taint(key=key, value=value, effect=NO_EXECUTE)
        found = next((each for each in tolerations if tolerates(each, taint)), None)
        if found is None:
            return 0.0
        if found.toleration_seconds is not None:
            seconds = max(0.0, float(found.toleration_seconds))
            shortest = seconds if shortest is None else min(shortest, seconds)
    return shortest
