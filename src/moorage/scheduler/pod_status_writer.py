"""Writes pod statuses: conditions and nominated node names.

A pod that was bound meanwhile, or recreated under the same name, is not changed: every write carries the
resourceVersion it was computed for. On a conflict the pod is read and the write repeated.

A pod has at most one write in flight: updates that arrive meanwhile are merged into the next write, which is
based on the version that the last one returned.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from moorage.api.decode import convert
from moorage.api.manifests import Manifest, timestamp
from moorage.api.pod import Pod, PodExtendedResourceClaimStatus
from moorage.client.client import Client
from moorage.client.kinds import POD
from moorage.clock import Clock
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.klog import UNHANDLED, Logger, kobj
from moorage.scheduler.encoding import plain

_MAX_CONFLICTS: Final = 5
_OVERRIDE: Final = 1
"""The number of the nominating mode in which a nomination is written."""
_MAX_CONCURRENT_WRITES: Final = 64
"""Maximum number of statuses written at a time; thousands of pods can fail in the same second."""

log = Logger(__name__)


@dataclass(frozen=True, slots=True)
class _Update:
    """Changes of a pod's status; None leaves a field as it is."""

    failure: tuple[str, str] | None = None
    """Reason and message of the condition PodScheduled=False."""
    nominated: str | None = None
    """The nominated node; empty clears it."""

    def then(self, later: _Update) -> _Update:
        """Both updates merged; the later one takes precedence."""
        return _Update(
            self.failure if later.failure is None else later.failure,
            self.nominated if later.nominated is None else later.nominated,
        )


_NO_UPDATE: Final = _Update()


class PodStatusWriter:
    """Writes pod statuses."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._slots = asyncio.Semaphore(_MAX_CONCURRENT_WRITES)
        self._next: dict[str, _Update] = {}
        """Updates that follow the write in flight, by the pod's uid."""

    async def not_scheduled(self, pod: Pod, reason: str, message: str, nominated: str | None) -> None:
        """A pod was not scheduled; a failure to write that is only logged.

        nominated: the node that preemption nominated; empty: clear the nomination; None: keep it.
        """
        if log.v >= 3:
            _log_update(pod, nominated, ("PodScheduled", "False", reason))
        await self._update(pod, _Update((reason, message), nominated))

    async def nominate(self, pod: Pod, node_name: str) -> None:
        """Write a pod's nominated node; an empty name clears it. No other step depends on it."""
        if log.v >= 3:
            _log_update(pod, node_name)
        await self._update(pod, _Update(nominated=node_name))

    async def to_be_evicted(self, victim: Pod, scheduler_name: str, preemptor_type: str) -> None:
        """Set the DisruptionTarget condition of a preemption victim."""
        message = f"{scheduler_name}: preempting to accommodate a higher priority {preemptor_type}"
        condition = self._condition(victim, "DisruptionTarget", "True", "PreemptionByScheduler", message)
        if condition:
            await self._patch(victim, {"metadata": {"uid": victim.uid}, "status": condition})

    async def extended_resources(self, pod: Pod, status: PodExtendedResourceClaimStatus) -> Pod:
        """Write the claim that backs a pod's extended resources."""
        wanted = {"extendedResourceClaimStatus": plain(status)}
        return convert(await self._patch(pod, {"metadata": {"uid": pod.uid}, "status": wanted}), Pod)

    def _condition(self, pod: Pod, type: str, status: str, reason: str, message: str) -> Manifest:
        """The patch that sets a pod's condition; empty if it is set already."""
        known = next((each for each in pod.status.conditions if each.type == type), None)
        if known is not None and (known.status, known.reason, known.message) == (status, reason, message):
            return {}
        condition: Manifest = {"type": type, "status": status, "reason": reason, "message": message}
        if pod.metadata.generation:
            condition["observedGeneration"] = pod.metadata.generation
        if known is None or known.status != status:
            condition["lastTransitionTime"] = timestamp(self._clock.utc_now())
        return {"conditions": [condition]}

    def _status(self, pod: Pod, update: _Update) -> Manifest:
        """The patch for an update of a pod's status; empty if nothing changes."""
        status: Manifest = {}
        if update.failure is not None:
            status = self._condition(pod, "PodScheduled", "False", *update.failure)
        if update.nominated is not None and update.nominated != pod.status.nominated_node_name:
            status["nominatedNodeName"] = update.nominated or None
        return status

    async def _update(self, pod: Pod, update: _Update) -> None:
        """Write an update, or merge it into the one that follows the pod's write in flight."""
        uid = pod.uid
        if uid in self._next:
            self._next[uid] = self._next[uid].then(update)
            return
        self._next[uid] = update
        try:
            while (update := self._next[uid]) != _NO_UPDATE:
                self._next[uid] = _NO_UPDATE
                pod = await self._try(uid, pod, update)
        finally:
            del self._next[uid]

    async def _try(self, uid: str, pod: Pod, update: _Update) -> Pod:
        """Write an update, and log a failure; returns the latest known version."""
        try:
            return await self._write(uid, pod, update)
        except (RequestError, ConnectionFailed) as error:
            if not isinstance(error, RequestError) or not error.is_not_found:
                log.error(error, "Error updating pod", logger=UNHANDLED, pod=kobj(pod))
            return pod

    async def _write(self, uid: str, pod: Pod, update: _Update) -> Pod:
        """Write an update of a pod's latest version, as long as it has no node."""
        conflicts = 0
        while pod.uid == uid and not pod.spec.node_name and (status := self._status(pod, update)):
            meta = {"uid": uid, "resourceVersion": pod.metadata.resource_version}
            try:
                stored = await self._patch(pod, {"metadata": meta, "status": status})
                # Decoding the response costs more than the write; only a following update needs it.
                return pod if self._next[uid] == _NO_UPDATE else convert(stored, Pod)
            except RequestError as error:
                conflicts += 1
                if not error.is_conflict or conflicts > _MAX_CONFLICTS:
                    raise
            pod = convert(await self._client.get(POD, pod.namespace, pod.name), Pod)
        return pod

    async def _patch(self, pod: Pod, patch: Manifest) -> Manifest:
        await self._slots.acquire()  # `async with` would be two more coroutines for each write.
        try:
            return await self._client.patch(POD, pod.namespace, pod.name, patch, "strategic", "status")
        finally:
            self._slots.release()


def _log_update(pod: Pod, nominated: str | None, condition: tuple[str, str, str] | None = None) -> None:
    values: dict[str, object] = {"pod": kobj(pod)}
    if condition is not None:
        values |= zip(("conditionType", "conditionStatus", "conditionReason"), condition, strict=True)
    if nominated is not None:
        values |= {"nominatedNodeName": nominated, "nominatingMode": _OVERRIDE}
    log.info(3, "Updating pod condition and nominated node name", **values)
