"""Removal of the tracking finalizer from pods of deleted or finished jobs."""

from __future__ import annotations

from moorage.api.manifests import Manifest
from moorage.client.informer import EventType
from moorage.client.kinds import JOB, POD
from moorage_cluster.controllers.cluster import Cluster, controller_of
from moorage_cluster.controllers.controller import Controller
from moorage_cluster.controllers.job_pods import is_finished_job, is_ours, is_tracked, untrack


class JobFinalizerController(Controller):
    """Removes the tracking finalizer from pods that no job counts."""

    name = "job-controller"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        cluster.owned(POD)
        self.watch(POD, self._pod_changed)
        self.watch(JOB, self._job_changed)

    def _pod_changed(self, type: EventType, pod: Manifest, before: Manifest | None) -> None:
        if type != "DELETED" and is_tracked(pod) and self._is_left_over(pod):
            self.enqueue(pod["metadata"]["namespace"], pod["metadata"]["name"])

    def _job_changed(self, type: EventType, job: Manifest, before: Manifest | None) -> None:
        if type == "DELETED" or is_finished_job(job):
            for pod in self.cluster.owned(POD).get(job["metadata"]["uid"]):
                self.enqueue(pod["metadata"]["namespace"], pod["metadata"]["name"])

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Remove the finalizer from one pod, if no job counts it."""
        pod = self.cluster.informer(POD).get(namespace, name)
        if pod is not None and self._is_left_over(pod):
            await untrack(self.cluster, pod)
        return None

    def _is_left_over(self, pod: Manifest) -> bool:
        owner = controller_of(pod)
        if owner is None:
            return True
        if (owner["apiVersion"], owner["kind"]) != (JOB.api_version, JOB.name):
            return False
        job = self.cluster.informer(JOB).get(pod["metadata"]["namespace"], owner["name"])
        if job is None or job["metadata"]["uid"] != owner["uid"]:
            return True
        return is_ours(job) and is_finished_job(job)
