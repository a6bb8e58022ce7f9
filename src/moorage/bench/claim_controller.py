"""Claims from templates: what kube-controller-manager does for pods with devices.

A cluster that a workload runs in has no controllers but this one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any, Final

from moorage.api.manifests import Manifest
from moorage.bench.pod_watch import SeenPod
from moorage.client.client import Client
from moorage.client.informer import EventType, Informer, Key
from moorage.client.kinds import POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from moorage.http.errors import ConnectionFailed, RequestError

_WORKERS: Final = 5
"""Number of pods that are handled at once, as in kube-controller-manager's controller of claims."""

log = logging.getLogger(__name__)


class ClaimController:
    """Creates the claims that pods name templates for, and deletes them after their pods."""

    def __init__(self, client: Client, pods: Informer[Any]) -> None:
        self._client = client
        self._templates: dict[Key, Manifest] = {}
        """Templates by namespace and name; they are immutable."""
        self._made: dict[str, list[str]] = {}
        """The names of the claims that were made for each pod, by its uid."""
        self._work: asyncio.Queue[Awaitable[None]] = asyncio.Queue()
        pods.listeners.append(self._on_event)

    async def run(self) -> None:
        """Work until cancelled."""
        await asyncio.gather(*(self._worker() for _ in range(_WORKERS)))

    async def _worker(self) -> None:
        while True:
            try:
                await (await self._work.get())
            except (RequestError, ConnectionFailed) as error:
                log.warning("claims from templates: %s", error)

    def _on_event(self, type: EventType, pod: SeenPod, before: SeenPod | None) -> None:
        if type == "ADDED" and pod.spec.resource_claims:
            self._work.put_nowait(self._make_claims(pod))
        elif type == "DELETED" and pod.metadata.uid in self._made:
            self._work.put_nowait(self._delete_claims(pod))

    async def _make_claims(self, pod: SeenPod) -> None:
        meta = pod.metadata
        statuses = []
        for entry in pod.spec.resource_claims:
            if entry.resource_claim_template_name is not None:
                template = await self._template(meta.namespace, entry.resource_claim_template_name)
                claim = _claim(pod, entry.name, template)
                made = await self._client.create(RESOURCE_CLAIM, meta.namespace, claim)
                statuses.append({"name": entry.name, "resourceClaimName": made["metadata"]["name"]})
        if statuses:
            self._made[meta.uid] = [each["resourceClaimName"] for each in statuses]
            status = {"status": {"resourceClaimStatuses": statuses}}
            await self._client.patch(POD, meta.namespace, meta.name, status, "strategic", "status")

    async def _template(self, namespace: str, name: str) -> Manifest:
        key = (namespace, name)
        if key not in self._templates:
            self._templates[key] = await self._client.get(RESOURCE_CLAIM_TEMPLATE, namespace, name)
        return self._templates[key]

    async def _delete_claims(self, pod: SeenPod) -> None:
        for name in self._made.pop(pod.metadata.uid):
            try:
                await self._delete_claim(pod.metadata.namespace, name)
            except RequestError as error:
                if not error.is_not_found:
                    raise

    async def _delete_claim(self, namespace: str, name: str) -> None:
        """Deallocate a claim, then remove its protection, then delete it."""
        client, unused = self._client, {"status": {"allocation": None, "reservedFor": None}}
        await client.patch(RESOURCE_CLAIM, namespace, name, unused, "merge", "status")
        await client.patch(RESOURCE_CLAIM, namespace, name, {"metadata": {"finalizers": None}}, "merge")
        await client.delete(RESOURCE_CLAIM, namespace, name)


def _claim(pod: SeenPod, entry_name: str, template: Manifest) -> Manifest:
    owner = {
        "apiVersion": POD.api_version,
        "kind": POD.name,
        "name": pod.metadata.name,
        "uid": pod.metadata.uid,
        "controller": True,
    }
    return {
        "apiVersion": RESOURCE_CLAIM.api_version,
        "kind": RESOURCE_CLAIM.name,
        "metadata": {
            "generateName": f"{pod.metadata.name}-{entry_name}-",
            "annotations": {"resource.kubernetes.io/pod-claim-name": entry_name},
            "ownerReferences": [owner],
        },
        "spec": template["spec"]["spec"],
    }
