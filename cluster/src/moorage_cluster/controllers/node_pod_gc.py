"""Pod garbage collection: orphaned pods, terminating ones without a kubelet, surplus finished ones."""

from __future__ import annotations

from typing import Final

from moorage.api.conditions import condition_status
from moorage.api.manifests import Manifest
from moorage.client.kinds import NODE, POD
from moorage.http.errors import RequestError
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.controller import Controller
from moorage_cluster.controllers.node_conditions import READY, mark_disrupted, patch_pod_status
from moorage_cluster.controllers.node_taints import OUT_OF_SERVICE
from moorage_cluster.controllers.pods import is_finished

_PERIOD_SECONDS: Final = 20.0
_QUARANTINE_SECONDS: Final = 40.0
"""Time after which the pods of a missing node are deleted, in seconds; it may be created again until then."""
ENDED_PODS_KEPT: Final = 12_500


class PodGarbageCollection(Controller):
    """Checks all pods periodically."""

    name = "pod-garbage-collector"

    def __init__(self, cluster: Cluster, ended_pods_kept: int = ENDED_PODS_KEPT) -> None:
        super().__init__(cluster)
        self._pods = cluster.informer(POD)
        self._nodes = cluster.informer(NODE)
        self._ended_pods_kept = ended_pods_kept
        self._missed_since: dict[str, float] = {}
        self.enqueue("", "")

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Check all pods."""
        pods = list(self._pods.objects.values())
        gone = await self._missing_nodes(pods)
        ended = []
        for pod in pods:
            node_name = pod["spec"].get("nodeName") or ""
            is_terminating = "deletionTimestamp" in pod["metadata"]
            if node_name in gone:
                await self._delete(pod, "PodGC: node no longer exists")
            elif is_terminating and (not node_name or self._is_out_of_service(node_name)):
                await self._delete(pod)
            elif is_finished(pod):
                ended.append(pod)
        surplus = len(ended) - self._ended_pods_kept
        if surplus > 0:
            for pod in sorted(ended, key=_evicted_and_oldest_first)[:surplus]:
                await self._delete(pod)
        return _PERIOD_SECONDS

    async def _missing_nodes(self, pods: list[Manifest]) -> set[str]:
        """Nodes of pods that have been missing for the quarantine, confirmed by a live read."""
        names = {pod["spec"].get("nodeName") or "" for pod in pods} - {""}
        now = self.cluster.clock.now()
        missed = {name for name in names if self._nodes.get("", name) is None}
        self._missed_since = {name: self._missed_since.get(name, now) for name in missed}
        long_missed = [
            name for name, since in self._missed_since.items() if now - since >= _QUARANTINE_SECONDS
        ]
        return {name for name in long_missed if await self._is_missing(name)}

    async def _is_missing(self, node_name: str) -> bool:
        try:
            await self.cluster.client.get(NODE, "", node_name)
        except RequestError as error:
            return error.is_not_found
        return False

    def _is_out_of_service(self, node_name: str) -> bool:
        """Whether a node that is not ready has the out-of-service taint."""
        node = self._nodes.get("", node_name)
        if node is None or condition_status(node, READY) == "True":
            return False
        return any(taint["key"] == OUT_OF_SERVICE for taint in node["spec"].get("taints") or ())

    async def _delete(self, pod: Manifest, why: str = "") -> None:
        """Delete a pod without grace period; one that had not finished becomes Failed."""
        try:
            if not is_finished(pod):
                if why:
                    await mark_disrupted(self.cluster, pod, "DeletionByPodGC", why, phase="Failed")
                else:
                    await patch_pod_status(self.cluster, pod, {"phase": "Failed"})
            await self.cluster.delete(POD, pod, grace_seconds=0)
        except RequestError as error:
            if not error.is_not_found and not error.is_conflict:
                raise


def _evicted_and_oldest_first(pod: Manifest) -> tuple[bool, str, str]:
    was_evicted = (pod.get("status") or {}).get("reason") == "Evicted"
    return not was_evicted, pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]
