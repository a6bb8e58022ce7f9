"""The Lease of a leader election: reading and writing it, and events about it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from moorage.api.manifests import Manifest, timestamp
from moorage.client.client import Client
from moorage.client.kinds import CORE_EVENT, LEASE
from moorage.clock import Clock
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.klog import Logger

log = Logger(__name__)


@dataclass(frozen=True, slots=True)
class Record:
    """The content of a lease. Times are text, for people: candidates only compare them for changes."""

    holder: str
    duration_seconds: int
    acquire_time: str
    renew_time: str
    transitions: int

    @classmethod
    def of(cls, lease: Manifest) -> Record:
        """The record of a lease; absent fields are empty."""
        spec: dict[str, Any] = lease.get("spec") or {}
        return cls(
            spec.get("holderIdentity") or "",
            spec.get("leaseDurationSeconds") or 0,
            spec.get("acquireTime") or "",
            spec.get("renewTime") or "",
            spec.get("leaseTransitions") or 0,
        )

    def spec(self) -> Manifest:
        """The record as a lease's spec."""
        return {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.duration_seconds,
            "acquireTime": self.acquire_time,
            "renewTime": self.renew_time,
            "leaseTransitions": self.transitions,
        }


class LeaseLock:
    """A lease as one candidate knows it. Of two concurrent writes, one fails with a conflict."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self.lease: Manifest = {}
        """As last read or written; empty before."""

    async def read(self) -> Record | None:
        """The current record; None if there is none."""
        try:
            self.lease = await self._client.get(LEASE, self._namespace, self._name)
        except RequestError as error:
            if error.is_not_found:
                return None
            raise
        return Record.of(self.lease)

    async def create(self, record: Record) -> None:
        """Create the lease."""
        lease: Manifest = {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.name,
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": record.spec(),
        }
        self.lease = await self._client.create(LEASE, self._namespace, lease)

    async def update(self, record: Record) -> None:
        """Write the lease, unless it has changed since it was read."""
        self.lease = await self._client.update(LEASE, {**self.lease, "spec": record.spec()})


class LeaseEvents:
    """Records events about the lease: candidates that started and stopped leading.

    They are `v1` Events, as in every component that uses client-go's leader election.
    """

    def __init__(self, client: Client, clock: Clock, component: str) -> None:
        self._client = client
        self._clock = clock
        self._component = component
        self._writing: set[asyncio.Task[None]] = set()

    def record(self, lease: Manifest, message: str) -> None:
        """Write an event in the background."""
        task = asyncio.ensure_future(self._write(lease, message))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def written(self) -> None:
        """Returns when all events are written, or have failed."""
        await asyncio.gather(*self._writing)

    def close(self) -> None:
        """Cancel unwritten events."""
        for task in self._writing:
            task.cancel()

    async def _write(self, lease: Manifest, message: str) -> None:
        meta = lease["metadata"]
        now = self._clock.utc_now()
        moment = timestamp(now)
        event: Manifest = {
            "apiVersion": CORE_EVENT.api_version,
            "kind": CORE_EVENT.name,
            "metadata": {
                "name": f"{meta['name']}.{int(now.timestamp() * 1_000_000) * 1000:x}",
                "namespace": meta["namespace"],
            },
            "involvedObject": {
                "kind": LEASE.name,
                "namespace": meta["namespace"],
                "name": meta["name"],
                "uid": meta.get("uid", ""),
                "apiVersion": LEASE.api_version,
                "resourceVersion": meta.get("resourceVersion", ""),
            },
            "reason": "LeaderElection",
            "message": message,
            "source": {"component": self._component},
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
            "type": "Normal",
            "reportingComponent": self._component,
            "reportingInstance": "",
        }
        try:
            await self._client.create(CORE_EVENT, meta["namespace"], event)
        except (RequestError, ConnectionFailed) as error:
            log.error(error, "Unable to write event", reason="LeaderElection", note=message)
