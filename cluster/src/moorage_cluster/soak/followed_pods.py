"""Pods as a watch sees them: how many were created and bound, and how long they waited for a node."""

from __future__ import annotations

import msgspec

from moorage.client.client import Client
from moorage.client.informer import EventType, Informer
from moorage.client.kinds import POD
from moorage.clock import Clock


class _Metadata(msgspec.Struct):
    uid: str


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec


class FollowedPods:
    """Counts since the beginning, and the latencies of pods that were bound since the last `take`."""

    def __init__(self, client: Client, clock: Clock) -> None:
        decode = msgspec.json.Decoder(_Pod).decode
        self._clock = clock
        self.informer: Informer[_Pod] = Informer(client, POD, clock, decode=decode)
        self.informer.listeners.append(self._changed)
        self._created_at: dict[str, float] = {}
        """When pods without a node were first seen."""
        self._latencies: list[float] = []
        self.created = self.bound = 0

    @property
    def pending(self) -> int:
        """Number of pods without a node."""
        return len(self._created_at)

    def take(self) -> list[float]:
        """The latencies from creation to binding, in seconds, sorted; they are not kept."""
        latencies, self._latencies = self._latencies, []
        return sorted(latencies)

    def _changed(self, event: EventType, pod: _Pod, before: _Pod | None) -> None:
        uid = pod.metadata.uid
        if event == "ADDED":
            self.created += 1
            self._created_at[uid] = self._clock.now()
        if event == "DELETED":
            self._created_at.pop(uid, None)
        elif pod.spec.node_name and (created_at := self._created_at.pop(uid, None)) is not None:
            self.bound += 1
            self._latencies.append(self._clock.now() - created_at)
