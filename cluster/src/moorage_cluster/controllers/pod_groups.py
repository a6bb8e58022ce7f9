"""PodGroups and Workloads of v1.37, as controllers see them, and the protection of groups in use."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest
from moorage.client.informer import EventType, Index
from moorage.client.kinds import POD, Kind
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.controller import Controller
from moorage_cluster.controllers.finalizers import is_being_deleted, unprotect
from moorage_cluster.controllers.volume_facts import has_ended

POD_GROUP: Final = Kind("scheduling.k8s.io", "v1beta1", "PodGroup", "podgroups")
WORKLOAD: Final = Kind("scheduling.k8s.io", "v1beta1", "Workload", "workloads")
POD_GROUP_PROTECTION: Final = "scheduling.k8s.io/podgroup-protection"


class PodGroupProtection(Controller):
    """Removes the finalizer of a deleted pod group when no pod of it is left but finished ones."""

    name = "podgroup-protection-controller"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._groups = cluster.informer(POD_GROUP)
        self._members = Index(cluster.informer(POD), _unfinished_in)
        self.watch(POD_GROUP)
        self.watch(POD, self._pod_changed)

    def _pod_changed(self, type: EventType, pod: Manifest, before: Manifest | None) -> None:
        """A pod that is gone or finished may have been the last one of a deleted group."""
        for each in (pod, before):
            if each and (name := _group_name(each)) and (type == "DELETED" or has_ended(pod)):
                self.enqueue(each["metadata"]["namespace"], name)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Remove the finalizer of one group."""
        group = self._groups.get(namespace, name)
        if group is None or not is_being_deleted(group, POD_GROUP_PROTECTION):
            return None
        if not self._members.get(f"{namespace}/{name}"):
            await unprotect(self.cluster, POD_GROUP, group, POD_GROUP_PROTECTION)
        return None


def _group_name(pod: Manifest) -> str:
    return (pod["spec"].get("schedulingGroup") or {}).get("podGroupName") or ""


def _unfinished_in(pod: Manifest) -> list[str]:
    """The key of the group of a pod that has not finished."""
    name = _group_name(pod)
    return [f"{pod['metadata']['namespace']}/{name}"] if name and not has_ended(pod) else []
