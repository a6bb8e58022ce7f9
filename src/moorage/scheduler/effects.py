"""Effects as requests: what the engine wants done, done through an API server.

Objects here hold only the fields that scheduling reads, so nothing is ever replaced as a whole: all writes
are patches of the fields concerned, and carry the resourceVersion where somebody else's change must not be
overwritten.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import msgspec

from moorage.api.base import Object
from moorage.api.decode import convert
from moorage.api.devices import ResourceClaim
from moorage.api.manifests import Manifest, timestamp
from moorage.api.pod import Pod
from moorage.api.quantity import Quantity, format_quantity
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim
from moorage.client.client import Client
from moorage.client.errors import RequestError
from moorage.client.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, RESOURCE_CLAIM
from moorage.framework.effects import (
    BindPod,
    BindVolume,
    CreateClaim,
    DeleteClaim,
    Effect,
    EvictPods,
    NominateNode,
    SelectNode,
    WriteClaimStatus,
    WriteExtendedResourceStatus,
)
from moorage.scheduler.events import Recorder

_PROTECTION: Final = "resource.kubernetes.io/delete-protection"


class ApiEffects:
    """Writes to an API server."""

    def __init__(self, client: Client, recorder: Recorder, now: Callable[[], datetime]) -> None:
        self._client = client
        self._recorder = recorder
        self._now = now

    async def perform(self, effect: Effect) -> Object | None:
        """Do it; the answer is the object as stored where there is one. RequestError if it is refused."""
        match effect:
            case BindPod(pod, node_name):
                await self._bind(pod, node_name)
            case NominateNode(pod, node_name):
                await self._patch_status(pod, {"nominatedNodeName": node_name or None})
            case EvictPods():
                await self._evict(effect)
            case BindVolume(volume):
                patch = {"metadata": _annotated(volume), "spec": {"claimRef": _plain(volume.spec.claim_ref)}}
                stored = await self._client.patch(PERSISTENT_VOLUME, "", volume.name, patch, "merge")
                return convert(stored, PersistentVolume)
            case SelectNode(claim):
                patch = {"metadata": _annotated(claim)}
                stored = await self._client.patch(
                    PERSISTENT_VOLUME_CLAIM, claim.namespace, claim.name, patch, "merge"
                )
                return convert(stored, PersistentVolumeClaim)
            case WriteClaimStatus(claim):
                return await self._write_claim_status(effect.claim, _plain(effect.status))
            case CreateClaim(claim):
                body = _plain(claim) | {"apiVersion": RESOURCE_CLAIM.api_version, "kind": RESOURCE_CLAIM.name}
                stored = await self._client.create(RESOURCE_CLAIM, claim.namespace, body)
                return convert(stored, ResourceClaim)
            case DeleteClaim(claim):
                await self._delete_claim(claim)
            case WriteExtendedResourceStatus(pod, status):
                stored = await self._patch_status(pod, {"extendedResourceClaimStatus": _plain(status)})
                return convert(stored, Pod)
        return None

    async def _bind(self, pod: Pod, node_name: str) -> None:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"kind": "Node", "name": node_name},
        }
        await self._client.create_part(POD, pod.namespace, pod.name, "binding", binding)

    async def _patch_status(self, pod: Pod, status: Manifest) -> Manifest:
        patch = {"metadata": {"uid": pod.uid}, "status": status}
        return await self._client.patch(POD, pod.namespace, pod.name, patch, "strategic", "status")

    async def _evict(self, eviction: EvictPods) -> None:
        """Victims go one after another; those that are gone already are no failure."""
        scheduler = eviction.preemptor.spec.scheduler_name
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{scheduler}: preempting to accommodate a higher priority pod",
            "lastTransitionTime": timestamp(self._now()),
        }
        for victim in eviction.victims:
            try:
                await self._patch_status(victim, {"conditions": [condition]})
                await self._client.delete(POD, victim.namespace, victim.name, uid=victim.uid)
            except RequestError as error:
                if not (error.is_not_found or error.is_conflict):
                    raise
                continue
            await self._recorder.preempted(victim, eviction.preemptor, eviction.node_name)

    async def _write_claim_status(self, claim: ResourceClaim, status: Manifest) -> ResourceClaim:
        """The status of a claim; a claim that is allocated is protected from deletion first."""
        version = claim.metadata.resource_version
        if _PROTECTION in claim.metadata.finalizers:
            meta = {"resourceVersion": version, "finalizers": list(claim.metadata.finalizers)}
            stored = await self._client.patch(
                RESOURCE_CLAIM, claim.namespace, claim.name, {"metadata": meta}, "merge"
            )
            version = stored["metadata"]["resourceVersion"]
        whole = {key: status.get(key) for key in ("allocation", "reservedFor", "devices")}
        patch = {"metadata": {"resourceVersion": version, "uid": claim.metadata.uid}, "status": whole}
        stored = await self._client.patch(
            RESOURCE_CLAIM, claim.namespace, claim.name, patch, "merge", "status"
        )
        return convert(stored, ResourceClaim)

    async def _delete_claim(self, claim: ResourceClaim) -> None:
        finalizers = [name for name in claim.metadata.finalizers if name != _PROTECTION]
        try:
            patch = {"metadata": {"finalizers": finalizers, "uid": claim.metadata.uid}}
            await self._client.patch(RESOURCE_CLAIM, claim.namespace, claim.name, patch, "merge")
            await self._client.delete(RESOURCE_CLAIM, claim.namespace, claim.name, uid=claim.metadata.uid)
        except RequestError as error:
            if not error.is_not_found:
                raise


def _annotated(obj: Object) -> Manifest:
    """An object's annotations, for a patch that fails if somebody changed the object meanwhile."""
    meta = obj.metadata
    return {"annotations": dict(meta.annotations), "resourceVersion": meta.resource_version or None}


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=_encoded)


def _encoded(value: Any) -> Any:
    if isinstance(value, Quantity):
        return format_quantity(value)
    raise NotImplementedError(type(value))
