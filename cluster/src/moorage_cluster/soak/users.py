"""Users: they create workloads at an even rate, change some, and delete the oldest."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Final

from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.client.kinds import DEPLOYMENT, NAMESPACE, NODE, Kind
from moorage.http.errors import RequestError
from moorage_cluster.soak.workloads import Workload, new_workload, shared_objects

_NAMESPACES: Final = 20
"""Number of namespaces that come and go in turn."""
_CHANGE_SHARE: Final = 0.05
"""How often a Deployment is rolled out again, for each workload that is created."""
_NOT_FOUND: Final = 404


class Users:
    """They keep about `live` pods in the cluster."""

    def __init__(self, client: Client, live: int, templates: int, seed: int, *, has_groups: bool) -> None:
        """templates: number of templates of workloads, all of which are used in turn."""
        self._client, self._live, self._seed, self._random = client, live, seed, Random(seed)
        self._templates, self._has_groups = templates, has_groups
        self._per_namespace = max(templates // _NAMESPACES, 1)
        self._workloads: deque[tuple[str, Workload]] = deque()
        self._number = self._pods = 0
        self._namespace = ""
        self.created = 0
        """Number of pods that were asked for."""

    async def prepare(self) -> None:
        """Create what workloads have in common."""
        nodes = [each["metadata"]["name"] for each in await self._client.list(NODE)]
        for kind, obj in shared_objects(nodes):
            await self._client.create(kind, "", obj)

    async def advance(self, until: int) -> None:
        """Create workloads until they have `until` pods in all, deleted ones included."""
        while self.created < until:
            await self._create()
            if self._random.random() < _CHANGE_SHARE:
                await self._roll_out()
            while self._pods > self._live:
                await self._delete()

    async def _create(self) -> None:
        template = self._number % self._templates
        name = f"soak-{template // self._per_namespace}"
        if name != self._namespace:
            self._namespace = name
            await self._client.create(NAMESPACE, "", _namespace(name))
        workload = new_workload(self._number, template, self._seed, has_groups=self._has_groups)
        self._number += 1
        for kind, obj in workload.objects:
            await self._client.create(kind, self._namespace, obj)
        self._workloads.append((self._namespace, workload))
        self._pods += workload.pods
        self.created += workload.pods

    async def _roll_out(self) -> None:
        namespace, workload = self._random.choice(self._workloads)
        kind, obj = workload.objects[-1]
        if kind is DEPLOYMENT:
            annotations = {"rolled-out": str(self._number)}
            patch = {"spec": {"template": {"metadata": {"annotations": annotations}}}}
            await self._client.patch(kind, namespace, obj["metadata"]["name"], patch)

    async def _delete(self) -> None:
        namespace, workload = self._workloads.popleft()
        self._pods -= workload.pods
        for kind, obj in reversed(workload.objects):
            await self._delete_object(kind, namespace, obj)
        if not self._workloads or self._workloads[0][0] != namespace:
            await self._client.delete(NAMESPACE, "", namespace)

    async def _delete_object(self, kind: Kind, namespace: str, obj: Manifest) -> None:
        """Delete an object, and what it owns; it may be gone: preempted, or finished."""
        try:
            await self._client.delete(kind, namespace, obj["metadata"]["name"], propagation="Background")
        except RequestError as error:
            if error.code != _NOT_FOUND:
                raise


def _namespace(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
