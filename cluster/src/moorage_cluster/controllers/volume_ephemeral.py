"""Ephemeral volumes: creates claims from the templates in pods."""

from __future__ import annotations

from moorage.api.manifests import Manifest
from moorage.client.informer import EventType, Index
from moorage.client.kinds import PERSISTENT_VOLUME_CLAIM, POD
from moorage.http.errors import RequestError
from moorage_cluster.controllers.cluster import Cluster, owner_reference
from moorage_cluster.controllers.controller import Controller
from moorage_cluster.controllers.volume_facts import claim_key, claim_keys_of, is_made_for


class EphemeralVolumes(Controller):
    """Reconciles pods with ephemeral volumes."""

    name = "ephemeral_volume"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._pods = cluster.informer(POD)
        self._claims = cluster.informer(PERSISTENT_VOLUME_CLAIM)
        self._users = Index(self._pods, claim_keys_of)
        self.watch(POD, self._pod_changed)
        self.watch(PERSISTENT_VOLUME_CLAIM, self._claim_changed)

    def _pod_changed(self, type: EventType, pod: Manifest, before: Manifest | None) -> None:
        """A pod's volumes never change: one reconciliation is enough."""
        if type == "ADDED":
            self._enqueue(pod)

    def _claim_changed(self, type: EventType, claim: Manifest, before: Manifest | None) -> None:
        if type == "DELETED":
            for pod in self._users.get(claim_key(claim)):
                self._enqueue(pod)

    def _enqueue(self, pod: Manifest) -> None:
        if any(volume.get("ephemeral") is not None for volume in pod["spec"].get("volumes") or ()):
            self.enqueue(pod["metadata"]["namespace"], pod["metadata"]["name"])

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Create the missing claims of one pod."""
        pod = self._pods.get(namespace, name)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return None
        for volume in pod["spec"]["volumes"]:
            if volume.get("ephemeral") is not None:
                await self._make_claim(pod, volume)
        return None

    async def _make_claim(self, pod: Manifest, volume: Manifest) -> None:
        namespace, name = pod["metadata"]["namespace"], f"{pod['metadata']['name']}-{volume['name']}"
        claim = self._claims.get(namespace, name)
        if claim is not None:
            if not is_made_for(claim, pod):
                pod_key = f"{namespace}/{pod['metadata']['name']}"
                problem = f"PVC {namespace}/{name} was not created for pod {pod_key} (pod is not owner)"
                await self._record_event(pod, volume, problem)
            return
        template = volume["ephemeral"]["volumeClaimTemplate"]
        given = template.get("metadata") or {}
        wanted: Manifest = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": name,
                "labels": given.get("labels") or {},
                "annotations": given.get("annotations") or {},
                "ownerReferences": [owner_reference(pod)],
            },
            "spec": template["spec"],
        }
        try:
            await self.cluster.create(PERSISTENT_VOLUME_CLAIM, namespace, wanted)
        except RequestError as error:
            await self._record_event(pod, volume, f"create PVC {name}: {error.message}")
            raise

    async def _record_event(self, pod: Manifest, volume: Manifest, problem: str) -> None:
        message = f"ephemeral volume {volume['name']}: {problem}"
        await self.cluster.record_event(pod, "Warning", "FailedBinding", message, self.name)
