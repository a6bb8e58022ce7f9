"""What users read of the scheduler's work: events and PodScheduled conditions, in kube-scheduler's words."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from moorage.api.manifests import Manifest, micro_timestamp, timestamp
from moorage.api.pod import Pod
from moorage.client.client import Client
from moorage.client.errors import RequestError
from moorage.client.kinds import EVENT, POD

_MOST_NOTE_CHARACTERS = 1024
_SERIES_END_AFTER = timedelta(minutes=6)
_MOST_REMEMBERED = 4096


@dataclass(slots=True)
class _Told:
    """An event that may happen again: then it becomes a series instead of many events."""

    name: str
    last: datetime
    count: int = 1


class Recorder:
    """Writes events and conditions of pods; what cannot be written is not worth failing for."""

    def __init__(self, client: Client, now: Callable[[], datetime], random: Random, instance: str) -> None:
        self._client = client
        self._now = now
        self._random = random
        self._instance = instance
        self._told: OrderedDict[tuple[str, ...], _Told] = OrderedDict()

    async def scheduled(self, pod: Pod, node_name: str) -> None:
        """A pod has got its node."""
        note = f"Successfully assigned {pod.namespace}/{pod.name} to {node_name}"
        await self._event(pod, "Normal", "Scheduled", "Binding", note)

    async def failed(self, pod: Pod, reason: str, message: str, nominated: str | None = None) -> None:
        """A pod has got no node: `Unschedulable` where none fits, `SchedulerError` where something broke.

        `nominated` is the node that is being freed for it; empty: none any more; None: as before.
        """
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
            "lastTransitionTime": timestamp(self._now()),
        }
        known = next((one for one in pod.status.conditions if one.type == "PodScheduled"), None)
        status: Manifest = {}
        if known is None or (known.status, known.reason, known.message) != ("False", reason, message):
            status["conditions"] = [condition]
        if nominated is not None and nominated != pod.status.nominated_node_name:
            status["nominatedNodeName"] = nominated or None
        if status:
            await self._patch_status(pod, status)
        await self._event(pod, "Warning", "FailedScheduling", "Scheduling", message)

    async def preempted(self, victim: Pod, preemptor: Pod, node_name: str) -> None:
        """A pod had to go for another."""
        note = f"Preempted by pod {preemptor.uid} on node {node_name}"
        await self._event(victim, "Normal", "Preempted", "Preempting", note, related=preemptor)

    async def _patch_status(self, pod: Pod, status: Manifest) -> None:
        try:
            await self._client.patch(POD, pod.namespace, pod.name, {"status": status}, "strategic", "status")
        except RequestError:
            return

    async def _event(
        self, pod: Pod, type: str, reason: str, action: str, note: str, related: Pod | None = None
    ) -> None:
        now = self._now()
        about = (pod.uid, pod.metadata.resource_version, related.uid if related is not None else "")
        key = (*about, type, reason, action, note, pod.spec.scheduler_name)
        told = self._told.get(key)
        if told is not None and await self._tell_again(pod, told, now):
            return
        name = f"{pod.name}.{self._random.getrandbits(64):016x}"
        event: Manifest = {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.name,
            "metadata": {"name": name, "namespace": pod.namespace},
            "eventTime": micro_timestamp(now),
            "regarding": _reference(pod),
            "type": type,
            "reason": reason,
            "action": action,
            "note": note[:_MOST_NOTE_CHARACTERS],
            "reportingController": pod.spec.scheduler_name,
            "reportingInstance": self._instance,
        }
        if related is not None:
            event["related"] = _reference(related)
        try:
            await self._client.create(EVENT, pod.namespace, event)
        except RequestError:
            return
        self._told[key] = _Told(name, now)
        if len(self._told) > _MOST_REMEMBERED:
            self._told.popitem(last=False)

    async def _tell_again(self, pod: Pod, told: _Told, now: datetime) -> bool:
        """Count what has happened again, unless its last time is long ago or its event is gone."""
        if now - told.last > _SERIES_END_AFTER:
            return False
        told.count, told.last = told.count + 1, now
        series = {"count": told.count, "lastObservedTime": micro_timestamp(now)}
        try:
            await self._client.patch(EVENT, pod.namespace, told.name, {"series": series}, "merge")
        except RequestError as error:
            return not error.is_not_found
        return True


def _reference(pod: Pod) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "resourceVersion": pod.metadata.resource_version,
    }
