"""A cluster behind an API server, made to be what a recording says, and watched.

Recorded objects have been stored by an API server before. As new ones they are treated otherwise: a new node
gets a taint until it is ready, the selectors of a pod's terms get what its matchLabelKeys stand for (and may
not have that already), statuses are written apart, references by uid want the uids of this cluster. Here it
is seen to, and checked, that what is stored in the end is what was recorded.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from moorage.api.manifests import Manifest, copy, labels_of, without_nulls
from moorage.client.client import Client
from moorage.client.connect import connected
from moorage.client.credentials import find_access
from moorage.client.informer import EventType, Informer
from moorage.client.kinds import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    DEVICE_CLASS,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_DISRUPTION_BUDGET,
    PRIORITY_CLASS,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    SERVICE,
    STATEFUL_SET,
    STORAGE_CLASS,
    Kind,
)
from moorage.clock import LoopClock
from moorage.http.errors import RequestError
from tests.end_to_end.recordings.merged_keys import forget_merged_keys

RUNTIME_CLASS = Kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", False)
KINDS: Final = {
    kind.name: kind
    for kind in (
        POD, POD_DISRUPTION_BUDGET, REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET, SERVICE,
        PERSISTENT_VOLUME_CLAIM, RESOURCE_CLAIM, CSI_STORAGE_CAPACITY, NAMESPACE,
        PERSISTENT_VOLUME, STORAGE_CLASS, CSI_DRIVER, CSI_NODE, RESOURCE_SLICE, DEVICE_CLASS,
        NODE, PRIORITY_CLASS, RUNTIME_CLASS,
    )
}  # fmt: skip
"""What recordings contain, in the order in which it is taken away: users before what they use."""
_FOLLOWED: Final = (POD, RESOURCE_CLAIM, NAMESPACE)
WITHIN_SECONDS: Final = 100
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
_STATUS_APART: Final = ("PersistentVolume", "PersistentVolumeClaim", "PodDisruptionBudget")
"""Kinds whose status counts and is not taken from an object that is created."""
_NOT_COMPARED: Final = {
    "Service": ("clusterIP", "clusterIPs"),
    "Pod": ("serviceAccountName", "serviceAccount"),
    "Namespace": ("finalizers",),
}
"""Fields of specs that are this cluster's to give, and that no scheduler reads."""

Found = tuple[str, str]
"""A namespace and a name."""


def key_of(obj: Manifest) -> Found:
    """How an object is found among others of its kind."""
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


