"""A client and informers for a store in the same process, without requests.

Frequent writes (bindings, pod statuses, deletions, events) go directly to the store. Rare ones (claims,
volumes) are handled as by a real server: as plain values, patched and decoded again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, TypeVar

from moorage.api.base import Object
from moorage.api.decode import convert
from moorage.api.manifests import Manifest
from moorage.client.client import Client, PatchType
from moorage.client.declared_kinds import object_type
from moorage.client.informer import Informer
from moorage.client.kinds import EVENT, POD, Kind
from moorage.clock import Clock
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.http.transport import Request, Response
from moorage.scheduler.encoding import plain
from moorage.sim.object_store import ObjectStore

T = TypeVar("T")


class _NoTransport:
    """The transport of a client that sends no requests."""

    async def handle(self, request: Request) -> Response:
        """Fails: there is no server."""
        raise ConnectionFailed(f"{request.method} {request.path}: a store takes no requests")


class StoreClient(Client):
    """A client of a store in this process."""

    informs_at_once = True

    def __init__(self, store: ObjectStore) -> None:
        super().__init__(_NoTransport())
        self.store = store
        self.events = 0
        """Number of events written; they are not stored."""

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest:
        """One object."""
        return _manifest(self.store.get(kind, namespace, name))

    async def list(self, kind: Kind, namespace: str = "", **query: str | int) -> list[Manifest]:
        """All objects, of one namespace or of all."""
        objects = self.store.table(kind).items()
        return [_manifest(obj) for key, obj in objects if not namespace or key[0] == namespace]

    async def create(self, kind: Kind, namespace: str, obj: Manifest, **query: str | int) -> Manifest:
        """Create an object."""
        return _manifest(self.store.create(kind, namespace, _object(kind, obj)))

    async def post(self, kind: Kind, namespace: str, obj: Any) -> bytes:
        """Count an event."""
        assert kind == EVENT, kind
        self.events += 1
        return b""

    async def create_part(
        self, kind: Kind, namespace: str, name: str, subresource: str, obj: Manifest
    ) -> None:
        """Bind a pod; other subresources are not supported."""
        assert subresource == "binding", subresource
        self.store.bind(namespace, name, obj["metadata"]["uid"], obj["target"]["name"])

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Any,
        type: PatchType = "strategic",
        subresource: str = "",
    ) -> Manifest:
        """Patch an object."""
        if kind == EVENT:
            return {}
        if kind == POD:
            pod = self.store.write_pod_status(namespace, name, patch)
            # The caller uses the returned pod only after it has written an extended resource claim status.
            return _manifest(pod) if "extendedResourceClaimStatus" in patch["status"] else {}
        known = self.store.get(kind, namespace, name)
        version = patch.get("metadata", {}).get("resourceVersion")
        if version and version != known.metadata.resource_version:
            raise RequestError(409, "Conflict", f'{kind.plural} "{name}" has changed since it was read')
        merged = _merged(_manifest(known), patch)
        return _manifest(self.store.update(kind, _object(kind, merged)))

    async def delete(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        *,
        grace_seconds: int | None = None,
        uid: str = "",
        propagation: str = "",
    ) -> Manifest:
        """Delete an object, or mark it for deletion."""
        self.store.delete(kind, namespace, name, uid)
        return {}


class StoreInformer(Informer[T]):
    """The objects of one kind in a store, which notifies listeners itself."""

    def __init__(
        self,
        client: Client,
        kind: Kind,
        clock: Clock,
        *,
        decode: Callable[[bytes], T],
        query: Mapping[str, str] | None = None,
        random: Random | None = None,
    ) -> None:
        assert isinstance(client, StoreClient)
        super().__init__(client, kind, clock, decode=decode, query=query, random=random)
        self._store = client.store
        self.objects = self._store.table(kind)

    async def run(self) -> None:
        """Follow the kind until cancelled."""
        self._store.watch(self.kind, self.listeners)
        self._synced.set()
        await asyncio.Event().wait()


def _object(kind: Kind, manifest: Manifest) -> Object:
    """An object of a kind that scheduling reads."""
    known = object_type(kind)
    assert known is not None, kind
    return convert(manifest, known)


def _manifest(obj: Any) -> Manifest:
    """An object as an API server would send it."""
    manifest: Manifest = plain(obj)
    return manifest


def _merged(value: Any, patch: Any) -> Any:
    """A value changed by a merge patch."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(value) if isinstance(value, dict) else {}
    for key, change in patch.items():
        if change is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), change)
    return merged
