"""What the scheduler writes into pods' statuses: conditions, and the node a pod is going to have.

Nothing is written into a pod that has got a node meanwhile, or into another pod of the same name: every write
names the version it was made for. If that is not the latest, the pod is looked at, and asked again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Final

from moorage.api.decode import convert
from moorage.api.manifests import Manifest, timestamp
from moorage.api.pod import Pod, PodExtendedResourceClaimStatus
from moorage.client.client import Client
from moorage.client.errors import ConnectionFailed, RequestError
from moorage.client.kinds import POD
from moorage.scheduler.encoding import plain

_MOST_CONFLICTS: Final = 5
_MOST_AT_ONCE: Final = 64
"""So many statuses are written at the same time; thousands of pods can fail in the same second."""

log = logging.getLogger(__name__)


class PodStatuses:
    """Writes statuses of pods."""

    def __init__(self, client: Client, now: Callable[[], datetime]) -> None:
        self._client = client
        self._now = now
        self._slots = asyncio.Semaphore(_MOST_AT_ONCE)

    async def not_scheduled(self, pod: Pod, reason: str, message: str, nominated: str | None) -> None:
        """A pod has got no node; failing to say so is not worth more than a word in the log.

        nominated: the node that is being freed for it; empty: none any more; None: as before.
        """

        def status(pod: Pod) -> Manifest:
            wanted = self._condition(pod, "PodScheduled", "False", reason, message)
            if nominated is not None and nominated != pod.status.nominated_node_name:
                wanted["nominatedNodeName"] = nominated or None
            return wanted

        await self._try(pod, status)

    async def nominate(self, pod: Pod, node_name: str) -> None:
        """Write the node that a pod is going to have; an empty name clears it. Nothing depends on it."""

        def status(pod: Pod) -> Manifest:
            known = pod.status.nominated_node_name
            return {} if known == node_name else {"nominatedNodeName": node_name or None}

        await self._try(pod, status)

    async def to_be_evicted(self, victim: Pod, scheduler_name: str) -> None:
        """Say that a pod goes to make room for another."""
        message = f"{scheduler_name}: preempting to accommodate a higher priority pod"
        condition = self._condition(victim, "DisruptionTarget", "True", "PreemptionByScheduler", message)
        if condition:
            await self._patch(victim, {"metadata": {"uid": victim.uid}, "status": condition})

    async def extended_resources(self, pod: Pod, status: PodExtendedResourceClaimStatus) -> Pod:
        """Write which claim backs a pod's extended resources."""
        wanted = {"extendedResourceClaimStatus": plain(status)}
        return convert(await self._patch(pod, {"metadata": {"uid": pod.uid}, "status": wanted}), Pod)

    def _condition(self, pod: Pod, type: str, status: str, reason: str, message: str) -> Manifest:
        """The change that makes a pod's condition this; nothing, if it is so already."""
        known = next((each for each in pod.status.conditions if each.type == type), None)
        if known is not None and (known.status, known.reason, known.message) == (status, reason, message):
            return {}
        condition: Manifest = {"type": type, "status": status, "reason": reason, "message": message}
        if pod.metadata.generation:
            condition["observedGeneration"] = pod.metadata.generation
        if known is None or known.status != status:
            condition["lastTransitionTime"] = timestamp(self._now())
        return {"conditions": [condition]}

    async def _try(self, pod: Pod, wanted: Callable[[Pod], Manifest]) -> None:
        try:
            await self._write(pod, wanted)
        except (RequestError, ConnectionFailed) as error:
            if isinstance(error, RequestError) and error.is_not_found:
                return
            log.warning("the status of pod %s is not written: %s", pod.key, error)

    async def _write(self, pod: Pod, wanted: Callable[[Pod], Manifest]) -> None:
        """Write what is wanted of the latest version of a pod, as long as it waits for a node."""
        latest, conflicts = pod, 0
        while status := wanted(latest):
            meta = {"uid": pod.uid, "resourceVersion": latest.metadata.resource_version}
            try:
                await self._patch(latest, {"metadata": meta, "status": status})
                return
            except RequestError as error:
                conflicts += 1
                if not error.is_conflict or conflicts > _MOST_CONFLICTS:
                    raise
            latest = convert(await self._client.get(POD, pod.namespace, pod.name), Pod)
            if latest.uid != pod.uid or latest.spec.node_name:
                return

    async def _patch(self, pod: Pod, patch: Manifest) -> Manifest:
        async with self._slots:
            return await self._client.patch(POD, pod.namespace, pod.name, patch, "strategic", "status")
