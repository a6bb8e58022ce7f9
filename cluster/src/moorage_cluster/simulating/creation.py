"""Creating the objects of a workload, with the namespaces and priority classes that they need."""

from __future__ import annotations

import asyncio

from moorage.api.decode import InputError
from moorage.api.manifests import Manifest
from moorage.api.pod import Pod
from moorage.client.client import Client
from moorage.client.kinds import NAMESPACE, POD, POD_GROUP, PRIORITY_CLASS, Kind
from moorage.http.errors import RequestError
from moorage.simulation.controlled import Owner
from moorage.simulation.workload import Arrival
from moorage_cluster.dump import served_kinds
from moorage_cluster.simulating.arriving import group_manifest_of, manifest_of, with_generated_name
from moorage_cluster.simulating.beginning import class_of, namespace_of


class Creation:
    """Creates objects; InputErrors name those that the server refuses.

    restarts_pods: whether pods of the workload that are deleted are created again, if no controller does it.
    """

    def __init__(self, client: Client, *, restarts_pods: bool) -> None:
        self._client = client
        self._restarts_pods = restarts_pods
        self._kinds: dict[tuple[str, str], Kind] = {}
        self._needed: set[tuple[Kind, str]] = set()
        """The objects that others refer to and that are there."""
        self._manifests: dict[str, Manifest] = {}
        """The pods that no controller made, by uid."""
        self._deleted: asyncio.Queue[Manifest] = asyncio.Queue()
        self._is_creating = False

    @property
    def is_idle(self) -> bool:
        """Whether no pod is about to be created again."""
        return self._deleted.empty() and not self._is_creating

    async def run(self) -> None:
        """Create pods again, until cancelled."""
        while True:
            manifest = with_generated_name(await self._deleted.get())
            self._is_creating = True
            await self._pod(manifest, f"pod {manifest['metadata']['generateName']}")
            self._is_creating = False

    def deleted(self, pod: Pod) -> None:
        """A pod was deleted before it ended."""
        manifest = self._manifests.pop(pod.uid, None)
        if manifest is not None and self._restarts_pods:
            self._deleted.put_nowait(manifest)

    async def arrival(self, arrival: Arrival) -> None:
        """Create a pod, and the group that comes with it."""
        if arrival.group is not None:
            await self._create(POD_GROUP, group_manifest_of(arrival.group), f"group {arrival.group.key}")
        await self._pod(manifest_of(arrival), f"pod {arrival.pod.key}")

    async def owner(self, owner: Owner) -> None:
        """Create an object that a controller makes into pods."""
        self._kinds = self._kinds or await served_kinds(self._client)
        manifest = owner.manifest
        api_version, name = str(manifest.get("apiVersion")), str(manifest.get("kind"))
        kind = self._kinds.get((api_version, name))
        if kind is None:
            raise InputError(owner.where, f"there is no {name} in {api_version}")
        namespace = str(manifest["metadata"].get("namespace") or "default")
        try:
            await self._need(NAMESPACE, namespace_of(namespace))
            await self._client.create(kind, namespace, manifest, fieldValidation="Strict")
        except RequestError as error:
            raise InputError(owner.where, error.message) from None

    async def _pod(self, manifest: Manifest, where: str) -> None:
        created = await self._create(POD, manifest, where)
        self._manifests[created["metadata"]["uid"]] = manifest

    async def _create(self, kind: Kind, manifest: Manifest, where: str) -> Manifest:
        """Create a pod or a group, and what it refers to."""
        namespace, spec = manifest["metadata"]["namespace"], manifest["spec"]
        try:
            await self._need(NAMESPACE, namespace_of(namespace))
            if spec.get("priority") and spec.get("priorityClassName"):
                await self._need(PRIORITY_CLASS, class_of(spec["priorityClassName"], spec["priority"]))
            return await self._client.create(kind, namespace, manifest)
        except RequestError as error:
            raise InputError(where, error.message) from None

    async def _need(self, kind: Kind, obj: Manifest) -> None:
        """Create an object, unless it is there."""
        key = (kind, obj["metadata"]["name"])
        if key not in self._needed:
            self._needed.add(key)
            try:
                await self._client.create(kind, "", obj)
            except RequestError as error:
                if not error.already_exists:
                    raise
