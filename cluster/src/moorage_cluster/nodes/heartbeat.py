"""Heartbeats of nodes: a lease, renewed often, and the node status, when it has changed."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest, micro_timestamp
from moorage.client.kinds import LEASE, NODE
from moorage.clock import Timer
from moorage.http.errors import RequestError
from moorage_cluster.nodes.kubelet import Kubelet
from moorage_cluster.nodes.nodeobject import allocatable_change, conditions, missing_parts, missing_status

NAMESPACE: Final = "kube-node-lease"
_JITTER: Final = 0.04


class Heartbeat:
    """The heartbeat of one node; its first beat comes some time within the first interval."""

    def __init__(self, kubelet: Kubelet) -> None:
        self._kubelet = kubelet
        self._context = kubelet.context
        self._lease: Manifest | None = None
        self._images: list[Manifest] = kubelet.node.get("status", {}).get("images") or []
        self._reported_at = self._context.clock.now()
        interval = self._context.settings.renew_seconds
        self._timer: Timer = self._context.clock.call_later(
            self._context.random.random() * interval, self._beat
        )

    def close(self) -> None:
        """Stop the heartbeat."""
        self._timer.cancel()

    def _beat(self) -> None:
        settings, now = self._context.settings, self._context.clock.now()
        interval = settings.renew_seconds * (1 + _JITTER * self._context.random.random())
        self._timer = self._context.clock.call_later(interval, self._beat)
        if self._kubelet.is_cut_off:
            return
        self._context.heartbeats.put(("lease", self._kubelet.name), self._renew)
        if now - self._reported_at >= settings.status_seconds or self._has_changed(now):
            self.report_status()

    def _has_changed(self, now: float) -> bool:
        """Whether there are other images or resources, or the node status was written by another client."""
        status = self._kubelet.node["status"]
        known = {each["type"]: each["status"] for each in status.get("conditions") or ()}
        return (
            known.get("Ready") != "True"
            or self._kubelet.images.listed(now) != self._images
            or bool(allocatable_change(status))
        )

    # -- the status

    def report_status(self) -> None:
        """Write the node's status soon."""
        self._kubelet.send(("node", self._kubelet.name), self._write)

    def adopt(self) -> None:
        """Add what an existing node lacks to be a simulated one."""
        node = self._kubelet.node
        change = missing_parts(node, self._kubelet.network)
        status = missing_status(node, self._kubelet.host, self._context.settings.version)
        known = {each["type"]: each["status"] for each in node.get("status", {}).get("conditions") or ()}
        if not change and not status and known.get("Ready") == "True":
            return

        async def write() -> None:
            client, name = self._context.cluster.client, self._kubelet.name
            if change:
                await client.patch(NODE, "", name, change)
            await self._write(status)

        self._kubelet.send(("node", self._kubelet.name), write)

    async def _write(self, more: Manifest | None = None) -> None:
        now = self._context.clock.now()
        self._reported_at = now
        known = self._kubelet.node.get("status") or {}
        before = known.get("conditions") or ()
        status: Manifest = {
            **(more or {}),
            "conditions": conditions(self._kubelet.pressure.conditions, before, self._context.timestamp(now)),
        }
        images = self._kubelet.images.listed(now)
        if images != self._images:
            status["images"] = images
            self._images = images
        if resources := allocatable_change(known):
            status["allocatable"] = {**status.get("allocatable", {}), **resources}
        await self._context.cluster.client.patch(
            NODE, "", self._kubelet.name, {"status": status}, "strategic", "status"
        )

    # -- the lease

    async def _renew(self) -> None:
        """Renew the last written lease; after a conflict or a deletion, read or create it first."""
        client = self._context.cluster.client
        try:
            if self._lease is not None:
                self._lease = await client.update(LEASE, self._renewed(self._lease))
                return
        except RequestError as error:
            if not (error.is_conflict or error.is_not_found):
                raise
            self._lease = None
        try:
            known = await client.get(LEASE, NAMESPACE, self._kubelet.name)
        except RequestError as error:
            if not error.is_not_found:
                raise
            self._lease = await client.create(LEASE, NAMESPACE, self._renewed(self._new_lease()))
            return
        self._lease = await client.update(LEASE, self._renewed(known))

    def _renewed(self, lease: Manifest) -> Manifest:
        spec = {
            **(lease.get("spec") or {}),
            "holderIdentity": self._kubelet.name,
            "leaseDurationSeconds": self._context.settings.lease_seconds,
            "renewTime": micro_timestamp(self._context.cluster.clock.utc_now()),
        }
        return {**lease, "spec": spec}

    def _new_lease(self) -> Manifest:
        meta = self._kubelet.node["metadata"]
        owner = {"apiVersion": "v1", "kind": "Node", "name": meta["name"], "uid": meta["uid"]}
        return {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.name,
            "metadata": {"name": meta["name"], "namespace": NAMESPACE, "ownerReferences": [owner]},
        }
