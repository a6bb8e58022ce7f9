"""Any cluster with an API server, reached by requests.

Objects are sent as the files contain them, plus what a server with all its admission plugins requires: a
priority is a PriorityClass, a node created by hand must lose its not-ready taint, and pods need no token.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import msgspec

from moorage.api.manifests import Manifest
from moorage.bench.concurrency import MAX_CONCURRENCY, at_once
from moorage.bench.pod_watch import PodWatch
from moorage.bench.process_usage import ProcessUsage, own_usage
from moorage.bench.target import PreparedObject, WorkloadFailed
from moorage.client.client import Client
from moorage.client.informer import Informer
from moorage.client.kinds import (
    CSI_NODE,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    PRIORITY_CLASS,
    RESOURCE_CLAIM,
    Kind,
)
from moorage.client.waiting import sleep, within
from moorage.clock import Clock
from moorage.http.errors import ConnectionFailed, RequestError

_KNOWN: Final = {
    (each.api_version, each.name): each
    for each in (CSI_NODE, NAMESPACE, NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, PRIORITY_CLASS)
}
_SERVED_VERSIONS: Final = {"resource.k8s.io/v1beta2": RESOURCE_CLAIM.api_version}
"""Versions with the same fields as another one, which servers have without being configured for it."""
_NOT_READY: Final = "node.kubernetes.io/not-ready"
_KEPT: Final = {
    "Pod": (
        "nodeName",
        "serviceAccountName",
        "serviceAccount",
        "automountServiceAccountToken",
        "priorityClassName",
        "priority",
        "preemptionPolicy",
    ),
    "Node": ("podCIDR", "podCIDRs", "providerID"),
}
"""Fields set by the server that an update must repeat if it does not change them."""
_PAUSE_SECONDS: Final = 0.1
_MAX_ACCOUNT_PAUSES: Final = 100
_NAMESPACE_SECONDS: Final = 120.0
_FORBIDDEN: Final = 403


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}


class _StoredMetadata(msgspec.Struct):
    name: str
    namespace: str = ""
    finalizers: list[str] | None = None


class _StoredSpec(msgspec.Struct):
    taints: list[dict[str, Any]] | None = None


class _Stored(msgspec.Struct):
    """The fields of a created object that are read."""

    metadata: _StoredMetadata
    spec: _StoredSpec = msgspec.field(default_factory=_StoredSpec)


class _ClaimReference(msgspec.Struct, rename="camel"):
    name: str
    resource_claim_template_name: str | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    resource_claims: list[_ClaimReference] = []


class _Condition(msgspec.Struct):
    type: str = ""
    message: str = ""


class _Status(msgspec.Struct):
    conditions: list[_Condition] = []


class _Pod(msgspec.Struct):
    """The fields of a pod that are read."""

    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


_read_pod = msgspec.json.Decoder(_Pod).decode
_read_stored = msgspec.json.Decoder(_Stored).decode


class _Body(NamedTuple):
    """An object ready to be sent, encoded once for any number of requests."""

    manifest: Manifest
    encoded: msgspec.Raw


class ClusterTarget:
    """A cluster behind an API server, with any scheduler."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self.notes: list[str] = []
        self.concurrency = MAX_CONCURRENCY
        self.client = client
        self._clock = clock
        self.informer: Informer[Any] = Informer(client, POD, clock, decode=_read_pod)
        self.pods = PodWatch(self.informer)
        self._kinds = dict(_KNOWN)
        self._priorities: dict[int, asyncio.Task[Any]] = {}
        self._created: dict[tuple[Kind, str, str], bool] = {}
        """All objects to delete at the end, and whether each has finalizers."""

    # -- objects

    async def prepared(self, manifest: Manifest) -> PreparedObject | None:
        """An object as the server requires it."""
        version = str(manifest.get("apiVersion"))
        manifest = {**manifest, "apiVersion": _SERVED_VERSIONS.get(version, version)}
        kind = await self._kind(manifest)
        if kind == POD:
            manifest = await self._admissible_pod(manifest)
        elif kind == CSI_NODE:
            manifest = {**manifest, "metadata": {**manifest["metadata"], "namespace": ""}}
        return PreparedObject(kind, _Body(manifest, msgspec.Raw(msgspec.json.encode(manifest))))

    async def _kind(self, manifest: Manifest) -> Kind:
        """The resource of a kind; unknown kinds are looked up by discovery."""
        version, name = str(manifest.get("apiVersion")), str(manifest.get("kind"))
        kind = self._kinds.get((version, name))
        if kind is None:
            group, _, number = version.rpartition("/")
            for each in await self._resources(f"/apis/{version}" if group else f"/api/{version}"):
                if "/" not in each["name"]:
                    found = Kind(group, number, each["kind"], each["name"], each["namespaced"])
                    self._kinds.setdefault((version, each["kind"]), found)
            kind = self._kinds.get((version, name))
        if kind is None:
            raise WorkloadFailed(f"the server has no kind {name} in {version}")
        return kind

    async def _resources(self, path: str) -> list[Manifest]:
        """The resources of an API version; none if the server does not have it."""
        try:
            answer = await self.client.call("GET", path)
        except RequestError as error:
            if not error.is_not_found:
                raise
            return []
        found: list[Manifest] = answer.get("resources") or []
        return found

    async def _admissible_pod(self, pod: Manifest) -> Manifest:
        spec = {"automountServiceAccountToken": False, **pod.get("spec", {})}
        priority = spec.pop("priority", None)
        if priority and "priorityClassName" not in spec:
            spec["priorityClassName"] = await self._class_of(priority)
        return {**pod, "spec": spec}

    async def _class_of(self, priority: int) -> str:
        """The PriorityClass with a priority; created on first use."""
        name = f"moorage-bench-{priority}".replace("--", "-minus-")
        making = self._priorities.get(priority)
        if making is None:
            body = {
                "apiVersion": PRIORITY_CLASS.api_version,
                "kind": PRIORITY_CLASS.name,
                "metadata": {"name": name},
                "value": priority,
            }
            making = self._priorities[priority] = asyncio.ensure_future(self._make_class(body))
        await making
        return name

    async def _make_class(self, body: Manifest) -> None:
        """Create a priority class, unless it exists."""
        try:
            await self._make(PRIORITY_CLASS, "", body)
        except RequestError as error:
            if not error.already_exists:
                raise

    async def _make(self, kind: Kind, namespace: str, body: Manifest | msgspec.Raw) -> _Stored:
        stored = _read_stored(await self.client.post(kind, namespace, body))
        meta = stored.metadata
        self._created[kind, meta.namespace, meta.name] = bool(meta.finalizers)
        return stored

    async def create(self, prepared: PreparedObject, namespace: str) -> str:
        """Create an object, then write its status, which creation ignores."""
        kind, body = prepared
        place = namespace if kind.namespaced else ""
        stored = await self._create_with_retries(kind, place, body.encoded)
        name, wanted = stored.metadata.name, body.manifest
        if kind == NODE:
            await self._declare_ready(stored, wanted)
        elif kind in (PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM) and "status" in wanted:
            await self.client.patch(kind, place, name, {"status": wanted["status"]}, "merge", "status")
        return name

    async def _create_with_retries(self, kind: Kind, namespace: str, body: msgspec.Raw) -> _Stored:
        """Create an object, with retries until a new namespace's service account exists."""
        for _ in range(_MAX_ACCOUNT_PAUSES):
            try:
                return await self._make(kind, namespace, body)
            except RequestError as error:
                if error.code != _FORBIDDEN or "service account" not in error.message:
                    raise
            await sleep(self._clock, _PAUSE_SECONDS)
        return await self._make(kind, namespace, body)

    async def _declare_ready(self, node: _Stored, wanted: Manifest) -> None:
        """Remove the taint that admission adds to every new node, unless the manifest has it."""
        taints = wanted.get("spec", {}).get("taints") or []
        known = node.spec.taints or []
        if any(each["key"] == _NOT_READY for each in known) and known != taints:
            await self.client.patch(
                NODE, "", node.metadata.name, {"spec": {"taints": taints or None}}, "merge"
            )

    async def update(self, manifest: Manifest, namespace: str, subresources: Sequence[str]) -> None:
        """Replace an object (or a part of it), and then its status."""
        prepared = await self.prepared(manifest)
        assert prepared is not None
        kind, body = prepared.kind, prepared.body.manifest
        place = namespace if kind.namespaced else ""
        stored = await self.client.get(kind, place, body["metadata"]["name"])
        kept = {field: stored["spec"][field] for field in _KEPT.get(kind.name, ()) if field in stored["spec"]}
        meta = {**body["metadata"], **({"namespace": place} if place else {})}
        wanted = {**body, "metadata": meta, "spec": {**kept, **body.get("spec", {})}}
        await self.client.update(kind, wanted, "/".join(subresources))
        if "status" in body:
            await self.client.update(kind, wanted, "status")

    async def delete(self, kind: Kind, namespace: str, name: str, grace_seconds: int | None = None) -> None:
        """Delete an object."""
        place = namespace if kind.namespaced else ""
        await self.client.delete(kind, place, name, grace_seconds=grace_seconds)

    # -- figures

    async def metrics(self) -> str:
        """Empty: the cluster's scheduler is not known."""
        return ""

    def attempts(self) -> Mapping[str, Sequence[float]]:
        """Empty: only the scheduler's metrics have them."""
        return {}

    def usage(self) -> Mapping[str, ProcessUsage]:
        """This process's usage."""
        return {"generator": own_usage()}

    # -- the end

    async def clean_up(self) -> None:
        """Delete all created objects: pods first, namespaces last, with everything else in them."""
        namespaces = {name for kind, _, name in self._created if kind == NAMESPACE}
        pods = [key for key in self._created if key[0] == POD]
        others = [
            key
            for key, is_held in self._created.items()
            if key[0] not in (POD, NAMESPACE) and (is_held or key[1] not in namespaces)
        ]
        for some in (pods, others, [(NAMESPACE, "", name) for name in namespaces]):
            await at_once(self._remove_finalizers(*key) for key in some)
        for name in namespaces:
            await within(self._clock, _NAMESPACE_SECONDS, self._wait_for_deletion(name))
        self._created.clear()

    async def _wait_for_deletion(self, namespace: str) -> None:
        """Wait until a namespace is deleted: the next workload may create one of the same name."""
        while True:
            try:
                await self.client.get(NAMESPACE, "", namespace)
            except RequestError as error:
                if error.is_not_found:
                    return
                raise
            await sleep(self._clock, _PAUSE_SECONDS)

    async def _remove_finalizers(self, kind: Kind, namespace: str, name: str) -> None:
        """Delete an object at once, finalizers included; no kubelet confirms that a pod has ended."""
        try:
            if self._created[kind, namespace, name]:
                await self.client.patch(kind, namespace, name, {"metadata": {"finalizers": None}}, "merge")
            await self.client.delete(kind, namespace, name, grace_seconds=0 if kind == POD else None)
        except RequestError as error:
            if not error.is_not_found:
                raise


@asynccontextmanager
async def cluster_target(client: Client, clock: Clock) -> AsyncIterator[ClusterTarget]:
    """An existing cluster; objects created in it within the context are deleted at its end."""
    target = ClusterTarget(client, clock)
    following = asyncio.create_task(target.informer.run())
    try:
        await target.informer.synced()
        yield target
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        try:
            await target.clean_up()
        except (ConnectionFailed, RequestError, TimeoutError) as error:
            raise WorkloadFailed(f"not all that was created could be deleted: {error}") from None
