"""Performs the engine's effects as requests to an API server.

Objects here hold only the fields that scheduling reads, so no object is ever replaced: all writes are patches
of single fields, with the resourceVersion where another client's change must not be overwritten.
"""

from __future__ import annotations

import asyncio

from moorage.api.base import Object
from moorage.api.decode import convert
from moorage.api.manifests import Manifest
from moorage.api.pod import Pod
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim
from moorage.client.client import Client
from moorage.client.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD
from moorage.framework.interface.effects import (
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
from moorage.framework.runtime.pre_binding import PreBinding
from moorage.framework.runtime.waiting_pods import WaitingPods
from moorage.http.errors import RequestError
from moorage.klog import Logger, ObjectRef, kobj
from moorage.scheduler.binder import Binder
from moorage.scheduler.concurrent_work import run_concurrently
from moorage.scheduler.encoding import plain
from moorage.scheduler.pod_events import PodEventRecorder
from moorage.scheduler.pod_status_writer import PodStatusWriter
from moorage.scheduler.resource_claim_writer import ResourceClaimWriter

log = Logger(__name__)


class ApiEffects:
    """Writes to an API server."""

    def __init__(
        self,
        client: Client,
        binder: Binder,
        status_writer: PodStatusWriter,
        recorder: PodEventRecorder,
        waiting: WaitingPods,
        pre_binding: PreBinding,
    ) -> None:
        self._client = client
        self._binder = binder
        self._status_writer = status_writer
        self._recorder = recorder
        self._claims = ResourceClaimWriter(client)
        self._waiting = waiting
        self._pre_binding = pre_binding

    async def perform(self, effect: Effect) -> Object | None:
        """Perform an effect; returns the stored object, if there is one. RequestError if rejected."""
        match effect:
            case BindPod(pod, node_name):
                await self._binder.bind(pod, node_name)
            case NominateNode(pod, node_name):
                await self._status_writer.nominate(pod, node_name)
            case EvictPods():
                await self._evict(effect)
            case BindVolume(volume):
                patch = {"metadata": _annotated(volume), "spec": {"claimRef": plain(volume.spec.claim_ref)}}
                stored = await self._client.patch(PERSISTENT_VOLUME, "", volume.name, patch, "merge")
                return convert(stored, PersistentVolume)
            case SelectNode(claim):
                patch = {"metadata": _annotated(claim)}
                stored = await self._client.patch(
                    PERSISTENT_VOLUME_CLAIM, claim.namespace, claim.name, patch, "merge"
                )
                return convert(stored, PersistentVolumeClaim)
            case WriteClaimStatus(claim):
                return await self._claims.write_status(claim, effect.status)
            case CreateClaim(claim):
                return await self._claims.create(claim)
            case DeleteClaim(claim):
                await self._claims.delete(claim)
            case WriteExtendedResourceStatus(pod, status):
                return await self._status_writer.extended_resources(pod, status)
        return None

    async def _evict(self, eviction: EvictPods) -> None:
        """Evict the victims of a preemption."""
        _log_start(eviction)
        result = "error"
        try:
            await self._evict_all(eviction)
            result = "success"
        finally:
            if log.v >= 2:
                preemptor = _preemptor(eviction)
                message = "Async Preemption finished completely"
                log.info(2, message, preemptor=preemptor, node=eviction.node_name, result=result)

    async def _evict_all(self, eviction: EvictPods) -> None:
        """The last victim is evicted after all others: its deletion requeues the preemptor."""
        *others, last = eviction.victims
        if others:
            await run_concurrently([self._evict_one(victim, eviction) for victim in others])
            if not self._client.informs_at_once:
                await asyncio.sleep(0)  # A server in this process sends its watch events in the next turn.
        await self._evict_one(last, eviction)

    async def _evict_one(self, victim: Pod, eviction: EvictPods) -> None:
        """Evict a pod; one that is deleted already is no failure, one not bound yet is not deleted."""
        in_memory = self._stop(victim, eviction)
        if not in_memory:
            try:
                name = eviction.preemptor.spec.scheduler_name
                await self._status_writer.to_be_evicted(victim, name, eviction.preemptor_type)
                await self._client.delete(POD, victim.namespace, victim.name, uid=victim.uid)
            except RequestError as error:
                if not await self._is_gone(victim, error):
                    preemptor = _preemptor(eviction)
                    log.error(error, "Tried to preempted pod", pod=kobj(victim), preemptor=preemptor)
                    raise
                _log_victim("Victim Pod is already deleted", victim, eviction)
                return
            _log_victim("Preemptor Pod preempted victim Pod", victim, eviction)
        self._recorder.preempted(victim, eviction, in_memory=in_memory)

    async def _is_gone(self, pod: Pod, error: RequestError) -> bool:
        """Whether an error means that the pod no longer exists, or that another one has its name."""
        if not error.is_conflict and not error.is_invalid:  # A patch with another uid is invalid.
            return error.is_not_found
        try:
            stored = await self._client.get(POD, pod.namespace, pod.name)
        except RequestError as refusal:
            return refusal.is_not_found
        return bool(stored["metadata"]["uid"] != pod.uid)

    def _stop(self, victim: Pod, eviction: EvictPods) -> bool:
        """Whether the binding of a pod was stopped: it waited for a permit, or for its volumes."""
        uid = victim.uid
        waiting = self._waiting.get(uid)
        if waiting is not None:
            is_stopped = waiting.preempt(eviction.plugin, "preempted")
            message, key = "Preemptor preempted a waiting pod", "waitingPod"
        else:
            is_stopped = self._pre_binding.stop(uid, f"preempted by {eviction.plugin}")
            message, key = "Preemptor rejected a pod in preBind", "podInPreBind"
        if is_stopped and log.v >= 2:
            values = {"preemptorType": eviction.preemptor_type, "preemptor": _preemptor(eviction)}
            log.info(2, message, **values, **{key: kobj(victim)}, node=eviction.node_name)
        return is_stopped


def _preemptor(eviction: EvictPods) -> ObjectRef:
    """What room is made for, in the log."""
    return kobj(eviction.preemptor if eviction.group is None else eviction.group)


def _log_start(eviction: EvictPods) -> None:
    if log.v >= 2:
        count = len(eviction.victims)
        log.info(
            2,
            "Start the preemption asynchronously",
            preemptor=_preemptor(eviction),
            node=eviction.node_name,
            numVictims=count + eviction.terminating,
            numVictimsToDelete=count,
        )


def _log_victim(message: str, victim: Pod, eviction: EvictPods) -> None:
    if log.v >= 2:
        preemptor = _preemptor(eviction)
        log.info(2, message, preemptor=preemptor, victim=kobj(victim), node=eviction.node_name)


def _annotated(obj: Object) -> Manifest:
    """An object's annotations, for a patch that fails if another client has changed the object."""
    meta = obj.metadata
    return {"annotations": dict(meta.annotations), "resourceVersion": meta.resource_version or None}
