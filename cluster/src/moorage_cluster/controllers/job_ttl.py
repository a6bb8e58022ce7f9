"""Deletion of finished jobs after their TTL."""

from __future__ import annotations

from datetime import timedelta

from moorage.api.manifests import moment
from moorage.client.kinds import JOB
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.controller import Controller
from moorage_cluster.controllers.job_pods import finished_condition
from moorage_cluster.controllers.pods import is_deleted


class JobTtlController(Controller):
    """Deletes jobs, with their pods, when their TTL has expired."""

    name = "ttl-after-finished-controller"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.watch(JOB)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Delete one job, if its TTL has expired."""
        job = self.cluster.informer(JOB).get(namespace, name)
        if job is None or is_deleted(job):
            return None
        seconds, ended = job["spec"].get("ttlSecondsAfterFinished"), finished_condition(job)
        if seconds is None or ended is None:
            return None
        due = moment(ended["lastTransitionTime"]) + timedelta(seconds=seconds)
        left = (due - self.cluster.clock.utc_now()).total_seconds()
        if left > 0:
            return left
        await self.cluster.delete(JOB, job, propagation="Foreground")
        return None