class RecordedCluster:
    """Objects of a recording in an API server; what becomes of the pods and of claims for devices is seen."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._informers = {kind: Informer(client, kind, LoopClock()) for kind in _FOLLOWED}
        self.pods = self._informers[POD].objects
        self.claims = self._informers[RESOURCE_CLAIM].objects
        self._informers[POD].listeners.append(self._note)
        self._states: dict[str, list[Manifest]] = defaultdict(list)
        self._uids: dict[tuple[str, Found], str] = {}

    def _note(self, type: EventType, pod: Manifest, before: Manifest | None) -> None:
        if type != "DELETED":
            self._states[pod["metadata"]["uid"]].append(pod)

    # -- making it what it was

    async def store(self, recorded: Manifest) -> Manifest:
        """Have an object as it was recorded."""
        kind, stored = KINDS[recorded["kind"]], await self.create(recorded)
        if kind is NODE:
            stored = await self._replace_parts(stored, recorded)
        if kind.name in _STATUS_APART or (kind is POD and recorded["spec"].get("nodeName")):
            status = {"status": recorded["status"]}
            stored = await self.client.patch(kind, *key_of(stored), status, "merge", "status")
        assert _compared(stored) == _compared(recorded), f"{recorded} is stored as {stored}"
        return stored

    async def create(self, wanted: Manifest) -> Manifest:
        """Create an object that may have been stored before; what the server makes of it is the answer."""
        kind, obj = KINDS[wanted["kind"]], copy(wanted)
        for owner in obj["metadata"].get("ownerReferences") or ():
            owner["uid"] = self._uids[owner["kind"], (obj["metadata"]["namespace"], owner["name"])]
        if kind is SERVICE:
            for field in _NOT_COMPARED[SERVICE.name]:
                obj["spec"].pop(field, None)
        if kind is POD:
            forget_merged_keys(obj)
        stored = await self.client.create(kind, obj["metadata"].get("namespace", ""), obj)
        self._uids[kind.name, key_of(stored)] = stored["metadata"]["uid"]
        return stored

    async def replace(self, recorded: Manifest) -> Manifest:
        """Make an object that is there what was recorded."""
        assert recorded["kind"] == "Node", "only nodes are known to be replaced"
        stored = await self.client.get(NODE, *key_of(recorded))
        return await self._replace_parts(stored, recorded)

    async def _replace_parts(self, stored: Manifest, recorded: Manifest) -> Manifest:
        new = {**stored, "spec": recorded["spec"]}
        new["metadata"] = {**stored["metadata"], "labels": recorded["metadata"].get("labels") or {}}
        stored = await self.client.update(NODE, new)
        return await self.client.update(NODE, {**stored, "status": recorded["status"]}, "status")

    async def label(self, node: Found, **labels: str) -> None:
        """Put labels on a node."""
        await self.client.patch(NODE, *node, {"metadata": {"labels": labels}}, "merge")

    async def delete(self, kind: Kind, key: Found) -> None:
        """Take an object away for good, whoever would like to keep it; it may be gone already."""
        try:
            await self.client.delete(kind, *key, grace_seconds=0, propagation="Background")
            await self.client.patch(kind, *key, {"metadata": {"finalizers": None}}, "merge")
        except RequestError as error:
            if not error.is_not_found:
                raise

    async def clear(self) -> None:
        """Take all objects away, but for what the API server itself made."""
        for kind in KINDS.values():
            for obj in await self.client.list(kind):
                if not _is_the_servers_own(kind, obj):
                    await self.delete(kind, key_of(obj))
        namespaces = self._informers[NAMESPACE].objects
        await self.until(
            "the namespaces are gone",
            lambda: all(_is_the_servers_own(NAMESPACE, each) for each in namespaces.values()),
            NAMESPACE,
        )

    # -- watching what becomes of it

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        """What happens to the cluster is seen while the context lasts."""
        following = [asyncio.ensure_future(informer.run()) for informer in self._informers.values()]
        try:
            async with asyncio.timeout(WITHIN_SECONDS):
                for informer in self._informers.values():
                    await informer.synced()
            yield
        finally:
            for task in following:
                task.cancel()
            await asyncio.wait(following)

    async def until(self, what: str, is_so: Callable[[], bool], kind: Kind = POD) -> None:
        """Returns once something is true of the pods, or of another kind that is followed; or fails."""
        try:
            async with asyncio.timeout(WITHIN_SECONDS):
                await self._informers[kind].until(is_so)
        except TimeoutError:
            raise AssertionError(f"{WITHIN_SECONDS} s are over, and not yet: {what}") from None

    def states(self, pod: Manifest) -> list[Manifest]:
        """All states that a pod has been seen in."""
        return self._states[pod["metadata"]["uid"]]

    async def delete_pod(self, key: Found) -> None:
        """Delete a pod and see it gone; it may be gone already."""
        await self.delete(POD, key)
        await self.until(f"{key} is gone", lambda: key not in self.pods)


@asynccontextmanager
async def recorded_cluster(kubeconfig: Path, objects: Iterable[Manifest]) -> AsyncIterator[RecordedCluster]:
    """A cluster that begins with some objects and ends with none."""
    async with connected(find_access(kubeconfig)) as client:
        cluster = RecordedCluster(client)
        async with cluster.followed():
            try:
                for obj in objects:
                    await cluster.store(obj)
                yield cluster
            finally:
                await cluster.clear()


def _compared(obj: Manifest) -> Manifest:
    """What is to be stored of an object as it was recorded."""
    left_out = _NOT_COMPARED.get(obj["kind"], ())
    spec = {field: value for field, value in (obj.get("spec") or {}).items() if field not in left_out}
    others = {key: value for key, value in obj.items() if key not in ("metadata", "spec", "status")}
    labels = {key: value for key, value in labels_of(obj).items() if key != _NAMESPACE_NAME}
    return without_nulls({**others, "spec": spec, "labels": labels})


def _is_the_servers_own(kind: Kind, obj: Manifest) -> bool:
    namespace, name = key_of(obj)
    if kind is NAMESPACE:
        return name == "default" or name.startswith("kube-")
    if kind is PRIORITY_CLASS:
        return name.startswith("system-")
    return (kind, namespace, name) == (SERVICE, "default", "kubernetes")
